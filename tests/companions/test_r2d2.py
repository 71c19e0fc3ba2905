"""R2D2: exploration by copy, duelling values, burn-in, loss and priorities by hand, learning."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import networks, r2d2
from starleague.companions.system import GREEDY, Fixed, Step, Unroll, inputs_spec
from tests.companions import learning
from tests.companions.catch import make_catch

CONFIG = r2d2.Config(torso="dense", size=16, lstm=8, burn_in=3, n=2, discount=0.9)
T, COPIES = 9, 4


@pytest.fixture(scope="module")
def made():
  """The system, its network, parameters, those of a target network, and a batch of unrolls."""
  task = make_catch(COPIES)
  spec = inputs_spec(task)
  system, network = r2d2.make(CONFIG, task, spec), r2d2.make_network(CONFIG, task, spec)
  params, target = system.init(jax.random.key(0)), system.init(jax.random.key(1))
  return system, network, params, target, learning.played(system, task, params, T)


def test_exploration_falls_from_copy_to_copy():
  copies = [r2d2.exploration(r2d2.Config(), jnp.array(copy), 8) for copy in (0, 3, 7, GREEDY)]
  np.testing.assert_allclose(copies, [0.4, 0.4 ** 4, 0.4 ** 8, 0.0], rtol=1e-5)


def test_duelling_heads_add_a_value_and_advantages_of_mean_zero(made):
  _, network, params, _, unroll = made
  q, _ = networks.unroll_batch(network, params, unroll.steps.inputs, unroll.initial_state)
  shifted = jax.tree.map(jnp.copy, params)
  shifted["advantage"]["b"] += 5.0
  shifted["value"]["b"] += 1.0
  found, _ = networks.unroll_batch(network, shifted, unroll.steps.inputs, unroll.initial_state)
  np.testing.assert_allclose(found, q + 1.0, atol=1e-5)


@pytest.mark.parametrize("context", [True, False])
def test_the_last_action_and_reward_are_seen_with_context_only(made, context):
  task, inputs = make_catch(COPIES), made[-1].steps.inputs
  network = r2d2.make_network(dataclasses.replace(CONFIG, context=context), task, inputs_spec(task))
  params = network.init(jax.random.key(0))
  changed = inputs._replace(
    last_action=1 - inputs.last_action % 2, last_reward=inputs.last_reward + 1)
  start = made[-1].initial_state
  q, other = (networks.unroll_batch(network, params, each, start)[0] for each in (inputs, changed))
  assert (np.abs(q - other).max() > 1e-3) == context


def test_copies_act_greedily_unless_they_explore(made):
  system, network, params, _, unroll = made
  q, _ = networks.unroll_batch(network, params, unroll.steps.inputs, unroll.initial_state)
  # The last copy explores with probability 0.4^8.
  np.testing.assert_array_equal(unroll.steps.action[:, -1], jnp.argmax(q, -1)[:, -1])


def values(network, params, unroll, config):
  """Action values after the burn-in, one step and one unroll at a time."""
  found = []
  for b in range(COPIES):
    state = jax.tree.map(lambda x, b=b: x[b], unroll.initial_state)
    if not config.stored_state:
      state = jax.tree.map(jnp.zeros_like, state)
    row = []
    for t in range(T + 1):
      inputs = jax.tree.map(lambda x, t=t, b=b: x[t, b], unroll.steps.inputs)
      q, state = networks.step(network, params, inputs, state)
      row.append(q)
    found.append(row[config.burn_in:])
  return np.asarray(found)


def test_a_burn_in_that_leaves_no_step_to_learn_is_refused():
  steps = Step(None, None, None, np.zeros((5, 2), np.float32), None)
  for burn_in in (4, 9):
    with pytest.raises(UserError, match=f"^r2d2.burn_in: found {burn_in}, expected less than the "
                       "unroll_length, 4$"):
      r2d2.q_loss(dataclasses.replace(CONFIG, burn_in=burn_in), None, {}, {},
                  Unroll(steps, (), ()))


@pytest.mark.parametrize("changes", [{}, {"stored_state": False}, {"burn_in": 0}])
def test_loss_and_priorities_by_hand(made, changes):
  _, network, params, target, unroll = made
  unroll = unroll._replace(initial_state=jax.tree.map(lambda x: x + 0.5, unroll.initial_state))
  config = dataclasses.replace(CONFIG, **changes)
  found = r2d2.q_loss(config, network, params, target, unroll)
  online, targets = (values(network, p, unroll, config) for p in (params, target))
  action, reward, discount = (
    np.asarray(x)[config.burn_in:, :].T for x in (unroll.steps.action, unroll.steps.reward,
                                                  unroll.steps.discount))

  def h(x):
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + 1e-3 * x

  def h_inverse(x):
    root = (np.sqrt(1 + 4e-3 * (np.abs(x) + 1 + 1e-3)) - 1) / 2e-3
    return np.sign(x) * (root ** 2 - 1)

  errors = []
  for b in range(COPIES):
    row, last = [], online.shape[1] - 1
    for t in range(last):
      end = min(t + config.n, last)
      bootstrap = h_inverse(targets[b, end, online[b, end].argmax()].astype(float))
      for k in reversed(range(t, end)):
        bootstrap = reward[b, k] + config.discount * discount[b, k] * bootstrap
      row.append(h(bootstrap) - online[b, t, action[b, t]])
    errors.append(row)
  errors = np.array(errors)
  np.testing.assert_allclose(found.loss, 0.5 * np.square(errors).mean(), rtol=2e-4)
  np.testing.assert_allclose(
    found.priorities, 0.9 * np.abs(errors).max(1) + 0.1 * np.abs(errors).mean(1), rtol=2e-4)


def test_no_gradient_passes_through_the_burn_in(made):
  _, network, params, target, unroll = made
  def loss(inputs):
    steps = unroll.steps._replace(inputs=unroll.steps.inputs._replace(last_reward=inputs))
    return r2d2.q_loss(CONFIG, network, params, target, unroll._replace(steps=steps)).loss

  gradient = jax.grad(loss)(unroll.steps.inputs.last_reward)
  assert not gradient[:CONFIG.burn_in].any() and gradient[CONFIG.burn_in:].any()


@pytest.mark.slow
def test_it_learns_catch(tmp_path):
  config = dataclasses.replace(CONFIG, size=32, lstm=32, burn_in=4)
  score = learning.learn(
    "r2d2", tmp_path, config, copies=32, steps=32 * 8 * 160, unroll_length=16, period=8,
    batch_size=32, table="prioritised", replay_size=2000, min_replay=100, samples_per_item=4.0,
    target_period=50, learning_rate=2e-3, momentum=0.9, decay=0.999)
  assert score[""] > 0.8


@pytest.mark.parametrize("changes, message", [
  ({"burn_in": -1}, "r2d2.burn_in: found -1"), ({"n": 0}, "r2d2.n: found 0")])
def test_impossible_choices_are_refused(changes, message):
  with pytest.raises(UserError, match=message):
    r2d2.Config(**changes)


def test_several_agents_are_refused():
  task = make_catch(2)._replace(action_shape=(2,))
  with pytest.raises(UserError, match="task 'catch': 2 agents act in it, r2d2 is one"):
    r2d2.make(CONFIG, task, inputs_spec(task))


def test_the_target_is_the_fixed_argument(made):
  system, network, params, target, unroll = made
  found = system.loss(params, jax.random.key(0), unroll, Fixed({}, target))
  expected = r2d2.q_loss(CONFIG, network, params, target, unroll)
  assert found.loss == expected.loss
  assert found.loss != system.loss(params, jax.random.key(0), unroll, Fixed({}, params)).loss
