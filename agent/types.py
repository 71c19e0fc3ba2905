"""What passes between the rooms: observations, actions, trajectories, and their shapes.

Letters used in every docstring:
  T  learnt steps of a trajectory; arrays hold T + 1, the last one is the bootstrap
  B  batch            D  devices
  E  entity rows      F  entity columns (48)
  K  unit picks       N  unit types (256)
  A  functions (327)  U  upgrades (90)     X  effects (82)
  H, W  rows and columns of the map planes;  L  rows and columns of the location grid

Types are written for one step; a trajectory is time-major `[T + 1, ...]`. Ids inside an observation
(unit types, orders, upgrades, buffs) are dense indices of `vocabulary`. Positions are in the
256 x 256 grid of the published agent, whatever the map's size (Vinyals et al. 2019, detailed
architecture): `x' = floor(256 / max(map_w, map_h) * x)`, y downwards.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.agent import vocabulary as v
from starleague.agent.vocabulary import Arguments

Array = Any  # a numpy or JAX array, or a jax.ShapeDtypeStruct where a spec is meant

# Columns of a row of `entities`: pysc2's raw FeatureUnit in its order, then the two that say what
# the last action touched.
ENTITY_COLUMNS = (
  "unit_type", "alliance", "health", "shield", "energy", "cargo_space_taken", "build_progress",
  "health_ratio", "shield_ratio", "energy_ratio", "display_type", "owner", "x", "y", "facing",
  "radius", "cloak", "is_selected", "is_blip", "is_powered", "mineral_contents",
  "vespene_contents", "cargo_space_max", "assigned_harvesters", "ideal_harvesters",
  "weapon_cooldown", "order_length", "order_id_0", "order_id_1", "tag", "hallucination",
  "buff_id_0", "buff_id_1", "addon_unit_type", "active", "is_on_screen", "order_progress_0",
  "order_progress_1", "order_id_2", "order_id_3", "is_in_cargo", "buff_duration_remain",
  "buff_duration_max", "attack_upgrade_level", "armor_upgrade_level", "shield_upgrade_level",
  "was_selected", "was_targeted")
NUM_ENTITY_COLUMNS = len(ENTITY_COLUMNS)
COLUMN = {name: i for i, name in enumerate(ENTITY_COLUMNS)}

# Planes of `minimap`, in order, with the number of values each takes (height is 0..255).
MINIMAP_PLANES = ("height_map", "visibility", "creep", "player_relative", "alerts", "pathable",
                  "buildable")
# `player`, in order: pysc2's `player` without its first column, player_id.
PLAYER_COLUMNS = ("minerals", "vespene", "food_used", "food_cap", "food_army", "food_workers",
                  "idle_worker_count", "army_count", "warp_gate_count", "larva_count")
# `cumulative_score`, in order: the first 13 of pysc2's ScoreCumulative.
SCORE_COLUMNS = (
  "score", "idle_production_time", "idle_worker_time", "total_value_units",
  "total_value_structures", "killed_value_units", "killed_value_structures", "collected_minerals",
  "collected_vespene", "collection_rate_minerals", "collection_rate_vespene", "spent_minerals",
  "spent_vespene")
ALLIANCE_SELF, ALLIANCE_ALLY, ALLIANCE_NEUTRAL, ALLIANCE_ENEMY = 1, 2, 3, 4
RACES = ("none", "terran", "zerg", "protoss", "random")
BUILD_ORDER_LENGTH = 20
NUM_DELAYS = 128
MAX_DELAY = NUM_DELAYS - 1  # game loops
POSITION_GRID = 256
GAME_LOOPS_PER_SECOND = 22.4

# The five reward streams and the value functions that learn them, in this order.
REWARDS = ("winloss", "build_order", "built_units", "upgrades", "effects")
PSEUDO_REWARDS = REWARDS[1:]


class Statistics(NamedTuple):
  """z: what a game was about. All zero means "unconditional" (Vinyals et al. 2019, Methods)."""

  build_order: Array  # [20] uint8: unit types in the order they were begun, 0 past the end
  build_order_xy: Array  # [20, 2] uint8: where, on the 256 grid
  units: Array  # [N] bool: unit types that were built
  effects: Array  # [X] bool: effect functions that were used
  upgrades: Array  # [U] bool: upgrades that were researched


class Observation(NamedTuple):
  """What a player may see."""

  entities: Array  # [E, F] int16, rows past entity_count are zero
  entity_count: Array  # [] int16
  minimap: Array  # [7, H, W] uint8
  # [4] int16: left, top, right, bottom of what the camera shows, on the 256 grid; the last two
  # are past it. All zero where the game has no camera.
  camera: Array
  player: Array  # [10] int32, PLAYER_COLUMNS
  home_race: Array  # [] uint8, an index of RACES
  away_race: Array  # [] uint8, 0 until it is known
  upgrades: Array  # [U] bool
  enemy_upgrades: Array  # [U] bool, what can be told from units in sight
  game_loop: Array  # [] int32, 22.4 a second
  available_actions: Array  # [A] bool
  unit_counts: Array  # [N] uint8, own units
  mmr: Array  # [] int16
  last_delay: Array  # [] int16, loops since the last action, clipped to 127
  last_function: Array  # [] int16
  last_queued: Array  # [] uint8, 0 or 1
  last_repeat: Array  # [] uint8, 0 to 2
  statistics: Statistics  # z
  # [] uint8: why the last action did nothing, an ActionResult of the game's protocol; 0 if it did
  # something. Networks do not read it, as the published agent's do not.
  action_result: Array


class Privileged(NamedTuple):
  """What only the value functions see, in training."""

  cumulative_score: Array  # [13] int32, SCORE_COLUMNS
  executed: Statistics  # what the player has done so far
  opponent_player: Array  # [10] int32
  opponent_upgrades: Array  # [U] bool
  opponent_unit_counts: Array  # [N] uint8
  opponent_cumulative_score: Array  # [13] int32
  opponent_statistics: Statistics  # the opponent's z
  opponent_executed: Statistics


class Action(NamedTuple):
  """A structured action; every argument is a dense index, unused ones are zero."""

  function: Array  # [] int16
  delay: Array  # [] int16, game loops until the next observation, 1 to 127
  queued: Array  # [] uint8
  repeat: Array  # [] uint8: issue the command 1, 2 or 3 times
  units: Array  # [K] int16: entity rows, then E (the end token) to the end; all E where unused
  target_unit: Array  # [] int16, an entity row
  location: Array  # [] int32, y * L + x


class Step(NamedTuple):
  """One agent step: what was seen, what was done, what came of it."""

  observation: Observation
  privileged: Privileged
  action: Action
  log_prob: Arguments  # [] float32 each: the behaviour policy's; 0 where the argument is unused
  reward: Array  # [5] float32, REWARDS, received between this action and the next observation
  discount: Array  # [] float32, 0 where the game ended before another observation, else 1
  pseudo_active: Array  # [4] bool: which pseudo-rewards this game plays for, PSEUDO_REWARDS
  weight: Array  # [] float32, 0 where the step only fills a game shorter than T, else 1


class Trajectory(NamedTuple):
  """T + 1 consecutive steps of one player; the last is only bootstrapped from."""

  steps: Step  # [T + 1, ...]
  initial_state: Any  # the core's state before the first step


def statistics_spec() -> Statistics:
  """Shapes and dtypes of z, as ShapeDtypeStructs."""
  s = jax.ShapeDtypeStruct
  return Statistics(
    build_order=s((BUILD_ORDER_LENGTH,), np.uint8),
    build_order_xy=s((BUILD_ORDER_LENGTH, 2), np.uint8),
    units=s((v.NUM_UNIT_TYPES,), np.bool_),
    effects=s((v.NUM_EFFECTS,), np.bool_),
    upgrades=s((v.NUM_UPGRADES,), np.bool_))


def observation_spec(max_entities: int, map_size: int) -> Observation:
  """Shapes and dtypes of an observation, as ShapeDtypeStructs; E and H = W are given."""
  s = jax.ShapeDtypeStruct
  return Observation(
    entities=s((max_entities, NUM_ENTITY_COLUMNS), np.int16),
    entity_count=s((), np.int16),
    minimap=s((len(MINIMAP_PLANES), map_size, map_size), np.uint8),
    camera=s((4,), np.int16),
    player=s((len(PLAYER_COLUMNS),), np.int32),
    home_race=s((), np.uint8),
    away_race=s((), np.uint8),
    upgrades=s((v.NUM_UPGRADES,), np.bool_),
    enemy_upgrades=s((v.NUM_UPGRADES,), np.bool_),
    game_loop=s((), np.int32),
    available_actions=s((v.NUM_FUNCTIONS,), np.bool_),
    unit_counts=s((v.NUM_UNIT_TYPES,), np.uint8),
    mmr=s((), np.int16),
    last_delay=s((), np.int16),
    last_function=s((), np.int16),
    last_queued=s((), np.uint8),
    last_repeat=s((), np.uint8),
    statistics=statistics_spec(),
    action_result=s((), np.uint8))


def privileged_spec() -> Privileged:
  """Shapes and dtypes of the value functions' extra inputs, as ShapeDtypeStructs."""
  s = jax.ShapeDtypeStruct
  return Privileged(
    cumulative_score=s((len(SCORE_COLUMNS),), np.int32),
    executed=statistics_spec(),
    opponent_player=s((len(PLAYER_COLUMNS),), np.int32),
    opponent_upgrades=s((v.NUM_UPGRADES,), np.bool_),
    opponent_unit_counts=s((v.NUM_UNIT_TYPES,), np.uint8),
    opponent_cumulative_score=s((len(SCORE_COLUMNS),), np.int32),
    opponent_statistics=statistics_spec(),
    opponent_executed=statistics_spec())


def action_spec(max_selected: int) -> Action:
  """Shapes and dtypes of an action, as ShapeDtypeStructs; K is given."""
  s = jax.ShapeDtypeStruct
  return Action(
    function=s((), np.int16), delay=s((), np.int16), queued=s((), np.uint8),
    repeat=s((), np.uint8), units=s((max_selected,), np.int16), target_unit=s((), np.int16),
    location=s((), np.int32))


def step_spec(max_entities: int, map_size: int, max_selected: int) -> Step:
  """Shapes and dtypes of a step, as ShapeDtypeStructs."""
  s = jax.ShapeDtypeStruct
  scalar = s((), np.float32)
  return Step(
    observation=observation_spec(max_entities, map_size),
    privileged=privileged_spec(),
    action=action_spec(max_selected),
    log_prob=Arguments(*[scalar] * len(Arguments._fields)),
    reward=s((len(REWARDS),), np.float32),
    discount=scalar,
    pseudo_active=s((len(PSEUDO_REWARDS),), np.bool_),
    weight=scalar)


def trajectory_spec(config, unroll_length: int) -> Trajectory:
  """Shapes and dtypes of a trajectory of `unroll_length` learnt steps, as ShapeDtypeStructs.

  Args:
    config: an AgentConfig.
    unroll_length: T.
  """
  step = step_spec(config.max_entities, config.map_size, config.max_selected)
  steps = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct((unroll_length + 1, *x.shape), x.dtype), step)
  return Trajectory(steps=steps, initial_state=core_state_spec(config))


class CoreState(NamedTuple):
  """The core's memory: hidden and cell of each layer, float32."""

  hidden: Array  # [layers, size]
  cell: Array  # [layers, size]


def core_state_spec(config) -> CoreState:
  """Shapes and dtypes of the core's state, as ShapeDtypeStructs."""
  layer = jax.ShapeDtypeStruct((config.core_layers, config.core_size), np.float32)
  return CoreState(hidden=layer, cell=layer)


def zeros(spec):
  """A tree of numpy zeros of a spec's shapes and dtypes."""
  return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), spec)
