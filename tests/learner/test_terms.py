"""Parts that the objectives share: means over steps, names of metrics, the sum of the terms."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.agent.types import PSEUDO_REWARDS, Trajectory
from starleague.agent.vocabulary import Arguments
from starleague.learner import terms, train_state, update


def batch_of(length, size=2, rewards=5):
  """Returns the steps that `check_batch` reads."""
  return SimpleNamespace(steps=SimpleNamespace(
    weight=np.zeros((length, size)), discount=np.zeros((length, size)),
    reward=np.zeros((length, size, rewards)),
    pseudo_active=np.zeros((length, size, len(PSEUDO_REWARDS))),
    log_prob=np.zeros((length, size, 7)), action=np.zeros((length, size))))


def test_batches_need_a_bootstrap_step_and_all_rewards():
  terms.check_batch(batch_of(2))
  with pytest.raises(ValueError, match=r"found 1 step, expected T \+ 1 with T at least 1"):
    terms.check_batch(batch_of(1))
  with pytest.raises(AssertionError):
    terms.check_batch(batch_of(2, rewards=4))


def test_used_arguments_are_those_of_the_functions_at_learnt_steps():
  """[T + 1, B] = [3, 2]; the bootstrap step is trimmed, and a weight of 0 uses nothing."""
  function = np.int16([[0, 1], [1, 0], [0, 0]])
  used = terms.used_arguments(
    SimpleNamespace(function=function), jnp.float32([[1, 1], [1, 0]]))
  expected = np.stack(vocabulary.argument_mask(jnp.int32(function[:2])), axis=-1)
  expected[1, 1] = False
  assert used.shape == (2, 2, 7)
  np.testing.assert_array_equal(used, expected)
  assert expected[0, 0].any()


def test_each_step_applies_a_function_of_one_step_and_trims_the_last():
  def one(x, y):
    return Arguments(*[x * n + y for n in range(7)])

  x = np.arange(6, dtype=np.float32).reshape(3, 2)
  found = terms.each_step(one, x, 10 * x)
  assert found.shape == (2, 2, 7)
  np.testing.assert_allclose(found[1, 0], 2 * np.arange(7) + 20)


@pytest.mark.parametrize("weight, axes, expected", [
  ([[1, 1], [1, 1]], (0, 1), 2.5),
  ([[1, 0], [0, 3]], (0, 1), 3.25),
  ([[0, 0], [0, 0]], (0, 1), 0.0),
  ([[True, False], [False, False]], (0, 1), 1.0),
  ([[1, 0], [1, 0]], (0,), [2.0, 0.0]),
])
def test_weighted_means_are_zero_where_there_are_no_weights(weight, axes, expected):
  mean = terms.weighted_mean(jnp.float32([[1, 2], [3, 4]]), jnp.asarray(weight), axes)
  np.testing.assert_allclose(mean, expected)


def test_means_of_unused_arguments_are_left_out_of_the_record():
  """Two steps: both use the function, one the delay, none another argument."""
  used = np.zeros((2, 1, 7), bool)
  used[:, 0, 0], used[0, 0, 1] = True, True
  values = jnp.full((2, 1, 7), 3.0).at[1].set(5.0)
  metrics = {name: float(value) for name, value in terms.over_used("kl", values, used).items()}
  first, second, third = terms.ARGUMENTS[:3]
  assert metrics[f"kl/{first}"] == 4.0 and metrics[f"kl/{second}"] == 1.5  # numerators
  assert metrics[f"kl/{third}"] == 0.0
  assert metrics[f"used/{first}"] == 1.0 and metrics[f"used/{second}"] == 0.5
  measured = terms.measured(metrics | {"loss/total": 0.0})
  assert measured[f"kl/{first}"] == 4.0 and measured[f"kl/{second}"] == 3.0
  assert set(metrics) - set(measured) == {f"kl/{name}" for name in terms.ARGUMENTS[2:]}
  assert measured["loss/total"] == 0.0
  with pytest.raises(AssertionError, match="speed"):
    terms.over_used("speed", values, used)


def test_means_over_learnt_steps():
  """T = 2, n = 2, B = 2: three learnt steps. Metrics without a fraction stay as they are."""
  weight = jnp.float32([[1, 1], [1, 0]])
  values = jnp.float32([[[1, 2], [10, 20]], [[3, 99], [30, 99]]])
  metrics = terms.over_learnt("ratio", values, weight, ("one", "two"))
  metrics |= terms.over_learnt("explained_variance", jnp.float32([[0.5], [-1]]), weight, "ab")
  found = terms.measured({name: float(value) for name, value in metrics.items()}
                         | {"learnt_steps": 0.75})
  assert found == {"ratio/one": 2.0, "ratio/two": 20.0, "explained_variance/a": 0.5,
                   "explained_variance/b": -1.0, "learnt_steps": 0.75}
  assert terms.measured({"ratio/one": 0.0, "learnt_steps": 0.0}) == {"learnt_steps": 0.0}
  others = {"ratio/one": 3.0, "entropy/action": 2.0}  # of a companion system
  assert terms.measured(others) == others
  replaying = {"loss/policy": 3.0, "loss/value": 1.0, "entropy/action": 0.2, "loss/imitation": 5.0}
  assert terms.measured(replaying | {"fresh_unrolls": 0.25}) == {
    "loss/policy": 12.0, "loss/value": 4.0, "entropy/action": 0.8, "loss/imitation": 5.0,
    "fresh_unrolls": 0.25}
  assert terms.measured(replaying | {"fresh_unrolls": 0.0}) == {
    "loss/imitation": 5.0, "fresh_unrolls": 0.0}
  with pytest.raises(AssertionError, match="kl"):
    terms.over_learnt("kl", values, weight, ("one", "two"))


@pytest.mark.parametrize("devices, accumulate", [(1, 1), (1, 4), (2, 1), (2, 4), (8, 2)])
def test_means_over_some_steps_are_those_of_the_whole_batch(devices, accumulate):
  """Two of 48 steps are learnt, in different trajectories: most parts of the batch have none."""
  learnt, values = np.zeros((3, 16, 7), bool), np.full((3, 16, 7), 9.0, np.float32)
  learnt[0, 1] = learnt[2, 9] = True
  values[0, 1], values[2, 9] = 0.5, 1.5

  def loss(params, key, batch):
    learnt, values = batch.steps
    weight = learnt[..., 0].astype(jnp.float32)
    metrics = terms.over_used("entropy", values, learnt) | {"learnt_steps": weight.mean()}
    metrics |= terms.over_learnt("ratio", values[:, None, :, 0], weight, ["others"])
    return jnp.square(params["w"]).sum(), metrics

  optimizer = train_state.make_optimizer(1e-2)
  run = update.make_update(loss, optimizer, jax.devices()[:devices], accumulate)
  state = train_state.initial_state({"w": np.ones(3, np.float32)}, optimizer, jax.random.key(0))
  batch = Trajectory((learnt, values), np.zeros((16, 1), np.float32))
  _, metrics = run(run.replicate(state), run.place(batch))
  found = terms.measured({name: float(value) for name, value in metrics.items()})
  assert found["used/location"] == found["learnt_steps"] == pytest.approx(2 / 48)
  assert found["entropy/location"] == pytest.approx(1.0)
  assert found["ratio/others"] == pytest.approx(1.0)


def test_the_cross_entropy_that_is_shown_is_per_learnt_step():
  """T = 2, B = 2, and the same steps with as many of padding; the loss keeps its denominator."""
  values = np.float32([[[1], [2]], [[3], [6]]])
  padded = np.concatenate([values, np.full((2, 2, 1), 99.0, np.float32)])
  shown = {}
  for name, steps, learnt in (("whole", values, 2), ("padded", padded, 2), ("empty", values, 0)):
    weight = np.zeros(steps.shape[:2], np.float32)
    weight[:learnt] = 1.0
    loss, metrics = terms.reduce_terms(
      {"cross_entropy": terms.Term(jnp.asarray(steps), ())}, {}, jnp.asarray(weight))
    found = terms.measured({key: float(value) for key, value in metrics.items()})
    shown[name] = float(loss), found["loss/total"], found.get("loss/cross_entropy")
  assert shown == {"whole": (3.0, 3.0, 3.0), "padded": (1.5, 1.5, 3.0), "empty": (0.0, 0.0, None)}


def test_terms_are_summed_with_the_weights_of_steps_over_all_steps():
  """T = 2, B = 1; the second step's weight is 0, the denominator stays 2."""
  weight = jnp.float32([[1], [0]])

  def loss(scale):
    values = {"policy": terms.Term(scale * jnp.float32([[[2, 4]], [[8, 8]]]), ("win", "build")),
              "value": terms.Term(jnp.float32([[[10]], [[90]]]), ("win",))}
    return terms.reduce_terms(values, {"kl/all": scale}, weight)

  (total, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(1.0)
  assert total == 8.0 and gradient == 3.0
  assert {name: float(value) for name, value in metrics.items()} == {
    "kl/all": 1.0, "loss/policy": 3.0, "policy/win": 1.0, "policy/build": 2.0, "loss/value": 5.0,
    "value/win": 5.0, "loss/total": 8.0, "learnt_steps": 0.5}
  assert jax.grad(lambda scale: loss(scale)[1]["loss/total"])(1.0) == 0.0
