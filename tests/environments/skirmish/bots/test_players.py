"""Scripted players in games of the mini tier."""

import numpy as np
import pytest

from tests.environments.skirmish.mini_games import GAMES, play, start


@pytest.mark.slow
def test_scripts_beat_their_expected_opponents(game):
  names = np.array([(1, 0), (2, 0), (1, 3), (2, 3)] * 4)
  state = play(game, start(game, 9, np.arange(GAMES) % 8 < 4), names, 9, 560)
  winner = np.asarray(state.winner).reshape(4, 4)
  assert (winner[:, [0, 2, 3]] == 0).mean() > 0.9
  assert (winner[:, 1] == 0).mean() >= 0.75
