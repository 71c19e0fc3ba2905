"""Names and results of recorded games."""

import pytest

from starleague.viewers.watch import summary


@pytest.mark.parametrize(("winner", "expected"), [
  (0, "rusher (player 1) won"), (1, "builder (player 2) won"), (2, "draw"), (-1, "unfinished")])
def test_result_names_winner_and_time(replay, winner, expected):
  ended = replay._replace(winner=winner)
  assert summary.outcome(ended) == expected
  assert summary.result(ended) == f"{expected} at 0:53"  # 150 steps of 8 loops, 22.4 per second
