"""Both engines build the games of a single run and of a league, with the weights they need."""

import dataclasses
import types as modules

import numpy as np
import pytest

from starleague import league
from starleague.actor import behaviour
from starleague.actor.loops import (
  compiled_evaluation,
  compiled_league,
  compiled_loop,
  compiled_single,
  engines,
  hosted_evaluation,
  hosted_league,
  hosted_single,
)
from starleague.agent import vocabulary
from starleague.common import run_files
from starleague.data.z.conditioning import unconditional
from tests.actor.loops.clockwork_parts import HOSTED, PARTS
from tests.actor.loops.options import options, process
from tests.actor.loops.results import results

OPTIONS = options(seed=3, actor__games=6, actor__inference_batch=4, league__places=3,
                  league__chunk=2)
SHOWN = unconditional(2, 5000)


class Client:
  """A coordinator of two players that learn and one that does not."""

  def players(self):
    return [league.Player("main", league.MAIN, "zerg"),
            league.Player("rival", league.LEAGUE_EXPLOITER, "terran"),
            league.Player("slow", league.SCRIPTED)]

  def matches(self, player, count, games):
    assert count > 0
    return [league.Assignment("1-1", "main", "rival", "pfsp", True, games)][:player == "main"]

  def progress(self, name):
    return modules.SimpleNamespace(resets=0)


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


UNITS = np.ones((2, vocabulary.NUM_UNIT_TYPES), np.float32)  # rewards


def test_a_league_inside_the_program_plays_by_its_options(played, tmp_path):
  chosen = dataclasses.replace(
    OPTIONS, active=np.float32([0.5, 0.25, 0.0, 0.0]), exploiter_minimax=0.5, exploiter_goals=True,
    snapshots_z=True, objectives={"main": UNITS})
  engines.COMPILED.play(PARTS, chosen, process(tmp_path), SHOWN, Client())
  opponents, conditioning = played.source.first()
  assert set(opponents) == {0}  # main against rival, who pursues goals
  np.testing.assert_array_equal(conditioning.active[0], [[0.5, 0.25, 0.0, 0.0], [1, 1, 0, 0]])
  np.testing.assert_array_equal(conditioning.minimax[0], [0.0, 0.5])
  np.testing.assert_array_equal(conditioning.goal[0], [0, 1])
  assert conditioning.goals.shape == (2, 1)
  np.testing.assert_array_equal(conditioning.objectives[1], UNITS)
  np.testing.assert_array_equal(conditioning.objective[0], [1, 0])
  assert played.source._personal.snapshots_z


def test_goals_count_the_games_of_a_call(played, tmp_path, monkeypatch):
  chosen = dataclasses.replace(OPTIONS, exploiter_goals=True)
  engines.COMPILED.play(PARTS, chosen, process(tmp_path), SHOWN, Client())
  source, counted = played.source, []
  monkeypatch.setattr(source, "_writer", modules.SimpleNamespace(write=lambda *arguments: None))
  monkeypatch.setattr(source._personal.goals, "add", lambda *game: counted.append(game))
  opponents, _ = source.first()
  over = np.arange(6) == 4
  none = np.zeros((1, 6, 2), np.int32)
  ended = results(opponents, [0, 0, 0, 0, -1, 0], over)._replace(
    track=behaviour.Track(none, none, none))
  source.handle(compiled_loop.Played(
    0, modules.SimpleNamespace(row=np.full((1, 4), -1)), ended, opponents))
  (names, _, reward), = counted
  assert names == ["main", "rival"]
  np.testing.assert_array_equal(reward, [-1.0, 1.0])


def test_one_agent_plays_by_its_options(played, tmp_path, monkeypatch):
  chosen = dataclasses.replace(OPTIONS, objective=2 * UNITS)
  engines.COMPILED.play(PARTS, chosen, process(tmp_path), SHOWN, None)
  match_ups = np.float32([np.eye(3) / 3] * 3)
  monkeypatch.setattr(played.source._reporter, "match_up_probabilities",
                      lambda found: match_ups if found is chosen else None)
  call = played.source.example()
  np.testing.assert_array_equal(call.conditioning.match_up_probabilities, match_ups)
  np.testing.assert_array_equal(call.conditioning.objectives[1], 2 * UNITS)
  np.testing.assert_array_equal(call.conditioning.objective, [[1, 1], [1, 0], [1, 0]])


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
