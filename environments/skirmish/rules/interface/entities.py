"""The rows of an observation: own slots, known slots of the opponent, and resources.

The candidates for rows are a player's n own slots, its opponent's n slots and R resources, in this
order, resources of the own half first. Those that the player knows of take the rows from the top.
Candidates past the last row, `max_entities`, are not observed.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules.state import add_ons, placement, sentries
from starleague.environments.skirmish.rules.state.arrays import flip, look_up, pick
from starleague.environments.skirmish.rules.state.queries import (
  gas_structures_on,
  harvester_counts,
  is_aboard,
  is_cloaked,
  is_geyser,
  is_hallucination,
  is_transport,
  max_health,
  real_kind,
  resource_positions,
  served_resources,
  warp_gates,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ABOARD,
  ATTACK,
  ATTACK_UNIT,
  BOARD,
  BUILD,
  CONSTRUCT,
  EFFECTS,
  GATHER,
  GUARD_LOOPS,
  HALLUCINATION_LOOPS,
  HOLD,
  IDLE,
  LOAD,
  MOVE,
  PATROL,
  REPAIR,
  RETURN,
  STIM,
  STIM_LOOPS,
  UNLOAD,
  WORKERS_PER_GEYSER,
  WORKERS_PER_PATCH,
)

DISPLAY_VISIBLE, DISPLAY_SNAPSHOT = 1, 2
CLOAKED_DETECTED, CLOAKED_ALLIED = 2, 4
NEUTRAL_OWNER = 16
_ORDER_NAMES = {
  MOVE: "Move_pt", ATTACK: "Attack_pt", ATTACK_UNIT: "Attack_unit", HOLD: "HoldPosition_quick",
  GATHER: "Harvest_Gather_unit", PATROL: "Patrol_pt", REPAIR: "Effect_Repair_unit",
  RETURN: "Harvest_Return_quick", BOARD: "Smart_unit", LOAD: "Load_unit",
  UNLOAD: "UnloadAllAt_pt"}
_GAS_BUFFS = tuple(f"CarryHarvestableVespeneGeyserGas{race}" for race in ("", "Protoss", "Zerg"))
Columns = dict[str, Array]


class EntityRows(NamedTuple):
  """The candidates that have rows, [2, 2 n + R]."""

  present: Array  # bool
  row: Array  # int32: the row of each present candidate
  total: Array  # [2] int32


def entity_rows(rules: tables.Rules, state: State) -> EntityRows:
  """Finds the candidates that each player is shown, and their rows."""
  memory = state.memory
  remembered = jnp.pad(memory.kind > 0, ((0, 0), (0, rules.tier.units)))
  present = jnp.concatenate(
    [state.kind > 0, memory.seen | remembered, memory.patches > 0], axis=1)
  total = jnp.cumsum(present, axis=1)
  if rules.max_entities < present.shape[1]:
    present &= total <= rules.max_entities
    total = jnp.minimum(total, rules.max_entities)
  return EntityRows(present, total - 1, total[:, -1])


def entities(rules: tables.Rules, state: State) -> tuple[Array, Array]:
  """Both players' rows, [2, E, F] int16, and their number, [2] int16."""
  columns = _columns(rules, state)
  rows = entity_rows(rules, state)
  candidates = rows.row.shape[1]
  # The candidate that each row shows. Rows without one show an extra candidate, all zero.
  row = jnp.where(rows.present, rows.row, rules.max_entities)
  source = jnp.full((2, rules.max_entities), candidates, jnp.int32).at[
    jnp.arange(2)[:, None], row].set(jnp.arange(candidates), mode="drop")
  empty = jnp.zeros((2, candidates), jnp.int16)
  # Columns stay the first axis until the end: with columns last, XLA would assemble the table
  # element by element.
  table = jnp.stack([columns[name].astype(jnp.int16) if name in columns else empty
                     for name in types.ENTITY_COLUMNS], axis=1)
  table = jnp.pad(table, ((0, 0), (0, 0), (0, 1)))
  packed = jnp.swapaxes(
    jnp.take_along_axis(table, source[:, None], axis=2, mode="clip"), 1, 2)
  return packed, rows.total.astype(jnp.int16)


def _columns(rules: tables.Rules, state: State) -> Columns:
  """Columns of the candidates, [2, 2 n + R] each; the others are zero."""
  columns = {**_identity_columns(rules, state), **_place_columns(rules, state),
             **_condition_columns(rules, state), **_content_columns(rules, state)}
  rest = rules.tier.slots + rules.tier.resources
  columns |= {name: jnp.pad(values, ((0, 0), (0, rest)))
              for name, values in own_columns(rules, state).items()}
  # Resources have harvesters too.
  columns["assigned_harvesters"] += jnp.pad(
    harvester_counts(rules, state), ((0, 0), (2 * rules.tier.slots, 0)))
  columns["ideal_harvesters"] += _join(rules, jnp.zeros((2, 2 * rules.tier.slots)), np.where(
    is_geyser(rules), WORKERS_PER_GEYSER, WORKERS_PER_PATCH))
  return columns


def own_columns(rules: tables.Rules, state: State) -> Columns:
  """Columns of own slots only: orders, weapons, energy, buffs and harvesters. [2, n] each."""
  return {**_order_columns(rules, state), **_status_columns(rules, state),
          **_harvester_columns(rules, state), **_cargo_columns(rules, state)}


def _join(rules: tables.Rules, slots: Array, resources: np.ndarray | int) -> Array:
  """Values of slots [2, 2 n] and of resources [] or [R] or [2, R]: [2, 2 n + R]."""
  rest = jnp.broadcast_to(jnp.asarray(resources, slots.dtype), (2, rules.tier.resources))
  return jnp.concatenate([slots, rest], axis=1)


def _own_and_seen(state: State, values: Array) -> Array:
  """Values [2, n] of own slots and of the opponent's in sight, 0 out of sight: [2, 2 n]."""
  return jnp.concatenate([values, jnp.where(state.memory.seen, flip(values), 0)], axis=1)


def _known_kind(rules: tables.Rules, state: State) -> Array:
  """Local types of own slots and of the opponent's as the player knows them: [2, 2 n]."""
  return jnp.concatenate([state.kind, placement.known_enemies(rules, state)[0]], axis=1)


def _identity_columns(rules: tables.Rules, state: State) -> Columns:
  """Types, owners and visibility of the candidates."""
  n, kind = rules.tier.slots, _known_kind(rules, state)
  resource = np.where(is_geyser(rules), vocabulary.UNIT_TYPES.index("VespeneGeyser"),
                      vocabulary.UNIT_TYPES.index("MineralField"))
  alliance = np.repeat([types.ALLIANCE_SELF, types.ALLIANCE_ENEMY], n)[None] + np.zeros((2, 1))
  owner = np.repeat([[1, 2], [2, 1]], n, axis=1)
  visible = jnp.concatenate([jnp.ones((2, n)) > 0, state.memory.seen], axis=1)
  candidates = 2 * n + rules.tier.resources
  return {
    "unit_type": _join(rules, look_up(rules.types.index, kind), resource),
    "alliance": _join(rules, jnp.asarray(alliance), types.ALLIANCE_NEUTRAL),
    "owner": _join(rules, jnp.asarray(owner), NEUTRAL_OWNER),
    "display_type": _join(
      rules, jnp.where(visible, DISPLAY_VISIBLE, DISPLAY_SNAPSHOT), DISPLAY_VISIBLE),
    "radius": _join(rules, jnp.ceil(look_up(rules.types.radius, kind)), 1),
    "is_on_screen": jnp.ones((2, candidates)),
    "tag": jnp.tile(jnp.arange(1, candidates + 1), (2, 1)),
    "was_targeted": state.was_targeted,
  }


def _place_columns(rules: tables.Rules, state: State) -> Columns:
  """Positions on the agent's grid."""
  _, enemy_x, enemy_y, _ = placement.known_enemies(rules, state)
  patch_x, patch_y = resource_positions(rules, state.side)
  scale = types.POSITION_GRID / rules.tier.map_size

  def cell(*parts):
    values = jnp.concatenate(parts, axis=1)
    return jnp.clip(jnp.floor(scale * (values + rules.half)), 0, types.POSITION_GRID - 1)

  x, y = state.x, state.y
  if rules.has_transports:  # passengers are shown where their transport is
    place, s = state.orders.target, rules.tier.structures
    aboard = jnp.pad(is_aboard(rules, state), ((0, 0), (s, 0)))
    place = jnp.pad(place, ((0, 0), (s, 0)))
    x, y = jnp.where(aboard, pick(x, place), x), jnp.where(aboard, pick(y, place), y)
  return {"x": cell(x, enemy_x, patch_x), "y": cell(y, enemy_y, patch_y)}


def _condition_columns(rules: tables.Rules, state: State) -> Columns:
  """Health, shields, construction and upgrade levels."""
  types_, tier = rules.types, rules.tier
  kind = _known_kind(rules, state)
  health = jnp.concatenate([state.health, placement.known_enemies(rules, state)[3]], axis=1)
  most = look_up(types_.health, kind)
  if rules.has_upgrades:
    known_most = _own_and_seen(state, max_health(rules, state, state.kind))
    most = jnp.where(known_most > 0, known_most, most)
  unfinished = _own_and_seen(state, jnp.pad(state.unfinished, ((0, 0), (0, tier.units))))
  loops = look_up(rules.products.loops, kind)
  progress = jnp.floor(100 - 100 * unfinished / jnp.maximum(loops, 1))

  def ratio(values, whole):
    return jnp.floor(255 * jnp.clip(values / jnp.maximum(whole, 1), 0, 1))

  columns = {
    "health": _join(rules, jnp.ceil(health), 0),
    "health_ratio": _join(rules, ratio(health, most), 0),
    "build_progress": _join(rules, progress, 100),
  }
  if rules.has_cloaking:  # 2: an enemy's, detected; 4: an own one's
    cloaked = jnp.pad(is_cloaked(rules, state), ((0, 0), (tier.structures, 0)))
    columns["cloak"] = _join(rules, jnp.concatenate([
      jnp.where(cloaked, CLOAKED_ALLIED, 0),
      jnp.where(flip(cloaked) & state.memory.seen, CLOAKED_DETECTED, 0)], axis=1), 0)
  if rules.has_sentries:
    unreal = jnp.pad(is_hallucination(rules, state), ((0, 0), (tier.structures, 0)))
    detected = jnp.pad(state.memory.detected, ((0, 0), (tier.structures, 0)))
    columns["hallucination"] = _join(
      rules, jnp.concatenate([unreal, flip(unreal) & detected], axis=1).astype(jnp.int32), 0)
  if rules.has_shields:
    shield = _own_and_seen(state, state.shield)
    columns["shield"] = _join(rules, jnp.ceil(shield), 0)
    columns["shield_ratio"] = _join(rules, ratio(shield, look_up(types_.shield, kind)), 0)
  if rules.has_add_ons:
    add_on = look_up(types_.index, add_ons.add_ons_of(rules, state).kind)
    columns["addon_unit_type"] = _join(
      rules, _own_and_seen(state, jnp.pad(add_on, ((0, 0), (0, tier.units)))), 0)
  if rules.has_upgrades:
    for name, levels in upgrade_levels(rules, state).items():
      columns[name] = _join(rules, _own_and_seen(state, pick(levels, state.kind)), 0)
  return columns


def upgrade_levels(rules: tables.Rules, state: State) -> Columns:
  """Upgrade levels of each type's attack, armour and shields: [2, Y] each."""
  columns = {}
  for name, effect in (("attack", "damage"), ("armor", "armour"), ("shield", "shield")):
    levels = (rules.upgrades.effects[:, EFFECTS.index(effect)] > 0).astype(np.float32)
    columns[f"{name}_upgrade_level"] = state.upgrades.astype(jnp.float32) @ levels
  return columns


def _content_columns(rules: tables.Rules, state: State) -> Columns:
  """Contents of resources as last seen."""
  gas = is_geyser(rules)

  def contents(chosen):
    return jnp.concatenate(
      [jnp.zeros((2, 2 * rules.tier.slots)), state.memory.patches * chosen], axis=1)

  columns = {"mineral_contents": contents(~gas)}
  if rules.has_gas:
    columns["vespene_contents"] = contents(gas)
  return columns


def _order_columns(rules: tables.Rules, state: State) -> Columns:
  """Orders of own units and queues of own structures: [2, n] each. Warp gates show none."""
  if rules.has_warp_gates:
    state = state._replace(
      queue=jnp.where(warp_gates(rules, state)[:, :, None], 0, state.queue))
  order, queue = _order_functions(rules, state), _queue_functions(rules, state)
  # The vocabulary of the third and later orders has functions that train units only
  # (types.Observation).
  trains = np.isin(np.arange(vocabulary.NUM_FUNCTIONS), vocabulary.TRAINING_FUNCTIONS)
  late = jnp.where(look_up(trains, queue), queue, 0)
  queued = jnp.sum(state.queue > 0, axis=2)
  loops = jnp.maximum(look_up(rules.products.loops, state.queue[:, :, :2]), 1)
  progress = jnp.where(state.queue[:, :, :2] > 0, 100 - 100 * state.timers[:, :, :2] / loops, 0)
  progress = jnp.clip(progress, 0, 100)
  length = (order > 0).astype(jnp.int32) + (state.next_orders.verb != IDLE)
  zero = jnp.zeros((2, rules.tier.units))

  def join(structures, units):
    return jnp.concatenate([structures, units], axis=1)

  columns = {
    "order_length": join(queued, length),
    "order_id_0": join(queue[:, :, 0], order),
    "order_id_1": join(queue[:, :, 1], zero),
    "order_id_2": join(late[:, :, 2], zero),
    "order_id_3": join(late[:, :, 3], zero),
    "order_progress_0": join(progress[:, :, 0], zero),
    "active": join(queued > 0, order > 0),
  }
  if rules.has_larvae:
    columns["order_progress_1"] = join(progress[:, :, 1], zero)
  return columns


def _order_functions(rules: tables.Rules, state: State) -> Array:
  """The dense function index of each unit's order: [2, M]."""
  by_verb = np.zeros(ABOARD + 1, np.int32)
  for verb_, name in _ORDER_NAMES.items():
    by_verb[verb_] = vocabulary.FUNCTIONS.index(name)
  verb = state.orders.verb
  verb = jnp.where((verb == GATHER) & (state.cargo > 0), RETURN, verb)
  builds = (verb == BUILD) | (verb == CONSTRUCT)
  maker = rules.functions.index[rules.products.function]
  return jnp.where(builds, look_up(maker, state.orders.product), look_up(by_verb, verb))


def _queue_functions(rules: tables.Rules, state: State) -> Array:
  """The dense function index of each product in production: [2, S, 5]."""
  maker = rules.functions.index[rules.products.function]
  maker[0] = 0
  return look_up(maker, state.queue)


def _status_columns(rules: tables.Rules, state: State) -> Columns:
  """Weapons, energy, buffs and selection of own slots: [2, n] each."""
  columns = {
    "weapon_cooldown": jnp.pad(
      jnp.clip(jnp.ceil(state.cooldown), 0, 127), ((0, 0), (rules.tier.unarmed, 0))),
    "was_selected": state.was_selected,
  }
  if rules.has_energy:
    most = jnp.maximum(look_up(rules.types.energy, state.kind), 1)
    columns["energy"] = jnp.floor(state.energy)
    columns["energy_ratio"] = jnp.floor(255 * jnp.clip(state.energy / most, 0, 1))
  return {**columns, **_buff_columns(rules, state)}


def _buff_columns(rules: tables.Rules, state: State) -> Columns:
  """Buffs of own slots, and their durations: [2, n] each."""
  s, buff = rules.tier.structures, vocabulary.BUFFS.index
  on_structures, on_units = jnp.zeros((2, s), jnp.int32), _carried(rules, state)
  columns: Columns = {}
  if rules.has(STIM):
    stimmed, loops = state.stimmed > 0, state.stimmed
    most: Array | int = STIM_LOOPS
    if rules.has_sentries:
      shielded = sentries.shielded(rules, state)[:, s:]
      on_units = jnp.where(shielded & (on_units == 0), buff("GuardianShield"), on_units)
      spell = state.spell_loops
      loops = loops + jnp.abs(spell)
      most = jnp.where(spell < 0, HALLUCINATION_LOOPS, jnp.where(spell > 0, GUARD_LOOPS, most))
    marauder = state.kind[:, s:] == rules.types.local("Marauder")
    stim = jnp.where(marauder, buff("StimpackMarauder"), buff("Stimpack"))
    on_units += jnp.where(stimmed, stim, 0)
    columns["buff_duration_remain"] = jnp.concatenate([on_structures, loops], axis=1)
    columns["buff_duration_max"] = jnp.concatenate([on_structures, (loops > 0) * most], axis=1)
    injected = jnp.where(state.injected > 0, buff("QueenSpawnLarvaTimer"), 0)
    on_structures = jnp.where(state.boosted > 0, buff("ChronoBoostEnergyCost"), injected)
  return {**columns, "buff_id_0": jnp.concatenate([on_structures, on_units], axis=1)}


def _carried(rules: tables.Rules, state: State) -> Array:
  """The dense buff index of each unit's cargo, 0 for none: [2, M]."""
  load = jnp.where(state.cargo > 0, vocabulary.BUFFS.index("CarryMineralFieldMinerals"), 0)
  if not rules.has_gas:
    return load
  buffs = np.array([vocabulary.BUFFS.index(name) for name in _GAS_BUFFS], np.int32)
  vespene = look_up(buffs, state.race)[:, None]
  return jnp.where((load > 0) & state.cargo_gas, vespene, load)


def _cargo_columns(rules: tables.Rules, state: State) -> Columns:
  """Passengers, and the space of transports: [2, n] each; none in tiers without transports."""
  if not rules.has_transports:
    return {}
  transport = is_transport(rules, real_kind(rules, state))
  columns = {"is_in_cargo": is_aboard(rules, state), "cargo_space_taken": state.cargo_taken,
             "cargo_space_max": transport * int(rules.types.cargo_space.max())}
  return {name: jnp.pad(values.astype(jnp.int32), ((0, 0), (rules.tier.structures, 0)))
          for name, values in columns.items()}


def _harvester_columns(rules: tables.Rules, state: State) -> Columns:
  """Harvesters of own town halls and gas structures: [2, n] each."""
  gas, assigned = is_geyser(rules), harvester_counts(rules, state)
  patches = served_resources(rules, state) & ~gas  # [2, S, R]
  ideal = WORKERS_PER_PATCH * jnp.sum(patches & (state.memory.patches > 0)[:, None], axis=2)
  here = jnp.sum(patches * assigned[:, None], axis=2)
  if rules.has_gas:
    geysers = gas_structures_on(rules, state)
    ideal += WORKERS_PER_GEYSER * jnp.sum(geysers, axis=2)
    here += jnp.sum(geysers * assigned[:, None], axis=2)
  zero = jnp.zeros((2, rules.tier.units))
  return {"assigned_harvesters": jnp.concatenate([here, zero], axis=1),
          "ideal_harvesters": jnp.concatenate([ideal, zero], axis=1)}
