"""The learner's loop, with a fake update, fake data and fake duties of host 0."""

import contextlib
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.learner.loops import reinforcement
from starleague.learner.loops.options import LearnerProcess, LearningAgent
from starleague.learner.prefetch import Waiting
from tests.learner.loops.options import reinforcement_options

CHIEF_DUTIES = reinforcement.chief.ChiefDuties  # the fixture replaces it


class Batches(list):
  """Batches that arrive without a wait."""

  def waiting(self):
    return Waiting(0, 0.0, 0.0)


@pytest.fixture
def calls(monkeypatch):
  """The calls of the loop: its parts are fakes, the state is the number of updates."""
  calls = []

  def called(name, answer=None):
    return lambda *arguments, **options: calls.append((name, *arguments)) or answer

  class Update:
    place = None

    def make_vote(self):
      return lambda share: lambda: calls.append(("vote", float(share))) or share

    def __call__(self, state, batch, teacher, factors):
      calls.append(("update", batch, teacher, factors))
      values = {"loss": float(batch), "applied": state.rate}
      return SimpleNamespace(step=state.step + 1), values

  learner = reinforcement.reinforcement_setup.Learner(
    Update(), SimpleNamespace(step=np.int32(3)), "teacher", 0.0)
  duties = SimpleNamespace(
    publish=lambda state, step: calls.append(("publish", int(state.step), int(step))),
    report_setup=called("setup"),
    save=lambda state, step, trained, now, waiting, extra: calls.append(
      ("idle" if waiting else "save", int(state.step), int(step), now, *extra.values())),
    log=lambda step, values, waiting: calls.append(("log", int(step), values)) or True,
    report_training=lambda step, trained: calls.append(("report", int(step))),
    close=called("close"))
  setup = reinforcement.reinforcement_setup
  monkeypatch.setattr(setup, "make_learner", lambda *_: learner)
  monkeypatch.setattr(setup, "compile_ahead", called("compile"))
  monkeypatch.setattr(setup, "make_guard", lambda *_: SimpleNamespace(
    check=lambda values, batch: calls.append(("check", batch)), finish=called("finish")))
  monkeypatch.setattr(reinforcement.chief, "ChiefDuties", lambda *_: duties)
  monkeypatch.setattr(reinforcement.update, "unreplicate", lambda value: value)
  monkeypatch.setattr(reinforcement.train_state, "with_learning_rate",
                      lambda state, rate: SimpleNamespace(step=state.step, rate=rate))
  monkeypatch.setattr(reinforcement.sampler, "Dataset", lambda *_, **options:
                      contextlib.closing(SimpleNamespace(close=called("data closed"))))
  monkeypatch.setattr(reinforcement.stopping, "end_at_once", called("end at once"))
  return calls


def learn(tmp_path, monkeypatch, batches, stopped=False,
          made=lambda batches, idle: Batches(batches), **options):
  """Runs the loop from update 3 on batches; returns its answer."""
  stop = threading.Event()
  if stopped:
    stop.set()
  monkeypatch.setattr(reinforcement.stopping, "stop_event", lambda: stop)
  monkeypatch.setattr(reinforcement.prefetch, "prefetch", lambda *_, idle, **options:
                      contextlib.nullcontext(made(batches, idle)))
  agent = LearningAgent(agent_config.mini(), None, None)
  return reinforcement.learn(
    agent, reinforcement_options(seconds=1e6, learning_rate=8.0, final_rate=0.5, **options),
    LearnerProcess(tmp_path, "localhost:1", 0.0))


class Idle(Batches):
  """Batches of which each comes after a wait."""

  def __init__(self, batches, idle):
    super().__init__(batches)
    self._idle = idle

  def __iter__(self):
    for batch in super().__iter__():
      self._idle()
      yield batch


def named(calls, *names):
  return [call for call in calls if call[0] in names]


def test_learning_ends_at_the_updates_of_the_run_and_is_saved(tmp_path, monkeypatch, calls):
  """Resumed at 3 of 5 updates: two of the batches are learnt."""
  assert learn(tmp_path, monkeypatch, range(10), updates=5) is True
  assert named(calls, "update") == [("update", 0, "teacher", ()), ("update", 1, "teacher", ())]
  assert named(calls, "check", "finish") == [("check", 0), ("check", 1), ("finish",)]
  assert named(calls, "publish") == [("publish", 3, 3), ("publish", 4, 4), ("publish", 5, 5)]
  assert named(calls, "save") == [
    ("save", 4, 4, False, 0), ("save", 5, 5, False, 0), ("save", 5, 5, True, 0)]
  assert named(calls, "report") == [("report", 4), ("report", 5)]
  assert [name for name, *_ in calls[-3:]] == ["save", "close", "vote"]
  assert ("data closed",) in calls[:-3]


def test_parameters_are_published_before_the_update_is_compiled(tmp_path, monkeypatch, calls):
  """Actors compile and play meanwhile."""
  learn(tmp_path, monkeypatch, range(1), updates=4)
  begin = [call[0] for call in calls]
  assert begin[:3] == ["end at once", "vote", "publish"]
  assert begin.index("publish") < begin.index("compile") < begin.index("update")
  assert [call[1] for call in named(calls, "setup")] == [
    "compiling the update", "waiting for trajectories"]


def test_the_learning_rate_falls_with_the_share_of_updates(tmp_path, monkeypatch, calls):
  """From 8 to 4. Both votes precede the first update: 3 of 5 updates are done."""
  learn(tmp_path, monkeypatch, range(10), updates=5)
  rates = [(values["learning_rate"], values["applied"]) for _, _, values in named(calls, "log")]
  np.testing.assert_allclose(rates, [[8 - 4 * 0.6] * 2] * 2)


def test_a_stage_begins_with_another_teacher_and_is_saved(tmp_path, monkeypatch, calls):
  """Update 3 of 8 is in the first half. Votes precede updates: the second half begins after 5."""
  setup = reinforcement.reinforcement_setup
  monkeypatch.setattr(setup, "begin_stage", lambda learner, state, stage, *_: learner._replace(
    teacher=f"update {state.step}", stage=stage))
  learn(tmp_path, monkeypatch, range(10), updates=8, stages=2)
  assert [(batch, teacher) for _, batch, teacher, _ in named(calls, "update")] == [
    (0, "teacher"), (1, "teacher"), (2, "update 5"), (3, "update 5"), (4, "update 5")]
  saves = named(calls, "save")
  assert saves[1:4] == [("save", 5, 5, False, 0), ("save", 5, 5, True, 1), ("save", 6, 6, False, 1)]
  rates = [values["applied"] for _, _, values in named(calls, "log")]
  np.testing.assert_allclose(rates, [8 - 4 * 0.75, 8 - 4 * 0.75, 8, 8 - 4 * 0.25, 8 - 4 * 0.5])


def test_a_stopped_learner_saves_without_an_update(tmp_path, monkeypatch, calls):
  assert learn(tmp_path, monkeypatch, range(10), stopped=True) is False
  assert named(calls, "update") == []
  assert named(calls, "save") == [("save", 3, 3, True, 0)]
  assert calls[-2:] == [("close",), ("vote", 1.0)]


def test_learning_ends_when_the_data_do(tmp_path, monkeypatch, calls):
  assert learn(tmp_path, monkeypatch, range(2)) is True
  assert len(named(calls, "update")) == 2
  assert named(calls, "save")[-1] == ("save", 5, 5, True, 0)


def test_a_learner_that_waits_publishes_its_parameters_again(tmp_path, monkeypatch, calls):
  """A data server that was restarted has none, and actors would wait for them.

  Two batches are fetched before the first update, and a third before the second one.
  """
  learn(tmp_path, monkeypatch, range(2), made=Idle)
  assert named(calls, "publish", "update") == [
    ("publish", 3, 3), ("publish", 3, 3), ("publish", 3, 3), ("update", 0, "teacher", ()),
    ("publish", 4, 4), ("update", 1, "teacher", ()), ("publish", 5, 5)]


def test_a_learner_that_waits_saves_what_is_due(tmp_path, monkeypatch, calls):
  """The server is killed after two updates: each wait of 40 s may be the last one.

  Checkpoints are due after 60 s, counted from the first update.
  """
  now, saved = [1e9], []
  monkeypatch.setattr(reinforcement.time, "time", lambda: now[0])
  monkeypatch.setattr(reinforcement.chief.parameters, "ParameterPublisher",
                      lambda *_, **options: SimpleNamespace(close=lambda: None))
  duties = CHIEF_DUTIES(
    reinforcement_options(checkpoint_interval_s=60.0), LearnerProcess(tmp_path, "", 0.0),
    SimpleNamespace(steps=lambda: [3], save=lambda step, state, extra: saved.append(
      (int(step), int(state.step), now[0] - 1e9, extra["trained_seconds"]))))
  for name in ("publish", "report_setup", "log", "report_training"):
    setattr(duties, name, lambda *_: None)
  monkeypatch.setattr(reinforcement.chief, "ChiefDuties", lambda *_: duties)

  class Ended(Batches):
    def __init__(self, batches, idle):
      super().__init__(batches)
      self._idle = idle

    def __iter__(self):
      self._idle()  # before the first update: nothing is new
      yield from super().__iter__()
      for _ in range(3):
        now[0] += 40.0
        self._idle()
      raise TimeoutError("no batch")

  with pytest.raises(TimeoutError, match="no batch"):
    learn(tmp_path, monkeypatch, range(3), made=Ended)
  assert len(named(calls, "update")) == 2  # the third one is never begun
  assert saved == [(5, 5, 80.0, 80.0)]


@pytest.mark.parametrize("options, trained", [({"updates": 3}, 0.0), ({"updates": 2}, 0.0),
                                              ({}, 1e6)])
def test_a_run_that_is_over_needs_no_batch(tmp_path, monkeypatch, calls, options, trained):
  """It is resumed at update 3 for its evaluation, perhaps without actors."""
  setup = reinforcement.reinforcement_setup
  learner = setup.make_learner()._replace(trained_seconds=trained)
  monkeypatch.setattr(setup, "make_learner", lambda *_: learner)
  assert learn(tmp_path, monkeypatch, None, made=None, **options) is True
  assert [name for name, *_ in calls] == ["end at once", "vote"]


@pytest.mark.parametrize("stopped, answers, votes", [
  (True, True, [0.0, 1.0, 1.0]), (True, False, [0.0, 1.0, 1.0]), (False, True, [0.0, 0.0, 0.0])])
def test_hosts_vote_equally_often_when_one_is_stopped(
    tmp_path, monkeypatch, calls, stopped, answers, votes):
  """Before the update is compiled, on the first batch, and on the end.

  The data server of the stopped host may not have answered yet. The last case is the other host.
  """
  def dataset(*_, **options):
    raise reinforcement.transport.StoppedError

  if not answers:
    monkeypatch.setattr(reinforcement.sampler, "Dataset", dataset)
  of_stopped, cast = iter([0.0, 1.0, 1.0]), []

  def vote(share):
    cast.append(share)
    return lambda: max(share, next(of_stopped))

  monkeypatch.setattr(
    reinforcement.reinforcement_setup.make_learner().update, "make_vote", lambda: vote,
    raising=False)
  assert learn(tmp_path, monkeypatch, range(10), stopped=stopped) is False
  assert cast == votes
  assert named(calls, "update") == [] and named(calls, "save") == [("save", 3, 3, True, 0)]


def test_an_error_of_the_loop_is_not_replaced_by_one_of_the_prefetch(
    tmp_path, monkeypatch, calls):
  """The thread of the prefetch waits in the data until they are closed."""
  @contextlib.contextmanager
  def prefetch(*_, **options):
    try:
      yield Batches(range(10))
    finally:
      if ("data closed",) not in calls:
        raise TimeoutError("the source of batches has not returned")

  def fail(values, batch):
    raise FloatingPointError("not finite")

  setup = reinforcement.reinforcement_setup
  monkeypatch.setattr(setup, "make_guard", lambda *_: SimpleNamespace(check=fail))
  monkeypatch.setattr(reinforcement.prefetch, "prefetch", prefetch)
  with pytest.raises(FloatingPointError, match="not finite"):
    learn(tmp_path, monkeypatch, range(10))
