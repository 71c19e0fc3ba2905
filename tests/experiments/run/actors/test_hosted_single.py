"""The games of one agent in StarCraft II: opponents, weights, reports."""

import types as modules

import numpy as np
import pytest

from starleague.actor.game_processes import Finished
from starleague.actor.games import Report
from starleague.common import results, run_files
from starleague.experiments.run.actors import compiled_loop, compiled_single, hosted_single
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import wiring


class Fetcher:
  """Gives new weights at the first and the third call."""

  def __init__(self, address, name, template, **options):
    self.calls = 0

  def __call__(self):
    self.calls += 1
    if self.calls in (1, 3):
      self.newest = modules.SimpleNamespace(params=f"weights {self.calls}", step=10 * self.calls)
    return self.newest


@pytest.fixture
def dealer(tmp_path, monkeypatch):
  monkeypatch.setattr(wiring, "ParameterFetcher", Fetcher)
  monkeypatch.setattr(compiled_loop, "REPORT_INTERVAL_S", 0.0)
  config = settings.complete({}, {
    "environment.name": "sc2", "environment.opponents": "terran:easy,zerg:hard",
    "actor.self_play": 0.5, "actor.pseudo_probability": 0.0})
  return hosted_single.AgentDealer(
    wiring.make_parts(config), config, tmp_path, "localhost:1", 0.0, np.random.default_rng(0))


def test_opponents_are_drawn_by_their_probabilities(dealer, monkeypatch):
  monkeypatch.setattr(compiled_single.Reporter, "opponent_probabilities",
                      lambda self, actor: np.array([0.5, 0.0, 0.5], np.float32))
  orders = [dealer.next_order() for _ in range(200)]
  met = [order.opponent for order in orders]
  assert set(met) == {"", "zerg:hard"} and 70 < met.count("") < 130
  assert {order.players for order in orders} == {(0, 0)}
  assert {order.recorded for order in orders} == {(True, True)}


def test_weights_are_given_once_and_games_reported(dealer, tmp_path):
  found = [dict(dealer.newest()) for _ in range(4)]
  assert found == [{0: "weights 1"}, {}, {0: "weights 3"}, {}]
  order = dealer.next_order()._replace(opponent="zerg:hard")
  dealer.handle([Finished(order, Report(1, 900, 8)), Finished(order, Report(None))], 8)
  rows = {row.tag: row for row in results.read(tmp_path / results.FILE_NAME)}
  assert (rows["count/steps"].value, rows["count/games"].value) == (8, 1)
  assert rows["score/train/zerg:hard"].value == 1.0 and rows["count/steps"].update == 30
  assert run_files.PLAYER in dealer.learners
