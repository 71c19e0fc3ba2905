"""Fixtures of the games' tests: one recorded game of `mini`."""

import pytest

from starleague.environments.skirmish.games import replays


@pytest.fixture(scope="session")
def replay():
  """A complete game, longer than the distance between two hashes."""
  pair = (replays.scripted_player("rusher"), replays.scripted_player("builder"))
  return replays.record(pair, seed=3)


@pytest.fixture(scope="session")
def states(replay):
  return replays.resimulate(replay)


@pytest.fixture
def path(replay, tmp_path):
  return replays.save(tmp_path / "game.npz", replay)
