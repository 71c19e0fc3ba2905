import threading
import time

import jax
import numpy as np
import pytest

from starleague.learner.prefetch import PrefetchTimeoutError, Waiting, prefetch


def threads():
  return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
  yield
  assert not threads()


def test_batches_arrive_placed_and_in_order():
  main = threading.get_ident()
  placers = []

  def place(x):
    placers.append(threading.get_ident())
    return jax.device_put(x)

  with prefetch((np.full(3, i) for i in range(5)), place) as batches:
    values = []
    for batch in batches:
      assert isinstance(batch, jax.Array)
      values.append(int(batch[0]))
    with pytest.raises(StopIteration):  # again at every later call
      next(batches)
  assert values == [0, 1, 2, 3, 4]
  assert main not in placers and len(placers) == 5
  assert batches.waiting().batches == 5


def test_exactly_depth_batches_are_made_ahead():
  made = []
  ready = threading.Event()

  def source():
    for i in range(10):
      made.append(i)
      if i == 2:
        ready.set()
      yield i

  with prefetch(source(), lambda x: x, depth=3) as batches:
    assert ready.wait(10)
    time.sleep(0.05)
    assert made == [0, 1, 2]
    assert next(batches) == 0
    deadline = time.monotonic() + 10
    while len(made) < 4 and time.monotonic() < deadline:
      time.sleep(0.01)
    time.sleep(0.05)
    assert made == [0, 1, 2, 3]


@pytest.mark.parametrize("where", ["source", "place"])
def test_error_of_the_thread_is_raised_after_earlier_batches(where):
  def source():
    yield 1
    yield 2
    if where == "source":
      raise KeyError("table main_agent_0 is gone")
    yield 3

  def place(x):
    if x == 3:
      raise KeyError("table main_agent_0 is gone")
    return x

  with prefetch(source(), place) as batches:
    assert [next(batches), next(batches)] == [1, 2]
    for _ in range(2):
      with pytest.raises(KeyError, match="table main_agent_0 is gone"):
        next(batches)


def test_deadline_and_recovery():
  release = threading.Event()

  def source():
    yield 1
    release.wait(20)
    yield 2

  with prefetch(source(), lambda x: x, timeout=0.1) as batches:
    assert next(batches) == 1
    with pytest.raises(PrefetchTimeoutError, match="no batch in 0.1 s, after 1 batches"):
      next(batches)
    release.set()
    deadline = time.monotonic() + 10
    while True:
      try:
        assert next(batches) == 2
        break
      except PrefetchTimeoutError:
        assert time.monotonic() < deadline


def test_the_consumer_is_idle_only_while_it_waits(monkeypatch):
  monkeypatch.setattr("starleague.learner.prefetch._IDLE_S", 0.01)
  third, idle = threading.Event(), []

  def source():
    yield 1
    yield 2
    third.wait(20)
    yield 3

  def count():
    idle.append(threading.get_ident())
    if len(idle) == 5:
      third.set()

  with prefetch(source(), lambda x: x, idle=count) as batches:
    while not batches.ready:
      time.sleep(0.001)
    assert next(batches) == 1 and idle == []
    assert [next(batches), next(batches)] == [2, 3]
    assert len(idle) >= 5 and set(idle) == {threading.get_ident()}
    assert batches.waiting().waited_seconds > 0.04


def test_an_error_while_idle_reaches_the_consumer():
  def fail():
    raise KeyError("no server")

  release = threading.Event()

  def source():
    release.wait(20)
    yield 1

  with prefetch(source(), lambda x: x, idle=fail) as batches:
    with pytest.raises(KeyError, match="no server"):
      next(batches)
    release.set()
    assert next(batches) == 1


def test_waiting_is_measured():
  def slow():
    for i in range(4):
      time.sleep(0.05)
      yield i

  with prefetch(slow(), lambda x: x) as batches:
    start = time.monotonic()
    for _ in batches:
      pass
    took = time.monotonic() - start
    waiting = batches.waiting()
  assert waiting.batches == 4
  assert 0.1 < waiting.waited_seconds <= waiting.elapsed_seconds <= took
  assert waiting.fraction > 0.9  # a consumer that only waits

  with prefetch(iter(range(4)), lambda x: x) as batches:
    for _ in batches:
      time.sleep(0.05)
    assert batches.waiting().fraction < 0.5


def test_ready_tells_whether_next_would_wait():
  release = threading.Event()

  def one():
    release.wait(60)
    yield 1

  with prefetch(one(), lambda x: x) as batches:
    assert not batches.ready
    release.set()
    assert next(batches) == 1
    with pytest.raises(StopIteration):
      next(batches)
    assert batches.ready  # the end needs no wait


def test_waiting_since_an_earlier_reading():
  recent = Waiting(10, 3.0, 8.0).since(Waiting(4, 2.0, 4.0))
  assert recent == (6, 1.0, 4.0) and recent.fraction == 0.25
  assert Waiting(0, 0.0, 0.0).fraction == 0.0


def test_close_ends_a_thread_without_room():
  made = []

  def endless():
    while True:
      made.append(None)
      yield 0

  batches = prefetch(endless(), lambda x: x)
  assert next(batches) == 0
  batches.close()
  batches.close()
  assert not threads() and len(made) <= 4
  with pytest.raises(RuntimeError, match="closed"):
    next(batches)


def test_close_reports_a_blocking_source():
  release = threading.Event()

  def source():
    release.wait(20)
    yield 0

  batches = prefetch(source(), lambda x: x)
  with pytest.raises(PrefetchTimeoutError, match="blocks without a deadline"):
    batches.close(timeout=0.1)
  release.set()
  batches.close()


@pytest.mark.parametrize("options", [{"depth": 0}, {"timeout": 0.0}])
def test_bad_options_are_rejected(options):
  with pytest.raises(ValueError, match="depth >= 1 and timeout > 0"):
    prefetch([], lambda x: x, **options)
