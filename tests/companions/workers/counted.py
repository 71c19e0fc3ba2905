"""A task on the host whose every step can be counted by hand, and a system for it; importable."""

import os
import pathlib
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.companions.system import GREEDY, Acted, System
from starleague.companions.tasks.host import make_batch_task
from starleague.companions.tasks.task import TimeStep

SPEC = jax.ShapeDtypeStruct((4,), np.int32)
ACTIONS = 3


class Seen(NamedTuple):
  """An observation."""

  seed: int
  moment: int  # since the reset
  episode: int  # since the reset
  step: int  # of the episode


def length(seed, episode):
  """Steps of an episode: 2 to 5."""
  return 2 + (seed + episode) % 4


def reward(seen, action):
  """The reward of an action."""
  return np.float32(seen.moment + 100 * action + 0.5 * (seen.seed % 2))


class Counted:
  """Environments whose observations count; one may die, or wait, at a moment, once."""

  def __init__(self, copies, at=None, mark="", what="die"):
    self.copies, self.at, self.mark, self.what = copies, at, mark, what

  def reset(self, seeds):
    self.seen = [Seen(int(seed), 0, 0, 0) for seed in seeds]
    return self._timestep(np.zeros(self.copies, np.float32), np.zeros(self.copies, bool),
                          np.ones(self.copies, bool))

  def step(self, actions):
    if self.seen[0].moment == self.at and self._is_first():
      if self.what == "die":
        os._exit(7)
      time.sleep(3600)
    rewards = np.array([reward(seen, action) for seen, action in
                        zip(self.seen, actions, strict=True)], np.float32)
    ended = np.array([seen.step + 1 == length(seen.seed, seen.episode) for seen in self.seen])
    self.seen = [
      Seen(seen.seed, seen.moment + 1, seen.episode + end, 0 if end else seen.step + 1)
      for seen, end in zip(self.seen, ended.tolist(), strict=True)]
    return self._timestep(rewards, ended, ended)

  def _is_first(self):
    """Whether this worker creates the mark; of two at the same time only one does."""
    try:
      pathlib.Path(self.mark).touch(exist_ok=False)
    except FileExistsError:
      return False
    return True

  def _timestep(self, rewards, ended, first):
    return TimeStep(np.array(self.seen, np.int32), rewards, 1.0 - ended.astype(np.float32), first)


class Broken(Counted):
  """Fails at its third step."""

  def step(self, actions):
    if self.seen[0].moment == 2:
      raise ZeroDivisionError("the floor is missing")
    return super().step(actions)


def make(copies):
  return make_batch_task("counted", copies, Counted(copies), SPEC, ACTIONS)


def make_once(copies, at, mark, what):
  """The first worker of `copies` copies that reaches a moment dies or waits."""
  return make_batch_task("counted", copies, Counted(copies, at, mark, what), SPEC, ACTIONS)


def make_broken(copies):
  return make_batch_task("broken", copies, Broken(copies), SPEC, ACTIONS)


def make_system():
  """The action depends on copy and state; the state counts; the last reward is recorded."""
  def act(params, key, inputs, state, copy):
    action = jnp.where(copy == GREEDY, 0, (copy + state[0][0].astype(jnp.int32)) % ACTIONS)
    return Acted(action.astype(jnp.int32), inputs.last_reward, (state[0] + params["step"],))

  return System("counting", lambda key: {"step": jnp.ones(())}, lambda: (jnp.zeros(1),), act,
                lambda *_: None)
