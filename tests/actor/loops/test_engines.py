"""Both engines build the games of a single run and of a league, with the weights they need."""

import numpy as np
import pytest

from starleague import league
from starleague.actor.loops import (
  compiled_evaluation,
  compiled_league,
  compiled_single,
  engines,
  hosted_evaluation,
  hosted_league,
  hosted_single,
)
from starleague.common import run_files
from starleague.data.z.conditioning import unconditional
from tests.actor.loops.clockwork_parts import HOSTED, PARTS
from tests.actor.loops.options import options, process

OPTIONS = options(seed=3, actor__games=6, actor__inference_batch=4, league__places=3,
                  league__chunk=2)
SHOWN = unconditional(2, 5000)


class Client:
  """A coordinator of two players that learn and one that does not."""

  def players(self):
    return [league.Player("main", league.MAIN, "zerg"),
            league.Player("rival", league.LEAGUE_EXPLOITER, "terran"),
            league.Player("slow", league.SCRIPTED)]


class Played:
  """Captures the arguments of loops and connections."""

  def __init__(self, monkeypatch):
    self.signals, self.stop, self.weights, self.tables = [], object(), [], []
    monkeypatch.setattr(engines.stopping, "stop_event", lambda: self.stop)
    monkeypatch.setattr(engines.stopping, "end_at_once", lambda: self.signals.append("at once"))
    monkeypatch.setattr(engines, "make_source", self._make_source)
    for module in (compiled_single, compiled_league):
      monkeypatch.setattr(module, "TrajectoryWriter", self._writer)
    monkeypatch.setattr(engines.compiled_loop, "play", self._play)
    monkeypatch.setattr(engines.hosted_loop, "play", self._play)

  def _make_source(self, parts, run_dir, address, learners, *waits):
    del parts, run_dir
    self.weights.append((address, list(learners), waits))

  def _writer(self, address, players, *sizes, **settings):
    self.tables.append(players)

  def _play(self, source, *arguments):
    self.source, self.arguments = source, arguments


@pytest.fixture
def played(monkeypatch):
  return Played(monkeypatch)


@pytest.mark.parametrize("client, kind, learners, table", [
  (None, compiled_single.SingleCalls, [run_files.PLAYER], run_files.PLAYER),
  (Client(), compiled_league.LeagueCalls, ["main", "rival"], ["main", "rival"])])
def test_the_compiled_engine(played, tmp_path, client, kind, learners, table):
  actor = process(tmp_path)._replace(number=5)
  engines.COMPILED.play(PARTS, OPTIONS, actor, SHOWN, client)
  assert type(played.source) is kind
  assert played.arguments == (OPTIONS, 5)
  assert played.tables == [table]
  assert played.weights == [(actor.parameters, learners, (
    OPTIONS.parameter_interval_s, OPTIONS.timeout_s, played.stop))]
  assert played.signals == ["at once"]  # calls of the program cannot be interrupted


def test_a_league_inside_the_program_needs_z_of_a_library(played, tmp_path):
  with pytest.raises(AssertionError, match="draws its z from a library"):
    engines.COMPILED.play(PARTS, OPTIONS, process(tmp_path), None, Client())


@pytest.mark.parametrize("client, kind, learners", [
  (None, hosted_single.SingleMatches, [run_files.PLAYER]),
  (Client(), hosted_league.LeagueMatches, ["main", "rival"])])
def test_the_hosted_engine(played, tmp_path, client, kind, learners):
  actor = process(tmp_path)
  engines.HOSTED.play(HOSTED, OPTIONS, actor, SHOWN, client)
  assert type(played.source) is kind
  assert list(played.source.learners) == learners and played.source.conditioning is SHOWN
  assert played.arguments[:3] == (HOSTED, OPTIONS, actor)
  assert played.weights[0][1] == learners
  assert played.signals == []  # the loop ends at the stop event


def test_hosted_games_without_z_are_unconditional(played, tmp_path):
  engines.HOSTED.play(HOSTED, OPTIONS, process(tmp_path), None, None)
  shown = played.source.conditioning
  assert shown.mmr == HOSTED.mmr and shown.rows.shape[0] == len(HOSTED.maps)
  assert not np.any(shown.active)


def test_engines_make_their_own_evaluation():
  assert engines.COMPILED.make_evaluation is compiled_evaluation.make_evaluation
  assert engines.HOSTED.make_evaluation is hosted_evaluation.make_evaluation
