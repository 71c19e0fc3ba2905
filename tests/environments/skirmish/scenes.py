"""Scenes of the default tier: chosen units on an otherwise empty map."""

import jax
import numpy as np

from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import LOCAL, TYPES, S, host, start
from tests.environments.skirmish.places import TERRAN


def scene(game, mine=TERRAN, theirs=TERRAN, ground=0, workers=False):
  """The same start in all games: town halls only, or with workers."""
  state = jax.tree.map(np.array, host(start(game, match_ups=[(mine, theirs, ground)])))
  if not workers:
    state.kind[:, :, S:] = 0
    for name in ("health", "shield", "energy", "x", "y"):
      getattr(state, name)[:, :, S:] = 0
    state.orders.verb[:, :, :] = constants.IDLE
  state.minerals[:] = 0
  return state


def put(state, slot, name, place, player=0, games=slice(None), verb=constants.IDLE, target=-1):
  """Puts a finished structure or a unit into a slot, in the opponent's sight."""
  kind = LOCAL[name]
  state.kind[games, player, slot] = kind
  state.x[games, player, slot], state.y[games, player, slot] = place
  state.health[games, player, slot] = TYPES.health[kind]
  state.shield[games, player, slot] = TYPES.shield[kind]
  state.energy[games, player, slot] = 0
  state.memory.seen[games, 1 - player, slot] = True
  if slot >= S:
    state.orders.verb[games, player, slot - S] = verb
    state.orders.target[games, player, slot - S] = target


def run(game, state, steps=1, visit=None):
  for _ in range(steps):
    state = host(game.advance(state))
    if visit is not None:
      visit(state)
  return jax.tree.map(np.array, state)


def same(values, expected):
  """Checks that all games [G, ...] equal the value expected of one."""
  np.testing.assert_array_equal(values, np.broadcast_to(expected, np.shape(values)))


def close(values, expected):
  """Checks that all games [G, ...] are within 1e-4 of the value expected of one."""
  np.testing.assert_allclose(values, np.broadcast_to(expected, np.shape(values)), atol=1e-4)
