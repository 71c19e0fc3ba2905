"""An evaluator keeps its assignment during long games, reports them and keeps replays."""

import pytest

from starleague import league
from starleague.actor.loops import league_connection, league_evaluator, weights
from starleague.common.errors import UserError
from starleague.data.reverb.parameters import Fetched
from starleague.league.run_copy import RunCopy


class Client:
  """Remembers what is renewed."""

  def __init__(self):
    self.renewed = []

  def renew(self, assignments):
    self.renewed += assignments


def test_a_lease_is_renewed_at_intervals_of_a_game(monkeypatch):
  now = [50.0]
  monkeypatch.setattr(league_evaluator.time, "monotonic", lambda: now[0])
  client = Client()
  assignment = league.Assignment("1-1", "main", "rival", "evaluation", False, 2)
  renewal = league_evaluator.Renewal(client, assignment, 20.0)
  renewed = []
  for seconds in (0.0, 19.0, 1.0, 5.0, 15.0, 61.0, 0.0):
    now[0] += seconds
    renewal()
    renewed.append(len(client.renewed))
  assert renewed == [0, 0, 1, 1, 2, 3, 3]
  assert set(client.renewed) == {assignment}


class Coordinator(Client):
  """Keeps what is reported; the second game of an assignment is notable."""

  def __init__(self):
    super().__init__()
    self.reported, self.kept, self.released, self.offered = [], [], [], []

  def players(self):
    return [league.Player("main", league.MAIN, "zerg"), league.Player("L5", league.SCRIPTED)]

  def report_games(self, reports):
    self.reported += [game for report in reports for game in report.games]
    return [[league.Receipt(True, ("upset",) if game.game == 1 else ())
             for report in reports for game in report.games]]

  def offer_files(self, name, files):
    self.offered.append((name, files[0].size))

  def keep_replay(self, result, path):
    self.kept.append((result, path))

  def release(self, assignments):
    self.released += assignments


class Fatal(UserError):
  """After this one no game can be played."""


class Arena:
  """The first player wins by 100 loops times the game's number; `fails` is raised by game 2."""

  suffix = ".txt"
  final_errors = (Fatal,)

  def __init__(self, fails=None, replays=True):
    self.fails, self.replays, self.met = fails, replays, []

  def match(self, players, params):
    self.met.append(([player.name for player in players], list(params)))

    def play(game, on_step):
      if game == 2 and self.fails is not None:
        raise self.fails
      on_step()
      return league_evaluator.ArenaGame(
        league.WIN, 100 * game,
        (lambda path: path.write_text(f"game {game}")) if self.replays else None)

    return play


def evaluate(tmp_path, arena, client=None):
  client = client or Coordinator()
  players = weights.WeightSource(
    lambda name: lambda: Fetched("weights", 1, 0), lambda name: f"old {name}", ["main"])
  evaluator = league_evaluator.Evaluator(
    RunCopy(tmp_path, client), client, league_connection.Members(client), players, arena, 60.0)
  assignment = league.Assignment("1-1", "main", "L5", "evaluation", False, 3)
  try:
    evaluator.evaluate(assignment)
  finally:
    assert arena.met == [(["main", "L5"], ["weights", None])]
  return client, assignment


def test_games_are_reported_and_notable_ones_kept(tmp_path):
  client, _ = evaluate(tmp_path, Arena())
  assert [(game.game, game.result, game.loops) for game in client.reported] == [
    (0, 1, 0), (1, 1, 100), (2, 1, 200)]
  assert client.kept == [("1-1/1", "replays/1-1-1.txt")]
  assert client.offered == [("replays/1-1-1.txt", 6)]  # the coordinator may be on another machine
  assert (tmp_path / "replays" / "1-1-1.txt").read_text() == "game 1"
  assert client.released == []


def test_a_failed_game_gives_its_assignment_back(tmp_path):
  client, assignment = evaluate(tmp_path, Arena(UserError("the game hangs")))
  assert [game.game for game in client.reported] == [0, 1]
  assert client.released == [assignment]
  with pytest.raises(Fatal):
    evaluate(tmp_path, Arena(Fatal("there is no game")))


class Away(Coordinator):
  """Does not answer the renewal of a lease."""

  def renew(self, assignments):
    raise league.LeagueUnavailableError("The coordinator at here did not answer renew within 60 s")


def test_an_absent_coordinator_ends_the_evaluator_and_no_match_is_void(tmp_path, monkeypatch):
  now = iter(range(0, 1000, 15))  # seconds; a lease is renewed after 20
  monkeypatch.setattr(league_evaluator.time, "monotonic", lambda: next(now))
  client = Away()
  with pytest.raises(league.LeagueUnavailableError, match="did not answer renew within 60 s"):
    evaluate(tmp_path, Arena(), client)
  assert [game.game for game in client.reported] == [0]  # the next one was under way
  assert client.released == []


def test_a_notable_game_without_a_replay_is_reported(tmp_path):
  client, _ = evaluate(tmp_path, Arena(replays=False))
  assert [game.game for game in client.reported] == [0, 1, 2]
  assert client.kept == [] and client.offered == []
