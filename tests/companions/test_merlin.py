"""MERLIN: reads by content, writes and retroactive writes by hand, gradients, replayed noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import merlin
from starleague.companions.system import Fixed, inputs_spec
from tests.companions import learning
from tests.companions.catch import make_catch

CONFIG = merlin.Config(size=16, lstm=8, latent=3, rows=4, reads=2)
T, COPIES = 5, 2


@pytest.fixture(scope="module")
def made():
  """System, parameters and a batch of unrolls."""
  task = make_catch(COPIES)
  system = merlin.make(CONFIG, task, inputs_spec(task))
  params = system.init(jax.random.key(0))
  return system, params, learning.played(system, task, params, T)


def written(config, latents):
  memory = merlin.empty_memory(config)
  for z in latents:
    memory = merlin.write(memory, jnp.asarray(z), jnp.zeros((1, config.rows)), 0.5)
  return memory


def test_writes_fill_empty_rows_and_reach_back():
  a, b, c = np.eye(3, dtype=np.float32)
  memory = written(CONFIG, [a, b, c])
  rows = np.asarray(memory.rows)
  np.testing.assert_array_equal(rows[:3, :3], np.eye(3))
  # Weights of retroaction: 1/2 at the next step, 1/4 after it.
  np.testing.assert_allclose(rows[0, 3:], 0.5 * b + 0.25 * c)
  np.testing.assert_allclose(rows[1, 3:], 0.5 * c)
  assert not rows[2, 3:].any() and not rows[3].any()
  np.testing.assert_allclose(memory.retroactive, [0.125, 0.25, 0.5, 0.0])


def test_a_full_memory_replaces_the_least_used_row():
  memory = written(CONFIG, np.eye(4, 3, dtype=np.float32))
  reads = jnp.array([[0.5, 0.1, 0.3, 0.1 + 1e-3]])
  new = jnp.array([7.0, 8.0, 9.0])
  after = merlin.write(memory, new, reads, 0.5)
  np.testing.assert_array_equal(after.rows[1], [7, 8, 9, 0, 0, 0])
  np.testing.assert_allclose(after.usage, [1.5, 1.0, 1.3, 1.101], rtol=1e-5)


def test_reads_are_by_content_and_empty_rows_are_not_read():
  memory = written(CONFIG, np.eye(2, 3, dtype=np.float32))
  keys = jnp.zeros((2, 6)).at[0, 0].set(1.0).at[1, 1].set(1.0)
  found, weights = merlin.read(memory, keys, jnp.array([100.0, 100.0]))
  np.testing.assert_allclose(weights[:, 2:], 0.0)
  np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-6)
  np.testing.assert_allclose(found, memory.rows[:2], atol=1e-4)
  nothing, weights = merlin.read(merlin.empty_memory(CONFIG), keys, jnp.ones(2))
  assert not nothing.any() and not weights.any()


def test_the_learner_sees_the_policy_that_acted(made):
  system, params, unroll = made
  found = system.loss(params, jax.random.key(5), unroll, Fixed({}, ()))
  np.testing.assert_allclose(found.metrics["update/ratio"], 1.0, atol=1e-5)
  assert unroll.steps.behaviour.noise.std() > 0.5


def test_an_episode_starts_with_an_empty_memory(made):
  system, params, unroll = made
  first = np.asarray(unroll.steps.inputs.first)
  assert first[4].all()  # the second episode of Catch
  full = unroll.initial_state._replace(memory=written(CONFIG, np.ones((4, 3), np.float32)))
  act = jax.jit(system.act)

  def state_after(state, is_first):
    inputs = jax.tree.map(lambda x: x[4, 0], unroll.steps.inputs)._replace(
      first=jnp.array(is_first))
    return act(params, jax.random.key(0), inputs, state, jnp.array(0)).state

  one = jax.tree.map(lambda x: x[0], unroll.initial_state)._replace(memory=full.memory)
  assert float((state_after(one, True).memory.usage > 0).sum()) == 1
  assert float((state_after(one, False).memory.usage > 0).sum()) == 4


def test_the_policy_gradient_does_not_reach_the_predictor(made):
  system, params, unroll = made
  config = merlin.Config(size=16, lstm=8, latent=3, rows=4, reads=2, reconstruction_cost=0.0,
                         kl_cost=0.0, return_cost=0.0)
  task = make_catch(COPIES)
  alone = merlin.make(config, task, inputs_spec(task))
  gradient = jax.grad(
    lambda p: alone.loss(p, jax.random.key(0), unroll, Fixed({}, ())).loss)(params)
  touched = {name.split("/")[0] for name, module in gradient.items()
             if any(np.abs(leaf).max() > 0 for leaf in module.values())}
  assert touched == {"policy_lstm", "policy_keys", "policy_hidden", "policy"}
  gradient = jax.grad(
    lambda p: system.loss(p, jax.random.key(0), unroll, Fixed({}, ())).loss)(params)
  for name in ("prior", "posterior", "keys", "decoder", "value"):
    assert np.abs(gradient[name]["w"]).max() > 0


@pytest.mark.slow
def test_it_learns_catch(tmp_path):
  score = learning.learn(
    "merlin", tmp_path, merlin.Config(size=32, lstm=16, latent=8, rows=8, entropy_cost=0.02),
    copies=32, steps=32 * 16 * 120, unroll_length=16, batch_size=32, learning_rate=5e-3)
  assert score[""] > 0.8


def test_impossible_sizes_are_refused():
  with pytest.raises(UserError, match="merlin.rows: found 0, expected at least 1"):
    merlin.Config(rows=0)
