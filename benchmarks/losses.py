"""Time-major losses compared with rlax's, each as one compiled program.

    python -m benchmarks.losses

The program is the part of an RL objective behind the network: TD(lambda), V-trace and UPGO of five
baselines with an importance ratio for each of three groups of arguments, reduced to the loss. Both
sides get the same arrays, `[65, 512, 5]` and the like, in the layout of the network's outputs. rlax
is vmapped over the batch with `in_axes=1`, inside one jit, for one baseline and group at a time,
the faster of the ways its users write it (the other nests a vmap over baselines). Calls alternate,
and times are of the CPU, so that other programs of the machine meet both sides alike.
"""

import argparse
import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.learner import losses
from starleague.learner.weights import RLWeights
from tests.learner.rlax_without_tensorflow import rlax

BASELINES, GROUPS = 5, 3
WEIGHTS = RLWeights()
VALUE_COSTS = np.array(WEIGHTS.baseline, np.float32)
POLICY_COSTS = np.array(WEIGHTS.policy, np.float32)

# vmaps a function of [T] arrays over the batch, which stays the second axis.
over_batch = functools.partial(jax.vmap, in_axes=1, out_axes=1)


class Inputs(NamedTuple):
  """Arrays behind the network. T steps, B trajectories, R baselines, G groups."""

  values: jax.Array  # [T + 1, B, R]
  log_prob: jax.Array  # [T, B, G]
  reward: jax.Array  # [T, B, R]
  discount: jax.Array  # [T, B]
  ratio: jax.Array  # [T, B, G]


def draw(length: int, size: int) -> Inputs:
  rng = np.random.default_rng(0)
  arrays = (rng.normal(size=(length + 1, size, BASELINES)),
            -np.abs(rng.normal(size=(length, size, GROUPS))),
            rng.normal(size=(length, size, BASELINES)), rng.random((length, size)) < 0.98,
            np.exp(rng.normal(size=(length, size, GROUPS))))
  return Inputs(*(jnp.asarray(x, jnp.float32) for x in arrays))


def ours(inputs: Inputs) -> jax.Array:
  """Computes the loss with scans over [T, R, B] and [T, G, R, B], as `objective` does."""
  values, log_prob, reward, ratio = (
    jnp.swapaxes(x, 1, 2) for x in (inputs.values, inputs.log_prob, inputs.reward, inputs.ratio))
  v_tm1, v_t, discount = values[:-1], values[1:], inputs.discount
  vmap = functools.partial(jax.vmap, out_axes=1)
  td = vmap(over_batch(losses.td_lambda_loss), (1, 1, 1, None))(v_tm1, v_t, reward, discount)
  vtrace = vmap(vmap(over_batch(losses.vtrace_advantages), (1, 1, 1, None, None)),
                (None, None, None, None, 1))(v_tm1, v_t, reward, discount, ratio)
  upgo = over_batch(losses.upgo_returns)(v_tm1[:, 0], v_t[:, 0], reward[:, 0], discount)
  advantages = jnp.sum(POLICY_COSTS[:, None] * vtrace, axis=2)
  advantages += jnp.minimum(ratio, 1.0) * (upgo - v_tm1[:, 0])[:, None]
  policy = losses.policy_gradient_loss(log_prob, advantages)
  return jnp.sum(VALUE_COSTS * jnp.mean(td, axis=(0, 2))) + jnp.sum(jnp.mean(policy, axis=(0, 2)))


def rlax_upgo(v_tm1, v_t, r_t, discount_t):
  """Computes UPGO advantages without their ratio from rlax's lambda-returns."""
  follow = jnp.append(r_t[1:] + discount_t[1:] * v_t[1:] >= v_tm1[1:], True).astype(v_t.dtype)
  return rlax.lambda_returns(r_t, discount_t, v_t, follow) - v_tm1


def theirs(inputs: Inputs) -> jax.Array:
  """Computes the same loss with rlax, one baseline and group at a time."""
  td_error = over_batch(lambda v_tm1, v_t, r, g: rlax.td_lambda(
    v_tm1, r, g, v_t, jnp.float32(WEIGHTS.td_lambda)))
  vtrace = over_batch(lambda *x: rlax.vtrace_td_error_and_advantage(*x).pg_advantage)
  live = [(inputs.values[:-1, :, k], inputs.values[1:, :, k], inputs.reward[..., k],
           inputs.discount) for k in range(BASELINES)]
  fixed = jax.lax.stop_gradient(live)
  loss = sum(cost * jnp.mean(jnp.square(td_error(*x)) / 2)
             for cost, x in zip(VALUE_COSTS, live, strict=True))
  upgo = over_batch(rlax_upgo)(*fixed[0])
  for i in range(GROUPS):
    ratio = inputs.ratio[..., i]
    advantages = sum(cost * vtrace(*x, ratio)
                     for cost, x in zip(POLICY_COSTS, fixed, strict=True))
    advantages += jnp.minimum(ratio, 1.0) * upgo
    loss -= jnp.mean(advantages * inputs.log_prob[..., i])
  return loss


def with_gradient(loss: Callable) -> Callable:
  """Adds the gradient with respect to values and log-probs."""
  def run(inputs):
    return jax.value_and_grad(lambda values, log_prob: loss(
      inputs._replace(values=values, log_prob=log_prob)), argnums=(0, 1))(
        inputs.values, inputs.log_prob)

  return run


def cpu_milliseconds(function: Callable, inputs: Inputs, calls: int) -> float:
  start = time.process_time()
  for _ in range(calls):
    jax.block_until_ready(function(inputs))
  return 1e3 * (time.process_time() - start) / calls


def compare(name: str, first: Callable, second: Callable, inputs: Inputs,
            options: argparse.Namespace) -> None:
  """Checks that two programs agree, and prints their times and the ratio of these."""
  programs = jax.jit(first), jax.jit(second)
  found, expected = (jax.tree.leaves(program(inputs)) for program in programs)
  for x, y in zip(found, expected, strict=True):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4 * float(jnp.abs(y).max()))
  times = np.array([[cpu_milliseconds(program, inputs, options.calls) for program in programs]
                    for _ in range(options.rounds)])
  ratios = times[:, 1] / times[:, 0]
  own, peer = np.median(times, axis=0)
  low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
  print(f"  {name}: {own:.2f} CPU-ms, rlax {peer:.2f} CPU-ms; rlax / ours {middle:.2f} "
        f"(quartiles {low:.2f} to {high:.2f})", flush=True)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--length", type=int, default=64, help="T")
  parser.add_argument("--sequences", type=int, default=512, help="B")
  parser.add_argument("--rounds", type=int, default=15, help="measurements of each program")
  parser.add_argument("--calls", type=int, default=10, help="calls per measurement")
  options = parser.parse_args()
  inputs = draw(options.length, options.sequences)
  print(f"losses of {BASELINES} baselines and {GROUPS} groups, T = {options.length}, "
        f"B = {options.sequences}, JAX {jax.__version__}:")
  compare("forward", ours, theirs, inputs, options)
  compare("with gradient", with_gradient(ours), with_gradient(theirs), inputs, options)


if __name__ == "__main__":
  main()
