"""Trajectories on their way to the tables: players, the limiter, shapes."""

import threading
import time

import jax
import numpy as np
import pytest

from starleague.agent import types
from starleague.data import wire
from starleague.data.records import Records
from starleague.data.reverb import datasets, writer
from tests.data.reverb.clients import make_dataset, make_writer
from tests.data.reverb.server_process import CONFIG, UNROLL_LENGTH, packed


def test_each_trajectory_goes_to_its_player(serve):
  """Row 0 plays a game as "rival", then one as "main"; row 1 is not recorded."""
  address = serve(players=("main", "rival"), samples_per_item=1)
  length = 2 * UNROLL_LENGTH + 1
  shape = (2 * length, 2)
  zeros = jax.tree.map(lambda x: np.zeros((*shape, *x.shape), x.dtype), types.step_spec(
    CONFIG.max_entities, CONFIG.map_size, CONFIG.max_selected))
  begins = np.isin(np.arange(2 * length), (0, length))
  loops = np.broadcast_to(np.arange(2 * length)[:, None], shape)
  records = Records(
    row=np.broadcast_to(np.arange(2), shape), first=np.broadcast_to(begins[:, None], shape),
    last=np.broadcast_to(np.roll(begins, -1)[:, None], shape),
    core_state=types.CoreState(*[np.zeros((*shape, CONFIG.core_layers, CONFIG.core_size),
                                          np.float32)] * 2),
    step=zeros._replace(observation=zeros.observation._replace(
      game_loop=loops.astype(zeros.observation.game_loop.dtype))))
  player = np.where(np.arange(2 * length)[:, None] < length, 1, 0) + np.array([0, -9])
  sender = writer.TrajectoryWriter(address, ("main", "rival"), CONFIG, UNROLL_LENGTH, 2)
  assert sender.write(records, player) == 4
  sender.flush()
  for name, starts in (("main", {length, length + UNROLL_LENGTH}), ("rival", {0, UNROLL_LENGTH})):
    with datasets.dataset(address, 2, name, CONFIG, UNROLL_LENGTH, deadline_s=10) as batches:
      found = wire.unpack(next(batches), CONFIG).steps.observation.game_loop
    assert set(np.asarray(found)[0].tolist()) == starts


def test_writer_waits_for_the_learner_and_loses_nothing(serve):
  """The limiter takes min_size + tolerance trajectories ahead of the learner, none is evicted."""
  address = serve(min_size=1, tolerance=2)
  sender = make_writer(address, deadline_s=1, max_in_flight=1)
  with pytest.raises(writer.StarvedError, match="their learner is behind"):
    for number in range(20):
      sender.send("main", packed(number))
  assert 3 <= number <= 6
  sent = number + 1  # the last one is in flight
  with make_dataset(address, 2, deadline_s=1) as batches:
    numbers = np.concatenate([next(batches).int32[0, :, 0] for _ in range(sent)])
  assert sorted(numbers) == sorted([*range(sent)] * 2)


def test_the_stop_event_ends_a_wait_for_the_limiter(serve):
  address = serve(min_size=1, tolerance=1)
  stop = threading.Event()
  sender = make_writer(address, deadline_s=60, max_in_flight=1, stop=stop)
  threading.Timer(0.5, stop.set).start()
  start = time.monotonic()
  for number in range(10):
    sender.send("main", packed(number))
  assert time.monotonic() - start < 10


def test_steps_become_trajectories_in_the_table(serve):
  """A game of 5 steps, T = 2: trajectories start at 0, 2 and, moved back, 3."""
  address = serve()
  step_spec = types.step_spec(CONFIG.max_entities, CONFIG.map_size, CONFIG.max_selected)
  state_spec = types.core_state_spec(CONFIG)

  def zeros(leaf):
    return np.zeros((6, 1, *leaf.shape), leaf.dtype)

  step, state = jax.tree.map(zeros, (step_spec, state_spec))
  step.observation.game_loop[:, 0] = range(6)
  moment = np.arange(6)[:, None]
  records = Records(row=np.zeros((6, 1), np.int32), first=moment == 0, last=moment == 5,
                    step=step, core_state=state)
  sender = make_writer(address)
  assert sender.write(records) == 3
  sender.flush()
  with make_dataset(address, 6) as batches:
    trajectories = wire.unpack(next(batches), CONFIG)
  loops = np.asarray(trajectories.steps.observation.game_loop).T.tolist()
  assert sorted(loops) == [[0, 1, 2]] * 2 + [[2, 3, 4]] * 2 + [[3, 4, 5]] * 2


def test_the_writer_refuses_a_trajectory_of_another_shape(serve):
  sender = make_writer(serve())
  wrong = packed(0)._replace(int16=np.zeros((2, 7), np.int16))
  with pytest.raises(writer.SignatureMismatchError, match=(
      r"field 'int16' of a trajectory: found int16\[2, 7\], expected int16\[3, \d+\]")):
    sender.send("main", wrong)
