"""The relational torso: coordinates, attention that ignores the order of cells, learning."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import relational
from starleague.companions.system import Fixed, inputs_spec
from starleague.companions.tasks import registry
from tests.companions import learning
from tests.companions.catch import make_catch

CONFIG = relational.Config(channels=8, heads=2, size=16)


def test_cells_know_where_they_are():
  found = relational.cells(jnp.zeros((1, 3, 2, 1)))
  np.testing.assert_allclose(found[0, :, 0, 1], [-1, 0, 1])
  np.testing.assert_allclose(found[0, 1, :, 2], [-1, 1])


def related(config, x, without_coordinates=True):
  """Applies the relational part, with zeros as weights of the coordinates."""
  transformed = hk.without_apply_rng(hk.transform(lambda x: relational.relate(config, x)))
  params = transformed.init(jax.random.key(0), x)
  if without_coordinates:
    params["entity"]["w"] = params["entity"]["w"].at[-2:].set(0.0)
  return transformed.apply(params, x), params


def test_attention_does_not_depend_on_the_order_of_cells():
  random = np.random.default_rng(0)
  x = random.normal(size=(2, 4, 3, 5)).astype(np.float32)
  shuffled = x.reshape(2, 12, 5)[:, random.permutation(12)].reshape(x.shape)
  np.testing.assert_allclose(related(CONFIG, x)[0], related(CONFIG, shuffled)[0], atol=1e-5)
  convolution = relational.Config(relations="convolution", channels=8)
  difference = np.abs(related(convolution, x)[0] - related(convolution, shuffled)[0])
  assert difference.max() > 1e-3


def test_one_cell_of_many_changes_what_leaves():
  x = np.random.default_rng(1).normal(size=(1, 5, 5, 4)).astype(np.float32)
  changed = x.copy()
  changed[0, 4, 4] += 3.0
  assert np.abs(related(CONFIG, x, False)[0] - related(CONFIG, changed, False)[0]).max() > 1e-3


def test_box_world_is_played_and_learnt_from():
  task = registry.make_task("boxworld:length=1", 2)
  system = relational.make(CONFIG, task, inputs_spec(task))
  params = system.init(jax.random.key(0))
  unroll = learning.played(system, task, params, 4)

  @jax.jit
  def loss(params):
    found = system.loss(params, jax.random.key(0), unroll, Fixed({}, ()))
    return found.loss, found

  (_, found), gradient = jax.value_and_grad(loss, has_aux=True)(params)
  assert np.isfinite(found.loss)
  assert all(np.abs(leaf).max() > 0 for name, module in gradient.items()
             if "attention" in name and "norm" not in name for leaf in module.values())
  np.testing.assert_allclose(found.metrics["update/ratio"], 1.0, atol=1e-4)


@pytest.mark.slow
def test_it_learns_catch(tmp_path):
  score = learning.learn(
    "relational", tmp_path, relational.Config(channels=16, size=32, blocks=1, entropy_cost=0.02),
    copies=64, steps=64 * 16 * 60, unroll_length=16, batch_size=32, learning_rate=3e-3)
  assert score[""] > 0.8


@pytest.mark.parametrize("changes, message", [
  ({"relations": "graph"}, "relational.relations: found 'graph', expected one of attention"),
  ({"heads": 3}, "relational.channels: found 32, expected a multiple of the heads, 3")])
def test_impossible_choices_are_refused(changes, message):
  with pytest.raises(UserError, match=message):
    relational.Config(**changes)


def test_a_task_without_a_map_is_refused():
  task = make_catch(1)._replace(observation=jax.ShapeDtypeStruct((3,), np.float32))
  with pytest.raises(UserError, match=r"observations of shapes \[\[3\]\]; relational expects"):
    relational.make(CONFIG, task, inputs_spec(task))
