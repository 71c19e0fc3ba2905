"""The learner's parts from a run's config."""

import shutil
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import baselines, pretrained
from starleague.agent import config as agent_config
from starleague.common import run_files
from starleague.common.errors import FinalError
from starleague.data import checkpoints, wire
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options
from starleague.learner import train_state, update
from starleague.learner.loops import reinforcement_setup
from starleague.learner.loops.options import LearningAgent
from tests.learner.loops.options import reinforcement_options
from tests.learner.random_batches import random_batch


@pytest.mark.parametrize("done, expected", [(0.0, 8e-4), (0.25, 6.5e-4), (1.0, 2e-4)])
def test_the_learning_rate_falls_linearly(done, expected):
  options = reinforcement_options(learning_rate=8e-4, final_rate=0.25)
  assert reinforcement_setup.learning_rate(options, done) == pytest.approx(expected)


@pytest.mark.parametrize("done, stage, expected", [
  (0.0, 0, 8e-4), (0.25, 0, 5e-4), (0.5, 1, 8e-4), (0.75, 1, 5e-4), (1.0, 1, 2e-4)])
def test_the_learning_rate_falls_in_each_stage(done, stage, expected):
  options = reinforcement_options(learning_rate=8e-4, final_rate=0.25, stages=2)
  assert reinforcement_setup.stage_at(options, done) == stage
  assert reinforcement_setup.learning_rate(options, done) == pytest.approx(expected)


@pytest.mark.parametrize("opponent_values, counts", [(True, 3), (False, 0)])
def test_the_objective_hides_the_opponent_by_option(monkeypatch, opponent_values, counts):
  config = agent_config.mini()
  batch = random_batch(0, config, 2, 1)
  batch.steps.privileged.opponent_unit_counts[:] = 3
  batch.steps.privileged.cumulative_score[:] = 500
  packed = wire.seal(wire.pack_steps(batch.steps), wire.pack_state(batch.initial_state, 1))
  monkeypatch.setattr(
    reinforcement_setup.objective, "rl_loss",
    lambda policy, weights, params, teacher, trajectories, factors: trajectories.steps.privileged)
  loss = reinforcement_setup.make_loss(
    LearningAgent(config, None, None), reinforcement_options(opponent_values=opponent_values))
  seen = loss(None, None, packed, ())
  np.testing.assert_array_equal(seen.opponent_unit_counts, counts)
  np.testing.assert_array_equal(seen.cumulative_score, 500)


def test_a_stage_has_the_agent_as_teacher_also_after_a_restart(tmp_path):
  """It begins twice: the first time, a kill prevented the checkpoint."""
  config = agent_config.mini()
  agent = LearningAgent(config, None, lambda: {"head": {"w": np.zeros(3, np.float32)}})
  options = reinforcement_options(stages=2, learning_rate=0.1)

  def resumed():
    saved = checkpoints.Checkpoints(tmp_path / run_files.CHECKPOINTS, config, 3)
    return reinforcement_setup.make_learner(agent, options, tmp_path, saved), saved

  def teacher_of(learner):
    return update.unreplicate(learner.teacher)["head"]["w"].tolist()

  learner, _ = resumed()
  for value in (1.0, 2.0):
    host = update.unreplicate(learner.state)._replace(
      params={"head": {"w": np.full(3, value, np.float32)}})
    begun = reinforcement_setup.begin_stage(
      learner, learner.update.replicate(host), 1, agent, tmp_path)
    assert (begun.stage, teacher_of(begun)) == (1, [value] * 3)
    again, saved = resumed()
    assert (again.stage, teacher_of(again)) == (0, [0.0] * 3)
  saved.save(1, host, {"trained_seconds": 6.0, "stage": 1})
  again, _ = resumed()
  assert (again.stage, again.trained_seconds, teacher_of(again)) == (1, 6.0, [2.0] * 3)
  shutil.rmtree(tmp_path / run_files.STAGES)
  with pytest.raises(FinalError, match=f"{run_files.STAGES}/1"):
    resumed()


def test_training_may_start_from_pretrained_weights(tmp_path):
  config = settings.complete({}, {"environment.name": "sc2", "init": "pretrained"})
  agent = learner_options.learning_agent(registry.make_parts(config), config, tmp_path)
  found = reinforcement_setup.initial_snapshot(agent, tmp_path)
  expected = pretrained.load_pretrained("mini").params
  for (path, leaf), other in zip(
      jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(expected), strict=True):
    np.testing.assert_array_equal(leaf, other, err_msg=jax.tree_util.keystr(path))
  assert (tmp_path / run_files.INITIAL).is_dir()  # a resumed run reads it again


def test_damaged_initial_weights_end_the_run_at_the_first_attempt(tmp_path):
  """A restart of the learner would meet them again, and print the same message."""
  config = settings.complete({}, {"environment.name": "sc2", "init": "pretrained"})
  agent = learner_options.learning_agent(registry.make_parts(config), config, tmp_path)
  reinforcement_setup.initial_snapshot(agent, tmp_path)
  weights = max((tmp_path / run_files.INITIAL / "params").rglob("*"),
                key=lambda path: path.stat().st_size * path.is_file())
  weights.write_bytes(b"x" + weights.read_bytes()[1:])
  with pytest.raises(FinalError, match=f"^{weights} is damaged: expected SHA-256 "):
    reinforcement_setup.initial_snapshot(agent, tmp_path)


def test_a_reset_keeps_the_value_functions_and_their_warm_up(monkeypatch):
  """One update after the warm-up of two; the next update after a reset moves the policy again."""
  options = reinforcement_options(learning_rate=0.1, value_warm_up=2)
  value = f"{baselines.SCOPE}/win_loss"
  initial = {"head": {"w": np.zeros(2, np.float32)}, value: {"w": np.zeros(2, np.float32)}}
  monkeypatch.setattr(reinforcement_setup, "initial_snapshot", lambda agent, run_dir: initial)
  optimizer = reinforcement_setup.make_optimizer(initial, options)

  class Batch(NamedTuple):
    x: np.ndarray

  def loss(params, key, batch):
    del key
    return sum(jnp.sum(x["w"] * batch.x.mean(0)) for x in params.values()), {}

  run = update.make_update(loss, optimizer, jax.local_devices()[:1], batch_axes={"x": 0})
  batch = run.place(Batch(np.ones((4, 2), np.float32)))
  state = run.replicate(train_state.initial_state(initial, optimizer, jax.random.key(0)))
  for _ in range(3):
    state, _ = run(state, batch)
  learner = reinforcement_setup.reset(
    reinforcement_setup.Learner(run, state, (), 0.0), None, options, None)
  before, after = update.unreplicate(state), update.unreplicate(learner.state)
  assert np.all(before.params["head"]["w"] < 0) and after.step == 3
  np.testing.assert_array_equal(after.params["head"]["w"], 0.0)
  np.testing.assert_array_equal(after.params[value]["w"], before.params[value]["w"])
  moments = [[x for x in jax.tree.leaves(found.opt_state) if np.ndim(x) == 2]
             for found in (before, after)]
  assert [len(found) for found in moments] == [2, 2]  # Adam's
  assert all(np.any(x) for x in moments[0]) and not any(np.any(x) for x in moments[1])
  moved, _ = run(learner.state, batch)
  assert np.all(update.unreplicate(moved).params["head"]["w"] < 0)
