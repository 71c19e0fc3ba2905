"""Evaluation in StarCraft II; a stand-in plays the games."""

import types as modules

import numpy as np

from starleague.actor import evaluation
from starleague.actor.evaluation import Counts
from starleague.actor.game_processes import Finished
from starleague.actor.games import Report
from starleague.actor.loops import hosted_evaluation, hosted_games
from starleague.actor.parts import HostedGames, Parts

PARTS = Parts(
  config=None, policy=None, opponents=("zerg:easy", "terran:easy", "zerg:hard"), races=(1, 2),
  opponent_races=(1, 2), maps=(("one",), ("other",)), mmr=6200,
  hosted=HostedGames(None, {"zerg:easy": 2, "zerg:hard": 2}.get, 2, 4, 0.02, 60.0, 60.0, ".replay"))


class Hosting:
  """Plays two games at a time: "zerg:easy" loses and wins by its side, "zerg:hard" draws.

  The first game of each opponent is void.
  """

  def __init__(self, parts, key, params, next_request, conditioning):
    del parts, key, params, conditioning
    self._next_request, self._void = next_request, {"zerg:easy", "zerg:hard"}
    self.resumed, self.closed = 0, False
    self.processes = modules.SimpleNamespace(resume=self._resume)
    self.requests = []
    Hosting.newest = self

  def _resume(self):
    self.resumed += 1

  def run_once(self):
    drawn = (self._next_request(), self._next_request())
    found = [request for request in drawn if request is not None]
    self.requests += found
    return [Finished(request, Report(self._result(request))) for request in found]

  def _result(self, request):
    if request.opponent in self._void:
      self._void.remove(request.opponent)
      return None
    return 0 if request.opponent == "zerg:hard" else 1 - 2 * request.swap_sides

  def close(self):
    self.closed = True


def test_every_game_is_counted_once_and_void_ones_are_played_again(monkeypatch):
  monkeypatch.setattr(hosted_games, "Hosting", Hosting)
  finished = []
  found = hosted_evaluation.make_evaluation(PARTS, [0, 2], 4, seed=1)({}, finished.append)
  assert evaluation.count_by_name(found, PARTS.opponents) == {
    "zerg:easy": Counts(2, 0, 2), "zerg:hard": Counts(0, 4, 0)}
  assert set(found.race[:, 1]) == {2}  # the bots' names state their race
  assert finished[-1] == 8 and (np.diff(finished) >= 0).all()
  hosting = Hosting.newest
  assert len(hosting.requests) == 10 and hosting.resumed == 2 and hosting.closed
  sides = [request.swap_sides for request in hosting.requests if request.opponent == "zerg:easy"]
  assert sorted(sides) in ([False] * 3 + [True] * 2, [False] * 2 + [True] * 3)


def test_the_agent_has_the_race_that_is_asked_for(monkeypatch):
  monkeypatch.setattr(hosted_games, "Hosting", Hosting)
  hosted_evaluation.make_evaluation(PARTS, [0], 6, seed=1, races=(2, -1))({})
  assert {request.races[0] for request in Hosting.newest.requests} == {2}
  hosted_evaluation.make_evaluation(PARTS, [0], 6, seed=1)({})
  assert {request.races[0] for request in Hosting.newest.requests} == {1, 2}
