"""Evaluations count equally many episodes of every copy, whole ones, by part of the task."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common import results
from starleague.companions import evaluation
from starleague.companions.evaluation import Evaluation
from starleague.companions.options import RunOptions
from starleague.companions.system import GREEDY, NO_STATE, Acted, System
from starleague.companions.tasks.task import Task, TimeStep


def make_task(lengths, **changes):
  """Copy i has episodes of `lengths[i]` steps; a step's reward is the action."""
  lengths = jnp.array(lengths)
  copies = len(lengths)

  def reset(keys):
    return jnp.zeros(copies, jnp.int32), TimeStep(
      jnp.zeros((copies, 1)), jnp.zeros(copies), jnp.ones(copies), jnp.ones(copies, bool))

  def step(state, keys, action):
    ended = state + 1 >= lengths
    return jnp.where(ended, 0, state + 1), TimeStep(
      jnp.zeros((copies, 1)), action.astype(jnp.float32), 1.0 - ended, ended)

  return Task("lengths", copies, jax.ShapeDtypeStruct((1,), np.float32), 3, (), reset, step,
              **changes)


def make_system():
  """Acts with 2 where it is greedy, else with 1."""
  def act(params, key, inputs, state, copy):
    return Acted(jnp.where(copy == GREEDY, 2, 1).astype(jnp.int32), (), state)

  return System("two", lambda key: {}, lambda: jax.tree.map(lambda x: jnp.zeros(x.shape), NO_STATE),
                act, lambda *_: None)


def options(episodes, copies):
  return RunOptions("lengths", copies=copies, evaluation_episodes=episodes)


def evaluate(task, options):
  return evaluation.evaluate(make_system(), task, {}, options, threading.Event())


def test_every_copy_counts_with_the_same_number_of_episodes():
  """Returns of 2 and 20: the first ones to end would have a mean near 2."""
  found = evaluate(make_task([1, 10]), options(5, 2))
  # Three of each copy: mean 11, standard deviation 9.859; t is 2.5706 with 5 degrees of freedom.
  assert found[""].mean == pytest.approx(11.0) and found[""].episodes == 6
  assert found[""].high - 11.0 == pytest.approx(2.5706 * 9.859 / 6 ** 0.5, abs=1e-3)
  assert 11.0 - found[""].low == pytest.approx(10.3464, abs=1e-3)


def test_an_episode_without_end_counts_once_with_its_return_so_far(monkeypatch):
  monkeypatch.setattr(evaluation, "EVALUATION_STEPS", 200)
  found = evaluate(make_task([150, 10**6]), options(4, 2))
  # 2 * 200 steps. The first copy: 300 twice. The second: 800 of its only episode.
  assert found[""].mean == pytest.approx(1400 / 3) and found[""].episodes == 3
  assert found[""].high - found[""].mean == pytest.approx(4.30265 * 500 / 3, abs=1e-3)


def test_episodes_as_long_as_the_limit_count_whole(monkeypatch):
  """Running ones that had just begun would halve the mean."""
  monkeypatch.setattr(evaluation, "EVALUATION_STEPS", 200)
  found = evaluate(make_task([100, 200]), options(8, 2))
  # Four of 200 and four of 400.
  assert found[""].mean == pytest.approx(300.0) and found[""].episodes == 8


def test_the_parts_of_a_task_are_evaluated_apart():
  task = make_task([2, 2, 5], parts=(("short", 2), ("long", 1)))
  found = evaluate(task, options(3, 3))
  assert {name: (part.mean, part.episodes) for name, part in found.items()} == {
    "/short": (4.0, 6), "/long": (10.0, 3)}
  assert found["/long"].low == found["/long"].high == 10.0


def test_a_single_episode_has_no_interval():
  found = evaluate(make_task([3]), options(1, 1))
  assert found == {"": Evaluation(6.0, None, None, 1)}


def test_a_stop_ends_an_evaluation():
  """Of an episode that would take 100 years."""
  stop, task, steps = threading.Event(), make_task([10**9]), []

  def step(state, keys, action):
    jax.debug.callback(lambda: steps.append(stop.set() if len(steps) == 149 else None))
    return task.step(state, keys, action)

  assert evaluation.evaluate(
    make_system(), task._replace(step=step), {}, options(1, 1), stop) is None
  assert len(steps) == 200  # two calls


def test_evaluations_are_recorded_by_part(tmp_path):
  evaluation.record(tmp_path, {"/a:b=1,c=2": Evaluation(1.0, 0.5, 1.5, 9),
                               "": Evaluation(2, None, None, 1)}, 12.0, 34)
  assert results.read(tmp_path / results.FILE_NAME) == [
    results.Row(12.0, 34, "return/evaluation/a:b=1;c=2", 1.0, 0.5, 1.5),
    results.Row(12.0, 34, "return/evaluation", 2.0, None, None)]
