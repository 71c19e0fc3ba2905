"""The plots of a league: ratings, family tree, shares."""

import collections

import numpy as np
import pytest

from starleague.common.results import Row
from starleague.league import players as kinds
from starleague.league.league_file import BranchCount, Progress
from starleague.league.players import Player
from starleague.league.ratings import Estimate
from starleague.viewers.league import figures, sections

PLAYERS = (
  Player("x", kinds.MAIN_EXPLOITER, "zerg"),
  Player("<m>", kinds.MAIN, "zerg"),
  Player("x-0001", kinds.HISTORICAL, "zerg", "x", kinds.MAIN_EXPLOITER, 100),
  Player("m-0001", kinds.HISTORICAL, "zerg", "<m>", kinds.MAIN, 150),
  Player("x-0002", kinds.HISTORICAL, "zerg", "x", kinds.MAIN_EXPLOITER, 250))


@pytest.fixture
def small(facts):
  """A main agent with one snapshot, and an exploiter with two that is reset after the first."""
  value = np.array([10., 300, 20, 200, 30])
  return facts._replace(
    players=PLAYERS, games=5 * (1 - np.eye(5)), anchor=3,
    ratings=Estimate(value, value - 50, value + 50), resets=frozenset({"x-0001"}),
    progress={"x": Progress(300, 250, 2), "<m>": Progress(400, 150, 1)})


def test_ratings_of_snapshots_and_the_live_player(small):
  data = figures.ratings(small)["data"]
  assert len(data) == 6  # an area and a line for each of two learners, the main agent first
  low, high, line = data[:3]
  assert line["name"] == "&lt;m>"
  assert (line["x"], line["y"]) == ([150, 400], [200, 300])
  assert (low["y"], high["y"]) == ([150, 250], [250, 350])
  assert high["fill"] == "tonexty"
  assert line["customdata"] == [["m-0001", 150, 250], ["&lt;m>", 250, 350]]
  assert (data[5]["x"], data[5]["y"]) == ([100, 250, 300], [20, 30, 10])
  assert data[5]["line"]["color"] != line["line"]["color"]


def test_players_without_games_have_no_rating_to_show(small):
  games = small.games.copy()
  games[[1, 2, 3]] = games[:, [1, 2, 3]] = 0
  data = figures.ratings(small._replace(games=games))["data"]
  assert (data[2]["x"], data[2]["y"]) == ([150], [200])  # the anchor, without the live player
  assert (data[5]["x"], data[5]["y"]) == ([250, 300], [30, 10])


def test_family_tree(small):
  trunks, of_main, of_exploiter, resets, nodes = figures.family(small)["data"]
  assert trunks["x"] == [0, 400, None] * 2
  assert trunks["y"] == [.32, .32, None, 1.32, 1.32, None]
  # The main agent's branch, then the exploiter's two: the second begins at the reset.
  assert of_main["x"] == [0, 150, 400, None] and of_main["y"] == [.32, 0, 0, None]
  assert of_exploiter["x"] == [0, 100, None, 100, 250, 300, None]
  assert of_exploiter["y"] == [1.32, 1, None, 1.32, 1, 1, None]
  assert (resets["x"], resets["y"]) == ([100], [1.32])
  assert resets["text"] == ["x reset after x-0001"]
  assert (nodes["x"], nodes["y"]) == ([150, 100, 250], [0, 1, 1])
  assert nodes["marker"]["color"] == [200, 20, 30]


def looks_of(figure):
  """Returns the colours and dashes of each player's lines; the edges of areas have no width."""
  found = collections.defaultdict(set)
  for trace in figure["data"]:
    if "legendgroup" in trace and trace["line"]["width"]:
      found[trace["legendgroup"]].add((trace["line"]["color"], trace["line"]["dash"]))
  return found


def test_a_player_looks_the_same_in_all_plots(facts):
  """Twelve learners: more than there are colours."""
  looks = {name: {(style.colour, style.dash)} for name, style in figures.styles(facts).items()}
  assert len(set().union(*looks.values())) == 13  # and the run as a whole
  learners = {name: look for name, look in looks.items() if name != facts.name}
  assert looks_of(figures.ratings(facts)) == looks_of(figures.family(facts)) == learners
  curves = [panel.figure for section in sections.sections(facts)
            if section.name in ("learning", "throughput") for panel in section.panels]
  assert len(curves) == 6 and all(looks_of(figure) == learners for figure in curves)


def test_a_league_without_snapshots_or_steps(small):
  young = small._replace(players=PLAYERS[:2], games=5 * (1 - np.eye(2)), anchor=1, progress={},
                         resets=frozenset(),
                         ratings=Estimate(*(part[:2] for part in small.ratings)))
  assert [line["x"] for line in figures.family(young)["data"][1:3]] == [[0, 0, None]] * 2
  assert figures.ratings(young)["data"][2]["x"] == [0]


def test_shares_of_matches():
  branches = [BranchCount("m", "pfsp", 60, 600), BranchCount("m", "self_play", 20, 200),
              BranchCount("x", "exploit", 5, 50), BranchCount("m", "of tomorrow", 20, 0)]
  learners = [Player("m", kinds.MAIN), Player("x", kinds.MAIN_EXPLOITER), Player("y", kinds.MAIN)]
  data = figures.shares(branches, learners)["data"]
  assert [(trace["name"], trace["x"]) for trace in data] == [
    ("PFSP over the past", [.6, 0, 0]), ("self-play", [.2, 0, 0]),
    ("live main agents", [0, 1, 0]), ("of tomorrow", [.2, 0, 0])]
  assert data[0]["customdata"] == ["60", "0", "0"]


def test_openings_are_the_latest_with_rare_ones_together():
  def rows(**shares):
    return {f"opening/0/{name}": [Row(1, 1, "t", 0.9), Row(2, 2, "t", share)]
            for name, share in shares.items()}

  many = {f"o{i:02d}": (12 - i) / 78 for i in range(12)}
  found = figures.openings({"m": rows(**many), "x": rows(o00=1.0), "y": {"loss/total": []}})
  names = [trace["name"] for trace in found["data"]]
  assert names == [f"o{i:02d}" for i in range(9)] + ["others"]
  assert found["data"][0]["x"] == [round(12 / 78, 4), 1] and found["data"][0]["y"] == ["m", "x"]
  assert found["data"][-1]["x"] == [round(6 / 78, 4), 0]
  assert figures.openings({"m": {"loss/total": [Row(1, 1, "loss/total", 1.0)]}}) is None


@pytest.mark.parametrize("written, shares", [
  # The actor started again at 60 s, and did not know its former opening.
  ({"0/rush": [(30, 1.0)], "0/macro": [(90, 0.75)], "0/defence": [(90, 0.25)]},
   {"macro": 0.75, "defence": 0.25}),
  # Openings that have vanished are 0 in the newest report.
  ({"0/rush": [(30, 1.0), (60, 0.0)], "0/macro": [(60, 1.0)]}, {"macro": 1.0}),
  # Two actors; the later report of one does not replace that of the other.
  ({"0/rush": [(90, 1.0)], "1/rush": [(95, 0.2)], "1/macro": [(95, 0.8)]},
   {"rush": 0.6, "macro": 0.4}),
  # Actor 1 is no longer part of the run; earlier versions wrote no actor.
  ({"0/rush": [(9000, 1.0)], "1/macro": [(30, 1.0)], "macro": [(30, 1.0)]}, {"rush": 1.0}),
  ({"rush": [(30, 0.3)], "macro": [(30, 0.7)]}, {"macro": 0.7, "rush": 0.3})])
def test_openings_are_the_mean_of_the_newest_reports(written, shares):
  rows = {f"opening/{tag}": [Row(seconds, 0, "t", value) for seconds, value in values]
          for tag, values in written.items()}
  data = figures.openings({"m": rows})["data"]
  assert {trace["name"]: trace["x"][0] for trace in data} == shares
