"""Actions become commands: locations, delays and what the opponent sees."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.interface.acting import (
  location_to_place,
  place_to_location,
)
from tests.environments.skirmish.mini_games import (
  FUNCTION,
  GAMES,
  RULES,
  action,
  actions,
  everyone,
  host,
  start,
)


def test_players_wait_for_their_own_delay(game):
  delays = [1, 7, 8, 9, 16, 17, 40, 127] * 2
  state = start(game)
  assert np.asarray(game.due(state)).all()
  chosen = actions({(g, 0): action(delay=d) for g, d in enumerate(delays)} | {
    (g, 1): action(delay=1) for g in range(GAMES)})
  state = game.act(state, chosen, game.due(state))
  waited, observed = np.zeros((2, GAMES), int)
  for step in range(1, 20):
    state = game.advance(state)
    due = np.asarray(game.due(state))
    assert due[:, 1].all()
    first = due[:, 0] & (waited == 0)
    waited[first] = 8 * step
    observed[first] = np.asarray(game.observe(state)[0].last_delay)[first, 0]
  expected = [8, 8, 8, 16, 16, 24, 40, 128] * 2
  np.testing.assert_array_equal(waited, expected)
  np.testing.assert_array_equal(observed, np.minimum(expected, 127))


def test_act_is_invisible_to_the_other_player(game, played):
  state = played[3]
  chosen = everyone(action("Attack_pt", rows=range(8), x=3.0, y=3.0))
  acted = game.act(state, chosen, np.tile([True, False], (GAMES, 1)))
  before, after = host(game.observe(state)), host(game.observe(acted))
  for a, b in zip(jax.tree.leaves(before[0]), jax.tree.leaves(after[0]), strict=True):
    np.testing.assert_array_equal(a[:, 1], b[:, 1])
  assert (after[0].last_function[:, 0] == FUNCTION("Attack_pt")).all()


def test_locations_and_places_agree():
  locations = jnp.arange(32 * 32)
  x, y = location_to_place(RULES, locations)
  np.testing.assert_array_equal(place_to_location(RULES, x, y), locations)
  assert (float(x[0]), float(y[0])) == (-11.625, -11.625)
