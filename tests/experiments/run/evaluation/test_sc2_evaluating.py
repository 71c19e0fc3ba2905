"""Evaluation in StarCraft II; a stand-in plays the games."""

import types as modules

import numpy as np

from starleague.actor.evaluation import Counts
from starleague.actor.game_processes import Finished
from starleague.actor.games import Report
from starleague.experiments.run.actors import hosted_games
from starleague.experiments.run.evaluation import sc2_evaluating
from starleague.experiments.run.parts import wiring

PARTS = wiring.Parts(
  config=None, policy=None, game=None, environment=None, scripted=None,
  opponents=("zerg:easy", "terran:easy", "zerg:hard"),
  races=(1, 2), maps=2, mmr=6200)


class Hosting:
  """Plays two games at a time: "zerg:easy" loses and wins by its side, "zerg:hard" draws.

  The first game of each opponent is void.
  """

  def __init__(self, parts, key, params, next_order, given):
    del parts, key, params, given
    self._next_order, self._void = next_order, {"zerg:easy", "zerg:hard"}
    self.resumed, self.closed = 0, False
    self.processes = modules.SimpleNamespace(resume=self._resume)
    self.orders = []
    Hosting.newest = self

  def _resume(self):
    self.resumed += 1

  def run_once(self):
    found = [order for order in (self._next_order(), self._next_order()) if order is not None]
    self.orders += found
    return [Finished(order, Report(self._result(order))) for order in found]

  def _result(self, order):
    if order.opponent in self._void:
      self._void.remove(order.opponent)
      return None
    return 0 if order.opponent == "zerg:hard" else 1 - 2 * order.swap_sides

  def close(self):
    self.closed = True


def test_every_game_is_counted_once_and_void_ones_are_played_again(monkeypatch):
  monkeypatch.setattr(hosted_games, "Hosting", Hosting)
  finished = []
  counts = sc2_evaluating.make_evaluation(PARTS, [0, 2], 4, seed=1)({}, finished.append)
  assert counts == {"zerg:easy": Counts(2, 0, 2), "zerg:hard": Counts(0, 4, 0)}
  assert finished[-1] == 8 and (np.diff(finished) >= 0).all()
  hosting = Hosting.newest
  assert len(hosting.orders) == 10 and hosting.resumed == 2 and hosting.closed
  sides = [order.swap_sides for order in hosting.orders if order.opponent == "zerg:easy"]
  assert sorted(sides) in ([False] * 3 + [True] * 2, [False] * 2 + [True] * 3)
