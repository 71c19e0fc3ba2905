"""Data contracts between the rooms: observations, actions, steps, trajectories, and their specs.

Letters in every docstring:
  T  learnt steps of a trajectory; arrays hold T + 1, the last step is the bootstrap
  B  batch            D  devices
  E  entity rows      F  entity columns (48)
  K  unit picks       N  unit types (256)
  A  functions (327)  U  upgrades (90)     X  effects (82)
  H, W  rows and columns of the map planes;  L  rows and columns of the location grid

Each type is written for one step; a trajectory is time-major, `[T + 1, ...]`. Ids in an observation
(unit types, orders, upgrades, buffs) are dense indices of `vocabulary`. Positions are on a
256 x 256 grid for every map size, `x' = floor(256 / max(map_w, map_h) * x)`, with y downwards
(Vinyals et al. 2019, detailed architecture).

The leaves of a type are arrays, or one other value per array: a `jax.ShapeDtypeStruct` in its spec,
an axis for `vmap`, a bound.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.agent import vocabulary as v
from starleague.agent.config import AgentConfig
from starleague.agent.vocabulary import Arguments

Array = jax.Array | np.ndarray
Leaf = Any  # an Array, or one value per array: see above

# Columns of `entities`: pysc2's raw FeatureUnit in its order, then two that mark the units that the
# last action selected and targeted.
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

# Planes of `minimap`, in order. The height map is 0 to 255, the others are classes.
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
DISPLAY_PLACEHOLDER = 4  # the column `display_type` of a structure that is only ordered
RACES = ("none", "terran", "zerg", "protoss", "random")
BUILD_ORDER_LENGTH = 20
NUM_DELAYS = 128
MAX_DELAY = NUM_DELAYS - 1  # game loops between two observations of a player
POSITION_GRID = 256
GAME_LOOPS_PER_SECOND = 22.4

# The five reward streams, in the order of the value functions.
REWARDS = ("winloss", "build_order", "built_units", "upgrades", "effects")
PSEUDO_REWARDS = REWARDS[1:]


class Statistics(NamedTuple):
  """Statistics of a game, a z; all zero if unconditional (Vinyals et al. 2019, Methods).

  z is a value of this type; the fields of observations and files that hold one keep its name,
  `statistics`.
  """

  build_order: Leaf  # [20] uint8: unit types in the order of their construction, 0 past the end
  build_order_xy: Leaf  # [20, 2] uint8: positions on the 256 grid
  units: Leaf  # [N] bool: unit types that were built
  effects: Leaf  # [X] bool: effect functions that were used
  upgrades: Leaf  # [U] bool: upgrades that were researched


class Observation(NamedTuple):
  """The information available to a player."""

  entities: Leaf  # [E, F] int16, rows past entity_count are zero
  entity_count: Leaf  # [] int16
  minimap: Leaf  # [7, H, W] uint8
  # [4] int16: left, top, right, bottom of the camera's view on the 256 grid; right and bottom are
  # exclusive. All zero if the game has no camera.
  camera: Leaf
  player: Leaf  # [10] int32, PLAYER_COLUMNS
  home_race: Leaf  # [] uint8, an index of RACES
  away_race: Leaf  # [] uint8, 0 while unknown
  upgrades: Leaf  # [U] bool
  enemy_upgrades: Leaf  # [U] bool, those that visible units reveal
  game_loop: Leaf  # [] int32, 22.4 a second
  available_actions: Leaf  # [A] bool
  unit_counts: Leaf  # [N] uint8, own units
  mmr: Leaf  # [] int16
  last_delay: Leaf  # [] int16, loops since the last action, clipped to 127
  last_function: Leaf  # [] int16
  last_queued: Leaf  # [] uint8, 0 or 1
  last_repeat: Leaf  # [] uint8, 0 to 2
  statistics: Statistics  # z
  # [] uint8: the game's error code (ActionResult) for the last action, 0 if it had an effect. The
  # networks do not read it; nor do the published agent's.
  action_result: Leaf


class Privileged(NamedTuple):
  """Inputs of the value functions only, in training."""

  cumulative_score: Leaf  # [13] int32, SCORE_COLUMNS
  executed: Statistics  # the player's own, so far in the game
  opponent_player: Leaf  # [10] int32
  opponent_upgrades: Leaf  # [U] bool
  opponent_unit_counts: Leaf  # [N] uint8
  opponent_cumulative_score: Leaf  # [13] int32
  opponent_statistics: Statistics  # the opponent's z
  opponent_executed: Statistics


class Action(NamedTuple):
  """A structured action. Every argument is a dense index; unused arguments are zero."""

  function: Leaf  # [] int16
  delay: Leaf  # [] int16: game loops until the next observation, 1 to 127
  queued: Leaf  # [] uint8
  repeat: Leaf  # [] uint8: issue the command 1, 2 or 3 times
  units: Leaf  # [K] int16: entity rows, then E (the end token) to the end; all E where unused
  target_unit: Leaf  # [] int16, an entity row
  location: Leaf  # [] int32, y * L + x


class Step(NamedTuple):
  """One agent step: observation, action, and the reward that followed."""

  observation: Observation
  privileged: Privileged
  action: Action
  log_prob: Arguments  # [] float32 each: the behaviour policy's, 0 for unused arguments
  reward: Leaf  # [5] float32, REWARDS: received between this action and the next observation
  discount: Leaf  # [] float32, 0 if the game ended before the next observation, else 1
  pseudo_active: Leaf  # [4] bool, PSEUDO_REWARDS: the pseudo-rewards active in this game
  weight: Leaf  # [] float32, 0 for padding of a game shorter than T, else 1


class CoreState(NamedTuple):
  """State of the recurrent core, float32."""

  hidden: Leaf  # [layers, size]
  cell: Leaf  # [layers, size]


class Trajectory(NamedTuple):
  """T + 1 consecutive steps of one player; the last one gives the bootstrap value only."""

  steps: Step  # [T + 1, ...]
  initial_state: CoreState  # before the first step


def statistics_spec() -> Statistics:
  """Returns the spec of z."""
  s = jax.ShapeDtypeStruct
  return Statistics(
    build_order=s((BUILD_ORDER_LENGTH,), np.uint8),
    build_order_xy=s((BUILD_ORDER_LENGTH, 2), np.uint8),
    units=s((v.NUM_UNIT_TYPES,), np.bool_),
    effects=s((v.NUM_EFFECTS,), np.bool_),
    upgrades=s((v.NUM_UPGRADES,), np.bool_))


def observation_spec(max_entities: int, map_size: int) -> Observation:
  """Returns the spec of an observation with E = max_entities and H = W = map_size."""
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
  """Returns the spec of the value functions' extra inputs."""
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
  """Returns the spec of an action with K = max_selected."""
  s = jax.ShapeDtypeStruct
  return Action(
    function=s((), np.int16), delay=s((), np.int16), queued=s((), np.uint8),
    repeat=s((), np.uint8), units=s((max_selected,), np.int16), target_unit=s((), np.int16),
    location=s((), np.int32))


def step_spec(max_entities: int, map_size: int, max_selected: int) -> Step:
  """Returns the spec of a step."""
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


def trajectory_spec(config: AgentConfig, unroll_length: int) -> Trajectory:
  """Returns the spec of a trajectory with T = unroll_length."""
  step = step_spec(config.max_entities, config.map_size, config.max_selected)
  steps = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct((unroll_length + 1, *x.shape), x.dtype), step)
  return Trajectory(steps=steps, initial_state=core_state_spec(config))


def core_state_spec(config: AgentConfig) -> CoreState:
  """Returns the spec of the core's state."""
  layer = jax.ShapeDtypeStruct((config.core_layers, config.core_size), np.float32)
  return CoreState(hidden=layer, cell=layer)


def zeros(spec: Any) -> Any:
  """Returns numpy zeros of a spec's shapes and dtypes."""
  return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), spec)
