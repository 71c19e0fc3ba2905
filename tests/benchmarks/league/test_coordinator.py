"""Random results of a league: as many as asked for, none of a player with itself."""

import pytest

from benchmarks.league import coordinator
from starleague import league
from starleague.league import players

MAIN = league.Player("main", players.MAIN)


@pytest.mark.parametrize("snapshots, found", [(0, 0), (1, 16), (3, 16), (63, 16)])
def test_random_results_are_as_many_as_asked_for(snapshots, found):
  members = [MAIN, *(players.snapshot(MAIN, i, i) for i in range(snapshots))]
  names = {player.name for player in members[1:]}
  for seed in range(8):
    results = coordinator.random_results(members, 16, seed)
    assert len(results) == found
    assert all(home == "main" and away in names and result in (-1, 1)
               for home, away, result in results)
