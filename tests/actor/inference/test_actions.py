"""Actions and log-probs reach their places in packed steps of any form."""

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from starleague.actor.inference import actions
from starleague.data import wire
from tests.actor.inference.serving import CONFIG, random_step


def assert_equal(found, expected):
  jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_actions_are_written_into_packed_steps():
  steps = jax.tree.map(lambda *x: np.stack(x), *(random_step(CONFIG, seed) for seed in range(3)))
  columns = wire.pack_steps(steps._replace(
    action=jax.tree.map(np.zeros_like, steps.action),
    log_prob=jax.tree.map(np.zeros_like, steps.log_prob)))
  actions.set_actions(columns, steps.action, steps.log_prob, CONFIG)
  assert_equal(columns, wire.pack_steps(steps))


class _Acted(NamedTuple):
  """A step of another system."""

  seen: Any
  action: Any
  behaviour: Any
  reward: Any
  discount: Any


def test_actions_of_other_systems_are_written_too():
  scalar = jax.ShapeDtypeStruct((), np.float32)
  rng = np.random.default_rng(0)
  step = _Acted(rng.normal(size=(4, 3)).astype(np.float32), np.arange(4, dtype=np.int32),
                (rng.normal(size=(4, 2)).astype(np.float32), np.arange(4, dtype=np.int16)),
                *np.ones((2, 4), np.float32))
  spec = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), step)
  form = wire.StepFormat(spec, (scalar,))
  assert actions.acted_spec(form) == (spec.action, spec.behaviour)
  columns = wire.pack_steps(step._replace(
    action=0 * step.action, behaviour=jax.tree.map(np.zeros_like, step.behaviour)))
  actions.set_actions(columns, step.action, step.behaviour, form)
  assert_equal(columns, wire.pack_steps(step))
  wrong = form.step._replace(action=jax.ShapeDtypeStruct((), np.bool_))
  with pytest.raises(ValueError, match="leaf 'action' of the steps is boolean, expected numbers"):
    actions.set_actions(columns, step.action > 0, step.behaviour, wire.StepFormat(wrong, (scalar,)))
