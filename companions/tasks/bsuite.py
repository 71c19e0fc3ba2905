"""bsuite's experiments (Osband et al. 2020), on the host.

The experiments on MNIST are left out: they load a data set.
"""

import functools
from collections.abc import Callable
from typing import Any

import dm_env
from bsuite.environments import (
  bandit,
  cartpole,
  catch,
  deep_sea,
  discounting_chain,
  memory_chain,
  mountain_car,
  umbrella_chain,
)
from bsuite.experiments.cartpole_swingup import cartpole_swingup
from bsuite.utils import wrappers

from starleague.companions.tasks.host import make_host_task
from starleague.companions.tasks.task import Task

# Environments of (seed of a copy, seed of what stays the same) and parameters.
_Maker = Callable[..., dm_env.Environment]


def _seeded(environment: Callable[..., dm_env.Environment]) -> _Maker:
  return lambda seed, fixed, **parameters: environment(seed=seed, **parameters)


def _noisy(make: _Maker) -> _Maker:
  return lambda seed, fixed, noise, **parameters: wrappers.RewardNoise(
    make(seed, fixed, **parameters), noise_scale=noise, seed=seed)


def _bandit(seed, fixed):
  del seed
  return bandit.SimpleBandit(mapping_seed=fixed)


def _deep_sea(seed, fixed, size, deterministic=True):
  return deep_sea.DeepSea(size, deterministic=deterministic, seed=seed, mapping_seed=fixed)


def _discounting_chain(seed, fixed):
  del seed
  return discounting_chain.DiscountingChain(mapping_seed=fixed)


def _memory(seed, fixed, length, bits):
  del fixed
  return memory_chain.MemoryChain(memory_length=length, num_bits=bits, seed=seed)


def _umbrella(seed, fixed, length, distractors):
  del fixed
  return umbrella_chain.UmbrellaChain(length, n_distractor=distractors, seed=seed)


_cartpole, _catch = _seeded(cartpole.Cartpole), _seeded(catch.Catch)
_mountain_car = _seeded(mountain_car.MountainCar)
# Each experiment, its environment and its parameters, with values of bsuite's sweep.
_EXPERIMENTS: dict[str, tuple[_Maker, dict[str, Any]]] = {
  "bandit": (_bandit, {}),
  "bandit_noise": (_noisy(_bandit), {"noise": 1.0}),
  "bandit_scale": (_bandit, {}),
  "cartpole": (_cartpole, {}),
  "cartpole_noise": (_noisy(_cartpole), {"noise": 1.0}),
  "cartpole_scale": (_cartpole, {}),
  "cartpole_swingup": (_seeded(cartpole_swingup.CartpoleSwingup), {}),
  "catch": (_catch, {"rows": 10, "columns": 5}),
  "catch_noise": (_noisy(_catch), {"noise": 1.0}),
  "catch_scale": (_catch, {}),
  "deep_sea": (_deep_sea, {"size": 10}),
  "deep_sea_stochastic": (functools.partial(_deep_sea, deterministic=False), {"size": 10}),
  "discounting_chain": (_discounting_chain, {}),
  "memory_len": (_memory, {"length": 10, "bits": 1}),
  "memory_size": (_memory, {"length": 2, "bits": 2}),
  "mountain_car": (_mountain_car, {}),
  "mountain_car_noise": (_noisy(_mountain_car), {"noise": 1.0}),
  "mountain_car_scale": (_mountain_car, {}),
  "umbrella_distract": (_umbrella, {"length": 20, "distractors": 10}),
  "umbrella_length": (_umbrella, {"length": 10, "distractors": 20}),
}
_MAPPED = {"bandit", "bandit_noise", "bandit_scale", "deep_sea", "deep_sea_stochastic",
           "discounting_chain"}  # by the seed of what stays the same
TASKS = {name: parameters | {"limit": 0} for name, (_, parameters) in _EXPERIMENTS.items()}


def make(name: str, experiment: str, copies: int, seed: int, *, limit: int,
         **parameters: Any) -> Task:
  """Makes an experiment of bsuite.

  Args:
    name: the task's full name.
    experiment: a key of `TASKS`. Experiments `*_scale` are those without this ending: the parameter
      `scale` of all tasks scales the reward.
    copies: n.
    seed: of what stays the same over episodes and copies: the mapping of actions.
    limit: steps of an episode; 0: none.
    **parameters: those of the experiment.
  """
  make_environment, _ = _EXPERIMENTS[experiment]
  task = make_host_task(name, copies, lambda copy_seed: make_environment(
    copy_seed, seed, **parameters), limit=limit)
  return task._replace(seed=seed) if experiment in _MAPPED else task
