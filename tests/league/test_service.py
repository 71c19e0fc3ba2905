"""The service: each method over messages, without a network; what is refused."""

import json

import pytest

from starleague.league.payoff import WIN, GameResult
from starleague.league.reporting import GamesReport, PlayedGame, Receipt
from starleague.league.service import Service
from tests.league.leagues import EXPLOITER, FIRST, MAIN


def test_a_whole_league_through_messages(league, client):
  assert client.players() == league.players
  one, two = client.matches(EXPLOITER, 2, 10)
  assert league.leases.assignments() == [one, two]
  assert client.renew([one, two]) == [one.id, two.id]
  receipts = client.report_games([GamesReport(one, [PlayedGame(3, WIN, 1.5, 700)])])
  assert receipts == [[Receipt(True, ("first_win_against_main", "longest"))]]
  client.keep_replay(one.result_id(3), "replay.json")
  assert league.replays()[0].path == "replay.json"
  assert client.scores(EXPLOITER, [MAIN, FIRST]) == [1, .5]
  client.set_steps(EXPLOITER, 150)
  assert [client.training_time(seconds) for seconds in (3.5, 2.0)] == [3.5, 3.5]
  client.release([two])
  assert client.matches(EXPLOITER, 1) == [two]
  order, = client.report_many([GameResult("x", EXPLOITER, MAIN, WIN, 0.)])
  assert client.orders() == client.orders(EXPLOITER) == [order] and client.orders(MAIN) == []
  assert client.complete(order.id) == league.players[-1]
  assert client.progress(EXPLOITER) == (150, 150, 1, 1)
  assert client.report_many([GameResult("y", MAIN, FIRST, WIN, 0.)], {MAIN: 201})[0].player == MAIN
  client.pause(EXPLOITER)
  assert client.matches(EXPLOITER) == [] and league.paused == {EXPLOITER}
  client.pause(EXPLOITER, False)
  pair, = client.evaluation_matches(1, 2, [MAIN, EXPLOITER])
  assert {pair.home, pair.away} == {MAIN, EXPLOITER} and pair.games == 2


def request(**changes):
  values = {"name": MAIN, "count": 1, "games": 1, "holder": "a", "request": "r"}
  return json.dumps({**values, **changes})


@pytest.mark.parametrize("method, message, text", [
  ("matches", "no json", "request of matches is refused: JSON is malformed"),
  ("matches", "", "request of matches is refused"),
  ("matches", b"\xff\xfe", "request of matches is refused"),
  ("matches", "[" * 100_000, "request of matches is refused"),
  ("matches", "[1]", r"Expected `object`, got `array`"),
  ("matches", "{}", r"missing required field `name`"),
  ("matches", request(count="1"), r"Expected `int`, got `str` - at `\$.count`"),
  ("matches", request(count=0), r"Expected `int` >= 1 - at `\$.count`"),
  ("matches", request(games=10 ** 7), r"at `\$.games`"),
  ("matches", request(name="x" * 300), r"length <= 200 - at `\$.name`"),
  ("matches", request(surplus=1), "unknown field `surplus`"),
  ("matches", request(name="nobody"), "has no player 'nobody'"),
  ("matches", request(name=FIRST), f"^Player {FIRST} is historical: it requests no matches"),
  ("steal", "{}", "Unknown method 'steal', expected one of"),
  ("__init__", "{}", "Unknown method '__init__'"),
  ("set_steps", '{"name": "zerg-main-0", "steps": 1e30}', r"Expected `int`, got `float`|range"),
  ("set_steps", '{"name": "zerg-main-0", "steps": -1}', "steps is -1"),
  ("training_time", '{"seconds": -1.0}', r"training time is -1.0 s, expected a time from 0"),
  ("training_time", '{"seconds": 1e300}', r"training time is 1e\+300 s, expected a time from 0"),
  ("report_games", '{"reports": [[["1-1", "zerg-main-0", "x", "pfsp", false, 1], []]], '
   '"holder": "a"}', "has no player 'x'"),
  ("report_games", '{"reports": [[["1-1"], []]], "holder": "a"}', r"at `\$.reports\[0\]\[0\]`"),
  ("complete", '{"order_id": 7}', "gave no order 7"),
])
def test_invalid_requests_are_refused_in_one_line(league, method, message, text):
  data = message if isinstance(message, bytes) else message.encode()
  with pytest.raises((ValueError, KeyError), match=text) as error:
    Service(league).call(method, data)
  assert "\n" not in str(error.value)
  assert len(league.leases) == 0 and league.payoff.results(MAIN, FIRST).games == 0
