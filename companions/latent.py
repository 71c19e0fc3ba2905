"""Diagonal Gaussian latents of agents that predict, as MERLIN's and FTW's."""

import math
from typing import NamedTuple

import jax.numpy as jnp

from starleague.agent import linear
from starleague.agent.types import Array

_LEAST, _MOST = -5.0, 2.0  # of the logarithm of the standard deviation


class Gaussian(NamedTuple):
  """A distribution over [...] vectors with independent entries."""

  mean: Array
  log_std: Array


def normal(size: int, std: float = 1.0) -> Gaussian:
  """Returns the distribution of [size] independent entries with mean 0.

  Args:
    size: of the vector.
    std: standard deviation of its entries.
  """
  return Gaussian(jnp.zeros(size), jnp.full(size, math.log(std), jnp.float32))


def gaussian(x: Array, size: int, name: str, base: Gaussian | None = None) -> Gaussian:
  """Makes a Gaussian of features, within a transform.

  Args:
    x: [..., n] features.
    size: of the vector.
    name: of the layer.
    base: a distribution that the features correct: its mean and logarithm are added.
  """
  mean, log_std = jnp.split(linear.Linear(2 * size, name=name)(x), 2, axis=-1)
  if base is not None:
    mean, log_std = mean + base.mean, log_std + base.log_std
  return Gaussian(mean, jnp.clip(log_std, _LEAST, _MOST))


def sample(distribution: Gaussian, noise: Array) -> Array:
  """Returns the sample that standard normal noise stands for."""
  return distribution.mean + jnp.exp(distribution.log_std) * noise


def kl(q: Gaussian, p: Gaussian) -> Array:
  """Computes KL(q || p) in nats: [...], summed over the vector."""
  ratio = jnp.square(jnp.exp(q.log_std - p.log_std))
  distance = jnp.square((q.mean - p.mean) * jnp.exp(-p.log_std))
  return 0.5 * jnp.sum(ratio + distance - 1.0, axis=-1) - jnp.sum(q.log_std - p.log_std, axis=-1)
