"""Slots hold exactly the wire format of a step, and the answer in the action's dtypes."""

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.actor.inference import slots
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import wire
from tests.actor.inference.serving import CONFIG, make_step, random_step


@pytest.mark.parametrize("config", [CONFIG, agent_config.mini(), agent_config.full()])
def test_a_step_arrives_bit_for_bit_on_host_and_device(config):
  places = slots.slot_format(config)
  memory = np.zeros((3, places.size), np.uint8)
  steps = [random_step(config, seed) for seed in range(3)]
  for i, step in enumerate(steps):
    slots.Slot(memory[i], config).write(slots.Header(1, 0, 2, -3, i, 1), step)
  requests = memory[:, :places.request]
  expected = wire.pack_steps(jax.tree.map(lambda *x: np.stack(x), *steps))
  for found in (slots.host_columns(requests, config),
                jax.jit(slots.device_columns, static_argnums=1)(requests, config)):
    jax.tree.map(np.testing.assert_array_equal, found, expected)
  np.testing.assert_array_equal(np.stack(slots.headers(requests)),
                                [[1] * 3, [0] * 3, [2] * 3, [-3] * 3, [0, 1, 2], [1] * 3])
  assert slots.header(requests[2]) == slots.Header(1, 0, 2, -3, 2, 1)


def test_an_answer_arrives_in_the_dtypes_of_the_spec():
  action = types.Action(
    np.array([563, 1], np.int16), np.array([127, 3], np.int16), np.array([1, 0], np.uint8),
    np.array([2, 0], np.uint8), np.array([[3, 4], [0, 1]], np.int16), np.array([7, 0], np.int16),
    np.array([65535, 9], np.int32))
  answers = np.asarray(slots.device_answers(jax.tree.map(jax.numpy.asarray, action)))
  jax.tree.map(np.testing.assert_array_equal, slots.unpack_answers(answers, CONFIG), action)
  places = slots.slot_format(CONFIG)
  memory = np.zeros((places.size,), np.uint8)
  memory[places.answer] = answers[0].view(np.uint8)
  found = slots.Slot(memory, CONFIG).read()
  for name, value, spec in zip(action._fields, found, types.action_spec(2), strict=True):
    np.testing.assert_array_equal(value, getattr(action, name)[0], err_msg=name)
    assert value.dtype == spec.dtype


@hypothesis.given(st.integers(0, 2 ** 32 - 1))
@hypothesis.settings(max_examples=20)
def test_one_request_and_one_answer_read_like_those_of_a_batch(seed):
  rng, places = np.random.default_rng(seed), slots.slot_format(CONFIG)
  memory = rng.integers(0, 256, (3, places.size), np.uint8)
  headers = slots.headers(memory[:, :places.request])
  answers = slots.unpack_answers(memory[:, places.answer].view(np.int32), CONFIG)
  for i, row in enumerate(memory):
    header = slots.header(row[:places.request])
    assert header == tuple(int(values[i]) for values in headers)
    assert all(type(value) is int for value in header)
    jax.tree.map(np.testing.assert_array_equal, slots.Slot(row, CONFIG).read(),
                 jax.tree.map(lambda x, i=i: x[i], answers))


def test_slots_are_apart_and_aligned():
  for config in (CONFIG, agent_config.mini(), agent_config.full()):
    places = slots.slot_format(config)
    assert places.size % 64 == places.request % 8 == 0
    ends = sorted((place.start, place.stop) for place in places.columns.values())
    assert all(a[1] == b[0] for a, b in zip(ends, ends[1:], strict=False))
    assert ends[0][0] == 24 and ends[-1][1] <= places.request == places.answer.start


def test_a_step_of_other_sizes_is_refused():
  places = slots.slot_format(CONFIG)
  slot = slots.Slot(np.zeros((places.size,), np.uint8), CONFIG)
  step = make_step()
  with pytest.raises(ValueError, match="observation.player"):
    slot.write(slots.Header(1, 0, 0, 0, 0, 1), step._replace(
      observation=step.observation._replace(player=np.zeros(11, np.int32))))


def test_rows_write_and_read_all_slots_at_once():
  places, steps = slots.slot_format(CONFIG), [random_step(CONFIG, seed) for seed in range(3)]
  memory, one_by_one = np.zeros((2, 3, places.size), np.uint8)
  for i, step in enumerate(steps):
    slots.Slot(one_by_one[i], CONFIG).write(slots.Header(1, 0, 2, i, 7, 1), step)
  rows = slots.Rows(memory, CONFIG)
  together = jax.tree.map(lambda *x: np.stack(x), *steps)
  rows.write(slots.Header(1, 0, 2, np.arange(3), 7, 1), together)
  np.testing.assert_array_equal(memory, one_by_one)
  memory[:, places.answer] = np.arange(3 * (places.answer.stop - places.answer.start)).reshape(
    3, -1) % 7
  found = rows.read()
  for i in range(3):
    jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x, i=i: x[i], found),
                 slots.Slot(memory[i], CONFIG).read())
  with pytest.raises(ValueError, match="observation.player"):
    rows.write(slots.Header(1, 0, 0, 0, 0, 1), together._replace(
      observation=together.observation._replace(player=np.zeros((3, 11), np.int32))))
