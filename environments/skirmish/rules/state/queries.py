"""Look-ups in a state: possessions of the players, resources, and effects of upgrades."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state.arrays import (
  flip,
  look_up,
  pairwise_squared_distance,
  pick,
  segment_sum,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.environments.skirmish.rules.tables.constants import (
  EFFECTS,
  OFF_MAP,
  SAME_PLACE,
  TOWNHALL_REACH,
)


def resource_positions(rules: tables.Rules, side: Array) -> tuple[Array, Array]:
  """The positions of each player's resources, its own half's first: x, y [2, R] float32."""
  half = np.array(rules.tier.patches, np.float32)
  both = jnp.asarray(np.concatenate([half, -half]))
  return side[:, None] * both[:, 0], side[:, None] * both[:, 1]


def is_geyser(rules: tables.Rules) -> np.ndarray:
  """Whether each resource is a geyser, in the players' order: [R] bool."""
  return np.tile(np.array(rules.tier.geysers), 2)


def both_halves(patches: Array) -> Array:
  """Contents [2, R / 2] in each player's order, its own half's first: [2, R]."""
  return jnp.concatenate([patches, flip(patches)], axis=1)


def finished_kind(rules: tables.Rules, state: State) -> Array:
  """Local types of finished structures, 0 for the others: [2, S]."""
  return jnp.where(state.unfinished > 0, 0, state.kind[:, :rules.tier.structures])


def ready_kind(rules: tables.Rules, state: State) -> Array:
  """Local types of all slots: [2, n].

  0 for unfinished structures, passengers and hallucinations.
  """
  units = jnp.where(is_aboard(rules, state), 0, real_kind(rules, state))
  return jnp.concatenate([finished_kind(rules, state), units], axis=1)


def is_hallucination(rules: tables.Rules, state: State) -> Array:
  """Units that are hallucinations: [2, M] bool; all False in tiers without Sentries."""
  if not rules.has_sentries:
    return jnp.zeros((2, rules.tier.units), bool)
  return state.spell_loops < 0


def real_kind(rules: tables.Rules, state: State) -> Array:
  """Local types of units, 0 for hallucinations: [2, M]."""
  kind = state.kind[:, rules.tier.structures:]
  return jnp.where(state.spell_loops < 0, 0, kind) if rules.has_sentries else kind


def obeying_kind(rules: tables.Rules, state: State) -> Array:
  """Local types whose commands units execute, 0 for passengers: [2, M].

  Hallucinations execute those of a Zealot, which moves and attacks.
  """
  kind = units_on_map(rules, state)
  if not rules.has_sentries:
    return kind
  return jnp.where(state.spell_loops < 0, rules.types.local("Zealot"), kind)


def is_finished(rules: tables.Rules, state: State) -> Array:
  """Slots without an unfinished structure: [2, n] bool."""
  return jnp.pad(state.unfinished == 0, ((0, 0), (0, rules.tier.units)), constant_values=True)


def present_types(rules: tables.Rules, kind: Array) -> Array:
  """Which local types occur: [2, m] to [2, Y] bool, false for the empty slot."""
  none = jnp.zeros((2, len(rules.types.names)), bool)
  return none.at[jnp.arange(2)[:, None], kind].set(True).at[:, 0].set(False)


def finished_types(rules: tables.Rules, state: State) -> Array:
  """Local types whose structures stand finished, and those they count as: [2, Y] bool."""
  standing = finished_kind(rules, state)
  present = present_types(rules, standing)
  if not rules.types.morphed.any():
    return present
  return present | present_types(rules, look_up(rules.types.counts_as, standing))


def warp_gates(rules: tables.Rules, state: State) -> Array:
  """Structures that are warp gates: [2, S] bool. Their queue is their cooldown.

  A warp-in puts the unit into the queue, then the gate itself: it is idle again once it has
  "morphed" into what it is. The unit appears at the rally point.
  """
  return (state.kind[:, :rules.tier.structures] == rules.types.warp_gate) & rules.has_warp_gates


def is_cloaked(rules: tables.Rules, state: State) -> Array:
  """Units that only detectors see: [2, M] bool; all False in tiers without cloaking."""
  kind = state.kind[:, rules.tier.structures:]
  if not rules.has_cloaking:
    return jnp.zeros(kind.shape, bool)
  return look_up(rules.types.cloaked, kind) | state.cloaked


def is_aboard(rules: tables.Rules, state: State) -> Array:
  """Units in transports: [2, M] bool; all False in tiers without transports."""
  return (state.orders.verb == constants.ABOARD) & rules.has_transports


def on_map(state: State) -> Array:
  """Slots that are not passengers': [2, n] bool, by their place."""
  return jnp.abs(state.x) < OFF_MAP


def units_on_map(rules: tables.Rules, state: State) -> Array:
  """Local types of units, 0 for passengers: [2, M]."""
  return jnp.where(is_aboard(rules, state), 0, state.kind[:, rules.tier.structures:])


def is_transport(rules: tables.Rules, kind: Array) -> Array:
  """Whether local types [2, m] have space for passengers: by comparisons, cheaper than look-ups."""
  found = jnp.zeros(kind.shape, bool)
  for transport in np.flatnonzero(rules.types.cargo_space):
    found |= kind == int(transport)
  return found


def powers(rules: tables.Rules, state: State) -> Array:
  """Warp Prisms that give power, in phasing mode once they have changed to it: [2, M] bool."""
  kind = state.kind[:, rules.tier.structures:]
  phasing = (kind == rules.types.local("WarpPrismPhasing")) & rules.has_transports
  return phasing & (state.cooldown[:, rules.tier.armed:] <= 0)


def type_counts(rules: tables.Rules, state: State, *, finished: bool) -> Array:
  """The number of each local type that the players have: [2, Y] int32.

  Args:
    rules: the game's constants.
    state: the game.
    finished: whether to leave out structures under construction.
  """
  kind = ready_kind(rules, state) if finished else state.kind
  return segment_sum(kind, jnp.ones_like(kind), len(rules.types.names)).at[:, 0].set(0)


def served_resources(rules: tables.Rules, state: State) -> Array:
  """Pairs of finished town halls and the resources of their base: [2, S, R] bool."""
  s = rules.tier.structures
  hall = look_up(rules.types.townhall, finished_kind(rules, state))
  apart = pairwise_squared_distance(
    state.x[:, :s], state.y[:, :s], *resource_positions(rules, state.side))
  return hall[:, :, None] & (apart < TOWNHALL_REACH ** 2)


def gas_structures_on(rules: tables.Rules, state: State) -> Array:
  """Pairs of finished gas structures and the geyser below: [2, S, R] bool."""
  s = rules.tier.structures
  gas = look_up(rules.types.gas, finished_kind(rules, state))
  apart = pairwise_squared_distance(
    state.x[:, :s], state.y[:, :s], *resource_positions(rules, state.side))
  return gas[:, :, None] & (apart < SAME_PLACE ** 2) & is_geyser(rules)


def tapped_geysers(rules: tables.Rules, state: State) -> Array:
  """Resources below a player's own finished gas structure: [2, R] bool."""
  return jnp.any(gas_structures_on(rules, state), axis=1)


def harvester_counts(rules: tables.Rules, state: State) -> Array:
  """The number of a player's workers that mine each resource: [2, R] int32."""
  target = jnp.where(state.orders.verb == constants.GATHER, state.orders.target, -1)
  return segment_sum(target, jnp.ones_like(target), rules.tier.resources)


def upgrade_bonuses(rules: tables.Rules, state: State) -> Array | None:
  """The sums that upgrades add to EFFECTS of each type: [2, Z, Y]; None without upgrades."""
  if not rules.has_upgrades:
    return None
  return jnp.einsum("pu,uzy->pzy", state.upgrades.astype(jnp.float32), rules.upgrades.effects)


def bonus(bonuses: Array | None, effect: str, kind: Array) -> Array | float:
  """The sum that upgrades add to one of EFFECTS of each slot.

  Args:
    bonuses: of `upgrade_bonuses`.
    effect: one of EFFECTS.
    kind: [2, m] local types.

  Returns:
    [2, m] float32.
  """
  if bonuses is None:
    return 0.0
  return pick(bonuses[:, EFFECTS.index(effect)], kind)


def max_health(rules: tables.Rules, state: State, kind: Array) -> Array:
  """The maximum health of local types [2, m], upgrades included: [2, m] float32."""
  return look_up(rules.types.health, kind) + bonus(
    upgrade_bonuses(rules, state), "health", kind)
