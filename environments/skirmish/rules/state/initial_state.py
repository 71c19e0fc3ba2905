"""The initial state of a game."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.rules.state.arrays import look_up
from starleague.environments.skirmish.rules.state.state import (
  Array,
  Memory,
  Score,
  State,
  idle_orders,
  no_commands,
)
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  BOOST,
  GATHER,
  IDLE,
  MOST_FORCE_FIELDS,
  QUEUE_LENGTH,
  RACES,
  START_ENERGY,
  STIM,
  TOWNHALL_REACH,
)

_START_LARVAE = 3
_WORKER_OFFSET = -1.95  # from the town hall, outwards: between it and its patches


def initial_state(rules: tables.Rules, key: Array, match_up: base.MatchUp) -> State:
  """Places a town hall and workers for each player, on opposite sides. Nothing is seen yet.

  Args:
    rules: the game's constants.
    key: random key of the workers' positions, which are rotations of each other for the players.
    match_up: the players' races, sides and map; a race that the tier lacks becomes its first.
  """
  first = jnp.where(match_up.swap_sides, -1.0, 1.0)
  side = jnp.stack([first, -first])
  race = _races(rules, match_up)
  kind = look_up(_starting_kinds(rules), race)  # [2, n]
  x, y = _positions(rules, key, side, kind)
  seed = jax.random.bits(jax.random.fold_in(key, 1), (2,))
  zero, nowhere = jnp.zeros(2, jnp.int32), jnp.zeros(2, jnp.float32)
  fields = jnp.zeros((2, MOST_FORCE_FIELDS if rules.has_sentries else 0), jnp.float32)
  none = jax.tree.map(
    lambda spec: jnp.zeros((2, *spec.shape), spec.dtype), types.statistics_spec())
  return State(
    loop=jnp.int32(0), side=side, match_up=match_up, race=race, kind=kind, x=x, y=y,
    **_slot_arrays(rules, kind), **_structure_arrays(rules, kind), **_unit_arrays(rules, kind),
    minerals=jnp.full(2, rules.tier.minerals, jnp.int32), vespene=zero,
    upgrades=jnp.zeros((2, len(rules.upgrades.names)), bool), repair_debt=nowhere,
    scan_x=nowhere, scan_y=nowhere, scan_loops=zero, field_x=fields, field_y=fields,
    field_loops=fields.astype(jnp.int32),
    patches=jnp.tile(jnp.asarray(_full_resources(rules)), (2, 1)), commands=no_commands(rules),
    next_loop=zero, last_loop=zero, last_function=zero, last_queued=zero, last_repeat=zero,
    refused=zero, memory=_memory(rules), score=Score(*[zero] * len(Score._fields)),
    executed=none, last_event=jnp.int32(0), seed=seed, winner=jnp.int32(-1))


def _races(rules: tables.Rules, match_up: base.MatchUp) -> Array:
  """Indices of RACES that the players play: [2] int32."""
  wanted = jnp.asarray(tables.race_index(np.arange(len(types.RACES))))[match_up.races]
  exists = np.isin(np.arange(len(RACES)), rules.races)
  return jnp.where(look_up(exists, wanted), wanted, rules.races[0]).astype(jnp.int32)


def _starting_kinds(rules: tables.Rules) -> np.ndarray:
  """The local types that each race starts with: [races, n] int32."""
  tier, types_ = rules.tier, rules.types
  kinds = np.zeros((len(RACES), tier.slots), np.int32)
  for race in rules.races:
    own = types_.race == race
    kinds[race, 0] = np.argmax(own & types_.townhall)
    first = tier.structures
    kinds[race, first:first + tier.workers] = np.argmax(own & types_.worker)
    supply_units = own & (types_.gives_food > 0) & ~types_.structure
    if supply_units.any():
      kinds[race, first + tier.workers] = np.argmax(supply_units)
  return kinds


def _positions(rules: tables.Rules, key: Array, side: Array, kind: Array) -> tuple[Array, Array]:
  """The positions of slots: x, y [2, n] float32."""
  tier, s = rules.tier, rules.tier.structures
  spread = jax.random.uniform(key, (2, tier.slots), minval=-0.5, maxval=0.5)
  places = np.zeros((2, tier.slots), np.float32)
  places[:, 0] = tier.home
  places[:, s:s + tier.workers + 1] = np.array(tier.home)[:, None] + _WORKER_OFFSET
  spread = spread[:, None] * look_up(rules.types.worker, kind)
  x, y = side[:, None] * (places[:, None] + spread) * (kind > 0)
  return x, y


def _slot_arrays(rules: tables.Rules, kind: Array) -> dict[str, Any]:
  """Health, shields, energy and selection of slots."""
  types_, n = rules.types, rules.tier.slots
  energy = jnp.minimum(look_up(types_.energy, kind), START_ENERGY)
  shields = n if rules.has_shields else 0
  return {
    "health": look_up(types_.health, kind), "shield": look_up(types_.shield, kind)[:, :shields],
    "energy": energy if rules.has_energy else energy[:, :0], "hurt": jnp.zeros((2, n), bool),
    "calm": jnp.zeros((2, shields), jnp.int32), "was_selected": jnp.zeros((2, n), bool),
    "was_targeted": jnp.zeros((2, 2 * n + rules.tier.resources), bool)}


def _structure_arrays(rules: tables.Rules, kind: Array) -> dict[str, Any]:
  """Queues, rally points and larvae of structures."""
  s = rules.tier.structures
  larvae = jnp.where(look_up(rules.types.larvae, kind[:, :s]), _START_LARVAE, 0)
  hatcheries = s if rules.has_larvae else 0

  def zeros(*shape, dtype=jnp.int32):
    return jnp.zeros((2, *shape), dtype)

  return {
    "unfinished": zeros(s), "queue": zeros(s, QUEUE_LENGTH), "timers": zeros(s, QUEUE_LENGTH),
    "rally": zeros(s, dtype=bool), "rally_x": zeros(s, dtype=jnp.float32),
    "rally_y": zeros(s, dtype=jnp.float32), "larvae": larvae[:, :hatcheries],
    "larva_loops": zeros(hatcheries), "injected": zeros(hatcheries),
    "boosted": zeros(s if rules.has(BOOST) else 0),
    "add_on": zeros(s if rules.has_add_ons else 0)}


def _unit_arrays(rules: tables.Rules, kind: Array) -> dict[str, Any]:
  """Orders, weapons and cargo of units. Workers mine, spread over the patches of their base."""
  tier, m = rules.tier, rules.tier.units
  mines = look_up(rules.types.worker, kind[:, tier.structures:])
  patches = jnp.asarray(np.resize(_patches_by_distance(rules), m), jnp.int32)
  idle = idle_orders(rules)
  orders = idle._replace(
    verb=jnp.where(mines, GATHER, IDLE), target=jnp.where(mines, patches, 0))
  zeros = jnp.zeros((2, m), jnp.int32)
  return {
    "orders": orders, "next_orders": idle,
    "cooldown": jnp.zeros((2, tier.armed + m), jnp.float32), "trip": zeros, "cargo": zeros,
    "cargo_gas": jnp.zeros((2, m if rules.has_gas else 0), bool),
    "stimmed": jnp.zeros((2, m if rules.has(STIM) else 0), jnp.int32),
    "cloaked": jnp.zeros((2, m if rules.has_cloaking else 0), bool),
    "cargo_taken": jnp.zeros((2, m if rules.has_transports else 0), jnp.int32),
    "spell_loops": jnp.zeros((2, m if rules.has_sentries else 0), jnp.int32)}


def _patches_by_distance(rules: tables.Rules) -> list[int]:
  """The mineral patches of the starting base, the nearest first."""
  tier = rules.tier
  minerals = np.flatnonzero(~np.array(tier.geysers))
  distances = [np.hypot(*(np.array(tier.patches[i]) - tier.home)) for i in minerals]
  return [i for distance, i in sorted(zip(distances, minerals, strict=True))
          if distance < TOWNHALL_REACH]


def _full_resources(rules: tables.Rules) -> np.ndarray:
  """The initial contents of a half's resources: [R / 2] int32."""
  tier = rules.tier
  return np.where(tier.geysers, tier.geyser_vespene, tier.patch_minerals).astype(np.int32)


def _memory(rules: tables.Rules) -> Memory:
  """The memory of players who have seen nothing; the initial contents of resources are known."""
  tier = rules.tier
  bits = jnp.zeros((2, rules.map_size, rules.map_size // 32), jnp.uint32)
  structures = jnp.zeros((2, tier.structures), jnp.float32)
  return Memory(
    seen=jnp.zeros((2, tier.slots), bool), visible=bits, explored=bits,
    kind=structures.astype(jnp.int32), x=structures, y=structures, health=structures,
    patches=jnp.tile(jnp.asarray(_full_resources(rules)), (2, 2)), met=jnp.zeros(2, bool),
    detected=jnp.zeros((2, tier.units if rules.has_sentries else 0), bool))
