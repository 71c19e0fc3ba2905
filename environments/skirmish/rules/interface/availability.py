"""Available functions of the players, and the slots that can use them."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import add_ons, placement
from starleague.environments.skirmish.rules.state.arrays import look_up, pick
from starleague.environments.skirmish.rules.state.queries import (
  finished_kind,
  finished_types,
  is_aboard,
  is_finished,
  is_hallucination,
  is_transport,
  obeying_kind,
  on_map,
  powers,
  present_types,
  ready_kind,
  units_on_map,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.state.supply import food, free_unit_slots, next_products
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ABILITY,
  ATTACHING,
  ATTACK_UNIT,
  ATTRIBUTES,
  BUILDING,
  CANCEL,
  CANCEL_LAST,
  CLOAK,
  CLOAK_COST,
  CONSTRUCT,
  DECLOAK,
  EFFECTS,
  ENERGY_COST,
  FORCE_FIELD,
  GATHER,
  GUARD,
  HALLUCINATE,
  INJECT,
  LOAD,
  NO_ABILITY,
  RALLY,
  REPAIR,
  RETURN,
  STIM,
  STIM_COST,
  TECH_LAB,
  TRAINING,
  UNLOAD,
  WARPING,
)

SENTRIES_ABILITIES = (GUARD, FORCE_FIELD, HALLUCINATE)
_REPAIR_MARGIN = 0.5  # hit points: units that lack less are not repaired


def stim_cost(rules: tables.Rules, kind: Array) -> Array:
  """Hit points that a stim costs local types, 0 for types that cannot use it: [2, m] float32."""
  table = np.array([STIM_COST.get(name, 0.0) for name in rules.types.names], np.float32)
  return look_up(table, kind)


def has_stim(rules: tables.Rules, state: State) -> Array:
  """Whether the players have researched Stimpack: [2] bool."""
  effect = rules.upgrades.effects[:, EFFECTS.index("stim")].max(axis=1) > 0  # [U]
  return jnp.any(state.upgrades & effect, axis=1)


def has_cloaking_field(rules: tables.Rules, state: State) -> Array:
  """Whether the players have researched the Banshee's cloak: [2] bool."""
  return state.upgrades[:, rules.upgrades.names.index("CloakingField")]


def has_upgrade_for(rules: tables.Rules, state: State, product: Array) -> Array:
  """Whether the upgrade that products [2, ...] need, if any, is researched: [2, ...] bool."""
  gate, y = rules.types.warp_gate, len(rules.types.names)
  needing = np.flatnonzero(rules.products.upgrade)
  assert needing.tolist() == ([gate] if gate else [])  # a comparison instead of a look-up
  if not gate:
    return jnp.ones(product.shape, bool)
  researched = state.upgrades[:, rules.products.upgrade[gate] - y]
  return (product != gate) | researched.reshape(2, *[1] * (product.ndim - 1))


def _can_switch_cloak(rules: tables.Rules, state: State, ability: int) -> Array:
  """Banshees that can switch their cloak, by CLOAK or DECLOAK: [2, M] bool."""
  s = rules.tier.structures
  banshee = state.kind[:, s:] == rules.types.local("Banshee")
  if ability == DECLOAK:
    return banshee & state.cloaked
  return banshee & ~state.cloaked & has_cloaking_field(rules, state)[:, None] & (
    state.energy[:, s:] >= CLOAK_COST)


def _can_stim(rules: tables.Rules, state: State) -> Array:
  """Units that can use a stim: [2, M] bool."""
  s = rules.tier.structures
  cost = stim_cost(rules, state.kind[:, s:])
  return has_stim(rules, state)[:, None] & (cost > 0) & (
    state.health[:, s:] > cost) & (state.stimmed == 0) & ~is_aboard(rules, state)


def repairable(rules: tables.Rules, state: State) -> Array:
  """Own slots that an SCV can repair: [2, n] bool."""
  types = rules.types
  mechanical = (types.attributes >> ATTRIBUTES.index("Mechanical")) & 1 > 0
  damaged = look_up(mechanical, state.kind) & is_finished(rules, state) & (state.health > 0) & (
    state.health < look_up(types.health, state.kind) - _REPAIR_MARGIN)
  if rules.has_transports:
    damaged &= on_map(state)
  return damaged


def injectable(rules: tables.Rules, state: State) -> Array:
  """Own slots that a Queen can inject: finished hatcheries without an injection. [2, n] bool."""
  waits = look_up(rules.types.larvae, finished_kind(rules, state)) & (state.injected == 0)
  return jnp.pad(waits, ((0, 0), (0, rules.tier.units)))


def able_users(rules: tables.Rules, state: State, ability: int) -> Array:
  """Own slots that can use an ability now: [2, n] bool."""
  tier, s = rules.tier, rules.tier.structures
  if ability in (CLOAK, DECLOAK):
    return jnp.pad(_can_switch_cloak(rules, state, ability), ((0, 0), (s, 0)))
  able = jnp.any((rules.functions.ability == ability)[:, None] & rules.functions.capable, axis=0)
  users = look_up(able, ready_kind(rules, state))
  if ability == STIM:
    return jnp.concatenate([jnp.zeros((2, s), bool), _can_stim(rules, state)], axis=1)
  if ability == CANCEL:
    return jnp.pad(state.unfinished > 0, ((0, 0), (0, tier.units)))
  if ability == CANCEL_LAST:
    queued = state.queue[:, :, 0] > 0
    if rules.has_add_ons:  # one under construction is cancelled itself
      queued &= ~add_ons.attaching(rules, state)
    return users & jnp.pad(queued, ((0, 0), (0, tier.units)))
  if ability == GUARD:
    users &= jnp.pad(state.spell_loops == 0, ((0, 0), (s, 0)))
  return users & (state.energy >= ENERGY_COST[ability]) if ability in ENERGY_COST else users


def energy_cost(ability: Array) -> Array:
  """The energy that abilities [2] take: [2] float32; that of a cloak is not among them."""
  return look_up(np.array(
    [ENERGY_COST.get(each, 0.0) for each in range(HALLUCINATE + 1)], np.float32), ability)


def restrict_users(rules: tables.Rules, state: State, users: Array, ability: Array) -> Array:
  """The slots [2, n] bool that can use an ability [2] now, of those whose type can."""
  if rules.has_energy:
    users &= state.energy >= energy_cost(ability)[:, None]
  for each in set(rules.functions.ability.tolist()) - {NO_ABILITY, RALLY}:
    if each == GUARD or each not in ENERGY_COST:
      users &= (ability != each)[:, None] | able_users(rules, state, each)
  return users


def available(rules: tables.Rules, state: State) -> Array:
  """The functions that can have an effect now: [2, C] bool, by local function.

  A function needs a free executor. Products must also be affordable, fed and have a slot, and
  targets must exist as far as the player knows.
  """
  kind = rules.functions.kind
  free = jnp.where(state.orders.verb == CONSTRUCT, 0, obeying_kind(rules, state))
  executors = jnp.concatenate([finished_kind(rules, state), free], axis=1)  # [2, n]
  product = next_products(rules, state)
  makes = _affordable(rules, state, product)
  executor = _some_capable(rules, executors)
  ok = jnp.where(kind == BUILDING, executor & makes & _has_structure_slot(rules, state), jnp.where(
    (kind == TRAINING) | (kind == WARPING),
    _has_trainer(rules, state, product) & makes & _has_food(rules, state, product), executor))
  if rules.has_add_ons:
    host = jnp.any(add_ons.can_attach(rules, state), axis=1, keepdims=True)
    room = jnp.any(state.kind[:, :rules.tier.unarmed] == 0, axis=1, keepdims=True)
    ok = jnp.where(kind == ATTACHING, host & makes & room, ok)
  if rules.has_warp_gates:
    ok &= has_upgrade_for(rules, state, product)
    ok &= (kind != WARPING) | has_power(rules, state)[:, None]
  ok = _restrict_abilities(rules, state, ok, executors)
  if rules.has_gas:
    ok = _restrict_gas_structures(rules, state, ok)
  return _restrict_targets(rules, state, ok, executors).at[:, 0].set(True)


def has_power(rules: tables.Rules, state: State) -> Array:
  """Whether the players have a finished Pylon or a phasing Warp Prism: [2] bool."""
  pylon = finished_types(rules, state)[:, rules.types.local("Pylon")]
  return pylon | jnp.any(powers(rules, state), axis=1)


def _some_capable(rules: tables.Rules, kind: Array) -> Array:
  """Whether any of local types [2, m] can execute each function: [2, C] bool."""
  capable = jnp.asarray(rules.functions.capable.T, jnp.float32)
  return (present_types(rules, kind) @ capable) > 0


def _affordable(rules: tables.Rules, state: State, product: Array) -> Array:
  """Whether products [2, C] exist, can be paid and have their requirement: [2, C] bool."""
  products = rules.products
  paid = state.minerals[:, None] >= look_up(products.minerals, product)
  if rules.has_gas:
    paid &= state.vespene[:, None] >= look_up(products.vespene, product)
  met = pick(finished_types(rules, state).at[:, 0].set(True),
             look_up(products.requirement, product))
  return (product > 0) & paid & met


def _has_food(rules: tables.Rules, state: State, product: Array) -> Array:
  """Whether products [2, C] can be fed and their units have slots: [2, C] bool."""
  used, most = food(rules, state)
  takes = look_up(rules.products.takes_food, product)
  brood = look_up(rules.products.brood, product)
  fed = (takes == 0) | (used[:, None] + takes <= most[:, None])
  return fed & ((brood == 0) | (brood <= free_unit_slots(rules, state)[:, None]))


def _has_trainer(rules: tables.Rules, state: State, product: Array) -> Array:
  """Whether a structure can queue products [2, C]: [2, C] bool."""
  standing = finished_kind(rules, state)
  space = state.queue[:, :, -1] == 0
  if rules.has_add_ons:
    space &= ~add_ons.attaching(rules, state)
  if rules.has_warp_gates:
    space &= ~opening(rules, state)
  trainer = _some_capable(rules, jnp.where(space, standing, 0))
  if rules.has_add_ons:
    lab = add_ons.has_finished(rules, add_ons.add_ons_of(rules, state), TECH_LAB)
    # Few functions need one; those of upgrades do not.
    for c in np.flatnonzero(rules.products.add_on[rules.functions.product]):
      producer = rules.products.producer[rules.functions.product[c]]
      trainer = trainer.at[:, c].set(jnp.any(space & lab & (standing == producer), axis=1))
  if rules.has_upgrades:
    morphs = (product > 0) & (product < len(rules.types.names)) & (
      look_up(rules.products.brood, product) == 0)
    morphs |= rules.functions.kind == WARPING
    idle = _some_capable(rules, jnp.where(can_morph(rules, state), standing, 0))
    trainer = jnp.where(morphs, idle, trainer)
  if rules.has_larvae:
    fertile = _some_capable(rules, jnp.where(space & (state.larvae > 0), standing, 0))
    trainer = jnp.where(look_up(rules.products.larva, product), fertile, trainer)
  return trainer


def can_morph(rules: tables.Rules, state: State) -> Array:
  """Structures whose queue allows a morph or a warp-in: [2, S] bool. Larvae hatch beside it."""
  if not rules.has_hatching_morphs:
    return state.queue[:, :, 0] == 0
  return ~jnp.any((state.queue > 0) & ~look_up(rules.products.larva, state.queue), axis=2) & (
    state.queue[:, :, -1] == 0)


def opening(rules: tables.Rules, state: State) -> Array:
  """Gateways that morph into warp gates, and gates that cool down: [2, S] bool."""
  return (state.queue[:, :, 0] == rules.types.warp_gate) & rules.has_warp_gates


def _built(rules: tables.Rules) -> np.ndarray:
  """The structure that each function builds, 0 for none: [C] int32."""
  return np.where(rules.functions.kind == BUILDING, rules.functions.product, 0)


def _has_structure_slot(rules: tables.Rules, state: State) -> Array:
  """Whether there is a slot for the structure that each function builds: [2, C] or [2, 1] bool."""
  tier = rules.tier
  empty = state.kind[:, :tier.structures] == 0
  slot = jnp.any(empty[:, :tier.unarmed], axis=1, keepdims=True)
  if tier.armed:
    shoots = rules.types.fighter[_built(rules)]
    slot = jnp.where(shoots, jnp.any(empty[:, tier.unarmed:], axis=1, keepdims=True), slot)
  return slot


def _restrict_abilities(rules: tables.Rules, state: State, ok: Array, executors: Array) -> Array:
  """Replaces the columns of abilities: some slot must be able to use them.

  Args:
    rules: the game's constants.
    state: the game.
    ok: [2, C] bool.
    executors: [2, n] int32, local types of free slots.
  """
  functions = rules.functions
  by_sentries = np.isin(functions.ability, SENTRIES_ABILITIES)
  for c in np.flatnonzero((functions.kind == ABILITY) & ~by_sentries):
    able = able_users(rules, state, int(functions.ability[c]))
    if functions.ability[c] == RALLY:
      able = look_up(functions.capable[c], executors)
    ok = ok.at[:, c].set(jnp.any(able, axis=1))
  if rules.has(INJECT):
    waits = jnp.any(injectable(rules, state), axis=1, keepdims=True)
    ok &= (functions.ability != INJECT) | waits
  if rules.has_sentries:
    columns = np.flatnonzero(by_sentries)
    ok = ok.at[:, columns[0]:columns[-1] + 1].set(_sentries_can(rules, state, columns))
  return ok


def _sentries_can(rules: tables.Rules, state: State, functions: np.ndarray) -> Array:
  """Whether a Sentry can use the abilities of functions [k], which are consecutive: [2, k] bool."""
  assert (np.diff(functions) == 1).all()
  s, abilities = rules.tier.structures, rules.functions.ability[functions]
  energy = jnp.where(
    units_on_map(rules, state) == rules.types.local("Sentry"), state.energy[:, s:], -1.0)
  most = jnp.max(energy, axis=1, keepdims=True)
  unshielded = jnp.max(jnp.where(state.spell_loops == 0, energy, -1.0), axis=1, keepdims=True)
  costs = np.array([ENERGY_COST[ability] for ability in abilities.tolist()], np.float32)
  room = rules.types.hallucinations[rules.functions.hallucination[functions]]
  return (jnp.where(abilities == GUARD, unshielded, most) >= costs) & (
    free_unit_slots(rules, state)[:, None] >= room)


def _restrict_gas_structures(rules: tables.Rules, state: State, ok: Array) -> Array:
  """Restricts functions [2, C] that build on geysers: one must be free."""
  ground = placement.known_ground(rules, state)
  for c in np.flatnonzero(rules.types.gas[_built(rules)]):
    radius = float(rules.types.radius[rules.functions.product[c]])
    ok = ok.at[:, c].min(placement.free_geyser(rules, state, ground, radius))
  return ok


def _restrict_targets(rules: tables.Rules, state: State, ok: Array, executors: Array) -> Array:
  """Restricts commands to those with a known target: enemies, resources, cargo, damaged units.

  Args:
    rules: the game's constants.
    state: the game.
    ok: [2, C] bool.
    executors: [2, n] int32, local types of free slots.
  """
  functions, s = rules.functions, rules.tier.structures
  enemy = jnp.any(state.memory.seen, axis=1) | jnp.any(state.memory.kind > 0, axis=1)
  patch = jnp.any(state.memory.patches > 0, axis=1)
  ok &= (functions.verb != ATTACK_UNIT) | enemy[:, None]
  ok &= (functions.verb != GATHER) | patch[:, None]
  brings = jnp.any((state.cargo > 0) & (executors[:, s:] > 0), axis=1) & jnp.any(
    look_up(rules.types.townhall, executors[:, :s]), axis=1)
  ok &= (functions.verb != RETURN) | brings[:, None]
  if rules.has_verb(REPAIR):
    # No unit repairs itself: some pair of an SCV and a damaged slot must differ.
    can_repair = functions.capable[functions.verb == REPAIR].any(axis=0)
    repairers, damaged = look_up(can_repair, executors), repairable(rules, state)
    pairs = (jnp.sum(repairers, axis=1) * jnp.sum(damaged, axis=1)
             - jnp.sum(repairers & damaged, axis=1))
    ok &= (functions.verb != REPAIR) | (pairs > 0)[:, None]
  if rules.has_transports:
    ok &= (functions.verb != LOAD) | can_load(rules, state, executors)[:, None]
    ok &= (functions.verb != UNLOAD) | jnp.any(state.cargo_taken > 0, axis=1, keepdims=True)
  return ok


def can_load(rules: tables.Rules, state: State, executors: Array) -> Array:
  """Whether a transport has room and some unit can board one: [2] bool.

  Args:
    rules: the game's constants.
    state: the game.
    executors: [2, n] int32, local types of free slots.
  """
  space, s = int(rules.types.cargo_space.max()), rules.tier.structures
  room = is_transport(rules, executors[:, s:]) & (state.cargo_taken < space)
  units = jnp.where(is_hallucination(rules, state), 0, executors[:, s:])
  boards = present_types(rules, units) & (rules.types.cargo_size > 0)
  return jnp.any(room, axis=1) & jnp.any(boards, axis=1)
