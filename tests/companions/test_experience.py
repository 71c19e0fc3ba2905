"""The tables of a run: order, shares, the replay ratio and priorities, on numbered steps."""

import contextlib
import threading

import jax
import numpy as np
import pytest

from starleague.companions import experience
from starleague.companions.options import RunOptions
from starleague.companions.system import Inputs, Step
from starleague.data import wire
from starleague.data.records import Records

LENGTH, COPIES = 2, 4
_SCALAR = jax.ShapeDtypeStruct((), np.float32)
FORM = wire.StepFormat(
  Step(Inputs(_SCALAR, jax.ShapeDtypeStruct((), np.int32), _SCALAR,
              jax.ShapeDtypeStruct((), np.bool_)),
       jax.ShapeDtypeStruct((), np.int32), (), _SCALAR, _SCALAR),
  (jax.ShapeDtypeStruct((1,), np.float32),))


def records(begin, count):
  """Steps of all copies; the observation is 100 * copy + time, the state the time."""
  shape = (count, COPIES)
  time = np.broadcast_to(np.arange(begin, begin + count)[:, None], shape)
  number = (100 * np.arange(COPIES) + time).astype(np.float32)
  zero, flag = np.zeros(shape, np.float32), np.zeros(shape, bool)
  step = Step(Inputs(number, zero.astype(np.int32), zero, flag), zero.astype(np.int32), (), zero,
              zero)
  return Records(np.broadcast_to(np.arange(COPIES), shape), flag, flag, wire.pack_steps(step),
                 (time[..., None].astype(np.float32),))


@pytest.fixture
def open_tables():
  """Returns a function that opens the tables of some options."""
  with contextlib.ExitStack() as stack:
    yield lambda stop=None, **options: experience.Experience(
      FORM, RunOptions("numbers", unroll_length=LENGTH, copies=COPIES, **options), stack,
      stop or threading.Event())


def starts(batch):
  """The first observation of each unroll of a batch, after checking that the others follow it."""
  unroll = experience.unpack(batch, FORM)
  observation = np.asarray(unroll.steps.inputs.observation)
  np.testing.assert_array_equal(
    observation, observation[0] + np.arange(LENGTH + 1)[:, None])
  np.testing.assert_array_equal(np.asarray(unroll.initial_state[0])[:, 0], observation[0] % 100)
  return observation[0].astype(int).tolist()


def test_a_queue_gives_every_unroll_once_in_order(open_tables):
  tables = open_tables(batch_size=4)
  tables.write(records(0, LENGTH))
  assert list(tables.batches()) == []  # the bootstrap step comes with the next steps
  tables.write(records(LENGTH, 2 * LENGTH))
  batches = list(tables.batches())
  assert [sorted(starts(batch)) for batch in batches] == [[0, 100, 200, 300], [2, 102, 202, 302]]
  assert not any(batch.replayed.any() for batch in batches)
  assert list(tables.batches()) == []


@pytest.mark.parametrize("replay", [
  {}, {"replay_share": 0.5, "replay_size": 4, "min_replay": 4}])
def test_a_stop_ends_the_batches(open_tables, replay):
  stop = threading.Event()
  tables = open_tables(stop, batch_size=4, **replay)
  tables.write(records(0, 1 + 2 * LENGTH))
  batches = tables.batches()
  assert len(starts(next(batches))) == 4
  stop.set()
  assert list(batches) == []


def test_unrolls_overlap_where_the_period_is_shorter(open_tables):
  tables = open_tables(batch_size=8, period=1)
  tables.write(records(0, 4))
  batches = list(tables.batches())
  assert [sorted(starts(batch)) for batch in batches] == [[0, 1, 100, 101, 200, 201, 300, 301]]


def test_a_copy_that_restarts_drops_its_unfinished_unroll(open_tables):
  """Copies 1 and 3 begin again in the second round; `starts` checks that no unroll mixes both."""
  tables = open_tables(batch_size=2)
  tables.write(records(0, LENGTH))
  lives = records(LENGTH, LENGTH), records(40, LENGTH), records(2 * LENGTH, LENGTH), records(
    40 + LENGTH, LENGTH)

  def mixed(kept, restarted):
    """Steps of the copies 0 and 2 of one, 1 and 3 of the other."""
    new = np.array([False, True, False, True])
    return jax.tree.map(lambda a, b: np.where(new.reshape(1, -1, *[1] * (a.ndim - 2)), b, a),
                        kept, restarted)

  tables.write(mixed(*lives[:2]), restarted=[1, 3])
  tables.write(mixed(*lives[2:]))
  found = [starts(batch) for batch in tables.batches()]
  assert sorted(found[0]) == [0, 200]
  assert sorted(sum(found[1:], [])) == [2, 140, 202, 340]


def test_a_share_of_a_batch_is_replayed(open_tables):
  tables = open_tables(batch_size=4, replay_share=0.5, replay_size=4, min_replay=4)
  tables.write(records(0, 1 + LENGTH))
  batches = list(tables.batches())
  tables.write(records(1 + LENGTH, 2 * LENGTH))
  batches += tables.batches()
  assert len(batches) == 6  # 4 + 8 unrolls, 2 fresh ones a batch
  fresh = [start for batch in batches for start in starts(batch)[:2]]
  assert sorted(fresh) == [0, 2, 4, 100, 102, 104, 200, 202, 204, 300, 302, 304]
  for batch in batches:
    np.testing.assert_array_equal(batch.replayed, [False, False, True, True])
    assert {start % 100 for start in starts(batch)[2:]} <= {0, 2, 4}


def test_a_queue_does_not_keep_what_came_before_the_replay_was_large_enough(open_tables):
  """Unrolls that stayed in the queue would be old whenever they are learnt."""
  tables = open_tables(batch_size=4, replay_share=0.5, replay_size=100, min_replay=7)
  tables.write(records(0, 1 + LENGTH))
  assert list(tables.batches()) == []
  tables.write(records(1 + LENGTH, LENGTH))
  assert len(list(tables.batches())) == 4  # all 8 unrolls
  tables.write(records(1 + 2 * LENGTH, LENGTH))
  fresh = [start for batch in tables.batches() for start in starts(batch)[:2]]
  assert sorted(fresh) == [4, 104, 204, 304]  # of this write alone


def test_a_queue_holds_what_waits_for_a_large_replay(open_tables):
  """Writers of a full queue would wait for a learner that waits for them."""
  tables = open_tables(
    batch_size=512, period=1, replay_share=0.5, replay_size=2000, min_replay=1200)
  tables.write(records(0, 300 + LENGTH))
  assert len(list(tables.batches())) == 4  # 1,200 unrolls, 256 fresh ones a batch


@pytest.mark.parametrize("ratio, expected", [(1.0, 2), (2.0, 4), (0.5, 1)])
def test_the_replay_ratio_is_exact(open_tables, ratio, expected):
  tables = open_tables(batch_size=4, table="uniform", samples_per_item=ratio, replay_size=100)
  tables.write(records(0, 1 + 2 * LENGTH))
  batches = list(tables.batches())
  assert len(batches) == expected
  assert all(start in {100 * copy + time for copy in range(COPIES) for time in (0, 2)}
             for batch in batches for start in starts(batch))


def test_a_table_with_replay_waits_for_its_least_size(open_tables):
  tables = open_tables(batch_size=2, table="uniform", min_replay=7, replay_size=100)
  tables.write(records(0, 1 + LENGTH))
  assert list(tables.batches()) == []
  tables.write(records(1 + LENGTH, LENGTH))
  assert len(list(tables.batches())) == 1  # the seventh and the eighth unroll


def test_priorities_decide_what_is_drawn(open_tables):
  """An unroll of priority 0 is never drawn again, once its priority has reached the table."""
  tables = open_tables(batch_size=16, table="prioritised", samples_per_item=640.0, exponent=1.0,
                       replay_size=100, min_replay=COPIES)
  tables.write(records(0, 1 + LENGTH))
  tables.write(records(1 + LENGTH, 1))
  seen = []
  for batch in tables.batches():
    found = np.array(starts(batch))
    seen.append(found)
    tables.learnt((found == found.max()).astype(np.float32)[None])
  assert len(seen) == 640 / 16  # the credit of the fourth unroll: those before it had to wait
  assert len(set(seen[0].tolist())) > 1
  assert all(set(drawn.tolist()) == {300} for drawn in seen[-10:])


def test_unrolls_keep_their_priority_where_the_new_one_is_not_finite(open_tables):
  tables = open_tables(batch_size=4, table="prioritised", samples_per_item=4.0, exponent=1.0,
                       replay_size=100)
  tables.write(records(0, 1 + LENGTH))
  tables.write(records(1 + LENGTH, 1))
  found = []
  batches = tables.batches()
  for priorities in ([np.nan, np.inf, 3.0, 0.5], [np.nan] * 4, [5.0, -np.inf, np.nan, 1.0],
                     [0.0] * 4):
    next(batches)
    tables.learnt(np.array([priorities], np.float32))
    found.append(tables._priority)
  assert found == [1.0, 3.0, 3.0, 5.0]  # an update later


def test_new_unrolls_have_the_largest_priority_so_far(open_tables, monkeypatch):
  tables = open_tables(batch_size=4, table="prioritised", samples_per_item=2.0, exponent=1.0,
                       replay_size=100)
  sent, send = [], tables._writer.send

  def recorded(player, packed, priority):
    sent.append(priority)
    send(player, packed, priority)

  monkeypatch.setattr(tables._writer, "send", recorded)
  tables.write(records(0, 1 + LENGTH))
  for _ in tables.batches():
    tables.learnt(np.full((1, 4), 4.0, np.float32))
  tables.write(records(1 + LENGTH, LENGTH))
  assert sent == [1.0] * 4 + [4.0] * 4
