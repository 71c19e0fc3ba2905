"""Effects of Sentries: units under a Guardian Shield, and Force Fields in the way of units."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state.arrays import (
  first_places,
  look_up,
  pairwise_squared_distance,
  pick,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import is_aboard
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  FORCE_FIELD_RADIUS,
  GUARD_RADIUS,
  MOST_FORCE_FIELDS,
  MOST_GUARDS,
)

_FAR = 1e6  # more than any squared distance
_GOLDEN_ANGLE = 2.4  # radians: neighbouring slots part in very different directions
_SHIFT = 1e-3  # map units


class Barriers(NamedTuple):
  """The Force Field nearest to each unit, [2, M] each."""

  x: Array  # float32
  y: Array
  reach: Array  # float32: the distance that the unit keeps from it; 0 if it does not stop the unit


def shielded(rules: tables.Rules, state: State) -> Array:
  """Slots of units within GUARD_RADIUS of a Guardian Shield of their side: [2, n] bool.

  The first MOST_GUARDS Sentries of a player count. Passengers neither shield nor are shielded.
  """
  s = rules.tier.structures
  shields = (state.spell_loops > 0) & ~is_aboard(rules, state)
  guard = s + first_places(shields, MOST_GUARDS)
  square = pairwise_squared_distance(
    pick(state.x, guard), pick(state.y, guard), state.x, state.y)
  near = (square <= GUARD_RADIUS ** 2) & (guard < rules.tier.slots)[:, :, None]
  return jnp.any(near & (jnp.arange(rules.tier.slots) >= s), axis=1)


def barriers(rules: tables.Rules, state: State) -> Barriers | None:
  """Finds the Force Field in the way of each unit; None in tiers without them.

  Force Fields of both players stop ground units of both. Sieged tanks stay where they are.
  """
  if not rules.has_sentries:
    return None
  s, types = rules.tier.structures, rules.types
  x, y, kind = state.x[:, s:], state.y[:, s:], state.kind[:, s:]
  best, field_x, field_y = jnp.full(x.shape, _FAR), jnp.zeros(x.shape), jnp.zeros(x.shape)
  for player in range(2):
    for i in range(MOST_FORCE_FIELDS):
      at_x, at_y = state.field_x[player, i], state.field_y[player, i]
      square = jnp.where(state.field_loops[player, i] > 0, squared_distance(x, y, at_x, at_y), _FAR)
      nearer = square < best
      best = jnp.where(nearer, square, best)
      field_x, field_y = jnp.where(nearer, at_x, field_x), jnp.where(nearer, at_y, field_y)
  stopped = (types.speed > 0) & ~types.flying & ~types.structure
  keeps = np.where(stopped, FORCE_FIELD_RADIUS + types.radius, 0.0).astype(np.float32)
  # A unit at the very place of a Force Field leaves it in a direction given by its slot.
  angle = np.arange(rules.tier.units, dtype=np.float32) * _GOLDEN_ANGLE
  shift = _SHIFT * state.side[:, None]
  return Barriers(field_x - shift * np.cos(angle), field_y - shift * np.sin(angle),
                  jnp.where(best < _FAR, look_up(keeps, kind), 0.0))


def keep_out(barrier: Barriers | None, x: Array, y: Array) -> tuple[Array, Array]:
  """Moves places [2, M] inside a Force Field to its edge: x, y [2, M]."""
  if barrier is None:
    return x, y
  dx, dy = x - barrier.x, y - barrier.y
  square = dx * dx + dy * dy
  inside = square < barrier.reach * barrier.reach
  scale = barrier.reach / jnp.sqrt(jnp.maximum(square, 1e-12))
  return (jnp.where(inside, barrier.x + dx * scale, x),
          jnp.where(inside, barrier.y + dy * scale, y))
