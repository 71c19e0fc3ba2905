"""The games of a league outside JAX: numbers of players, requests, reports."""

import numpy as np
import pytest

from starleague import league
from starleague.actor.game_processes import Finished
from starleague.actor.games import Report
from starleague.actor.loops import hosted_league, hosted_loop, league_connection, openings, weights
from starleague.common import results
from starleague.data.reverb.parameters import Fetched
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts.actor_options import actor_options
from tests.actor.loops.options import process

MAIN = league.Player("main", league.MAIN, "zerg")
RIVAL = league.Player("rival", league.MAIN_EXPLOITER, "terran")
PAST = league.Player("main-1", league.HISTORICAL, "zerg", "main", league.MAIN, 100)
OLD = [league.Player(f"main-{i}", league.HISTORICAL, "zerg", "main", league.MAIN, 100 * i)
       for i in range(2, 6)]
BOT = league.Player("protoss:hard", league.SCRIPTED)


class Client:
  """A coordinator that gives each learner the matches of its list, one an assignment."""

  def __init__(self, **opponents):
    self.opponents = {name: list(others) for name, others in opponents.items()}
    self.number, self.reported, self.renewed, self.lost = 0, [], set(), set()

  def players(self):
    return [MAIN, RIVAL, PAST, BOT, *OLD]

  def matches(self, player, count, games):
    if not self.opponents.get(player):
      return []
    self.number += 1
    away = self.opponents[player].pop(0)
    return [league.Assignment(f"1-{self.number}", player, away, "pfsp", away == "rival", games)]

  def report_games(self, reports):
    self.reported += reports

  def renew(self, assignments):
    self.renewed = set(assignments)
    return [each.id for each in assignments if each.id not in self.lost]


class Fetcher:
  """Gives new weights, the number of the call, at every second call."""

  def __init__(self, name):
    self.name, self.calls = name, 0

  def __call__(self):
    self.calls += 1
    if self.calls % 2:
      self.newest = Fetched(f"{self.name} {self.calls}", self.calls, 0)
    return self.newest


@pytest.fixture
def source(tmp_path, monkeypatch):
  """Returns a function that makes the source of two games at a time."""
  active = np.array([1.0, 0.0, 0.0, 1.0], np.float32)
  monkeypatch.setattr(league_connection, "REPORT_INTERVAL_S", 0.0)
  monkeypatch.setattr(openings, "INTERVAL_S", 0.0)
  config = settings.complete({}, {
    "environment.name": "sc2", "sc2.races": "terran,zerg", "league.games": 2, "actor.games": 2})

  parts = registry.make_parts(config)
  shown = unconditional(len(parts.maps), parts.mmr)._replace(active=active)

  def make(client):
    players = weights.WeightSource(Fetcher, lambda name: f"old {name}", ["main", "rival"])
    return hosted_league.LeagueMatches(
      parts, actor_options(config), process(tmp_path), client, players, shown,
      np.random.default_rng(0))

  return make


def test_a_number_is_kept_until_another_player_needs_it():
  numbers = hosted_league.Numbers(["a", "b"], games=2)
  assert [numbers.take(name, ()) for name in ("b", "old", "older", "old")] == [
    (1, False), (2, True), (3, True), (2, False)]
  assert numbers.take("oldest", busy={2}) == (3, True)
  assert numbers.take("new", busy=()) == (2, True)  # taken before 3 was
  assert numbers.take("oldest", busy=()) == (3, False)


def test_requests_have_the_races_numbers_and_z_of_their_players(source):
  matches = source(Client(main=["main-1", "protoss:hard"], rival=["main"]))
  assert matches.learners == ["main", "rival"]
  assert matches.newest() == {0: "main 1", 1: "rival 1"}
  main, rival = matches.next_request(), matches.next_request()
  assert (main.opponent, main.races, main.players, main.recorded) == (
    "", (2, 2), (0, 2), (True, False))
  # Main agents and their snapshots play with z, exploiters without.
  assert main.active == ((True, False, False, True),) * 2
  assert (rival.races, rival.players, rival.recorded) == ((1, 2), (1, 0), (True, False))
  assert rival.active == ((False,) * 4, (True, False, False, True))
  assert matches.newest() == {2: "old main-1"}  # the learners' weights are the old ones
  second = matches.next_request()
  assert (second.players, matches.newest()) == ((0, 2), {0: "main 3", 1: "rival 3"})
  matches.next_request()  # the rival's second game
  bot = matches.next_request()
  assert (bot.opponent, bot.players, bot.recorded) == ("protoss:hard", (0, 0), (True, False))
  assert bot.active[1] == (False,) * 4


def test_games_are_reported_by_assignment_and_void_ones_are_played_again(source, tmp_path):
  client = Client(main=["rival"])
  matches = source(client)
  first, second = matches.next_request(), matches.next_request()
  assert matches.next_request() is None
  assert first.recorded == (True, True)
  matches.handle([Finished(first, Report(None, reason="it hangs")),
                 Finished(second, Report(-1, 900, 7, ((18,) * 20, (0,) * 20),
                                         behaviours=((1.0, 0.0, -1), (0.0, 2.0, 80))))], 7)
  (report,) = client.reported
  assert [(game.game, game.result) for game in report.games] == [(1, -1)]
  assert report.games[0].behaviours == (
    league.Behaviour(1.0, 0.0, -1), league.Behaviour(0.0, 2.0, 80))
  assert client.renewed == {report.assignment}
  again = matches.next_request()
  matches.handle([Finished(again, Report(1, 900, 7, ((18,) * 20, (0,) * 20)))], 7)
  assert [(game.game, game.result) for game in client.reported[1].games] == [(0, 1)]
  assert client.renewed == set()
  rows = {path.parent.name: results.read(path) for path in tmp_path.rglob("results.csv")}
  assert {name: {row.tag for row in found} for name, found in rows.items()} == {
    "main": {f"opening/0/{openings.name_of(np.array([18] * 20))}"},
    "rival": {"opening/0/nothing built"}}


def test_games_of_a_lost_assignment_are_not_started(source):
  client = Client(main=["rival"])
  matches = source(client)
  request = matches.next_request()
  client.lost = {"1-1"}  # the second of its two games is waiting
  matches.handle([Finished(request, Report(1, 900, 7, ((18,) * 20, (0,) * 20)))], 7)
  assert client.renewed and matches.next_request() is None


def test_games_that_have_ended_keep_their_numbers_until_they_are_handled(source):
  matches = source(Client(main=["main-1", "main-2", "main-3", "main-4", "main-5"]))
  requests = [matches.next_request() for _ in range(6)]  # two of each opponent
  assert [request.players[1] for request in requests] == [2, 2, 3, 3, 4, 4]
  matches.handle([Finished(request, Report(1)) for request in requests[:4]], 0)
  assert [matches.next_request().players[1] for _ in range(4)] == [5, 5, 2, 2]
  assert {number: name for number, name in matches.newest().items() if number > 1} == {
    2: "old main-5", 3: "old main-2", 4: "old main-3", 5: "old main-4"}


def test_matches_are_a_source_of_the_actors_loop(source):
  found: hosted_loop.MatchSource = source(Client())
  assert found.next_request() is None and found.conditioning.active.shape == (4,)
