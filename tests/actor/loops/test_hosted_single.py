"""The games of one agent outside JAX: opponents, weights, reports."""

import numpy as np
import pytest

from starleague.actor.game_processes import Finished
from starleague.actor.games import Report
from starleague.actor.loops import agent_results, counts, hosted_single, weights
from starleague.common import results, run_files
from starleague.data.reverb.parameters import Fetched
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts.actor_options import actor_options
from tests.actor.loops.options import process


class Fetcher:
  """Gives new weights at the first and the third call."""

  def __init__(self, name):
    self.calls = 0

  def __call__(self):
    self.calls += 1
    if self.calls in (1, 3):
      self.newest = Fetched(f"weights {self.calls}", 10 * self.calls, 0)
    return self.newest


@pytest.fixture
def matches(tmp_path, monkeypatch):
  monkeypatch.setattr(counts, "REPORT_INTERVAL_S", 0.0)
  config = settings.complete({}, {
    "environment.name": "sc2", "environment.opponents": "terran:easy,zerg:hard",
    "actor.self_play": 0.5, "actor.pseudo_probability": 0.0})
  parts = registry.make_parts(config)
  players = weights.WeightSource(Fetcher, str, [run_files.PLAYER])
  return hosted_single.SingleMatches(
    parts, actor_options(config), process(tmp_path), players,
    unconditional(len(parts.maps), parts.mmr), np.random.default_rng(0))


def test_opponents_are_drawn_by_their_probabilities(matches, monkeypatch):
  monkeypatch.setattr(agent_results.Reporter, "opponent_probabilities",
                      lambda self, options: np.array([0.5, 0.0, 0.5], np.float32))
  requests = [matches.next_request() for _ in range(200)]
  met = [request.opponent for request in requests]
  assert set(met) == {"", "zerg:hard"} and 70 < met.count("") < 130
  assert {request.players for request in requests} == {(0, 0)}
  assert {request.recorded for request in requests} == {(True, True)}


def test_the_match_up_is_drawn_by_the_opponent(matches, monkeypatch):
  monkeypatch.setattr(matches, "_parts", matches._parts._replace(races=(1, 2)))
  shares = np.array([[[0.25] * 2] * 2, [[0, 0], [1, 0]], [[0.5, 0.5], [0, 0]]], np.float32)
  monkeypatch.setattr(
    agent_results.Reporter, "match_up_probabilities", lambda self, options: shares)
  requests = [matches.next_request() for _ in range(100)]
  drawn = {name: {r.races for r in requests if r.opponent == name}
           for name in ("", "terran:easy", "zerg:hard")}
  assert drawn == {"": {(1, 1), (1, 2), (2, 1), (2, 2)}, "terran:easy": {(2, 1)},
                   "zerg:hard": {(1, 1), (1, 2)}}


def test_weights_are_given_once_and_games_reported(matches, tmp_path):
  found = [dict(matches.newest()) for _ in range(4)]
  assert found == [{0: "weights 1"}, {}, {0: "weights 3"}, {}]
  request = matches.next_request()._replace(opponent="zerg:hard")
  matches.handle([Finished(request, Report(1, 900, 8)), Finished(request, Report(None))], 8)
  rows = {row.tag: row for row in results.read(tmp_path / results.FILE_NAME)}
  assert (rows["count/steps"].value, rows["count/games"].value) == (8, 1)
  assert rows["score/train/zerg:hard"].value == 1.0 and rows["count/steps"].update == 30
  assert run_files.PLAYER in matches.learners


def test_steps_count_while_no_game_has_ended(matches, tmp_path):
  matches.newest()
  matches.handle([], 5)
  matches.handle([Finished(matches.next_request(), Report(None, reason="it hangs"))], 3)
  rows = results.read(tmp_path / results.FILE_NAME)
  assert sum(row.value for row in rows if row.tag == "count/steps") == 8
