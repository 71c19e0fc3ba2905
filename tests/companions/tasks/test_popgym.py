"""POPGym's tasks against the same environments stepped by hand."""

import jax
import numpy as np
import pytest
from popgym.envs import autoencode, count_recall

from starleague.companions.tasks.registry import make_task, task_names
from starleague.companions.tasks.task import TaskError
from tests.companions.tasks import episodes


@pytest.mark.parametrize("name, made, length", [
  ("AutoencodeEasy", autoencode.AutoencodeEasy, 220),
  ("CountRecallEasy", count_recall.CountRecallEasy, 110)])
def test_a_task_is_that_of_popgym(name, made, length):
  task = make_task(f"popgym-{name}", copies=2)
  played = episodes.play(task, length)
  episodes.check(task, played)
  environment = made()
  seed = int(jax.random.randint(played.keys[0, 1], (), 0, 2**31 - 1))
  observation, _ = environment.reset(seed=seed)
  for time in range(length):
    encoded = jax.tree.leaves(jax.tree.map(lambda leaf: leaf[time, 1],  # noqa: B023
                                           played.steps.observation))
    if name == "AutoencodeEasy":
      assert tuple(map(int, map(np.argmax, encoded))) == observation
      assert [leaf.sum() for leaf in encoded] == [1, 1]
    else:
      assert encoded[0].sum() == len(np.ravel(observation))
    observation, reward, ended, _, _ = environment.step(int(played.actions[time, 1]))
    assert played.steps.reward[time + 1, 1] == np.float32(reward)
    assert played.steps.first[time + 1, 1] == ended
    if ended:
      observation, _ = environment.reset()


def test_specs_and_actions():
  task = make_task("popgym-AutoencodeEasy", copies=1)
  assert [(leaf.shape, leaf.dtype) for leaf in task.observation] == [((2,), bool), ((4,), bool)]
  assert task.num_actions == 4
  assert make_task("popgym-MineSweeperEasy", copies=1).num_actions == 16


@pytest.mark.slow
def test_every_task_steps_or_is_refused():
  refused = []
  for name in task_names("popgym"):
    try:
      task = make_task(f"{name}:limit=5", copies=1)
    except TaskError as error:
      assert "has continuous actions" in str(error)
      refused.append(name)
      continue
    episodes.check(task, episodes.play(task, 8))
  assert len(refused) == 6 and all("Pendulum" in name for name in refused)
