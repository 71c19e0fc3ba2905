"""What a player is shown, in the agent's observations: no more than it may know."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor.environments.skirmish import economy, orders, tables
from starleague.actor.environments.skirmish.perception import cells, discs
from starleague.actor.environments.skirmish.state import (
  Array,
  State,
  by_dense,
  counts,
  finished_kind,
  flip,
  food,
  look_up,
  patch_places,
)
from starleague.agent import types, vocabulary

CELLS_PER_MAP = types.POSITION_GRID
DISPLAY_VISIBLE, DISPLAY_SNAPSHOT = 1, 2
NEUTRAL_OWNER = 16
HEIGHT = 128  # of the whole map: it is flat
FULL_VIEW = 2  # visibility of a cell in sight; 1 is explored, 0 hidden


class Sight(NamedTuple):
  """The candidates for rows, [2, 2 n + R]: own slots, the enemy's, patches."""

  present: Array  # bool
  row: Array  # int32: the row of each that is present
  count: Array  # [2] int32


def rows_of(rules: tables.Rules, state: State) -> Sight:
  """Which of its own slots, the enemy's and the patches a player is shown, and in which rows."""
  memory = state.memory
  remembered = jnp.pad(memory.kind > 0, ((0, 0), (0, rules.tier.units)))
  present = jnp.concatenate(
    [state.kind > 0, memory.seen | remembered, memory.patches > 0], axis=1)
  total = jnp.cumsum(present, axis=1)
  return Sight(present, total - 1, total[:, -1])


def _of(tree, player: Array):
  """One player's part of a tree of [2, ...] arrays. A select: cheaper than a gather."""
  return jax.tree.map(lambda values: jnp.where(player == 0, values[0], values[1]), tree)


def _order_functions(rules: tables.Rules, state: State) -> Array:
  """The dense function index of each unit's order: [2, M]."""
  functions = rules.functions
  names = {tables.MOVE: "Move_pt", tables.ATTACK: "Attack_pt", tables.ATTACK_UNIT: "Attack_unit",
           tables.HOLD: "HoldPosition_quick", tables.GATHER: "Harvest_Gather_unit"}
  by_verb = np.zeros(8, np.int32)
  for verb, name in names.items():
    by_verb[verb] = vocabulary.FUNCTIONS.index(name)
  maker = np.zeros(len(rules.types.names), np.int32)  # what makes a type
  maker[functions.product] = functions.index
  maker[0] = 0
  verb, order = state.orders.verb, state.orders
  builds = (verb == tables.BUILD) | (verb == tables.CONSTRUCT)
  return jnp.where(builds, look_up(maker, order.product),
                   look_up(by_verb, verb)).astype(jnp.int32)


def _own_columns(rules: tables.Rules, state: State) -> dict[str, Array]:
  """What a player knows of its own slots alone, [2, n] each."""
  tier, types_, s = rules.tier, rules.types, rules.tier.structures
  functions = rules.functions
  maker = np.zeros(len(types_.names), np.int32)
  maker[functions.product] = functions.index
  maker[0] = 0
  order = _order_functions(rules, state)
  queue = look_up(maker, state.queue)
  queued = jnp.sum(state.queue > 0, axis=2)
  loops = jnp.maximum(look_up(types_.loops, state.queue[:, :, 0]), 1)
  progress = jnp.where(queued > 0, 100 - 100 * state.training / loops, 0)
  length = (order > 0).astype(jnp.int32) + (state.next_orders.verb != tables.IDLE)
  hall = look_up(types_.townhall, finished_kind(rules, state)) > 0
  patch_x, patch_y = patch_places(rules, state.side)
  near = ((state.x[:, :s, None] - patch_x[:, None]) ** 2
          + (state.y[:, :s, None] - patch_y[:, None]) ** 2) < economy.TOWNHALL_REACH ** 2
  assigned = _assigned(rules, state)
  ours = near & hall[:, :, None]
  zero = jnp.zeros((2, tier.units))
  rest = jnp.zeros((2, s))

  def join(structures, units):
    return jnp.concatenate([structures, units], axis=1)

  return {
    "assigned_harvesters": join(jnp.sum(ours * assigned[:, None], axis=2), zero),
    "ideal_harvesters": join(
      2 * jnp.sum(ours & (state.memory.patches > 0)[:, None], axis=2), zero),
    "weapon_cooldown": join(rest, jnp.clip(jnp.ceil(state.cooldown), 0, 127)),
    "order_length": join(queued, length),
    "order_id_0": join(queue[:, :, 0], order),
    "order_id_1": join(queue[:, :, 1], zero),
    "order_id_2": join(queue[:, :, 2], zero),
    "order_id_3": join(queue[:, :, 3], zero),
    "order_progress_0": join(progress, zero),
    "active": join(queued > 0, order > 0),
    "was_selected": state.was_selected,
  }


def _assigned(rules: tables.Rules, state: State) -> Array:
  """How many of a player's workers mine each patch: [2, R]."""
  at = state.orders.target[:, :, None] == jnp.arange(rules.tier.resources)
  return jnp.sum(at & (state.orders.verb == tables.GATHER)[:, :, None], axis=1)


def _columns(rules: tables.Rules, state: State) -> dict[str, Array]:
  """Columns of the candidates for rows, [2, 2 n + R] each; those not named are zero."""
  tier, types_, s = rules.tier, rules.types, rules.tier.structures
  n, memory = tier.slots, state.memory
  in_sight = memory.seen

  def known(current, remembered):
    """The enemy's structures where out of sight are as they were last seen."""
    current = flip(current)
    return current.at[:, :s].set(jnp.where(in_sight[:, :s], current[:, :s], remembered))

  kind = jnp.concatenate([state.kind, known(state.kind, memory.kind)], axis=1)
  health = jnp.concatenate([state.health, known(state.health, memory.health)], axis=1)
  patch_x, patch_y = patch_places(rules, state.side)
  x = jnp.concatenate([state.x, known(state.x, memory.x), patch_x], axis=1)
  y = jnp.concatenate([state.y, known(state.y, memory.y), patch_y], axis=1)
  table = np.stack([types_.index, types_.health, types_.radius, types_.loops], axis=1)
  dense, most, radius, loops = jnp.moveaxis(look_up(table, kind), -1, 0)
  unfinished = state.unfinished
  seen_unfinished = jnp.where(in_sight[:, :s], flip(unfinished), 0)
  built = jnp.concatenate([
    jnp.pad(unfinished, ((0, 0), (0, tier.units))),
    jnp.pad(seen_unfinished, ((0, 0), (0, tier.units)))], axis=1)
  progress = jnp.floor(100 - 100 * built / jnp.maximum(loops, 1))
  snapshot = jnp.concatenate([jnp.ones((2, n)) > 0, in_sight], axis=1)
  r = tier.resources
  mineral = vocabulary.UNIT_TYPES.index("MineralField")

  def join(units, patches):
    return jnp.concatenate([units, jnp.full((2, r), patches, units.dtype)], axis=1)

  alliance = np.repeat([types.ALLIANCE_SELF, types.ALLIANCE_ENEMY], n)[None] + np.zeros((2, 1))
  owner = np.repeat([[1, 2], [2, 1]], n, axis=1)
  scale = CELLS_PER_MAP / tier.map_size

  def place(values):
    return jnp.clip(jnp.floor(scale * (values + rules.half)), 0, CELLS_PER_MAP - 1)

  columns = {
    "unit_type": join(dense, mineral),
    "alliance": join(jnp.asarray(alliance), types.ALLIANCE_NEUTRAL),
    "health": join(jnp.ceil(health), 0),
    "build_progress": join(progress, 100),
    "health_ratio": join(jnp.floor(255 * jnp.clip(health / jnp.maximum(most, 1), 0, 1)), 0),
    "display_type": join(jnp.where(snapshot, DISPLAY_VISIBLE, DISPLAY_SNAPSHOT), DISPLAY_VISIBLE),
    "owner": join(jnp.asarray(owner), NEUTRAL_OWNER),
    "x": place(x), "y": place(y),
    "radius": join(jnp.ceil(radius), 1),
    "is_on_screen": join(jnp.ones((2, 2 * n)), 1),
    "mineral_contents": jnp.concatenate([jnp.zeros((2, 2 * n)), memory.patches], axis=1),
    "tag": jnp.tile(jnp.arange(1, 2 * n + r + 1), (2, 1)),
    "was_targeted": state.was_targeted,
  }
  for name, values in _own_columns(rules, state).items():
    columns[name] = jnp.pad(values, ((0, 0), (0, n + r)))
  half = jnp.pad(_assigned(rules, state), ((0, 0), (2 * n, 0)))
  columns["assigned_harvesters"] += half
  columns["ideal_harvesters"] += join(jnp.zeros((2, 2 * n)), economy.FULL_PATCH)
  return columns


def entities(rules: tables.Rules, state: State) -> tuple[Array, Array]:
  """Both players' rows: [2, E, F] int16 and how many they are, [2] int16."""
  columns = _columns(rules, state)
  sight = rows_of(rules, state)
  used = list(columns)
  table = jnp.stack([columns[name].astype(jnp.float32) for name in used], axis=-1)
  rows = jnp.arange(rules.max_entities)
  match = sight.present[:, None] & (sight.row[:, None] == rows[:, None])  # [2, E, 2 n + R]
  packed = match.astype(jnp.float32) @ table
  selector = np.zeros((len(used), types.NUM_ENTITY_COLUMNS), np.float32)
  selector[np.arange(len(used)), [types.COLUMN[name] for name in used]] = 1
  return (packed @ selector).astype(jnp.int16), sight.count.astype(jnp.int16)


def minimap(rules: tables.Rules, state: State) -> Array:
  """Both players' planes: [2, 7, H, W] uint8, MINIMAP_PLANES."""
  memory = state.memory
  visible = cells(rules, memory.visible)
  explored = cells(rules, memory.explored)
  enough = 0.75 * rules.tier.map_size / rules.map_size  # so that every unit covers a cell's middle
  radius = jnp.maximum(look_up(rules.types.radius, state.kind), enough) * (state.kind > 0)
  remembered = jnp.maximum(look_up(rules.types.radius, memory.kind), enough) * (memory.kind > 0)
  theirs = jnp.where(memory.seen, flip(radius), 0.0)
  own = cells(rules, discs(rules, state.x, state.y, radius))
  enemy = discs(rules, flip(state.x), flip(state.y), theirs)
  enemy |= discs(rules, memory.x, memory.y, remembered)
  enemy = cells(rules, enemy)
  patch_x, patch_y = patch_places(rules, state.side)
  patches = cells(rules, discs(
    rules, patch_x, patch_y, jnp.where(memory.patches > 0, tables.PATCH_RADIUS, 0.0)))
  relative = jnp.where(
    own > 0, types.ALLIANCE_SELF, jnp.where(
      enemy > 0, types.ALLIANCE_ENEMY, types.ALLIANCE_NEUTRAL * patches)).astype(jnp.uint8)
  alerts = cells(rules, discs(rules, state.x, state.y, radius * state.hurt))
  shape = relative.shape
  planes = {
    "height_map": jnp.full(shape, HEIGHT, jnp.uint8),
    "visibility": jnp.where(visible > 0, FULL_VIEW, explored).astype(jnp.uint8),
    "creep": jnp.zeros(shape, jnp.uint8),
    "player_relative": relative,
    "alerts": alerts,
    "pathable": jnp.ones(shape, jnp.uint8),
    "buildable": (1 - patches).astype(jnp.uint8),
  }
  return jnp.stack([planes[name] for name in types.MINIMAP_PLANES], axis=1)


def player_columns(rules: tables.Rules, state: State) -> Array:
  """PLAYER_COLUMNS of both: [2, 10] int32."""
  types_, s = rules.types, rules.tier.structures
  used, most = food(rules, state)
  units = state.kind[:, s:]
  worker = look_up(types_.worker, units) > 0
  fighter = look_up(types_.fighter, units) > 0
  eats = look_up(types_.takes_food, units)
  zero = jnp.zeros(2)
  columns = {
    "minerals": state.minerals, "vespene": zero, "food_used": used, "food_cap": most,
    "food_army": jnp.sum(fighter * eats, axis=1), "food_workers": jnp.sum(worker * eats, axis=1),
    "idle_worker_count": jnp.sum(worker & (state.orders.verb == tables.IDLE), axis=1),
    "army_count": jnp.sum(fighter, axis=1), "warp_gate_count": zero, "larva_count": zero}
  return jnp.stack([columns[name] for name in types.PLAYER_COLUMNS], axis=1).astype(jnp.int32)


def score_columns(state: State) -> Array:
  """SCORE_COLUMNS of both: [2, 13] int32; idle times in game loops, rates a minute."""
  score, zero = state.score, jnp.zeros(2, jnp.int32)
  minutes = jnp.maximum(state.loop, 1) / (60 * types.GAME_LOOPS_PER_SECOND)
  columns = {
    "score": state.minerals + score.units + score.structures + score.killed_units + (
      score.killed_structures),
    "idle_production_time": score.idle_production, "idle_worker_time": score.idle_workers,
    "total_value_units": score.units, "total_value_structures": score.structures,
    "killed_value_units": score.killed_units, "killed_value_structures": score.killed_structures,
    "collected_minerals": score.collected, "collected_vespene": zero,
    "collection_rate_minerals": (score.collected / minutes).astype(jnp.int32),
    "collection_rate_vespene": zero, "spent_minerals": score.spent, "spent_vespene": zero}
  return jnp.stack([columns[name] for name in types.SCORE_COLUMNS], axis=1)


def observe(rules: tables.Rules, state: State, player: Array):
  """What a player sees, and what its value functions see besides.

  Args:
    rules: the game's constants.
    state: the game.
    player: [] int32, 0 or 1.

  Returns:
    (Observation, Privileged), unbatched.
  """
  rows, count = entities(rules, state)
  columns, score = player_columns(rules, state), score_columns(state)
  can = orders.available(rules, state)
  # no_op is local and dense index 0, and always there.
  functions = by_dense(rules.functions.index, can.astype(jnp.uint8), vocabulary.NUM_FUNCTIONS)
  functions = functions.at[:, 0].set(1) > 0
  local = counts(rules, state, finished=False)
  unit_counts = by_dense(rules.types.index, local, vocabulary.NUM_UNIT_TYPES).astype(jnp.uint8)
  races = state.match_up.races
  none = jnp.zeros(vocabulary.NUM_UPGRADES, bool)
  whole = jnp.array([0, 0, types.POSITION_GRID, types.POSITION_GRID], jnp.int16)
  both = {
    "entities": rows, "entity_count": count, "minimap": minimap(rules, state),
    "player": columns, "home_race": races.astype(jnp.uint8),
    "away_race": jnp.where(state.memory.met, flip(races), 0).astype(jnp.uint8),
    "available_actions": functions, "unit_counts": unit_counts,
    "last_delay": jnp.minimum(state.loop - state.last_loop, 127).astype(jnp.int16),
    "last_function": state.last_function.astype(jnp.int16),
    "last_queued": state.last_queued.astype(jnp.uint8),
    "last_repeat": state.last_repeat.astype(jnp.uint8),
    "statistics": state.match_up.statistics}
  observation = types.Observation(
    **_of(both, player), upgrades=none, enemy_upgrades=none, game_loop=state.loop,
    mmr=jnp.int16(6200), camera=whole)  # the camera shows the whole of so small a map
  other = 1 - player
  privileged = types.Privileged(
    cumulative_score=_of(score, player), executed=_of(state.executed, player),
    opponent_player=_of(columns, other), opponent_upgrades=none,
    opponent_unit_counts=_of(unit_counts, other), opponent_cumulative_score=_of(score, other),
    opponent_statistics=_of(state.match_up.statistics, other),
    opponent_executed=_of(state.executed, other))
  return observation, privileged
