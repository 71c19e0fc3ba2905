"""Effects of upgrades on the players' units."""

import jax.numpy as jnp

from starleague.environments.skirmish.rules.state.arrays import look_up, pick
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import EFFECTS


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
