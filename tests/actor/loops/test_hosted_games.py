"""Orders, results and sizes of games in StarCraft II; the weights and players of a single game."""

import types as modules

import numpy as np
import pytest

from starleague.actor import games
from starleague.actor.game_processes import Finished
from starleague.actor.loops import agent_results, hosted_games
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry


def parts():
  return registry.make_parts(settings.complete({}, {
    "environment.name": "sc2", "environment.opponents": "terran:veryeasy,zerg:hard",
    "sc2.maps": "Flat32,Simple64", "sc2.races": "terran,protoss"}))


@pytest.mark.parametrize("largest, sizes", [
  (1, [1]), (2, [1, 2]), (4, [1, 4]), (6, [1, 4, 6]), (64, [1, 4, 16, 64])])
def test_sizes_of_batches(largest, sizes):
  assert hosted_games.batch_sizes(largest) == sizes


def test_requests_are_drawn_from_the_config():
  rng, made = np.random.default_rng(0), parts()
  conditioning = unconditional(2, 6200)
  requests = [hosted_games.draw_request(made, rng, bot, conditioning)
            for bot in ("", "terran:veryeasy", "zerg:hard") * 60]
  assert {(request.z_rows, request.active) for request in requests} == {
    (((0, 0), (0, 0)), ((False,) * 4,) * 2)}
  assert [request.opponent for request in requests[:3]] == ["", "terran:veryeasy", "zerg:hard"]
  assert {race for request in requests for race in request.races} == {1, 3}
  assert {request.map_index for request in requests} == {0, 1}
  assert {request.swap_sides for request in requests} == {False, True}
  assert len({request.seed for request in requests}) == 180
  assert hosted_games.draw_request(made, rng, "", conditioning, (3, 1)).races == (3, 1)


def test_z_is_drawn_for_the_match_up_and_both_sides():
  """Rows are 100 map + 10 home race + away race, and 1000 for the second side."""
  rng, made = np.random.default_rng(0), parts()
  maps, home, away, side, _ = np.indices((2, 5, 5, 2, 3))
  conditioning = unconditional(2, 6200)._replace(
    rows=100 * maps + 10 * home + away + 1000 * side, active=np.array([1.0, 0.5, 0.0, 1.0]))
  seen = np.zeros(4)
  for bot in ("", "terran:veryeasy", "zerg:hard") * 60:
    request = hosted_games.draw_request(made, rng, bot, conditioning)
    mine, other = request.races[0], {"": request.races[1], "terran:veryeasy": 1, "zerg:hard": 2}[
      request.opponent]
    row = 100 * request.map_index + 10 * mine + other
    assert request.z_rows[0] == (row, row + 1000)
    if not request.opponent:
      row = 100 * request.map_index + 10 * other + mine
      assert request.z_rows[1] == (row, row + 1000)
    assert not bot or request.active[1] == (False,) * 4
    assert games.decode(games.GameRequest, games.encode(request)) == request
    seen += request.active[0]
  assert seen[0] == seen[3] == 180 and seen[2] == 0 and 60 < seen[1] < 120


def test_results_count_for_the_opponent_and_void_matches_do_not():
  made = parts()
  finished = [Finished(games.GameRequest("zerg:hard"), games.Report(1)),
              Finished(games.GameRequest(""), games.Report(-1)),
              Finished(games.GameRequest("terran:veryeasy"), games.Report(None, reason="it hangs")),
              Finished(games.GameRequest("terran:veryeasy"), games.Report(0))]
  found = hosted_games.results_of(made, finished)
  np.testing.assert_array_equal(found.opponent, [[2, 0, 1]])
  np.testing.assert_array_equal(found.reward, [[[1, -1], [-1, 1], [0, 0]]])
  counted = agent_results.game_results(found, made.opponents, now=5.0)
  assert [(result.away, result.result) for result in counted] == [
    ("zerg:hard", 1), ("terran:veryeasy", 0)]
  none = hosted_games.results_of(made, [])
  assert agent_results.game_results(none, made.opponents, 5.0) == []
  assert none.race.shape == none.side.shape == none.reward.shape == (1, 0, 2)


def test_processes_that_cannot_start_leave_no_service_and_no_listener(monkeypatch):
  closed = []

  def stand_in(name):
    return lambda *arguments: modules.SimpleNamespace(
      address="", close=lambda: closed.append(name))

  def fail(*arguments):
    raise OSError("no more processes")

  for name in ("Listener", "Model", "Service"):
    monkeypatch.setattr(hosted_games, name, stand_in(name))
  monkeypatch.setattr(hosted_games.game_processes, "GameProcesses", fail)
  with pytest.raises(OSError, match="no more processes"):
    hosted_games.Hosting(parts(), None, {}, lambda: None, unconditional(2, 6200))
  assert closed == ["Service", "Listener"]


def test_the_listener_outlives_the_batches_that_wake_it():
  hosting, closed = object.__new__(hosted_games.Hosting), []
  for name in ("listener", "processes", "service"):
    setattr(hosting, name, modules.SimpleNamespace(close=lambda name=name: closed.append(name)))
  hosting.close()
  assert closed.index("service") < closed.index("listener") < closed.index("processes")
