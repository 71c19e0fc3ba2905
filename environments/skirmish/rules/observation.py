"""What a player is shown, in the agent's observations: no more than it may know."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules import (
  availability,
  constants,
  placement,
  planes,
  tables,
)
from starleague.environments.skirmish.rules.arrays import flip, look_up, pick, segment_sum, to_dense
from starleague.environments.skirmish.rules.constants import STIM_LOOPS, TOWNHALL_REACH
from starleague.environments.skirmish.rules.queries import (
  finished_kind,
  is_geyser,
  present_types,
  resource_positions,
  type_counts,
)
from starleague.environments.skirmish.rules.state import Array, State
from starleague.environments.skirmish.rules.supply import food
from starleague.environments.skirmish.rules.upgrades import max_health

CELLS_PER_MAP = types.POSITION_GRID
DISPLAY_VISIBLE, DISPLAY_SNAPSHOT = 1, 2
NEUTRAL_OWNER = 16


class EntityRows(NamedTuple):
  """The candidates for rows, [2, 2 n + R]: own slots, the enemy's, patches."""

  present: Array  # bool
  row: Array  # int32: the row of each that is present
  count: Array  # [2] int32


def entity_rows(rules: tables.Rules, state: State) -> EntityRows:
  """Which of its own slots, the enemy's and the patches a player is shown, and in which rows."""
  memory = state.memory
  remembered = jnp.pad(memory.kind > 0, ((0, 0), (0, rules.tier.units)))
  present = jnp.concatenate(
    [state.kind > 0, memory.seen | remembered, memory.patches > 0], axis=1)
  total = jnp.cumsum(present, axis=1)
  return EntityRows(present, total - 1, total[:, -1])


def _of(tree, player: Array):
  """One player's part of a tree of [2, ...] arrays. A select: cheaper than a gather."""
  return jax.tree.map(lambda values: jnp.where(player == 0, values[0], values[1]), tree)


def _order_functions(rules: tables.Rules, state: State) -> Array:
  """The dense function index of each unit's order: [2, M]."""
  functions = rules.functions
  names = {constants.MOVE: "Move_pt", constants.ATTACK: "Attack_pt", constants.ATTACK_UNIT: "Attack_unit",
           constants.HOLD: "HoldPosition_quick", constants.GATHER: "Harvest_Gather_unit",
           constants.PATROL: "Patrol_pt", constants.REPAIR: "Effect_Repair_unit",
           constants.RETURN: "Harvest_Return_quick"}
  by_verb = np.zeros(constants.RETURN + 1, np.int32)
  for verb, name in names.items():
    by_verb[verb] = vocabulary.FUNCTIONS.index(name)
  verb, order = state.orders.verb, state.orders
  verb = jnp.where((verb == constants.GATHER) & (state.cargo > 0), constants.RETURN, verb)
  builds = (verb == constants.BUILD) | (verb == constants.CONSTRUCT)
  maker = functions.index[rules.products.function]
  return jnp.where(builds, look_up(maker, order.product), look_up(by_verb, verb))


def _queue_functions(rules: tables.Rules, state: State) -> Array:
  """The dense function indices of what is in the making: [2, S, 5]."""
  maker = rules.functions.index[rules.products.function]
  maker[0] = 0
  return look_up(maker, state.queue)


def _own_columns(rules: tables.Rules, state: State) -> dict[str, Array]:
  """What a player knows of its own slots alone, [2, n] each."""
  tier, types_, s = rules.tier, rules.types, rules.tier.structures
  order = _order_functions(rules, state)
  queue = _queue_functions(rules, state)
  # What comes third and later is named by what trains units only (types.Observation).
  trains = np.isin(np.arange(vocabulary.NUM_FUNCTIONS), vocabulary.TRAINING_FUNCTIONS)
  late = jnp.where(look_up(trains, queue), queue, 0)
  queued = jnp.sum(state.queue > 0, axis=2)
  loops = jnp.maximum(look_up(rules.products.loops, state.queue[:, :, :2]), 1)
  progress = jnp.where(state.queue[:, :, :2] > 0, 100 - 100 * state.timers[:, :, :2] / loops, 0)
  progress = jnp.clip(progress, 0, 100)
  length = (order > 0).astype(jnp.int32) + (state.next_orders.verb != constants.IDLE)
  hall = look_up(types_.townhall, finished_kind(rules, state))
  patch_x, patch_y = resource_positions(rules, state.side)
  near = ((state.x[:, :s, None] - patch_x[:, None]) ** 2
          + (state.y[:, :s, None] - patch_y[:, None]) ** 2) < TOWNHALL_REACH ** 2
  gas = is_geyser(rules)
  assigned = _assigned(rules, state)
  ours = near & hall[:, :, None] & ~gas
  zero = jnp.zeros((2, tier.units))
  ideal = constants.WORKERS_PER_PATCH * jnp.sum(ours & (state.memory.patches > 0)[:, None], axis=2)
  assigned_here = jnp.sum(ours * assigned[:, None], axis=2)
  if rules.has_gas:
    on_geyser = look_up(types_.gas, finished_kind(rules, state))[:, :, None] & gas & (
      ((state.x[:, :s, None] - patch_x[:, None]) ** 2
       + (state.y[:, :s, None] - patch_y[:, None]) ** 2) < 1.0)
    ideal += constants.WORKERS_PER_GEYSER * jnp.sum(on_geyser, axis=2)
    assigned_here += jnp.sum(on_geyser * assigned[:, None], axis=2)

  def join(structures, units):
    return jnp.concatenate([structures, units], axis=1)

  columns = {
    "assigned_harvesters": join(assigned_here, zero),
    "ideal_harvesters": join(ideal, zero),
    "weapon_cooldown": jnp.pad(
      jnp.clip(jnp.ceil(state.cooldown), 0, 127), ((0, 0), (tier.unarmed, 0))),
    "order_length": join(queued, length),
    "order_id_0": join(queue[:, :, 0], order),
    "order_id_1": join(queue[:, :, 1], zero),
    "order_id_2": join(late[:, :, 2], zero),
    "order_id_3": join(late[:, :, 3], zero),
    "order_progress_0": join(progress[:, :, 0], zero),
    "active": join(queued > 0, order > 0),
    "was_selected": state.was_selected,
  }
  if rules.has_larvae:
    columns["order_progress_1"] = join(progress[:, :, 1], zero)
  if rules.has_energy:
    most = jnp.maximum(look_up(types_.energy, state.kind), 1)
    columns["energy"] = jnp.floor(state.energy)
    columns["energy_ratio"] = jnp.floor(255 * jnp.clip(state.energy / most, 0, 1))
  on_structures, on_units = jnp.zeros((2, s), jnp.int32), _carried(rules, state)
  if rules.has(constants.STIM):
    stimmed = state.stimmed > 0
    marauder = state.kind[:, s:] == types_.local("Marauder")
    buff = jnp.where(marauder, vocabulary.BUFFS.index("StimpackMarauder"),
                     vocabulary.BUFFS.index("Stimpack"))
    on_units += jnp.where(stimmed, buff, 0)
    injected = jnp.where(state.injected > 0, vocabulary.BUFFS.index("QueenSpawnLarvaTimer"), 0)
    columns["buff_duration_remain"] = join(on_structures, state.stimmed)
    columns["buff_duration_max"] = join(on_structures, stimmed * STIM_LOOPS)
    on_structures = jnp.where(
      state.boosted > 0, vocabulary.BUFFS.index("ChronoBoostEnergyCost"), injected)
  columns["buff_id_0"] = join(on_structures, on_units)
  return columns


def _carried(rules: tables.Rules, state: State) -> Array:
  """The dense buff index of what each unit carries, 0 for nothing: [2, M]."""
  minerals = vocabulary.BUFFS.index("CarryMineralFieldMinerals")
  load = jnp.where(state.cargo > 0, minerals, 0)
  if not rules.has_gas:
    return load
  gas = [vocabulary.BUFFS.index(f"CarryHarvestableVespeneGeyserGas{race}")
         for race in ("", "Protoss", "Zerg")]
  vespene = look_up(np.array(gas, np.int32), state.race)[:, None]
  return jnp.where((load > 0) & state.cargo_gas, vespene, load)


def _assigned(rules: tables.Rules, state: State) -> Array:
  """How many of a player's workers mine each resource: [2, R]."""
  target = jnp.where(state.orders.verb == constants.GATHER, state.orders.target, -1)
  return segment_sum(target, jnp.ones_like(target), rules.tier.resources)


def _upgrade_levels(rules: tables.Rules, state: State) -> dict[str, Array]:
  """How often each type's attack, armour and shields were improved: [2, Y] each."""
  effects = rules.upgrades.effects
  columns = {}
  for name, effect in (("attack", "damage"), ("armor", "armour"), ("shield", "shield")):
    counts_ = (effects[:, constants.EFFECTS.index(effect)] > 0).astype(np.float32)
    columns[f"{name}_upgrade_level"] = state.upgrades.astype(jnp.float32) @ counts_
  return columns


def _columns(rules: tables.Rules, state: State) -> dict[str, Array]:
  """Columns of the candidates for rows, [2, 2 n + R] each; those not named are zero."""
  tier, types_ = rules.tier, rules.types
  n, memory = tier.slots, state.memory
  in_sight = memory.seen

  def both(values):
    """What is known of own slots and of the enemy's in sight; zero out of sight."""
    return jnp.concatenate([values, jnp.where(in_sight, flip(values), 0)], axis=1)

  enemy_kind, enemy_x, enemy_y, enemy_health = placement.known_enemies(rules, state)
  kind = jnp.concatenate([state.kind, enemy_kind], axis=1)
  health = jnp.concatenate([state.health, enemy_health], axis=1)
  patch_x, patch_y = resource_positions(rules, state.side)
  x = jnp.concatenate([state.x, enemy_x, patch_x], axis=1)
  y = jnp.concatenate([state.y, enemy_y, patch_y], axis=1)
  dense, radius = look_up(types_.index, kind), look_up(types_.radius, kind)
  loops = look_up(rules.products.loops, kind)
  most = look_up(types_.health, kind)
  if rules.has_upgrades:
    mine = max_health(rules, state, state.kind)
    most = jnp.where(both(mine) > 0, both(mine), most)
  unfinished = jnp.pad(state.unfinished, ((0, 0), (0, tier.units)))
  built = jnp.concatenate([unfinished, jnp.where(in_sight, flip(unfinished), 0)], axis=1)
  progress = jnp.floor(100 - 100 * built / jnp.maximum(loops, 1))
  snapshot = jnp.concatenate([jnp.ones((2, n)) > 0, in_sight], axis=1)
  r = tier.resources
  gas = is_geyser(rules)
  resource = np.where(gas, vocabulary.UNIT_TYPES.index("VespeneGeyser"),
                      vocabulary.UNIT_TYPES.index("MineralField"))

  def join(units, patches):
    rest = jnp.broadcast_to(jnp.asarray(patches, units.dtype), (2, r))
    return jnp.concatenate([units, rest], axis=1)

  alliance = np.repeat([types.ALLIANCE_SELF, types.ALLIANCE_ENEMY], n)[None] + np.zeros((2, 1))
  owner = np.repeat([[1, 2], [2, 1]], n, axis=1)
  scale = CELLS_PER_MAP / tier.map_size

  def place(values):
    return jnp.clip(jnp.floor(scale * (values + rules.half)), 0, CELLS_PER_MAP - 1)

  def ratio(values, whole):
    return jnp.floor(255 * jnp.clip(values / jnp.maximum(whole, 1), 0, 1))

  def contents(chosen):
    return jnp.concatenate([jnp.zeros((2, 2 * n)), memory.patches * chosen], axis=1)

  columns = {
    "unit_type": join(dense, resource),
    "alliance": join(jnp.asarray(alliance), types.ALLIANCE_NEUTRAL),
    "health": join(jnp.ceil(health), 0),
    "build_progress": join(progress, 100),
    "health_ratio": join(ratio(health, most), 0),
    "display_type": join(jnp.where(snapshot, DISPLAY_VISIBLE, DISPLAY_SNAPSHOT), DISPLAY_VISIBLE),
    "owner": join(jnp.asarray(owner), NEUTRAL_OWNER),
    "x": place(x), "y": place(y),
    "radius": join(jnp.ceil(radius), 1),
    "is_on_screen": join(jnp.ones((2, 2 * n)), 1),
    "mineral_contents": contents(~gas),
    "tag": jnp.tile(jnp.arange(1, 2 * n + r + 1), (2, 1)),
    "was_targeted": state.was_targeted,
  }
  if rules.has_gas:
    columns["vespene_contents"] = contents(gas)
  if rules.has_shields:
    shield = both(state.shield)
    columns["shield"] = join(jnp.ceil(shield), 0)
    columns["shield_ratio"] = join(ratio(shield, look_up(types_.shield, kind)), 0)
  if rules.has_upgrades:
    for name, levels in _upgrade_levels(rules, state).items():
      columns[name] = join(both(pick(levels, state.kind)), 0)
  for name, values in _own_columns(rules, state).items():
    columns[name] = jnp.pad(values, ((0, 0), (0, n + r)))
  columns["assigned_harvesters"] += jnp.pad(_assigned(rules, state), ((0, 0), (2 * n, 0)))
  columns["ideal_harvesters"] += join(
    jnp.zeros((2, 2 * n)), np.where(gas, constants.WORKERS_PER_GEYSER, constants.WORKERS_PER_PATCH))
  return columns


def entities(rules: tables.Rules, state: State) -> tuple[Array, Array]:
  """Both players' rows: [2, E, F] int16 and how many they are, [2] int16."""
  columns = _columns(rules, state)
  sight = entity_rows(rules, state)
  candidates = sight.row.shape[1]
  # The candidate that each row shows; a last one, all zero, for rows that show nothing.
  row = jnp.where(sight.present, sight.row, rules.max_entities)
  source = jnp.full((2, rules.max_entities), candidates, jnp.int32).at[
    jnp.arange(2)[:, None], row].set(jnp.arange(candidates), mode="drop")
  empty = jnp.zeros((2, candidates), jnp.int16)
  # Columns first until the end: side by side, they would be put together number by number.
  table = jnp.stack([columns[name].astype(jnp.int16) if name in columns else empty
                     for name in types.ENTITY_COLUMNS], axis=1)
  table = jnp.pad(table, ((0, 0), (0, 0), (0, 1)))
  packed = jnp.swapaxes(
    jnp.take_along_axis(table, source[:, None], axis=2, mode="clip"), 1, 2)
  return packed, sight.count.astype(jnp.int16)


def player_columns(rules: tables.Rules, state: State) -> Array:
  """PLAYER_COLUMNS of both: [2, 10] int32."""
  types_, s = rules.types, rules.tier.structures
  used, most = food(rules, state)
  units = state.kind[:, s:]
  worker, fighter = look_up(types_.worker, units), look_up(types_.fighter, units)
  eats = look_up(types_.takes_food, units)
  zero = jnp.zeros(2)
  larvae = jnp.sum(state.larvae, axis=1) if rules.has_larvae else zero
  columns = {
    "minerals": state.minerals, "vespene": state.vespene, "food_used": (used + 1) // 2,
    "food_cap": most // 2, "food_army": jnp.sum(fighter * eats, axis=1) // 2,
    "food_workers": jnp.sum(worker * eats, axis=1) // 2,
    "idle_worker_count": jnp.sum(worker & (state.orders.verb == constants.IDLE), axis=1),
    "army_count": jnp.sum(fighter, axis=1), "warp_gate_count": zero, "larva_count": larvae}
  return jnp.stack([columns[name] for name in types.PLAYER_COLUMNS], axis=1).astype(jnp.int32)


def score_columns(state: State) -> Array:
  """SCORE_COLUMNS of both: [2, 13] int32; idle times in game loops, rates a minute."""
  score = state.score
  minutes = jnp.maximum(state.loop, 1) / (60 * types.GAME_LOOPS_PER_SECOND)

  def rate(amount):
    return (amount / minutes).astype(jnp.int32)

  columns = {
    "score": state.minerals + state.vespene + score.units + score.structures
             + score.killed_units + score.killed_structures,
    "idle_production_time": score.idle_production, "idle_worker_time": score.idle_workers,
    "total_value_units": score.units, "total_value_structures": score.structures,
    "killed_value_units": score.killed_units, "killed_value_structures": score.killed_structures,
    "collected_minerals": score.collected, "collected_vespene": score.collected_vespene,
    "collection_rate_minerals": rate(score.collected),
    "collection_rate_vespene": rate(score.collected_vespene),
    "spent_minerals": score.spent, "spent_vespene": score.spent_vespene}
  return jnp.stack([columns[name] for name in types.SCORE_COLUMNS], axis=1)


def _upgrades(rules: tables.Rules, state: State) -> tuple[Array, Array]:
  """What each player has researched, and what its sight of the enemy tells: [2, U] bool each."""
  none = jnp.zeros((2, vocabulary.NUM_UPGRADES), bool)
  if not rules.has_upgrades:
    return none, none
  own = none.at[:, rules.upgrades.index].set(state.upgrades)
  # Whoever sees a unit sees what was done to it.
  touched = (rules.upgrades.effects > 0).any(axis=1)  # [U, Y]
  seen = present_types(rules, jnp.where(state.memory.seen, flip(state.kind), 0))
  shown = (seen.astype(jnp.float32) @ touched.T.astype(np.float32)) > 0
  return own, none.at[:, rules.upgrades.index].set(flip(state.upgrades) & shown)


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
  can = availability.available(rules, state)
  # no_op is local and dense index 0, and always there.
  functions = to_dense(rules.functions.index, can.astype(jnp.uint8), vocabulary.NUM_FUNCTIONS)
  functions = functions.at[:, 0].set(1) > 0
  local = type_counts(rules, state, finished=False)
  unit_counts = to_dense(rules.types.index, local, vocabulary.NUM_UNIT_TYPES).astype(jnp.uint8)
  race_names = [types.RACES.index(race.lower()) for race in constants.RACES]
  races = look_up(np.array(race_names, np.uint8), state.race)
  upgrades, enemy_upgrades = _upgrades(rules, state)
  whole = jnp.array([0, 0, types.POSITION_GRID, types.POSITION_GRID], jnp.int16)
  both = {
    "entities": rows, "entity_count": count,
    "player": columns, "home_race": races,
    "away_race": jnp.where(state.memory.met, flip(races), 0).astype(jnp.uint8),
    "upgrades": upgrades, "enemy_upgrades": enemy_upgrades,
    "available_actions": functions, "unit_counts": unit_counts,
    "last_delay": jnp.minimum(state.loop - state.last_loop, types.MAX_DELAY).astype(jnp.int16),
    "last_function": state.last_function.astype(jnp.int16),
    "last_queued": state.last_queued.astype(jnp.uint8),
    "last_repeat": state.last_repeat.astype(jnp.uint8),
    "action_result": state.refused.astype(jnp.uint8),
    "mmr": state.match_up.mmr, "statistics": state.match_up.statistics}
  shown = _of(both, player)
  # By index: a select would be made part of the unpacking, and keep that from being vectorised.
  shown["minimap"] = planes.unpack(rules, planes.bits(rules, state)[player])
  observation = types.Observation(
    **shown, game_loop=state.loop,
    camera=whole)  # the camera shows the whole of so small a map
  other = 1 - player
  privileged = types.Privileged(
    cumulative_score=_of(score, player), executed=_of(state.executed, player),
    opponent_player=_of(columns, other), opponent_upgrades=_of(upgrades, other),
    opponent_unit_counts=_of(unit_counts, other), opponent_cumulative_score=_of(score, other),
    opponent_statistics=_of(state.match_up.statistics, other),
    opponent_executed=_of(state.executed, other))
  return observation, privileged
