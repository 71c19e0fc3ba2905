"""Building blocks of encoders, core, heads and value functions.

Every block is written for one example: a vector `[C]`, a set `[E, C]` or a map `[H, W, C]`; callers
vmap. A block computes in the dtype of its inputs and keeps its parameters in float32: wrap the
whole transform in `float32_parameters()`. Norms and softmax are always float32.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from starleague.agent import attention, linear, mlp
from starleague.agent.elementwise import layer_norm, relu
from starleague.agent.kernels import Sublayer
from starleague.agent.types import Array


@contextlib.contextmanager
def float32_parameters() -> Iterator[None]:
  """Creates parameters in float32 and reads them in the compute dtype of their layer."""

  def create(next_creator: Callable[..., jax.Array], shape: Sequence[int], dtype: DTypeLike,
             init: hk.initializers.Initializer, context: hk.GetterContext) -> jax.Array:
    del dtype, context
    return next_creator(shape, jnp.float32, init)

  def read(next_getter: Callable[[jax.Array], jax.Array], value: jax.Array,
           context: hk.GetterContext) -> jax.Array:
    return next_getter(jnp.asarray(value, context.original_dtype))

  with hk.custom_creator(create), hk.custom_getter(read):
    yield


def recompute(block: Callable, remat: str) -> Callable:
  """Returns the block, rematerialised if `AgentConfig.remat` is "blocks".

  A rematerialised block keeps only its inputs, and recomputes activations in the backward pass.
  """
  return hk.remat(block) if remat == "blocks" else block


class LayerNorm(hk.Module):
  """Layer normalisation over `axes`, with scale and offset per channel (the last axis)."""

  def __init__(self, name: str, axes: tuple[int, ...] = (-1,)):
    super().__init__(name=name)
    self._axes = axes

  def __call__(self, x: jax.Array) -> jax.Array:
    """[..., C] -> [..., C] of the same dtype; statistics are float32."""
    return layer_norm(x, *self.parameters(x.shape[-1]), self._axes)

  def parameters(self, channels: int) -> tuple[jax.Array, jax.Array]:
    """Returns scale and offset [channels], float32, for a fused layer."""
    return (hk.get_parameter("scale", (channels,), jnp.float32, jnp.ones),
            hk.get_parameter("offset", (channels,), jnp.float32, jnp.zeros))


class GLU(hk.Module):
  """Gated linear unit: a context gates each input.

  `Linear(sigmoid(Linear(context)) * inputs)` (Vinyals et al. 2019, detailed architecture; after
  Dauphin et al. 2017).
  """

  def __init__(self, output_size: int, name: str, dtype: DTypeLike | None = None):
    super().__init__(name=name)
    self._output_size, self._dtype = output_size, dtype

  def __call__(self, inputs: Array, context: Array) -> jax.Array:
    """[C], [context size] -> [output_size] of `dtype`; None: of inputs' dtype."""
    gate = jax.nn.sigmoid(linear.Linear(inputs.shape[-1], name="gate")(context))
    return linear.Linear(self._output_size, name="output", dtype=self._dtype)(gate * inputs)


class ResidualBlock(hk.Module):
  """Residual block (He et al. 2016): twice layer norm, ReLU and a linear layer."""

  def __init__(self, size: int, name: str):
    super().__init__(name=name)
    self._size = size

  def __call__(self, x: jax.Array) -> jax.Array:
    """[size] -> [size]."""
    y = relu(LayerNorm(name="norm_0")(x))
    y = linear.Linear(self._size, name="linear_0")(y)
    y = relu(LayerNorm(name="norm_1")(y))
    return x + linear.Linear(self._size, name="linear_1")(y)


class ConvResidualBlock(hk.Module):
  """Residual block on a map: twice layer norm over the whole map, ReLU and a 3x3 convolution."""

  def __init__(self, channels: int, name: str):
    super().__init__(name=name)
    self._channels = channels

  def __call__(self, x: jax.Array) -> jax.Array:
    """[H, W, channels] -> [H, W, channels]."""
    y = relu(LayerNorm(name="norm_0", axes=(-3, -2, -1))(x))
    y = hk.Conv2D(self._channels, 3, name="conv_0")(y)
    y = relu(LayerNorm(name="norm_1", axes=(-3, -2, -1))(y))
    return x + hk.Conv2D(self._channels, 3, name="conv_1")(y)


class FilmGatedBlock(hk.Module):
  """Residual block on a map with FiLM, a gate and a skip map.

  FiLM (Perez et al. 2018) scales and shifts the channels between the two convolutions; the gate
  scales the residual. With gamma = 1, beta = 0 and gate = 0 the output is `x + skip`.
  """

  def __init__(self, channels: int, name: str):
    super().__init__(name=name)
    self._channels = channels

  def __call__(self, x: jax.Array, skip: jax.Array, context: Array) -> jax.Array:
    """[H, W, channels], [H, W, channels], [context size] -> [H, W, channels]."""
    gamma = 1.0 + linear.Linear(self._channels, name="gamma")(context)
    beta = linear.Linear(self._channels, name="beta")(context)
    gate = jax.nn.sigmoid(linear.Linear(self._channels, name="gate")(context))
    y = hk.Conv2D(self._channels, 3, name="conv_0")(relu(x))
    y = gamma * y + beta
    y = hk.Conv2D(self._channels, 3, name="conv_1")(relu(y))
    return x + gate * y + skip


def space_to_depth(x: jax.Array) -> jax.Array:
  """Moves blocks of 2 x 2 cells into channels: [2 H, 2 W, C] -> [H, W, 4 C]."""
  height, width, channels = x.shape[0] // 2, x.shape[1] // 2, x.shape[2]
  squares = x.reshape(height, 2, width, 2, channels).transpose(0, 2, 1, 3, 4)
  return squares.reshape(height, width, 4 * channels)


def depth_to_space(x: jax.Array) -> jax.Array:
  """Inverts `space_to_depth`: [H, W, 4 C] -> [2 H, 2 W, C]."""
  height, width, channels = x.shape[0], x.shape[1], x.shape[2] // 4
  squares = x.reshape(height, width, 2, 2, channels).transpose(0, 2, 1, 3, 4)
  return squares.reshape(2 * height, 2 * width, channels)


FRAME = ((1, 1), (1, 1), (0, 0))  # one cell of zeros around a map


class Downsample(hk.Module):
  """A convolution of kernel 4 and stride 2, which halves the map.

  CPUs and GPUs compute the equal convolution of kernel 2 and stride 1 over blocks of 2 x 2 cells.
  Its gradient is three times as fast on a CPU. TPUs compute the strided convolution: for blocks the
  compiler copies the map into other layouts, which takes half of the layer's time. The first layer
  of the spatial encoder gets its blocks from `encoders.projection` instead.
  """

  def __init__(self, channels: int, name: str):
    super().__init__(name=name)
    self._channels = channels

  def __call__(self, x: jax.Array) -> jax.Array:
    """[H, W, C] -> [H / 2, W / 2, channels]."""
    kernel, bias = downsample_weights(x.shape[-1], self._channels, x.dtype)
    return downsample(x, kernel) + bias


def downsample_weights(inputs: int, channels: int,
                       dtype: DTypeLike) -> tuple[jax.Array, jax.Array]:
  """Returns the kernel [2, 2, 4 * inputs, channels] and the bias [channels] of a `Downsample`."""
  initial = hk.initializers.TruncatedNormal(1.0 / np.sqrt(16 * inputs))
  with hk.name_scope("conv"):
    kernel = hk.get_parameter("w", (2, 2, 4 * inputs, channels), dtype, initial)
    bias = hk.get_parameter("b", (channels,), dtype, jnp.zeros)
  return kernel, bias


def downsample(x: jax.Array, kernel: jax.Array) -> jax.Array:
  """Computes a `Downsample` without its bias.

  Args:
    x: [H, W, C], with even H and W.
    kernel: [2, 2, 4 C, D], of squares of 2 x 2 cells.

  Returns:
    [H / 2, W / 2, D].
  """
  return jax.lax.platform_dependent(
    x, kernel, tpu=_strided_convolution, default=_convolved_squares)


def _convolved_squares(x: jax.Array, kernel: jax.Array) -> jax.Array:
  """[H, W, C], [2, 2, 4 C, D] -> [H / 2, W / 2, D]."""
  return convolution(space_to_depth(jnp.pad(x, FRAME)), kernel)


def _strided_convolution(x: jax.Array, kernel: jax.Array) -> jax.Array:
  """The same with the kernel [4, 4, C, D] and stride 2."""
  inputs, channels = x.shape[-1], kernel.shape[-1]
  taps = kernel.reshape(2, 2, 2, 2, inputs, channels).transpose(0, 2, 1, 3, 4, 5)
  return convolution(x, taps.reshape(4, 4, inputs, channels), stride=2, padding=1)


def convolution(x: jax.Array, kernel: jax.Array, stride: int = 1, padding: int = 0,
                dilation: int = 1, dtype: DTypeLike | None = None) -> jax.Array:
  """Convolves a map.

  Args:
    x: [H, W, C].
    kernel: [K, K, C, D].
    stride: of the kernel.
    padding: cells of zeros on each side.
    dilation: of the map; dilation - 1 zeros are inserted between neighbouring cells.
    dtype: of the result; None: x's. JAX has no gradient of another one.

  Returns:
    [H', W', D].
  """
  return jax.lax.conv_general_dilated(
    x[None], kernel, (stride, stride), ((padding, padding),) * 2, (dilation, dilation),
    dimension_numbers=("NHWC", "HWIO", "NHWC"), preferred_element_type=dtype)[0]


class Transformer(hk.Module):
  """Pre-norm transformer over a set (Vaswani et al. 2017), as wide as its input.

  The paper sums the heads after one output projection each (Vinyals et al. 2019, detailed
  architecture), which equals one projection of the concatenated heads.
  """

  def __init__(self, layers: int, attention_heads: int, key_size: int, hidden: int, name: str,
               remat: str = "none", attention_method: str = "plain", mlp_method: str = "plain"):
    super().__init__(name=name)
    self._attention = attention.METHODS[attention_method]
    self._mlp = mlp.METHODS[mlp_method]
    self._remat = remat
    self._layers = layers
    self._attention_heads = attention_heads
    self._key_size = key_size
    self._hidden = hidden

  def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
    """Applies the transformer.

    Args:
      x: [E, C] rows.
      mask: [E] bool: the rows that exist. The others are not attended to, and give zero. `fused`
        attention on a GPU needs the existing rows first.

    Returns:
      [E, C] of x's dtype.
    """
    channels = x.shape[-1]

    def transform(x: jax.Array, layer: int) -> jax.Array:
      x = self._attend(x, LayerNorm(f"attention_norm_{layer}").parameters(channels), mask, layer)
      return self._mlp(x, Sublayer(
        *LayerNorm(f"mlp_norm_{layer}").parameters(channels),
        *linear.Linear(self._hidden, name=f"hidden_{layer}").parameters(channels, x.dtype),
        *linear.Linear(channels, name=f"output_{layer}").parameters(self._hidden, x.dtype)))

    # Missing rows are not attended to, so that clearing them once, at the end, suffices.
    for layer in range(self._layers):
      x = recompute(functools.partial(transform, layer=layer), self._remat)(x)
    return x * mask[:, None].astype(x.dtype)

  def _attend(self, x: jax.Array, norm: tuple[jax.Array, jax.Array], mask: jax.Array,
              layer: int) -> jax.Array:
    channels, width = x.shape[-1], self._attention_heads * self._key_size
    return self._attention(x, mask, Sublayer(
      *norm,
      *linear.Linear(3 * width, name=f"query_key_value_{layer}").parameters(channels, x.dtype),
      *linear.Linear(channels, name=f"aggregate_{layer}").parameters(width, x.dtype)),
      self._attention_heads)


class LSTMState(NamedTuple):
  """State of one layer, float32."""

  hidden: jax.Array  # [size]
  cell: jax.Array  # [size]


class LayerNormLSTM(hk.Module):
  """LSTM layer with layer norm on both contributions to the gates and on the cell.

  Ba et al. 2016, for the "layer norm on the gates" of Vinyals et al. 2019 (detailed architecture).
  Norms and cell are float32. One matrix product projects the inputs of all steps; only the
  recurrent product stays in the scan.
  """

  def __init__(self, size: int, name: str):
    super().__init__(name=name)
    self._size = size

  def __call__(self, inputs: jax.Array, keep: jax.Array,
               state: LSTMState) -> tuple[jax.Array, LSTMState]:
    """Applies the layer to T steps.

    Args:
      inputs: [T, C].
      keep: [T] float32: 0 to reset the state before the step, else 1.
      state: before the first step.

    Returns:
      [T, size] outputs of inputs' dtype, and the states [T, size] after each step.
    """
    size, dtype = self._size, inputs.dtype
    projected = LayerNorm(name="input_norm")(
      linear.Linear(4 * size, with_bias=False, name="input")(inputs).astype(jnp.float32))
    recurrent = hk.get_parameter(
      "recurrent", (size, 4 * size), dtype, hk.initializers.Orthogonal())
    scale = hk.get_parameter("recurrent_scale", (4 * size,), jnp.float32, jnp.ones)
    cell_scale = hk.get_parameter("cell_scale", (size,), jnp.float32, jnp.ones)
    cell_offset = hk.get_parameter("cell_offset", (size,), jnp.float32, jnp.zeros)

    def step(before: LSTMState,
             x: tuple[jax.Array, jax.Array]) -> tuple[LSTMState, LSTMState]:
      projected_t, keep_t = x
      hidden, cell = before.hidden * keep_t, before.cell * keep_t
      product = (hidden.astype(dtype) @ recurrent).astype(jnp.float32)
      gates = projected_t + scale * _normalise(product)
      input_gate, candidate, forget_gate, output_gate = jnp.split(gates, 4)
      cell = (jax.nn.sigmoid(forget_gate + 1.0) * cell
              + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate))
      hidden = jax.nn.sigmoid(output_gate) * jnp.tanh(
        cell_scale * _normalise(cell) + cell_offset)
      after = LSTMState(hidden, cell)
      return after, after

    if inputs.shape[0] == 1:  # acting: avoids the overhead of a loop
      after, _ = step(state, (projected[0], keep[0]))
      states = jax.tree.map(lambda x: x[None], after)
    else:
      _, states = jax.lax.scan(step, state, (projected, keep))
    return states.hidden.astype(dtype), states


def _normalise(x: jax.Array) -> jax.Array:
  """Normalises the last axis to zero mean and unit variance; a constant gives zero."""
  centred = x - x.mean(-1, keepdims=True)
  return centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
