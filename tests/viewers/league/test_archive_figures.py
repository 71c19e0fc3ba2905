"""The plots of the archive of behaviours."""

import numpy as np
import pytest

from starleague.league import elo_expected_score
from starleague.league import players as kinds
from starleague.league.league_file import Progress
from starleague.league.players import Player
from starleague.league.ratings import Estimate, archive
from starleague.league.ratings.archive import Cell, CellCount
from starleague.viewers import plots
from starleague.viewers.league import archive_figures

PLAYERS = (Player("<m>", kinds.MAIN, "zerg"),
           Player("<m>-0001", kinds.HISTORICAL, "zerg", "<m>", kinds.MAIN, 100),
           Player("idle", kinds.LEAGUE_EXPLOITER, "zerg"))


@pytest.fixture
def small(facts):
  """A main agent at 400 Elo, its snapshot at 0, and a player without games."""
  value, games = np.array([400.0, 0.0, 900.0]), np.zeros((3, 3))
  games[0, 1] = games[1, 0] = 5
  counts = (CellCount("<m>", 1, Cell(1, 2, 0), 3, 1000),
            CellCount("<m>", 0, Cell(0, 1, 7), 4, 500), CellCount("idle", 0, Cell(4, 4, 4), 9, 700))
  return facts._replace(players=PLAYERS, ratings=Estimate(value, value, value), games=games,
                        behaviours=counts, progress={"<m>": Progress(1500, 100, 1)})


def test_qualities_are_scores_against_the_player_with_rating_0(small):
  filled = archive_figures.archive_of(small)
  strong = 1 / (1 + np.exp(-1))
  assert elo_expected_score(400.0) == pytest.approx(strong)
  assert filled.points == [(500, 1 / 200, 0.5), (1000, 2 / 200, pytest.approx(0.5 + strong)),
    (1500, 2 / 200, pytest.approx(0.5 + strong))]


def test_a_snapshot_without_games_has_the_quality_of_its_parent(small):
  players = (*PLAYERS, Player("<m>-0002", kinds.HISTORICAL, "zerg", "<m>", kinds.MAIN, 1500))
  games = np.pad(small.games, (0, 1))
  value = np.append(small.ratings.value, 300.0)
  found = archive_figures.archive_of(small._replace(
    players=players, games=games, ratings=Estimate(value, value, value)))
  assert found.points == archive_figures.archive_of(small).points
  assert found.archive.holder[1, 2, 0] == 3


def test_a_snapshot_without_games_holds_no_cell_once_its_parent_was_reset(small):
  games = np.zeros((3, 3))
  games[0, 2] = games[2, 0] = 5  # the snapshot has none
  reset = small._replace(games=games, resets=frozenset({"<m>-0001"}))
  kept, empty = (archive_figures.archive_of(each).archive
                 for each in (reset._replace(resets=frozenset()), reset))
  assert kept.holder[0, 1, 7] == 1 and kept.quality[0, 1, 7] == pytest.approx(0.731059)
  assert empty.holder[0, 1, 7] == archive.NOBODY and np.isnan(empty.quality[0, 1, 7])
  assert empty.quality[1, 2, 0] == pytest.approx(0.731059)  # the live player's own


def test_heat_map_by_army_opening_and_first_kill(small):
  figure = archive_figures.heat_map(small, archive_figures.archive_of(small))
  (trace,) = figure["data"]
  z, names = np.array(trace["z"], float), np.array(trace["customdata"])
  assert z.shape == names.shape == (25, 8) and np.isfinite(z).sum() == 2
  army, opening = trace["y"]
  row = list(zip(army, opening, strict=True)).index(("to 1.5", "to 20%"))
  assert trace["x"][0] == "to 45" and z[row, 0] == pytest.approx(0.731059)
  assert names[row, 0] == "&lt;m>"
  row = list(zip(army, opening, strict=True)).index(("to 1", "to 10%"))
  assert trace["x"][7] == "never" and z[row, 7] == 0.5 and names[row, 7] == "&lt;m>-0001"
  assert (names == "nobody").sum() == 198
  assert trace["z"][0][0] is None  # JSON has no NaN


def test_curves_and_their_text(small):
  figure = archive_figures.curves(archive_figures.archive_of(small))
  coverage, score = figure["data"]
  assert coverage["x"] == score["x"] == [500, 1000, 1500]
  assert coverage["y"] == [0.005, 0.01, 0.01] and score["y"] == [0.5, 1.23106, 1.23106]
  assert score["yaxis"] == "y2"
  assert plots.alternative("", figure) == "coverage 0% to 1%, QD score 0.5 to 1.23"


def test_a_simulated_league(facts):
  filled = archive_figures.archive_of(facts)
  held = filled.archive.holder[filled.archive.holder != archive.NOBODY]
  assert archive.coverage(filled.archive) == held.size / 200 == filled.points[-1].coverage > 0.3
  assert all(facts.players[i].parent for i in held)
