"""Impossible options are refused by name, numbers by their ranges; the optimizer of the options."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import options, registry
from starleague.companions.options import RunOptions, make_optimizer

SYSTEMS = {name: entry.config for name, entry in registry.systems().items()}
BELOW_OR_ABOVE = {int: (-1, 2**31), float: (-1.0, math.inf, math.nan)}
NUMBERS = [(owner, field) for owner in (RunOptions, *SYSTEMS.values())
           for field in dataclasses.fields(owner) if field.type in BELOW_OR_ABOVE]



@pytest.mark.parametrize("changes, message", [
  ({"steps": 0}, "steps: found 0, expected a number in [1, 2147483647]"),
  ({"learning_rate": float("nan")}, "learning_rate: found nan, expected a number above 0"),
  ({"workers": -1}, "workers: found -1, expected a number in [0, 2147483647]"),
  ({"seed": 10**20}, f"seed: found {10**20}, expected a number in [0, 2147483647]"),
  ({"min_replay": 0}, "min_replay: found 0, expected a number in [1, 2147483647]"),
  ({"decay": 1.0}, "decay: found 1.0, expected a number in [0, 1)"),
  ({"workers": 65}, "workers: found 65, expected at most the copies, 64"),
  ({"lag": -1}, "lag: found -1, expected a number in [0, 2147483647]"),
  ({"table": "stack"}, "table: found 'stack', expected one of fifo, uniform, prioritised"),
  ({"optimizer": "sgd"}, "optimizer: found 'sgd', expected one of adam, rmsprop"),
  ({"period": 21}, "period: found 21, expected at most the unroll_length, 20"),
  ({"replay_share": 1.0}, "replay_share: found 1.0, expected a number in [0, 1)"),
  ({"replay_share": 0.5, "table": "uniform"}, "with table 'uniform', which replays already"),
  ({"replay_share": 0.9, "batch_size": 2}, "leave none from the queue; raise batch_size"),
  ({"replay_share": 0.2, "batch_size": 2}, "leave none for the replay; raise batch_size"),
  ({"samples_per_item": 2.0}, "samples_per_item: found 2.0 with table 'fifo', which gives each"),
  ({"min_replay": 20000}, "min_replay: found 20000, expected at most replay_size, 10000"),
])
def test_impossible_options_are_refused(changes, message):
  with pytest.raises(UserError) as error:
    RunOptions(task="catch", **changes)
  assert message in str(error.value)


def test_sizes_that_follow_from_others():
  options = RunOptions("catch", unroll_length=40, period=20, batch_size=32, replay_share=0.25)
  assert (options.unroll_period, options.fresh_size, options.steps_per_iteration) == (20, 24, 1280)


@pytest.mark.parametrize("changes, expected", [
  ({}, -0.01),  # Adam: the rate, in the direction of the gradient
  ({"optimizer": "rmsprop", "decay": 0.75, "eps": 1e-12}, -0.02),  # over the root of 1 - decay
])
def test_the_first_step_of_the_optimizer(changes, expected):
  optimizer = make_optimizer(RunOptions("task", learning_rate=0.01, max_norm=1.0, **changes))
  gradients = jnp.array([30.0, -40.0])
  updates, _ = optimizer.update(gradients, optimizer.init(gradients))
  np.testing.assert_allclose(updates, [expected, -expected], rtol=1e-3)


@pytest.mark.parametrize("optimizer, eps, expected", [
  ("rmsprop", 0.07, -0.01 * 0.6 / (0.25 * 0.6 ** 2 + 0.07) ** 0.5),  # inside the root
  ("adam", 0.4, -0.01 * 0.6 / (0.6 + 0.4))])
def test_where_eps_is_added(optimizer, eps, expected):
  made = make_optimizer(RunOptions(
    "task", optimizer=optimizer, learning_rate=0.01, decay=0.75, eps=eps, max_norm=0.0))
  gradient = jnp.array([0.6])
  updates, _ = made.update(gradient, made.init(gradient))
  np.testing.assert_allclose(updates, [expected], rtol=1e-4)


def test_the_optimizer_clips_gradients():
  optimizer = make_optimizer(RunOptions(
    "task", learning_rate=1.0, max_norm=1.0, optimizer="rmsprop", decay=0.0, eps=1.0))
  gradients = jnp.array([30.0, -40.0])
  updates, _ = optimizer.update(gradients, optimizer.init(gradients))
  clipped = np.array([0.6, -0.8])
  np.testing.assert_allclose(updates, -clipped / np.sqrt(clipped ** 2 + 1.0), rtol=1e-5)


def make(owner, **values):
  return owner(**({"task": "catch"} if owner is RunOptions else {}), **values)


@pytest.mark.parametrize("owner, field", NUMBERS, ids=lambda each: getattr(each, "name", None))
def test_every_number_is_checked(owner, field):
  key = options.key_of(make(owner), field.name)
  assert key == (field.name if owner is RunOptions else
                 f"{owner.__module__.rpartition('.')[2]}.{field.name}")
  for value in BELOW_OR_ABOVE[field.type]:
    with pytest.raises(UserError) as error:
      make(owner, **{field.name: value})
    assert str(error.value).startswith(f"{key}: found {value}, expected a number ")


def test_every_range_is_of_a_number():
  used = {name for _, field in NUMBERS for name in (
    field.name, *(f"{system}.{field.name}" for system in SYSTEMS))}
  assert set(options.RANGES) <= used
  for key in options.RANGES:
    system, _, name = key.rpartition(".")
    assert not system or name in {field.name for field in dataclasses.fields(SYSTEMS[system])}


@pytest.mark.parametrize("system, values, message", [
  ("impala", {"size": 0}, "impala.size: found 0, expected a number in [1, 2147483647]"),
  ("impala", {"lstm": -1}, "impala.lstm: found -1, expected a number in [0, 2147483647]"),
  ("impala", {"discount": 5.0}, "impala.discount: found 5.0, expected a number in [0, 1]"),
  ("impala", {"entropy_cost": math.inf}, "impala.entropy_cost: found inf, expected a number at "),
  ("ftw", {"size": -1}, "ftw.size: found -1, expected a number in [1, 2147483647]"),
  ("ftw", {"correction": "all"}, "ftw.correction: found 'all', expected one of vtrace, "),
  ("r2d2", {"lstm": 0}, "r2d2.lstm: found 0, expected a number in [1, 2147483647]"),
  ("merlin", {"lstm": 0}, "merlin.lstm: found 0, expected a number in [1, 2147483647]"),
  ("coma", {"epsilon": 1.0}, "coma.epsilon: found 1.0, expected a number in [0, 1)"),
  ("relational", {"heads": 0}, "relational.heads: found 0, expected a number in [1, 2147483647]"),
  ("relational", {"blocks": -1}, "relational.blocks: found -1, expected a number in [0, "),
])
def test_values_out_of_range_are_refused(system, values, message):
  with pytest.raises(UserError) as error:
    SYSTEMS[system](**values)
  assert str(error.value).startswith(message) and "\n" not in str(error.value)


@pytest.mark.parametrize("system, values", [
  ("impala", {"lstm": 0, "discount": 1.0, "entropy_cost": 0.0}), ("relational", {"blocks": 0}),
  ("r2d2", {"burn_in": 0, "epsilon": 1.0})])
def test_bounds_are_valid(system, values):
  found = SYSTEMS[system](**values)
  assert {name: getattr(found, name) for name in values} == values
