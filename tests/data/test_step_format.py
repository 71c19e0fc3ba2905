"""Steps of systems other than AlphaStar's agent: wire format, continuous unrolls, tables."""

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from starleague.data import assembler, wire
from starleague.data.records import Records
from starleague.data.reverb import datasets, server, transport, writer

T, N, C = 3, 8, 2


class Step(NamedTuple):
  observation: Any
  action: Any
  reward: Any
  discount: Any


def spec(shape, dtype):
  return jax.ShapeDtypeStruct(shape, dtype)


FORM = wire.StepFormat(
  Step((spec((3,), np.bool_), spec((2, 2), np.uint8)), spec((), np.int32), spec((), np.float32),
       spec((), np.float32)), (spec((2,), np.float32), spec((1, 2), np.float32)))


def made_records(seed=0):
  """Steps [N, C]: actions count, rewards are the action before them."""
  random = np.random.default_rng(seed)
  action = np.arange(N * C, dtype=np.int32).reshape(N, C)
  before = np.concatenate([np.zeros((1, C), np.int32), action[:-1]])
  step = Step((random.random((N, C, 3)) < 0.5, random.integers(0, 256, (N, C, 2, 2), np.uint8)),
              action, before.astype(np.float32), np.ones((N, C), np.float32))
  state = (random.random((N, C, 2), np.float32), random.random((N, C, 1, 2), np.float32))
  return Records(np.tile(np.arange(C), (N, 1)), np.zeros((N, C), bool), np.zeros((N, C), bool),
                 step, state)


def cuts(**options):
  return assembler.Assembler(FORM, T, C, continuous=True, **options).add(made_records())


def test_widths_of_the_columns():
  assert wire.layout(FORM).widths == wire.Columns(1, 4, 0, 1, 2)


def test_steps_pass_unchanged():
  steps = made_records().step
  found = wire.unpack_steps(wire.pack_steps(steps), FORM)
  jax.tree.map(np.testing.assert_array_equal, found, steps)


def test_a_leaf_of_another_dtype_is_named():
  form = wire.StepFormat(FORM.step._replace(action=spec((), np.int8)), FORM.state)
  with pytest.raises(ValueError, match="leaf 'action' of the steps: found int8, expected bool"):
    wire.layout(form)
  wrong = made_records().step
  with pytest.raises(ValueError, match=r"leaf 'reward' of the steps: found float64\[8, 2\], "
                     r"expected float32\[8, 2\]"):
    wire.check_steps(wrong._replace(reward=wrong.reward.astype(float)), FORM)


@pytest.mark.parametrize("period, starts", [(None, [0, 3]), (3, [0, 3]), (2, [0, 2, 4]),
                                            (1, [0, 1, 2, 3, 4])])
def test_unrolls_start_after_each_period(period, starts):
  found = [wire.unpack(cut.packed, FORM) for cut in cuts(period=period) if cut.row == 1]
  records = made_records()
  assert len(found) == len(starts)
  for unroll, start in zip(found, starts, strict=True):
    np.testing.assert_array_equal(
      unroll.steps.action, records.step.action[start:start + T + 1, 1])
    # The reward of an action is that of the step after it; the bootstrap step has none yet.
    np.testing.assert_array_equal(
      unroll.steps.reward, [*records.step.action[start:start + T, 1], 0])
    np.testing.assert_array_equal(unroll.initial_state[0], records.core_state[0][start, 1])
    np.testing.assert_array_equal(unroll.initial_state[1], records.core_state[1][start, 1])


@pytest.mark.parametrize("options, message", [
  ({"continuous": True, "period": 4}, "period: expected 1 to 3, the unroll length, found 4"),
  ({"continuous": True, "period": 0}, "period: expected 1 to 3, the unroll length, found 0"),
  ({}, "make the rows continuous")])
def test_impossible_rows_are_refused(options, message):
  with pytest.raises(ValueError, match=message):
    assembler.Assembler(FORM, T, C, **options)


@pytest.mark.parametrize("sampler, changes, message", [
  ("lifo", {}, "sampler: expected 'fifo', 'uniform' or 'prioritised', found 'lifo'"),
  ("uniform", {"min_size": 9}, "min_size: expected 1 to 8, found 9")])
def test_impossible_tables_are_refused(sampler, changes, message):
  with pytest.raises(ValueError, match=message):
    server.make_table("unrolls", FORM, T, sampler, 8, **changes)


def test_one_writer_fills_a_queue_and_a_replay_and_priorities_change():
  tables = [server.make_table("queue", FORM, T, server.FIFO, 100),
            server.make_table("replay", FORM, T, server.PRIORITISED, 100)]
  with server.make_server(tables) as serving:
    address = f"localhost:{serving.port}"
    sender = writer.TrajectoryWriter(
      address, "queue", FORM, T, C, continuous=True, also=["replay"])
    assert sender.write(made_records(), priority=2.0) == 4
    sender.flush()
    with datasets.dataset(address, 4, "queue", FORM, T) as queue:
      actions = wire.unpack(next(queue), FORM).steps.action
      np.testing.assert_array_equal(actions[0], [0, 1, 6, 7])  # in order
    with datasets.dataset(address, 4, "replay", FORM, T, prefetch=1) as replay:
      next(replay)
      kept = replay.keys[0]
      everything = {int(key): 0.0 for key in np.unique(replay.keys)}
      info = serving.localhost_client().server_info()["replay"]
      assert info.current_size == 4
      replay.update_priorities(
        np.array([*everything, 12345], np.uint64),
        np.array([float(key == kept) for key in everything] + [1.0]))
    sample = transport.new_sampler(serving.localhost_client(), "replay", 64, 1)
    drawn = [sample.GetNextTrajectory() for _ in range(64)]
    chances = {int(item[0]): float(item[1]) for item in drawn[8:]}
    # Items that were not drawn keep their priority of 2; the kept one has 1, the others 0.
    others = 4 - len(everything)
    assert chances.get(int(kept), 0.0) == pytest.approx(1 / (1 + 2 * others))
    sender.close()


def test_a_recording_refuses_a_format(tmp_path):
  with pytest.raises(ValueError, match="expected an AgentConfig or None, found a StepFormat"):
    datasets.dataset(tmp_path, 1, config=FORM)
