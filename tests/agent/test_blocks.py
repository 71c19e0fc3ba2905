"""Building blocks against numpy twins and known cases."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import blocks


def _run(module, *inputs, edit=lambda params: params):
  """Initialises a module with random biases, edits its parameters, applies it."""
  network = hk.without_apply_rng(hk.transform(lambda *x: module()(*x)))
  params = network.init(jax.random.key(0), *inputs)
  leaves, tree = jax.tree.flatten(params)
  keys = jax.random.split(jax.random.key(1), len(leaves))
  params = tree.unflatten([
    leaf + 0.1 * jax.random.normal(key, leaf.shape)
    for key, leaf in zip(keys, leaves, strict=True)])
  params = edit(params)
  return params, np.asarray(network.apply(params, *inputs))


def _replace(params, module: str, **values):
  """Parameters with every entry of a module set to a constant."""
  return {name: ({k: jnp.full_like(x, values[k]) for k, x in entries.items()}
                 if name.endswith(module) else entries)
          for name, entries in params.items()}


def _sigmoid(x):
  return 1.0 / (1.0 + np.exp(-x))


def test_glu_gates_the_inputs_before_its_output_layer():
  inputs, context = jnp.array([1.0, -1.0]), jnp.ones(3)
  edit = lambda params: params | {  # noqa: E731
    "glu/gate": {"w": jnp.zeros((3, 2)), "b": jnp.array([0.0, 2.0])},
    "glu/output": {"w": jnp.eye(2), "b": jnp.zeros(2)}}
  _, output = _run(lambda: blocks.GLU(2, name="glu"), inputs, context, edit=edit)
  np.testing.assert_allclose(output, [0.5, -0.880797], atol=1e-6)


def test_glu_with_an_open_gate_is_its_output_layer():
  inputs = jnp.array([0.3, -1.2, 2.0])
  params, output = _run(
    lambda: blocks.GLU(4, name="glu"), inputs, jnp.ones(5),
    edit=lambda params: _replace(params, "glu/gate", w=0.0, b=jnp.inf))
  layer = params["glu/output"]
  np.testing.assert_allclose(output, inputs @ layer["w"] + layer["b"], rtol=1e-5, atol=1e-6)


def test_film_block_that_changes_nothing_adds_only_the_skip():
  x, skip = jax.random.normal(jax.random.key(2), (2, 4, 4, 3))
  def edit(params):
    params = _replace(params, "film/gamma", w=0.0, b=0.0)  # gamma is 1 plus this
    params = _replace(params, "film/beta", w=0.0, b=0.0)
    return _replace(params, "film/gate", w=0.0, b=-jnp.inf)
  _, output = _run(
    lambda: blocks.FilmGatedBlock(3, name="film"), x, skip, jnp.ones(5), edit=edit)
  np.testing.assert_array_equal(output, x + skip)


def test_film_block_depends_on_its_context():
  x, skip = jax.random.normal(jax.random.key(2), (2, 4, 4, 3))
  outputs = [_run(lambda: blocks.FilmGatedBlock(3, name="film"), x, skip, context)[1]
             for context in (jnp.ones(5), -jnp.ones(5))]
  assert np.abs(outputs[0] - outputs[1]).max() > 1e-2


@pytest.mark.parametrize(("shape", "axes"), [((6,), (-1,)), ((3, 4, 2), (-3, -2, -1))])
def test_layer_norm_has_zero_mean_and_unit_variance(shape, axes):
  x = 5.0 + 3.0 * jax.random.normal(jax.random.key(3), shape)
  params, output = _run(lambda: blocks.LayerNorm(name="norm", axes=axes), x)
  plain = (output - params["norm"]["offset"]) / params["norm"]["scale"]
  np.testing.assert_allclose(plain.mean(axes), 0.0, atol=1e-5)
  np.testing.assert_allclose(plain.var(axes), 1.0, rtol=1e-3)


def test_residual_blocks_are_the_identity_if_the_last_layer_is_zero():
  x = jax.random.normal(jax.random.key(4), (8,))
  _, output = _run(lambda: blocks.ResidualBlock(8, name="block"), x,
                   edit=lambda params: _replace(params, "linear_1", w=0.0, b=0.0))
  np.testing.assert_array_equal(output, x)
  maps = jax.random.normal(jax.random.key(4), (4, 4, 2))
  _, output = _run(lambda: blocks.ConvResidualBlock(2, name="block"), maps,
                   edit=lambda params: _replace(params, "conv_1", w=0.0, b=0.0))
  np.testing.assert_array_equal(output, maps)


def test_downsample_is_the_convolution_of_kernel_four_and_stride_two():
  x = np.asarray(jax.random.normal(jax.random.key(5), (6, 6, 3)))
  params, output = _run(lambda: blocks.Downsample(2, name="down"), jnp.asarray(x))
  weights, bias = params["down/conv"]["w"], params["down/conv"]["b"]
  # [2, 2, (2, 2, C), out]: squares, then cells inside them -> kernel rows and columns.
  kernel = np.asarray(weights).reshape(2, 2, 2, 2, 3, 2).transpose(0, 2, 1, 3, 4, 5)
  kernel = kernel.reshape(4, 4, 3, 2)
  framed = np.pad(x, ((1, 1), (1, 1), (0, 0)))
  expected = np.array([[np.einsum("ijc,ijco->o", framed[2 * r:2 * r + 4, 2 * c:2 * c + 4], kernel)
                        for c in range(3)] for r in range(3)]) + np.asarray(bias)
  np.testing.assert_allclose(output, expected, atol=1e-5)


def test_downsample_and_its_gradient_are_the_same_with_the_stride_of_tpus():
  x, kernel, place = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate(
    ((2, 6, 8, 3), (2, 2, 12, 5), (2, 3, 4, 5))))

  def loss(method, x, kernel):
    return (jax.vmap(method, (0, None))(x, kernel) * place).sum()

  found, expected = (jax.value_and_grad(loss, (1, 2))(method, x, kernel) for method in (
    blocks._strided_convolution, blocks._convolved_squares))
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), found, expected)


def test_space_to_depth_keeps_rows_before_columns_before_channels():
  x = jnp.arange(4 * 6 * 3).reshape(4, 6, 3)
  assert blocks.space_to_depth(x)[0, 1].tolist() == [6, 7, 8, 9, 10, 11, 24, 25, 26, 27, 28, 29]


@pytest.fixture(scope="module")
def transformer():
  network = hk.without_apply_rng(hk.transform(
    lambda x, mask: blocks.Transformer(2, 2, 4, 16, name="transformer")(x, mask)))
  x = jax.random.normal(jax.random.key(7), (6, 8))
  params = network.init(jax.random.key(8), x, jnp.ones(6, bool))
  return lambda x, mask: np.asarray(jax.jit(network.apply)(params, x, mask)), x


def test_transformer_ignores_rows_that_do_not_exist(transformer):
  apply, x = transformer
  mask = jnp.arange(6) < 4
  output = apply(x, mask)
  np.testing.assert_array_equal(output[4:], 0.0)
  np.testing.assert_array_equal(apply(x.at[4:].set(99.0), mask), output)
  np.testing.assert_allclose(apply(x[:4], jnp.ones(4, bool)), output[:4], atol=1e-6)


def test_transformer_is_equivariant_to_permutations(transformer):
  apply, x = transformer
  order = jnp.array([3, 0, 2, 1, 5, 4])
  everyone = jnp.ones(6, bool)
  np.testing.assert_allclose(apply(x[order], everyone), apply(x, everyone)[order], atol=1e-5)


def test_transformer_of_no_rows_is_finite(transformer):
  apply, x = transformer
  np.testing.assert_array_equal(apply(x, jnp.zeros(6, bool)), 0.0)


def _lstm_twin(params, inputs, hidden, cell):
  """One step of the layer-norm LSTM in numpy."""
  def normalise(x):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5)
  p = jax.tree.map(np.asarray, params)
  own, norm = p["lstm"], p["lstm/input_norm"]
  gates = (normalise(inputs @ p["lstm/input"]["w"]) * norm["scale"] + norm["offset"]
           + own["recurrent_scale"] * normalise(hidden @ own["recurrent"]))
  i, g, f, o = np.split(gates, 4)
  cell = _sigmoid(f + 1.0) * cell + _sigmoid(i) * np.tanh(g)
  hidden = _sigmoid(o) * np.tanh(own["cell_scale"] * normalise(cell) + own["cell_offset"])
  return hidden, cell


@pytest.mark.parametrize("steps", [1, 4])
def test_lstm_equals_its_numpy_twin_and_resets_at_a_new_game(steps):
  inputs = jax.random.normal(jax.random.key(9), (steps, 5))
  keep = jnp.array([1.0, 1.0, 0.0, 1.0])[:steps]
  state = blocks.LSTMState(*jax.random.normal(jax.random.key(10), (2, 3)))
  network = hk.without_apply_rng(hk.transform(
    lambda *x: blocks.LayerNormLSTM(3, name="lstm")(*x)))
  params = network.init(jax.random.key(11), inputs, keep, state)
  outputs, states = network.apply(params, inputs, keep, state)
  hidden, cell = np.asarray(state.hidden), np.asarray(state.cell)
  for t in range(steps):
    hidden, cell = _lstm_twin(
      params, np.asarray(inputs[t]), hidden * float(keep[t]), cell * float(keep[t]))
    np.testing.assert_allclose(outputs[t], hidden, atol=1e-5)
    np.testing.assert_allclose(states.cell[t], cell, atol=1e-5)


def test_parameters_are_float32_and_layers_compute_in_their_inputs_dtype():
  def network(x):
    with blocks.float32_parameters():
      state = blocks.LSTMState(jnp.zeros(4), jnp.zeros(4))
      outputs, states = blocks.LayerNormLSTM(4, name="lstm")(x, jnp.ones(2), state)
      exact = blocks.GLU(3, name="exact", dtype=jnp.float32)(outputs[0], x[0])
      return blocks.GLU(3, name="glu")(outputs[0], x[0]), exact, states
  transformed = hk.without_apply_rng(hk.transform(network))
  x = jnp.ones((2, 6), jnp.bfloat16)
  params = transformed.init(jax.random.key(0), x)
  output, exact, states = transformed.apply(params, x)
  assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
  assert output.dtype == jnp.bfloat16 and exact.dtype == jnp.float32
  assert states.cell.dtype == states.hidden.dtype == jnp.float32
