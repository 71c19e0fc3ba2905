"""The form of a system's steps, and what losses take of an unroll."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions.system import (
  NO_STATE,
  Acted,
  Fixed,
  Inputs,
  Step,
  System,
  Unroll,
  inputs_spec,
  require_target,
  size,
  step_format,
  transitions,
)
from starleague.data import wire
from tests.companions.catch import make_catch


def make_system(record=jnp.float32):
  def act(params, key, inputs, state, copy):
    return Acted(jnp.int32(params["a"]["w"]), (jnp.zeros(3, record),), state)

  return System("still", lambda key: {"a": {"w": jnp.ones(())}},
                lambda: jax.tree.map(lambda x: jnp.zeros(x.shape), NO_STATE), act, lambda *_: None)


def test_inputs_are_the_tasks_observation_action_and_reward():
  spec = inputs_spec(make_catch(2)._replace(action_shape=(4,)))
  assert spec.observation.shape == (5, 3, 1)
  assert (spec.last_action.shape, spec.last_action.dtype) == ((4,), np.int32)
  assert (spec.last_reward.dtype, spec.first.dtype) == (np.float32, np.bool_)


def test_the_form_of_steps_is_that_of_the_task_and_the_record():
  form = step_format(make_system(), make_catch(2))
  assert form.step.inputs == inputs_spec(make_catch(2))
  assert (form.step.action.shape, form.step.action.dtype) == ((), np.int32)
  assert form.step.behaviour[0].shape == (3,)
  assert form.state[0].shape == (0,)
  packed = wire.pack_steps(jax.tree.map(lambda x: np.ones((2, *x.shape), x.dtype), form.step))
  np.testing.assert_array_equal(wire.unpack_steps(packed, form).behaviour[0], np.ones((2, 3)))


def test_the_size_counts_the_parameters_that_learn():
  system, params = make_system(), {"a": {"w": np.ones((2, 3))}, "fixed": {"w": np.ones(4)}}
  assert size(system, params) == 10
  assert size(system._replace(learnt=lambda params: params["a"]), params) == 6


def test_a_record_that_the_wire_does_not_carry_is_refused():
  with pytest.raises(ValueError, match="complex64"):
    step_format(make_system(jnp.complex64), make_catch(2))


def test_a_loss_without_its_target_network_is_refused():
  require_target(Fixed({}, {"w": np.zeros(2)}), "r2d2")
  with pytest.raises(UserError) as error:
    require_target(Fixed({}, ()), "r2d2")
  assert str(error.value) == (
    "target_period: found 0, expected at least 1: r2d2 has a target network")


def test_transitions_leave_the_bootstrap_step_out():
  steps = Step(Inputs((), None, None, None), np.arange(6).reshape(3, 2), (),
               np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
               np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]))
  action, reward, discount = transitions(Unroll(steps, (), np.zeros(2, bool)), 0.5)
  np.testing.assert_array_equal(action, [[0, 1], [2, 3]])
  np.testing.assert_array_equal(reward, [[1, 2], [3, 4]])
  np.testing.assert_array_equal(discount, [[0.5, 0.0], [0.5, 0.5]])
