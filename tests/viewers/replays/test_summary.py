"""What the page of replays shows, by hand."""

import pytest

from starleague.viewers.replays import summary
from starleague.viewers.replays.summary import Node, Opening


def opening(race="protoss", opponent="zerg", won=True, units=("Gateway", "Nexus"), start=30.0):
  seconds = tuple(start + 10 * i for i in range(len(units)))
  return Opening(race, opponent, won, tuple(units), seconds)


def test_openings_join_players_and_builds():
  players = [{"replay": "r", "player": player, "race": "zerg", "opponent": "terran",
              "result": result} for player, result in ((1, "loss"), (2, "tie"))]
  builds = [{"replay": "r", "player": 1, "order": 1, "name": "Queen", "loop": 448},
            {"replay": "r", "player": 1, "order": 0, "name": "Hatchery", "loop": 224}]
  assert summary.openings(players, builds) == [
    Opening("zerg", "terran", False, ("Hatchery", "Queen"), (10.0, 20.0)),
    Opening("zerg", "terran", None, (), ())]


def test_the_tree_of_openings():
  found = [opening(), opening(won=False, start=50.0), opening(units=("Forge",), won=None),
           opening("zerg", "protoss", False, ("Hatchery",))]
  assert summary.tree(found, depth=1) == [
    Node(-1, "players", 4, 1, 3, 0.0), Node(0, "protoss", 3, 1, 2, 0.0),
    Node(0, "zerg", 1, 0, 1, 0.0), Node(1, "PvZ", 3, 1, 2, 0.0), Node(2, "ZvP", 1, 0, 1, 0.0),
    Node(3, "Gateway", 2, 1, 2, 40.0), Node(3, "Forge", 1, 0, 0, 30.0),
    Node(4, "Hatchery", 1, 0, 1, 30.0)]
  assert len(summary.tree(found, depth=2)) == 9


def test_rare_branches_are_left_out():
  found = [opening() for _ in range(999)] + [opening(units=("Forge", "Nexus"))]
  labels = [node.label for node in summary.tree(found)]
  assert labels == ["players", "protoss", "PvZ", "Gateway", "Nexus"]


def test_timelines_are_of_first_starts():
  found = [opening(units=("Gateway", "Gateway", "Nexus"), start=start) for start in (30, 50)]
  found.append(opening(units=("Nexus",), start=10))
  rows = summary.timelines(found, "protoss")
  assert [(row.unit, row.players) for row in rows] == [("Gateway", 2), ("Nexus", 3)]
  assert rows[0].seconds == (35.0, 40.0, 45.0) and rows[1].seconds == (30.0, 50.0, 60.0)
  assert summary.timelines(found, "zerg") == []


@pytest.mark.parametrize("values, expected", [
  ([3.0], (3.0, 3.0, 3.0)), ([1.0, 2.0], (1.25, 1.5, 1.75)),
  ([4.0, 1.0, 3.0, 2.0, 5.0], (2, 3, 4))])
def test_quartiles(values, expected):
  assert summary.quartiles(values) == expected


def test_action_rates_are_of_whole_minutes_and_of_people():
  def player(replay, minutes, computer=False):
    return {"replay": replay, "race": "zerg", "computer": computer, "actions_by_minute": minutes}

  loops = {"a": 2 * 1344 + 700, "b": 1344}
  players = [player("a", [100, 200, 50]), player("b", [300, 0]), player("a", [0, 0, 0], True)]
  rows = summary.action_rates(players, loops, "zerg")
  assert rows == [summary.Rate(0, 2, (150.0, 200.0, 250.0)), summary.Rate(1, 1, (200.0,) * 3)]


def test_lengths_join_both_orders_of_a_match_up():
  games = [{"matchup": "ZvT", "loops": 13440}, {"matchup": "TvZ", "loops": 1344},
           {"matchup": "PvP", "loops": 2688}]
  assert summary.lengths(games) == {"PvP": [2.0], "TvZ": [10.0, 1.0]}
