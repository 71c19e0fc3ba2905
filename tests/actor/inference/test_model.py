"""Core states by slot, the noise of a row, parameters of players, and no recompilation."""

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from starleague.actor.inference import Model, ServedPolicy
from starleague.actor.inference import slots as slots_lib
from starleague.data import wire
from tests import compiling
from tests.actor.inference.serving import CONFIG, delay, header, make_model, make_step

PLACES = slots_lib.slot_format(CONFIG)


def requests(headers, size=4):
  memory = np.zeros((size, PLACES.size), np.uint8)
  for row, each in zip(memory, headers, strict=False):
    slots_lib.Slot(row, CONFIG).write(each, make_step())
  return memory[:, :PLACES.request]


def infer(model, player, slots, headers, size=4):
  found = jax.tree.map(np.asarray, model.start(player, slots, requests(headers, size)))
  return found, slots_lib.unpack_answers(found.answers, CONFIG)


def test_core_states_follow_their_slots():
  """The counting policy adds its parameter to the core state at each step."""
  model = make_model()
  found, _ = infer(model, 0, [4, 2], [header(), header()])
  np.testing.assert_array_equal(found.core.hidden[:2, 0, 0], [0, 0])
  found, _ = infer(model, 0, [2], [header(number=1)], size=1)
  np.testing.assert_array_equal(found.core.hidden[:1, 0, 0], [1])
  found, _ = infer(model, 0, [2, 0, 4], [header(number=2), header(), header(number=1)])
  np.testing.assert_array_equal(found.core.hidden[:3, 0, 0], [2, 0, 1])
  found, _ = infer(model, 0, [2, 4], [header(), header(number=2)])
  np.testing.assert_array_equal(found.core.cell[:2, 0, 1], [0, 2])  # slot 2: a new game


def test_padding_writes_no_core_state():
  model = make_model(slots=3)
  infer(model, 0, [2], [header()])  # three rows of padding
  found, _ = infer(model, 0, [0, 1, 2], [header(number=1)] * 3)
  np.testing.assert_array_equal(found.core.hidden[:3, 0, 0], [0, 0, 1])


def test_parameters_are_swapped_between_batches():
  model = make_model()
  infer(model, 1, [3], [header(player=1)], size=1)
  model.set_params(1, np.float32(7))
  infer(model, 1, [3], [header(player=1, number=1)], size=1)
  found, _ = infer(model, 1, [3], [header(player=1, number=2)], size=1)
  assert found.core.hidden[0, 0, 0] == 107
  with pytest.raises(ValueError, match="parameters of player 1"):
    model.set_params(1, np.zeros(2, np.float32))


def test_noise_belongs_to_the_row_and_not_to_the_batch():
  model = make_model()
  _, alone = infer(model, 0, [0], [header(seed=8, number=3)], size=1)
  _, together = infer(model, 0, [3, 0], [header(seed=9, number=3), header(seed=8, number=3)])
  assert alone.delay[0] == together.delay[1] == delay(8, 3)
  assert together.delay[0] == delay(9, 3)


def test_a_hundred_batches_compile_nothing():
  model = make_model()
  infer(model, 0, [0], [header()], size=1)
  with compiling.events() as events:
    for number in range(100):
      player, count = number % 2, 1 + number % 4
      model.set_params(player, np.float32(number))
      model.start(player, range(count), requests([header(player=player)] * count, 1 if count == 1
                                                 else 4))
  assert events == []


def test_a_batch_of_another_size_is_an_error():
  with pytest.raises(KeyError):
    make_model().start(0, [0], requests([header()], size=3))


class _Step(NamedTuple):
  """A step of another system than the agent."""

  seen: Any
  action: Any
  behaviour: Any
  reward: Any
  discount: Any


def test_a_policy_of_steps_of_another_form_is_served():
  """Its action is what it sees plus the parameter, its state counts, its record has both."""
  scalar = jax.ShapeDtypeStruct((), np.float32)
  index = jax.ShapeDtypeStruct((), np.int32)
  form = wire.StepFormat(_Step(index, index, (scalar, index), scalar, scalar), (scalar,))

  def act(params, key, header, step, state):
    del key
    return step.seen + params, (state[0], header.seed), (state[0] + 1,)

  model = Model(ServedPolicy(lambda: (np.zeros((), np.float32),), act), form, 3, [2], np.int32(0),
                jax.random.key(0))
  model.set_params(0, np.int32(100))
  places = slots_lib.slot_format(form)
  memory = np.zeros((2, places.size), np.uint8)
  for number in range(3):
    seen = np.array([number, 10 + number], np.int32)
    zero = np.zeros(2, np.float32)
    slots_lib.Rows(memory, form).write(
      slots_lib.Header(int(number == 0), 0, 0, np.array([7, 8]), number, 1),
      _Step(seen, 0 * seen, (zero, 0 * seen), zero, zero))
    found = jax.tree.map(np.asarray, model.start(0, [2, 1], memory[:, :places.request]))
    np.testing.assert_array_equal(slots_lib.unpack_answers(found.answers, form), 100 + seen)
    np.testing.assert_array_equal(found.log_prob[0], [number, number])
    np.testing.assert_array_equal(found.log_prob[1], [7, 8])
    np.testing.assert_array_equal(found.core[0], [number, number])
