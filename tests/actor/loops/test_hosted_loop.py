"""The loop of games outside JAX: trajectories, newer weights, reported steps, its end."""

import threading
import types as modules

import numpy as np
import pytest

from starleague.actor.game_processes import GamesError
from starleague.actor.loops import hosted_loop
from starleague.data.records import Records
from starleague.data.reverb.transport import StoppedError
from starleague.data.z.conditioning import unconditional
from tests.actor.loops.clockwork_parts import HOSTED
from tests.actor.loops.options import options, process

OPTIONS = options(actor__games=64, actor__pseudo_scale=0.5, actor__niceness=4)
KEY = "the key"


class Source:
  """Games whose weights are new at the first and the third look."""

  learners = ("main", "rival")
  conditioning = unconditional(2, 6200)

  def __init__(self, stopped_at=None):
    self.looks, self.stopped_at, self.handled = 0, stopped_at, []

  def next_request(self):
    return None

  def newest(self):
    self.looks += 1
    if self.looks == self.stopped_at:
      raise StoppedError("stopped")
    return {1: {0: "first"}, 3: {1: "second"}}.get(self.looks, {})

  def handle(self, finished, steps):
    self.handled.append((finished, steps))


class Rig:
  """The fakes of the loop; `ends` raises or sets the stop event at the third round."""

  def __init__(self, monkeypatch, ends):
    self.stop, self.ends, self.log = threading.Event(), ends, []
    self.niceness, self.hosting = [], None
    rig = self

    class Writer:
      """Remembers records and players."""

      def __init__(self, *arguments, **settings):
        rig.writer, self.arguments, self.settings, self.written = self, arguments, settings, []

      def write(self, records, players):
        self.written.append((records.row.tolist(), players.tolist()))

    class Hosting:
      """Records one row in its first round, then two, and ends one game a round."""

      def __init__(self, *arguments):
        rig.hosting, self.arguments, self.rounds, self.closed = self, arguments, 0, 0
        self.niceness = list(rig.niceness)
        self.model = modules.SimpleNamespace(
          set_params=lambda player, params: rig.log.append((player, params)))
        self.processes = modules.SimpleNamespace(resume=lambda: rig.log.append("resume"))

      def run_once(self):
        self.rounds += 1
        rig.log.append("round")
        if self.rounds == 3:
          rig.ends(rig)
        rows = np.arange(min(self.rounds, 2))[None]
        self.arguments[-1](Records(rows, None, None, None, None), rows + 5)
        return [f"game {self.rounds}"]

      def close(self):
        self.closed += 1

    monkeypatch.setattr(hosted_loop, "TrajectoryWriter", Writer)
    monkeypatch.setattr(hosted_loop.hosted_games, "Hosting", Hosting)
    monkeypatch.setattr(hosted_loop.stopping, "stop_event", lambda: self.stop)
    monkeypatch.setattr(hosted_loop.sessions, "lower_priority", self.niceness.append)

  def play(self, source, run_dir):
    hosted_loop.play(source, HOSTED, OPTIONS, process(run_dir), KEY)


def set_stop(rig):
  rig.stop.set()


def test_rounds_write_hand_over_weights_and_report_until_the_stop_event(monkeypatch, tmp_path):
  rig, source = Rig(monkeypatch, set_stop), Source()
  rig.play(source, tmp_path)
  # The first weights are there before the games start; the second ones come at the third look.
  assert rig.hosting.arguments[:6] == (
    HOSTED, KEY, {0: "first"}, source.next_request, source.conditioning, 0.5)
  assert rig.log == ["round", "resume", (1, "second"), "round", "resume", "round", "resume"]
  assert rig.writer.written == [([[0]], [[5]]), ([[0, 1]], [[5, 6]]), ([[0, 1]], [[5, 6]])]
  assert source.handled == [(["game 1"], 1), (["game 2"], 2), (["game 3"], 2)]
  # The processes of the games start with the actor's priority, those that replace them too.
  assert rig.hosting.closed == 1 and rig.niceness == rig.hosting.niceness == [4]


def test_the_writer_has_a_row_for_each_player_of_each_game(monkeypatch, tmp_path):
  rig = Rig(monkeypatch, set_stop)
  rig.play(Source(), tmp_path)
  assert rig.writer.arguments == (
    "localhost:1", ("main", "rival"), HOSTED.config, OPTIONS.unroll_length, 128)
  assert rig.writer.settings == {"deadline_s": OPTIONS.timeout_s, "stop": rig.stop}


def test_a_stop_while_the_first_weights_are_awaited_starts_no_games(monkeypatch, tmp_path):
  rig, source = Rig(monkeypatch, set_stop), Source(stopped_at=1)
  rig.play(source, tmp_path)
  assert rig.hosting is None and source.handled == []


def test_a_stop_while_newer_weights_are_awaited_closes_the_games(monkeypatch, tmp_path):
  rig, source = Rig(monkeypatch, set_stop), Source(stopped_at=3)
  rig.play(source, tmp_path)
  assert rig.hosting.closed == 1 and source.handled == [(["game 1"], 1)]


def test_games_that_cannot_be_played_end_the_loop_and_are_closed(monkeypatch, tmp_path):
  def fail(rig):
    raise GamesError("StarCraft II is not installed")

  rig = Rig(monkeypatch, fail)
  with pytest.raises(GamesError, match="not installed"):
    rig.play(Source(), tmp_path)
  assert rig.hosting.closed == 1


def test_actors_and_restarts_draw_different_games(monkeypatch):
  def draws(index, now, seed=0):
    monkeypatch.setattr(hosted_loop.time, "time_ns", lambda: now)
    return tuple(hosted_loop.generator(options(seed=seed), index).integers(2**30, size=4))

  assert draws(0, 17) == draws(0, 17)
  assert len({draws(0, 17), draws(1, 17), draws(0, 18), draws(0, 17, seed=1)}) == 4
