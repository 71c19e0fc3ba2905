"""What players of recorded games own at some times."""

import numpy as np

from starleague.agent import config as agent_config
from starleague.data import games
from starleague.data.games import economies
from tests.data.games import recorded_games


def test_economies_are_those_of_the_last_decision_before_a_time(tmp_path):
  """Row r begins at loop 1000 r; its step i has 100 i + column."""
  found = games.read(recorded_games.write(tmp_path / "games", agent_config.mini(), [3, 11]))
  rows = np.array([2, 0, 3])  # of 11, 3 and 12 decisions
  made = economies.economies(found, rows, [0, 3, 4, 2000, 2009, 2011, 2012, 3012])
  assert made.shape == (3, 8, 6) and made.dtype == np.float32
  for row, steps in enumerate([
      [None, None, None, 0, 9, 11, None, None], [0, 3, None, None, None, None, None, None],
      [None, None, None, None, None, None, None, 12]]):
    for i, step in enumerate(steps):
      expected = np.full(6, np.nan) if step is None else 100 * step + np.arange(6)
      np.testing.assert_array_equal(made[row, i], expected)


def test_between_two_decisions_the_former_counts(tmp_path):
  found = games.read(recorded_games.write(tmp_path / "games", agent_config.mini(), [3]))
  loops = economies.economies(found, np.arange(2), [1, 1002])
  np.testing.assert_array_equal(loops[:, :, 0], [[100, np.nan], [np.nan, 200]])
