"""Fixtures of the environments' tests; each program is compiled once for all of them."""

import pytest

from tests.environments.skirmish import default_games
from tests.environments.skirmish.mini_games import ALL_PAIRS, compile_game, host, play, start


@pytest.fixture(scope="session")
def game():
  return compile_game()


@pytest.fixture(scope="session")
def played(game):
  """States of games of every pair of scripted players, every 40 steps."""
  states, state = [], start(game, 3)
  for part in range(8):
    state = play(game, state, ALL_PAIRS, part, 40)
    states.append(host(state))
  return states


@pytest.fixture(scope="session")
def default_game():
  return default_games.compile_game()


@pytest.fixture(scope="session")
def default_record(default_game):
  """500 steps of the default tier: sampled states, and single steps to compare."""
  return default_games.record(default_game, steps=500, every=12, seed=1)
