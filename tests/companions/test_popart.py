"""PopArt-IMPALA: outputs are preserved, moments are the targets', losses are in units of sigma."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common import results
from starleague.common.errors import UserError
from starleague.companions import impala, networks, popart
from starleague.companions.system import Fixed, inputs_spec, size
from starleague.companions.tasks import joined
from starleague.learner.update import AXIS
from tests.companions import learning
from tests.companions.catch import make_catch

CONFIG = popart.Config(torso="dense", size=16, step_size=0.1)
T, COPIES = 6, 4
SCALES = (1.0, 100.0)


def scaled_catch(copies, scale):
  task = make_catch(copies)

  def scaled(state, step):
    return state, step._replace(reward=scale * step.reward)

  return task._replace(
    name=f"catch:{scale}", reset=lambda keys: scaled(*task.reset(keys)),
    step=lambda state, keys, action: scaled(*task.step(state, keys, action)))


def both():
  return joined.join("both", [scaled_catch(COPIES // 2, scale) for scale in SCALES])


@pytest.fixture(scope="module")
def made():
  """Task, system, parameters and a batch of unrolls."""
  task = both()
  system = popart.make(CONFIG, task, inputs_spec(task))
  params = system.init(jax.random.key(0))
  params["popart"] = {"shift": jnp.array([0.5, -20.0]), "scale": jnp.array([0.5, 30.0]),
                      "second_moment": jnp.array([0.5, 1300.0])}
  return task, system, params, learning.played(system, task, params, T)


def finish(system, params, summary):
  """Applies `finish` as the update does, on one device."""
  return jax.tree.map(lambda x: x[0], jax.vmap(
    system.finish, in_axes=(None, 0), axis_name=AXIS)(params, jax.tree.map(lambda x: x[None],
                                                                           summary)))


def unnormalised(task, params, unroll):
  spec = inputs_spec(task)
  network = popart.make_network(CONFIG, task, spec)
  weights = {name: value for name, value in params.items() if name != "popart"}
  inputs = unroll.steps.inputs._replace(observation=unroll.steps.inputs.observation.observation)
  normalised = networks.unroll_batch(network, weights, inputs, unroll.initial_state)[0].normalised
  return params["popart"]["scale"] * normalised + params["popart"]["shift"]


def test_new_moments_preserve_the_values(made):
  task, system, params, unroll = made
  losses = system.loss(params, jax.random.key(0), unroll, Fixed({}, ()))
  after = finish(system, params, losses.summary)
  assert np.abs(after["popart"]["scale"] - params["popart"]["scale"]).min() > 1e-3
  np.testing.assert_allclose(unnormalised(task, after, unroll), unnormalised(task, params, unroll),
                             rtol=1e-4, atol=1e-4)


def test_moments_are_those_of_each_task(made):
  _, system, params, unroll = made
  targets, tasks = system.loss(params, jax.random.key(0), unroll, Fixed({}, ())).summary
  after = finish(system, params, (targets, tasks))
  for task in range(2):
    own = np.asarray(targets)[np.asarray(tasks) == task]
    assert own.size == T * COPIES // 2
    np.testing.assert_allclose(after["popart"]["shift"][task], 0.9 * params["popart"]["shift"][task]
                               + 0.1 * own.mean(), rtol=1e-4)


def test_the_loss_is_that_of_impala_in_units_of_sigma(made):
  task, system, params, unroll = made
  found = system.loss(params, jax.random.key(0), unroll, Fixed({}, ()))
  number = unroll.steps.inputs.observation.task
  values = jnp.take_along_axis(unnormalised(task, params, unroll), number[..., None], -1)[..., 0]
  network = popart.make_network(CONFIG, task, inputs_spec(task))
  weights = {name: value for name, value in params.items() if name != "popart"}
  inputs = unroll.steps.inputs._replace(observation=unroll.steps.inputs.observation.observation)
  logits = networks.unroll_batch(network, weights, inputs, unroll.initial_state)[0].logits
  plain, targets = impala.actor_critic_loss(
    CONFIG, impala.Outputs(logits, values), unroll, Fixed({}, ()))
  sigma = np.asarray(params["popart"]["scale"])[np.asarray(number)[:-1]]
  expected = 0.5 * np.square((targets - values[:-1]) / sigma).mean()
  np.testing.assert_allclose(found.metrics["loss/value"], expected, rtol=1e-4)
  np.testing.assert_array_equal(found.metrics["update/ratio"], plain.metrics["update/ratio"])


def test_names_of_tasks_with_commas_are_tags(tmp_path):
  task = joined.join("both", [make_catch(COPIES)._replace(name=name)
                              for name in ("catch:scale=10,limit=1000", "catch")])
  system = popart.make(CONFIG, task, inputs_spec(task))
  params = system.init(jax.random.key(0))
  found = system.loss(params, jax.random.key(0), learning.played(system, task, params, T),
                      Fixed({}, ())).metrics
  assert {"scale/catch:scale=10;limit=1000", "scale/catch"} <= {*found}
  path = tmp_path / results.FILE_NAME
  results.append(path, [results.Row(1.0, 1, tag, float(value)) for tag, value in found.items()])
  assert {row.tag for row in results.read(path)} == {*found}


def test_moments_do_not_count_as_parameters(made):
  _, system, params, _ = made
  weights = {name: value for name, value in params.items() if name != "popart"}
  assert size(system, params) == sum(leaf.size for leaf in jax.tree.leaves(weights))
  assert sum(leaf.size for leaf in jax.tree.leaves(params)) == size(system, params) + 3 * 2


def test_moments_get_no_gradient(made):
  _, system, params, unroll = made
  gradient = jax.grad(lambda params: system.loss(
    params, jax.random.key(0), unroll, Fixed({}, ())).loss)(params)
  assert all(not leaf.any() for leaf in jax.tree.leaves(gradient["popart"]))
  assert gradient["value"]["w"].any()


def test_the_policy_does_not_depend_on_the_task(made):
  _, system, params, unroll = made
  inputs = jax.tree.map(lambda x: x[0, 0], unroll.steps.inputs)
  state = jax.tree.map(lambda x: x[0], unroll.initial_state)
  acted = [system.act(params, jax.random.key(5), inputs._replace(
    observation=inputs.observation._replace(task=jnp.array(task))), state, jnp.array(0))
    for task in range(2)]
  assert acted[0].behaviour.log_prob == acted[1].behaviour.log_prob


@pytest.mark.slow
def test_it_learns_tasks_of_different_scales(tmp_path):
  task = joined.join("both", [scaled_catch(32, scale) for scale in SCALES])
  found = learning.learn(
    "popart", tmp_path, popart.Config(torso="dense", size=32, step_size=3e-3, entropy_cost=0.02),
    task, copies=64, steps=64 * 16 * 60, unroll_length=16, batch_size=32, learning_rate=5e-3)
  assert found["/catch:1.0"] > 0.8 and found["/catch:100.0"] > 80.0


def test_unknown_values_are_refused():
  with pytest.raises(UserError, match="popart.values: found 'log', expected one of popart, plain"):
    popart.Config(values="log")


@pytest.mark.parametrize("values", ["popart", "plain"])
def test_clipped_rewards_have_a_name_of_their_own(values):
  popart.Config(values="clipped", clip_reward=True)
  with pytest.raises(UserError) as error:
    popart.Config(values=values, clip_reward=True)
  assert str(error.value) == (
    f"popart.clip_reward: found True, expected False with the popart.values {values!r}; "
    "popart.values=clipped clips rewards")


def test_plain_values_keep_their_moments():
  task = both()
  assert popart.make(popart.Config(values="plain"), task, inputs_spec(task)).finish is None
