"""Imitation by the `mini` policy: chunks of games, and what learns."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from starleague.agent import config, parameters, policy
from starleague.data import wire
from starleague.learner import supervised
from tests.learner.random_batches import random_batch
from tests.learner.test_update_policy import random_params

pytestmark = pytest.mark.slow
MINI = dataclasses.replace(config.mini(), temperature=1.0)
AGENT = policy.make_policy(MINI)
T, B = 4, 2


def one_game(length):
  """Returns steps [length + 1, B] of one game per slot."""
  steps = random_batch(0, MINI, length, B).steps
  steps.weight[...] = steps.discount[...] = 1.0
  return steps


def chunks_of(steps, start, length, first, carry):
  """Returns the chunk of steps start to start + length."""
  part = jax.tree.map(lambda x: x[start:start + length + 1], steps)
  columns = wire.Columns(*wire.seal(wire.pack_steps(part), None)[:-1])
  return supervised.Chunks(columns, np.full(B, first), carry)


def test_chunks_with_carried_state_give_the_logits_of_one_long_unroll():
  params = random_params(AGENT, 0)
  steps = one_game(3 * T)
  options = supervised.Options(keep_build_order=1.0, keep_cumulative=1.0)

  @functools.partial(jax.jit, static_argnums=1)
  def unroll(chunks, carries):
    chosen = dataclasses.replace(options, carry_state=carries)
    batch, kept = supervised.begin(MINI, chosen, jax.random.key(0), chunks)
    output = AGENT.unroll_batch(params, batch)
    return output.logits, supervised.Carry(wire.pack_state(output.state, 1), kept)

  empty = supervised.Carry(
    np.ones((B, wire.packed_spec(MINI, T).state.shape[0]), np.float32), np.zeros((B, 2), bool))
  whole, _ = unroll(chunks_of(steps, 0, 3 * T, True, empty), True)
  differences = {}
  for carries in (True, False):
    carry, parts = empty, []
    for start in range(0, 3 * T, T):
      logits, carry = unroll(chunks_of(steps, start, T, start == 0, carry), carries)
      parts.append(jax.tree.map(lambda x: np.asarray(x[:T]), logits))
    chained = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    # Relative to the largest logit of the head: 1.2 for one, 30 for another.
    differences[carries] = [
      np.abs(np.where(x > -1e8, x - y[:3 * T], 0.0)).max() / np.abs(y[x > -1e8]).max()
      for x, y in zip(chained, (y[:3 * T] for y in whole), strict=True)]
  assert max(differences[True]) < 2e-6
  assert min(differences[False]) > 1e-2


def test_gradient_is_zero_for_the_value_functions_alone():
  params = random_params(AGENT, 1)
  batch = random_batch(1, MINI, T, B)
  gradient, _ = jax.jit(jax.grad(
    lambda p: supervised.sl_loss(AGENT, p, batch), has_aux=True))(params)
  of_values = parameters.value_function_mask(params)
  found = jax.tree.map(lambda g: float(np.abs(g).max()), gradient)
  assert all((size == 0.0) if belongs else np.isfinite(size) for size, belongs in zip(
    jax.tree.leaves(found), jax.tree.leaves(of_values), strict=True))
  learnt = [size > 0.0 for size, belongs in zip(
    jax.tree.leaves(found), jax.tree.leaves(of_values), strict=True) if not belongs]
  assert np.mean(learnt) > 0.8  # all but those of z, which is empty, and of unused functions
