"""Fixtures of the games' tests: one recorded game of `mini`."""

import numpy as np
import pytest

from starleague.agent.predictions import CELLS, FUNCTIONS, UNITS, Predictions
from starleague.environments.skirmish.games import replays
from starleague.environments.skirmish.games.replay_format import Predicted


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


@pytest.fixture
def predicted_path(replay, tmp_path):
  """A file in which player 2's first 20 actions have made-up predictions."""
  random, rows = np.random.default_rng(0), np.flatnonzero(replay.player == 1)[:20]

  def falling(width):
    return -np.sort(-random.integers(0, 65535 // width, (len(rows), width))).astype(np.uint16)

  made = Predictions(
    value=random.integers(-32767, 32768, len(rows)).astype(np.int16),
    functions=random.integers(0, 327, (len(rows), FUNCTIONS)).astype(np.int16),
    function_probs=falling(FUNCTIONS),
    units=random.integers(0, 64, (len(rows), UNITS)).astype(np.int16), unit_probs=falling(UNITS),
    targets=random.integers(0, 64, (len(rows), UNITS)).astype(np.int16),
    target_probs=falling(UNITS),
    cells=random.integers(0, 1024, (len(rows), CELLS)).astype(np.int32),
    cell_probs=falling(CELLS), camera=np.tile(np.array([0, 0, 256, 256], np.int16), (20, 1)))
  return replays.save(tmp_path / "predicted.npz", replay._replace(
    predicted=Predicted(rows.astype(np.int32), made)))
