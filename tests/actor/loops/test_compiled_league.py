"""An actor in a league: conditioning, parameters in slots, games reported by assignment."""

import numpy as np
import pytest

from starleague import league
from starleague.actor import players
from starleague.actor.loops import compiled_league, league_connection, match_slots, weights
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common import run_files
from starleague.data import checkpoints
from starleague.data.reverb.parameters import Fetched
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.league.run_copy import RunCopy

SIZES = players.Sizes(slots=4, matches=2, scripts=1, chunk=1)
MAIN = league.Player("main", league.MAIN, "zerg")
PAST = league.Player("main-1", league.HISTORICAL, "zerg", "main", league.MAIN, 100)
RIVAL = league.Player("rival", league.LEAGUE_EXPLOITER, "terran")
SCRIPT = league.Player("rusher", league.SCRIPTED)


class Client:
  """A coordinator that gives the assignments in its list and remembers what is reported."""

  def __init__(self, *opponents: str):
    self.opponents, self.number = list(opponents), 0
    self.known = [MAIN, RIVAL, SCRIPT]
    self.released, self.reported, self.renewed, self.lost = [], [], [], set()

  def players(self):
    return self.known

  def matches(self, player, count, games):
    assigned = []
    for _ in range(min(count, len(self.opponents))):
      self.number += 1
      assigned.append(league.Assignment(f"1-{self.number}", player, self.opponents.pop(0), "pfsp",
                                     False, games))
    return assigned

  def release(self, assignments):
    self.released += assignments

  def report_games(self, reports):
    self.reported += reports

  def renew(self, assignments):
    self.renewed += assignments
    return [each.id for each in assignments if each.id not in self.lost]


def make_slots(games: int = 2) -> match_slots.MatchSlots:
  return match_slots.MatchSlots(SIZES, games, ["main"], {"rusher": 0})


def test_main_agents_and_their_snapshots_play_with_z_and_all_with_their_race():
  client, matches = Client("main-1", "rusher"), make_slots()
  members = league_connection.Members(client)
  assert members.learners == ["main", "rival"]
  compiled_league.Assignments(client, matches, games=4).fill()
  matches.add(league.Assignment("1-8", "main", "rusher", "pfsp", False, 4))
  client.known = [*client.known, PAST]  # a snapshot that was made later
  active = np.float32([0.5, 0.25, 0.0, 0.0])
  found = compiled_league.condition(
    unconditional(1, 6000), matches, members, compiled_league.Personal(active))
  np.testing.assert_array_equal(found.active[0], [active, active])
  scripted = SIZES.scripted_match(0, 0)
  np.testing.assert_array_equal(found.active[scripted], [active, np.zeros(4)])
  zerg = types.RACES.index("zerg")
  np.testing.assert_array_equal(found.races[0], [zerg, zerg])
  np.testing.assert_array_equal(found.races[scripted], [zerg, -1])
  assert found.races.shape == (SIZES.opponents, 2) and found.active.shape == (SIZES.opponents, 2, 4)
  assert found.minimax is None


def test_exploiters_alone_are_rewarded_for_the_opponents_loss_of_value():
  client, matches = Client(), make_slots()
  members = league_connection.Members(client)
  matches.add(league.Assignment("1-1", "rival", "main", "exploit", True, 4))
  found = compiled_league.condition(
    unconditional(1, 6000), matches, members, compiled_league.Personal(np.zeros(4), minimax=0.5))
  np.testing.assert_array_equal(found.minimax[0], [0.5, 0.0])
  assert not found.minimax[1:].any() and found.objectives is None


def test_objectives_are_those_of_their_players():
  client, matches = Client(), make_slots()
  members = league_connection.Members(client)
  matches.add(league.Assignment("1-1", "rival", "main", "exploit", True, 4))
  tables = {name: np.full((2, 256), value, np.float32)
            for name, value in (("other", 3.0), ("main", 5.0))}
  found = compiled_league.condition(
    unconditional(1, 6000), matches, members,
    compiled_league.Personal(np.zeros(4), objectives=tables))
  np.testing.assert_array_equal(found.objectives[:, 0, 0], [0.0, 3.0, 5.0])
  np.testing.assert_array_equal(found.objective[0], [0, 2])
  assert not found.objective[1:].any()


class Pursued:
  """Goals of the rival."""

  weights = np.zeros((2, 1), np.float32)

  def number(self, name):
    return int(name == "rival")


def test_exploiters_with_goals_play_with_all_parts_of_z():
  client, matches = Client(), make_slots()
  members = league_connection.Members(client)
  matches.add(league.Assignment("1-1", "rival", "main", "exploit", True, 4))
  active = np.float32([0.25, 0.25, 0.0, 0.0])
  found = compiled_league.condition(
    unconditional(1, 6000), matches, members, compiled_league.Personal(active, goals=Pursued()))
  np.testing.assert_array_equal(found.active[0], [[1, 1, 0, 0], active])
  np.testing.assert_array_equal(found.goal[0], [1, 0])


def test_snapshots_may_always_play_with_z():
  client, matches = Client("main-1"), make_slots()
  members = league_connection.Members(client)
  compiled_league.Assignments(client, matches, games=4).fill()
  client.known = [*client.known, PAST]
  active = np.float32([0.25, 0.5, 0.0, 0.0])
  found = compiled_league.condition(
    unconditional(1, 6000), matches, members, compiled_league.Personal(active, snapshots_z=True))
  np.testing.assert_array_equal(found.active[0], [active, [1, 1, 0, 0]])


def test_games_are_reported_by_assignment_without_surplus_ones(monkeypatch):
  now = [0.0]
  monkeypatch.setattr(league_connection.time, "monotonic", lambda: now[0])
  client, matches = Client("main-1"), make_slots()
  games = compiled_league.Assignments(client, matches, games=2)
  games.fill()
  (assignment,) = matches.assignments
  now[0] = 100.0
  games.add([league_connection.Ended(assignment, game, reward)
             for game, reward in ((0, 1.0), (1, -1.0), (2, 1.0))])
  (report,) = client.reported
  assert report.assignment == assignment
  assert [(game.game, game.result) for game in report.games] == [(0, 1), (1, -1)]
  assert client.renewed == [assignment]
  now[0] = 101.0
  games.add([league_connection.Ended(assignment, 1, 0.0)])
  assert len(client.reported) == 1  # waits for others


def test_a_paused_player_stops_and_resumes(monkeypatch):
  """The coordinator gives it no matches, and does not renew the held ones."""
  now = [0.0]
  monkeypatch.setattr(league_connection.time, "monotonic", lambda: now[0])
  client = Client()
  matches = match_slots.MatchSlots(players.Sizes(slots=8, matches=4, scripts=1, chunk=1), 2,
                        ["main", "rival"], {"rusher": 0})
  games = compiled_league.Assignments(client, matches, games=4)
  client.opponents = ["a", "b"]
  games.fill()  # one each
  np.testing.assert_allclose(matches.probabilities()[:2], [0.5, 0.5])
  matches.begin(np.array([0, 1]))
  client.lost, now[0] = {"1-1"}, 100.0
  games.add([])
  games.fill()
  np.testing.assert_allclose(matches.probabilities()[:2], [0.0, 1.0])
  ended = matches.follow(np.array([[True, False]]), np.array([[0, 1]]), np.zeros((1, 2, 2)),
                         np.array([1, 1]))
  assert [(each.game, each.assignment.games) for each in ended] == [(0, 4)]  # it ran: it counts
  client.opponents = ["c"]
  games.fill()
  assert matches.probabilities()[[0, 1, 2]].tolist() == [0.0, 0.5, 0.5]


def test_assignments_without_a_place_are_released():
  client, matches = Client("a", "b"), make_slots()
  games = compiled_league.Assignments(client, matches, games=2)
  for name in ("x", "y"):
    matches.add(league.Assignment("2-1", "rival", name, "pfsp", False, 1))
  games.fill()
  assert [each.away for each in client.released] == ["a"]


@pytest.fixture()
def run(tmp_path, monkeypatch):
  """A run whose policy has one parameter, with snapshots of other values."""
  config = agent_config.mini()
  parts = registry.make_parts(settings.complete({}))
  policy = parts.policy._replace(init=lambda key: {"m": {"w": np.zeros(2, np.float32)}})
  for path, value in ((tmp_path / run_files.INITIAL, 7.0),
                      (run_files.snapshot_path(tmp_path, "main-1"), 8.0)):
    checkpoints.save_params(path, {"m": {"w": np.full(2, value, np.float32)}}, config)
  return parts._replace(policy=policy), tmp_path


def test_slots_hold_the_newest_parameters_of_their_players(run):
  parts, run_dir = run
  newest = [Fetched({"m": {"w": np.ones(2, np.float32)}}, 1, 0)]
  source = weights.WeightSource(
    lambda name: lambda: newest[-1],
    lambda name: weights.load_snapshot(parts.config, RunCopy(run_dir), name), ["main"])
  stacked = compiled_league.StackedWeights(parts, 3, source)

  def held(*names):
    return np.asarray(stacked.update(names)["m"]["w"])[:, 0].tolist()

  assert held("main", None, None) == [1.0, 0.0, 0.0]
  assert held("main", "main-1", "main-0000") == [1.0, 8.0, 7.0]  # the first is the initial one
  with pytest.raises(FileNotFoundError, match="main-0002"):
    stacked.update(["main", "main-0002", None])
  newest.append(Fetched({"m": {"w": np.full(2, 2.0, np.float32)}}, 2, 0))
  assert held("main", "main-0000", None) == [2.0, 7.0, 7.0]
  newest.append(Fetched({"m": {"w": np.full(2, 3.0, np.float32)}}, 2, 1))  # reset
  assert held("main", "main-0000", None) == [3.0, 7.0, 7.0]
