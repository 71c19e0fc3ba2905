"""The location head: its upsampling and the order of its cells."""

import dataclasses
import functools

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import blocks, distributions, types, vocabulary
from starleague.agent.heads import location
from tests.agent.heads.built_heads import SETTINGS, row


@pytest.mark.parametrize("inputs", [3, 9])  # the second takes the way of narrow outputs
def test_transposed_convolution_equals_haikus(inputs):
  x = jax.random.normal(jax.random.key(0), (5, 7, inputs))
  ours = hk.without_apply_rng(hk.transform(
    lambda y: location.TransposedConvolution(2, name="up")(y)))
  theirs = hk.without_apply_rng(hk.transform(lambda y: hk.Conv2DTranspose(2, 4, 2, name="up")(y)))
  taps = jax.random.normal(jax.random.key(1), (4, 4, inputs, 2))
  params = {"up": {"w": taps, "b": jnp.array([0.5, -1.0])}}
  # Haiku keeps the taps mirrored, with output channels before input channels.
  mirrored = {"up": {"w": taps[::-1, ::-1].transpose(0, 1, 3, 2), "b": params["up"]["b"]}}
  found = jax.jit(ours.apply)(params, x)
  assert found.shape == (10, 14, 2)
  np.testing.assert_allclose(found, jax.jit(theirs.apply)(mirrored, x), atol=1e-5)


def up(dtype, x, channels=1):
  """A layer with a result of `dtype`, as a function of its parameters and a batch; parameters."""
  def network(x):
    with blocks.float32_parameters():
      return location.TransposedConvolution(channels, name="up", dtype=dtype)(x)
  layer = hk.without_apply_rng(hk.transform(network))
  params = layer.init(jax.random.key(1), x[0])
  params = {"up": {**params["up"], "b": jnp.linspace(0.3, 0.7, channels)}}
  return jax.jit(jax.vmap(layer.apply, (None, 0))), params


@pytest.mark.parametrize("inputs", [3, 9])
def test_a_float32_result_changes_no_bit_of_float32(inputs):
  x, place = (jax.random.normal(jax.random.key(i), shape)
              for i, shape in enumerate(((2, 3, 4, inputs), (2, 6, 8, 1))))
  plain, params = up(None, x)
  wide, same = up(jnp.float32, x)
  jax.tree.map(np.testing.assert_array_equal, params, same)
  found, expected = (jax.jit(jax.value_and_grad(
    lambda params, x, f=f: (f(params, x) * place).sum(), (0, 1)))(params, x) for f in (wide, plain))
  jax.tree.map(np.testing.assert_array_equal, found, expected)
  np.testing.assert_array_equal(wide(params, x), plain(params, x))


@pytest.mark.parametrize("inputs", [3, 9])
def test_a_float32_result_of_bfloat16_is_exact_and_has_gradients_of_bfloat16(inputs):
  x = jax.random.normal(jax.random.key(0), (2, 3, 4, inputs)).astype(jnp.bfloat16)
  place = jax.random.normal(jax.random.key(2), (2, 6, 8, 1))
  wide, params = up(jnp.float32, x)
  exact, _ = up(None, x.astype(jnp.float32))
  taps = params["up"]["w"].astype(jnp.bfloat16).astype(jnp.float32)
  expected = exact({"up": {**params["up"], "w": taps}}, x.astype(jnp.float32))
  found = wide(params, x)
  assert found.dtype == jnp.float32 and (found != found.astype(jnp.bfloat16)).any()
  np.testing.assert_allclose(found, expected, atol=1e-5)
  narrow, _ = up(None, x)
  ours, theirs = (jax.grad(lambda params, x, f=f: (f(params, x).astype(jnp.float32) * place).sum(),
                           (0, 1))(params, x) for f in (wide, narrow))
  np.testing.assert_allclose(ours[0]["up"]["w"], theirs[0]["up"]["w"], rtol=0.02, atol=0.02)
  np.testing.assert_allclose(ours[0]["up"]["b"], [place.sum()], rtol=1e-5)
  np.testing.assert_allclose(*(of.astype(jnp.float32) for of in (ours[1], theirs[1])),
                             rtol=0.02, atol=0.02)


def test_both_ways_to_a_float32_result_of_bfloat16_are_equal():
  x, pairs = (jax.random.normal(jax.random.key(i), shape).astype(jnp.bfloat16) for i, shape in
              enumerate(((3, 4, 9), (2, 2, 2, 2, 9, 1))))
  convolve = functools.partial(blocks.convolution, dtype=jnp.float32)
  found = (location._by_blocks(x, pairs, convolve), location._by_products(x, pairs, jnp.float32))
  assert [values.dtype for values in found] == [jnp.float32] * 2
  np.testing.assert_allclose(*found, atol=1e-5)


def test_ways_to_compute_a_transposed_convolution_have_the_same_gradients():
  x, pairs, place = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate(
    ((2, 3, 4, 5), (2, 2, 2, 2, 5, 3), (2, 6, 8, 3))))

  def loss(method, x, pairs):
    return (jax.vmap(method, (0, None))(x, pairs) * place).sum()

  found = [jax.value_and_grad(loss, (1, 2))(method, x, pairs) for method in (
    location._by_blocks, location._by_products, location._by_dilation)]
  for other in found[1:]:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), found[0], other)


def test_convolution_by_cudnn_has_the_gradients_of_the_convolution():
  x, kernel, place = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate(
    ((3, 6, 4, 5), (2, 2, 5, 7), (3, 5, 3, 7))))
  def plain(x, kernel):
    return jax.lax.conv_general_dilated(
      x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
  def by_cudnn(x, kernel):
    return jax.vmap(location.convolution_by_cudnn, (0, None))(x, kernel)
  np.testing.assert_allclose(by_cudnn(x, kernel), plain(x, kernel), atol=1e-5)
  found, expected = (jax.grad(lambda x, k, f=f: (f(x, k) * place).sum(), argnums=(0, 1))(x, kernel)
                     for f in (by_cudnn, plain))
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), found, expected)


@pytest.mark.parametrize("mask, ground, legal", [
  ("free", 9, 4), ("free", 20, 64), ("none", 9, 64), ("none", 20, 64)])
def test_without_a_free_cell_on_the_screen_its_other_cells_are_legal(
    built, batch, mask, ground, legal):
  """The camera shows cells 8 to 15 of each axis; only 2 x 2 cells are buildable, there or not."""
  config = dataclasses.replace(
    SETTINGS, target_mask="on_screen", location_mask=mask, map_units=48.0)
  inputs = row(batch[0])
  minimap = np.zeros(inputs.observation.minimap.shape, np.uint8)
  minimap[types.MINIMAP_PLANES.index("buildable"), ground:ground + 2, ground:ground + 2] = 1
  inputs = inputs._replace(observation=inputs.observation._replace(
    minimap=jnp.asarray(minimap), camera=jnp.array([64, 64, 128, 128], jnp.int16),
    entities=jnp.zeros_like(inputs.observation.entities)))
  run = hk.without_apply_rng(hk.transform(lambda: location.logits(
    config, inputs, jnp.zeros(config.autoregressive_size),
    jnp.int32(vocabulary.FUNCTIONS.index("Build_Pylon_pt")))))
  found = np.array(jax.jit(run.apply)(built[0])).reshape(32, 32) > distributions.NEGATIVE
  assert found.sum() == found[8:16, 8:16].sum() == legal


def test_location_index_is_row_times_size_plus_column(built, batch):
  params = jax.tree.map(jnp.zeros_like, built[0])
  # Only the first channel of the last skip passes, and every tap spreads it alike.
  autoregressive = SETTINGS.autoregressive_size // SETTINGS.coarse_size**2
  first = params["location/input"]["w"].at[0, 0, autoregressive, 0].set(1.0)
  params["location/input"] = {**params["location/input"], "w": first}
  for i in range(len(SETTINGS.location_upsamples)):
    name = f"location/upsample_{i}"
    params[name] = {**params[name], "w": jnp.ones_like(params[name]["w"])}
  inputs = row(batch[0])
  y, x = 2, 5
  skips = [jnp.zeros_like(skip) for skip in inputs.map_skips]
  skips[-1] = skips[-1].at[y, x, 0].set(1.0)
  run = hk.without_apply_rng(hk.transform(lambda: location.logits(
    SETTINGS, inputs._replace(map_skips=tuple(skips)),
    jnp.zeros(SETTINGS.autoregressive_size), jnp.int32(0))))
  size = SETTINGS.location_size
  grid = np.array(jax.jit(run.apply)(params)).reshape(size, size)
  rows, columns = np.nonzero(grid > 0)
  # Cells 4r to 4r + 3 of the grid lie over coarse cell r; the taps reach three further.
  assert (rows.min(), rows.max()) == (4 * y - 3, 4 * y + 6)
  assert (columns.min(), columns.max()) == (4 * x - 3, 4 * x + 6)
