"""bsuite's experiments against the same environments stepped by hand."""

import jax
import numpy as np
import pytest
from bsuite.environments import cartpole, catch, deep_sea, memory_chain

from starleague.companions.tasks import bsuite
from starleague.companions.tasks.registry import make_task, task_names
from tests.companions.tasks import episodes

SEED = 2**31 - 1  # of the draws that seed copies


def by_hand(make_environment, played, copy):
  """(observation, reward, ended) of each step, and the first observation before them."""
  environment = make_environment(int(jax.random.randint(played.keys[0, copy], (), 0, SEED)))
  yield environment.reset().observation, 0.0, True
  for action in played.actions[:, copy]:
    step = environment.step(int(action))
    observation = environment.reset().observation if step.last() else step.observation
    yield observation, step.reward, step.last()


@pytest.mark.parametrize("name, make_environment, shape, length", [
  ("catch", lambda seed: catch.Catch(seed=seed), (10, 5), 40),
  ("deep_sea:size=4", lambda seed: deep_sea.DeepSea(4, seed=seed, mapping_seed=3), (4, 4), 20),
  ("deep_sea_stochastic:size=4", lambda seed: deep_sea.DeepSea(
    4, deterministic=False, seed=seed, mapping_seed=3), (4, 4), 40),
  ("memory_len:length=30", lambda seed: memory_chain.MemoryChain(30, 1, seed), (1, 3), 70),
  ("memory_size:bits=3", lambda seed: memory_chain.MemoryChain(2, 3, seed), (1, 5), 20),
  ("cartpole", lambda seed: cartpole.Cartpole(seed=seed), (1, 6), 400)])
def test_an_experiment_is_that_of_bsuite(name, make_environment, shape, length):
  task = make_task(f"bsuite-{name}", copies=3, seed=3)
  assert task.observation == jax.ShapeDtypeStruct(shape, np.float32)
  played = episodes.play(task, length)
  episodes.check(task, played)
  for copy in (0, 2):
    for time, (observation, reward, ended) in enumerate(by_hand(make_environment, played, copy)):
      np.testing.assert_array_equal(played.steps.observation[time, copy], observation)
      assert played.steps.reward[time, copy] == np.float32(reward)
      assert played.steps.first[time, copy] == ended


@pytest.mark.parametrize("name", task_names("bsuite"))
def test_every_experiment_steps(name):
  task = make_task(f"{name}:limit=25", copies=2)
  played = episodes.play(task, 30)
  episodes.check(task, played)


def test_scale_and_noise_change_rewards_only():
  plain, scaled, noisy = (episodes.play(make_task(f"bsuite-cartpole{more}", copies=2), 300).steps
                          for more in ("", "_scale:scale=100", "_noise:noise=0.5"))
  episodes.assert_same(plain._replace(reward=100 * plain.reward), scaled)
  episodes.assert_same(plain._replace(reward=noisy.reward), noisy)
  difference = (noisy.reward - plain.reward)[1:]
  assert 0.4 < difference.std() < 0.6


def test_the_seed_maps_the_actions_and_keys_do_not():
  def wins(seed, key):
    """Whether action 1 goes right at the start, where only that costs something."""
    task = make_task("bsuite-deep_sea:size=6", copies=64, seed=seed)
    played = episodes.play(task, 6, seed=key)
    agrees = (played.steps.reward[1] < 0) == played.actions[0]
    assert len(set(agrees)) == 1
    return bool(agrees[0])

  assert wins(0, 0) == wins(0, 5)
  assert {wins(seed, 0) for seed in range(6)} == {True, False}


@pytest.mark.parametrize("name", task_names("bsuite"))
def test_tasks_that_the_seed_decides_say_so(name):
  """Twelve copies begin with each action in turn; an episode of the longest has 100 steps."""
  def play(seed):
    task = make_task(name, 12, seed)
    task.host.reset(np.arange(12))
    steps = [task.host.step((np.arange(12) + t * np.arange(12)) % task.num_actions)
             for t in range(110)]
    return np.concatenate([[step.reward.tolist(), step.observation.sum(axis=(1, 2)).tolist()]
                           for step in steps])

  same = all(np.array_equal(play(0), play(seed)) for seed in range(1, 4))
  assert same == (make_task(name, 1).seed is None)


def test_no_experiment_loads_a_data_set():
  assert len(bsuite.TASKS) == 20 and not any("mnist" in name for name in bsuite.TASKS)
