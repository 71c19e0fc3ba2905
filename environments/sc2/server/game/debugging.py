"""State changes of debug requests: units and structures are created, killed and changed."""

import math

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import queries, slots
from starleague.environments.skirmish.rules.state.state import State
from starleague.environments.skirmish.rules.tables import tables


def create(rules: tables.Rules, state: State, player: int, kind: int, x: float, y: float,
           count: int) -> State:
  """Returns a state with new units or finished structures of a player.

  Several units form a square around the place. The player's free slots limit their number.

  Args:
    rules: the game's constants.
    state: the game.
    player: 0 or 1.
    kind: local type; not a gas structure, which needs a geyser.
    x: place in Skirmish.
    y: its other coordinate.
    count: number of them.
  """
  side, half = math.ceil(math.sqrt(count)), rules.tier.map_size / 2
  steps = np.stack(np.divmod(np.arange(count), max(side, 1)))[::-1] - (side - 1) / 2
  places = np.clip(
    np.array([[x], [y]]) + 2 * rules.types.radius[kind] * steps, -half, half).astype(np.float32)
  if not rules.types.structure[kind]:
    return _units(rules, state, player, kind, places)
  for place in places.T:
    changed = _structure(rules, state, player, kind, *map(float, place))
    if changed is None:
      break
    state = changed
  return state


def _units(rules: tables.Rules, state: State, player: int, kind: int, places: np.ndarray) -> State:
  """Returns the state with units at places [2, k], as many as there are free slots."""
  free = int((np.asarray(state.kind)[player, rules.tier.structures:] == 0).sum())
  own = np.arange(2)[:, None] == player
  x, y = (np.where(own, values[None, :free], 0) for values in places)
  nowhere = jnp.zeros(x.shape, jnp.float32)
  units = slots.Spawns(jnp.asarray(np.where(own, kind, np.zeros(x.shape, np.int32))),
                       jnp.asarray(x), jnp.asarray(y))
  return slots.spawn(rules, state, units, slots.RallyPoints(nowhere > 0, nowhere, nowhere))


def _structure(rules: tables.Rules, state: State, player: int, kind: int, x: float,
               y: float) -> State | None:
  """Returns the state with a finished structure; None: there is no free slot."""
  free = np.flatnonzero(
    np.asarray(slots.free_structure_slots(rules, state, jnp.array([kind, kind])))[player])
  if not free.size:
    return None
  at = player, int(free[0])
  state = state._replace(kind=state.kind.at[at].set(kind), x=state.x.at[at].set(x),
                         y=state.y.at[at].set(y), unfinished=state.unfinished.at[at].set(0))
  state = state._replace(
    health=state.health.at[at].set(queries.max_health(rules, state, state.kind)[at]))
  if rules.has_shields:
    state = state._replace(shield=state.shield.at[at].set(float(rules.types.shield[kind])))
  if rules.has_energy:
    state = state._replace(energy=state.energy.at[at].set(float(rules.types.energy[kind])))
  return state


def set_value(rules: tables.Rules, state: State, where: np.ndarray, name: str,
              value: float) -> State:
  """Returns a state with another health, shield or energy of units and structures.

  Args:
    rules: the game's constants.
    state: the game.
    where: [2, n] bool.
    name: `health`, `shield` or `energy`.
    value: above 0 for health; their largest value limits it.
  """
  old = getattr(state, name)
  if not old.size:  # a tier without shields or energy
    return state
  most = (queries.max_health(rules, state, state.kind) if name == "health"
          else jnp.asarray(getattr(rules.types, name))[state.kind])
  least = 1.0 if name == "health" else 0.0
  return state._replace(
    **{name: jnp.where(where, jnp.clip(value, least, most), old).astype(old.dtype)})


def kill(rules: tables.Rules, state: State, gone: np.ndarray) -> State:
  """Returns a state without the units and structures in slots [2, n] bool, and their passengers.

  Passengers whose transport stays are not killed.
  """
  cleared = jnp.asarray(gone) & queries.on_map(state)
  if rules.has_transports:
    state, cleared = slots.with_passengers(rules, state, cleared)
  return slots.clear_slots(rules, state, cleared)
