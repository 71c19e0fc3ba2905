"""The connection to a league: its players, z of main agents, reports of games and leases."""

import numpy as np
import pytest

from starleague import league
from starleague.actor.loops import league_connection
from starleague.actor.loops.league_connection import Ended

MAIN = league.Player("main", league.MAIN, "zerg")
PAST = league.Player("main-1", league.HISTORICAL, "zerg", "main", league.MAIN, 100)
RIVAL = league.Player("rival", league.LEAGUE_EXPLOITER, "terran")
PAST_RIVAL = league.Player(
  "rival-1", league.HISTORICAL, "terran", "rival", league.LEAGUE_EXPLOITER, 100)
SCRIPT = league.Player("rusher", league.SCRIPTED)
FIRST, SECOND = (league.Assignment(f"1-{number}", "main", away, "pfsp", False, 2)
                 for number, away in ((1, "rival"), (2, "rusher")))


class Client:
  """A coordinator that remembers reports and renewals, and renews all but the lost."""

  def __init__(self):
    self.known, self.asked = [MAIN, RIVAL, SCRIPT], 0
    self.reported, self.renewed, self.lost = [], [], set()

  def players(self):
    self.asked += 1
    return self.known

  def report_games(self, reports):
    self.reported.append({report.assignment: [(game.game, game.result) for game in report.games]
                          for report in reports})

  def renew(self, assignments):
    self.renewed.append(list(assignments))
    return [each.id for each in assignments if each.id not in self.lost]


def test_players_are_asked_for_again_when_one_is_not_known():
  client = Client()
  members = league_connection.Members(client)
  assert members.learners == ["main", "rival"]
  assert members("rusher") == SCRIPT and client.asked == 1
  client.known = [*client.known, PAST]  # a snapshot that was made later
  assert members("main-1") == PAST and members("main") == MAIN and client.asked == 2
  assert members.learners == ["main", "rival"]
  with pytest.raises(KeyError, match="main-2"):
    members("main-2")


@pytest.mark.parametrize("player, share", [
  (MAIN, 1.0), (PAST, 1.0), (RIVAL, 0.0), (PAST_RIVAL, 0.0), (SCRIPT, 0.0)])
def test_main_agents_and_their_snapshots_play_with_z(player, share):
  probabilities = np.array([0.5, 0.25, 0.0, 1.0], np.float32)
  np.testing.assert_array_equal(
    league_connection.active(probabilities, player), share * probabilities)


@pytest.fixture
def now(monkeypatch):
  """The clock, a list of one number."""
  now = [50.0]
  monkeypatch.setattr(league_connection.time, "monotonic", lambda: now[0])
  return now


def test_games_are_reported_together_every_few_seconds(now):
  client = Client()
  reports = league_connection.GameReports(client)
  now[0] += league_connection.REPORT_INTERVAL_S - 0.1
  assert reports.add([Ended(FIRST, 0, 1.0)], [FIRST, SECOND]) == []
  assert client.reported == [] and client.renewed == []
  now[0] += 0.1
  # Game 2 of two is surplus.
  ended = [Ended(SECOND, 1, 0.0), Ended(FIRST, 1, -1.0), Ended(FIRST, 2, 1.0)]
  assert reports.add(ended, [SECOND]) == []
  assert client.reported == [{FIRST: [(0, 1), (1, -1)], SECOND: [(1, 0)]}]
  assert client.renewed == [[SECOND]]
  now[0] += league_connection.REPORT_INTERVAL_S
  reports.add([], [SECOND])
  assert len(client.reported) == 1 and client.renewed == [[SECOND]] * 2  # nothing is sent twice


def test_behaviours_are_reported(now, monkeypatch):
  client, sent = Client(), []
  monkeypatch.setattr(client, "report_games", sent.extend)
  reports = league_connection.GameReports(client)
  behaviours = league.Behaviour(0.2, 1.0, 900), league.Behaviour(0.0, 0.0, -1)
  now[0] += league_connection.REPORT_INTERVAL_S
  reports.add([Ended(FIRST, 0, 1.0, behaviours), Ended(FIRST, 1, 1.0)], [])
  assert [game.behaviours for game in sent[0].games] == [behaviours, ()]


def test_assignments_that_are_not_renewed_are_lost(now):
  client = Client()
  client.lost = {FIRST.id}
  reports = league_connection.GameReports(client)
  assert reports.add([], [FIRST, SECOND]) == []  # not yet known
  now[0] += league_connection.REPORT_INTERVAL_S
  assert reports.add([], [FIRST, SECOND]) == [FIRST]


def test_processes_of_one_name_are_different_holders(monkeypatch):
  made = []
  monkeypatch.setattr(league_connection.league, "GrpcTransport", lambda address: address)
  monkeypatch.setattr(league_connection.league, "LeagueClient",
                      lambda transport, holder: made.append((transport, holder)))
  for _ in range(2):
    league_connection.connect("localhost:7", "actor-3")
  (address, first), (_, second) = made
  assert address == "localhost:7" and first != second
  assert first.startswith("actor-3-") and len(first) == len("actor-3-") + 8
