"""The heat map of scores: cells, orders, facts of the pairs."""

import base64

import numpy as np
import pytest

from starleague.league import players as kinds
from starleague.league.payoff import wilson_interval
from starleague.league.players import Player
from starleague.league.ratings import Estimate
from starleague.viewers.league import matrix

PLAYERS = (
  Player("b", kinds.MAIN, "zerg"),
  Player("b-0000", kinds.HISTORICAL, "zerg", "b", kinds.MAIN),
  Player("a", kinds.LEAGUE_EXPLOITER, "terran"),
  Player("a-0001", kinds.HISTORICAL, "terran", "a", kinds.LEAGUE_EXPLOITER, 10))
GAMES = np.array([[0, 4, 0, 9.5], [4, 0, 0, 0], [0, 0, 0, 0], [9.5, 0, 0, 0]])
POINTS = np.array([[0, 3, 0, 9.5], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


@pytest.fixture
def small(facts):
  """Four players: b beat b-0000 three times in four games and a-0001 in all, a never played."""
  value = np.array([100., 0, 50, -200])
  replays = [facts.replays[0]._replace(home="a-0001", away="b", id="x/1", path="x.npz"),
             facts.replays[0]._replace(home="a-0001", away="b", id="x/2", path=None),
             facts.replays[0]._replace(home="removed", away="b", id="x/3", path="x.npz")]
  return facts._replace(players=PLAYERS, games=GAMES, points=POINTS, replays=replays, anchor=1,
                        ratings=Estimate(value, value - 10, value + 10))


def decoded(text, shape):
  return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape)


def test_cells_are_percentages_in_order_of_creation(small):
  figure = matrix.heat_map(small)
  assert figure["data"][0]["type"] == "image"
  pairs = figure["layout"]["meta"]["pairs"]
  np.testing.assert_array_equal(decoded(pairs["scores"], (4, 4)), [
    [101, 75, 101, 100], [25, 101, 101, 101], [101, 101, 101, 101], [0, 101, 101, 101]])


def test_colours_go_from_red_to_blue(small):
  pairs = matrix.heat_map(small)["layout"]["meta"]["pairs"]
  colours = decoded(pairs["palette"], (102, 3))
  np.testing.assert_array_equal(colours, matrix.palette())
  assert colours[0].tolist() == [178, 24, 43] and colours[100].tolist() == [33, 102, 172]
  assert colours[50].tolist() == [248, 250, 252]
  assert colours[matrix.UNKNOWN].tolist() == [214, 214, 214]
  # Half way between the colours of 50 and 75%; the colour of no games is that of no score.
  np.testing.assert_array_equal(colours[[62, 63]].mean(0).round(), [197, 224, 237])
  assert (colours[:101] != colours[101]).any(1).all()


def test_players_are_sorted_in_four_ways(small):
  found = {name: order.tolist() for name, order in matrix.orders(small).items()}
  assert found == {"rating": [0, 2, 1, 3], "age": [0, 1, 2, 3], "kind": [0, 2, 1, 3],
                   "name": [2, 3, 0, 1]}
  layout = matrix.heat_map(small)["layout"]
  assert layout["meta"]["pairs"]["orders"] == found
  assert layout["xaxis"]["ticktext"] == ["b", "a", "b-0000", "a-0001"]


def test_pairs_have_games_intervals_and_replays(small):
  pairs = matrix.heat_map(small)["layout"]["meta"]["pairs"]
  assert pairs["names"] == ["b", "b-0000", "a", "a-0001"]
  games, low, high = (decoded(pairs[name], (4, 4)) for name in ("games", "low", "high"))
  assert games[0].tolist() == [0, 4, 0, 10]
  bounds = [round(100 * bound) for bound in wilson_interval(3, 4)]
  assert [low[0, 1], high[0, 1]] == bounds == [30, 95]
  assert [low[0, 2], high[0, 2]] == [0, 100]
  assert pairs["replays"] == [[3, 0, "x/1"]]  # saved, and of players that are there


def test_large_leagues_have_few_ticks(facts):
  count = len(facts.players)
  ticks = matrix.heat_map(facts)["layout"]["xaxis"]
  assert len(ticks["tickvals"]) == len(ticks["ticktext"]) == -(-count // 2) <= 40
