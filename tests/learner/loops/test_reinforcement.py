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
      return lambda share: lambda: share

    def __call__(self, state, batch, teacher, factors):
      calls.append(("update", batch, teacher, factors))
      state = SimpleNamespace(step=state.step + 1)
      return state, {"loss": float(batch)}

  learner = reinforcement.reinforcement_setup.Learner(
    Update(), SimpleNamespace(step=np.int32(3)), "teacher", 0.0)
  duties = SimpleNamespace(
    publish=lambda state, step: calls.append(("publish", int(state.step), int(step))),
    report_setup=called("setup"), save=lambda state, step, trained, now, extra: calls.append(
      ("save", int(state.step), int(step), now, *extra.values())),
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
  monkeypatch.setattr(reinforcement.train_state, "with_learning_rate", lambda state, rate: state)
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
  assert [name for name, *_ in calls[-2:]] == ["save", "close"]
  assert ("data closed",) in calls[:-2]


def test_parameters_are_published_before_the_update_is_compiled(tmp_path, monkeypatch, calls):
  """Actors compile and play meanwhile."""
  learn(tmp_path, monkeypatch, range(1), updates=4)
  begin = [call[0] for call in calls]
  assert begin[:2] == ["end at once", "publish"]
  assert begin.index("publish") < begin.index("compile") < begin.index("update")
  assert [call[1] for call in named(calls, "setup")] == [
    "compiling the update", "waiting for trajectories"]


def test_the_learning_rate_falls_with_the_share_of_updates(tmp_path, monkeypatch, calls):
  """From 8 to 4. Both votes precede the first update: 3 of 5 updates are done."""
  learn(tmp_path, monkeypatch, range(10), updates=5)
  rates = [values["learning_rate"] for _, _, values in named(calls, "log")]
  np.testing.assert_allclose(rates, [8 - 4 * 0.6, 8 - 4 * 0.6])


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
  rates = [values["learning_rate"] for _, _, values in named(calls, "log")]
  np.testing.assert_allclose(rates, [8 - 4 * 0.75, 8 - 4 * 0.75, 8, 8 - 4 * 0.25, 8 - 4 * 0.5])


def test_a_stopped_learner_saves_without_an_update(tmp_path, monkeypatch, calls):
  assert learn(tmp_path, monkeypatch, range(10), stopped=True) is False
  assert named(calls, "update") == []
  assert named(calls, "save") == [("save", 3, 3, True, 0)]
  assert calls[-1] == ("close",)


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
