"""The location head: the target cell of the location grid, index `y * L + x`."""

import functools
from collections.abc import Callable

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from starleague.agent import distributions, kernels, placement
from starleague.agent.blocks import (
  FRAME,
  FilmGatedBlock,
  convolution,
  depth_to_space,
  recompute,
  relu,
)
from starleague.agent.config import AgentConfig
from starleague.agent.heads.inputs import HeadInputs
from starleague.agent.types import Array


class TransposedConvolution(hk.Module):
  """A transposed convolution of kernel 4 and stride 2, which doubles the map.

  Two by two neighbouring inputs give a block of 2 x 2 outputs between them. The blocks are one cell
  larger than the map on every side. Wide outputs come from a convolution of kernel 2 and stride 1
  over the inputs. Narrow ones come from a matrix product: each input times the 16 taps gives four
  blocks, which are shifted and added. Its gradients are matrix products too. Those of the
  convolution took 2.5 times as long on a CPU, for one channel, and a sixth of an update on a GPU.
  TPUs compute wide outputs by a convolution of the dilated map: for blocks the compiler copies the
  map into other layouts, which takes half of the layer's time. Narrow outputs come from blocks.
  Float32 outputs of other inputs are computed as narrow ones.
  """

  def __init__(self, channels: int, name: str, dtype: DTypeLike | None = None):
    super().__init__(name=name)
    self._channels, self._dtype = channels, dtype

  def __call__(self, x: jax.Array) -> jax.Array:
    """[H, W, C] -> [2 H, 2 W, channels] of `dtype`, float32 or x's; None: x's."""
    inputs, channels = x.shape[-1], self._channels
    initial = hk.initializers.TruncatedNormal(1.0 / np.sqrt(4 * inputs))  # 4 taps meet an output
    taps = hk.get_parameter("w", (4, 4, inputs, channels), x.dtype, initial)
    bias = hk.get_parameter("b", (channels,), self._dtype or x.dtype, jnp.zeros)
    # Tap 2 e + p of input i is added to output 2 i + 2 e + p - 1.
    pairs = taps.reshape(2, 2, 2, 2, inputs, channels)  # [e, p, e, p, inputs, channels]
    if bias.dtype != x.dtype:
      y = _float32(x, pairs)
    elif 4 * channels < inputs:
      y = _narrow(x, pairs)
    else:
      y = jax.lax.platform_dependent(x, pairs, tpu=_by_dilation, default=_by_blocks)
    return y + bias


@jax.custom_vjp
def _dilated(maps: jax.Array, pairs: jax.Array) -> jax.Array:
  """[N, H, W, C] -> [N, 2 H, 2 W, channels]: one convolution of the dilated maps."""
  taps = pairs.reshape(4, 4, *pairs.shape[4:])[::-1, ::-1]
  return jax.vmap(lambda x: convolution(x, taps, padding=2, dilation=2))(maps)


def _dilated_forward(maps: jax.Array,
                     pairs: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
  return _dilated(maps, pairs), (maps, pairs)


def _dilated_backward(arguments: tuple[jax.Array, jax.Array],
                      gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Both gradients are those of a strided convolution, of which this one is the transpose.

  For its own gradient of the taps, a TPU's compiler reverses the maps first.
  """
  maps, pairs = arguments

  def strided(pairs: jax.Array) -> jax.Array:
    taps = pairs.reshape(4, 4, *pairs.shape[4:]).swapaxes(2, 3)
    return jax.vmap(lambda x: convolution(x, taps, stride=2, padding=1))(gradient)

  of_maps, pull_back = jax.vjp(strided, pairs)
  return of_maps, *pull_back(maps)


_dilated.defvjp(_dilated_forward, _dilated_backward)
_by_dilation = kernels.joining_axes("starleague_dilated_convolution", _dilated, inner=(3,))


def _convolved(x: jax.Array, kernel: jax.Array) -> jax.Array:
  return jax.lax.platform_dependent(
    x, kernel, default=convolution,
    cuda=lambda x, kernel: convolution_by_cudnn(x, kernel.astype(jnp.float32)))


def _by_blocks(x: jax.Array, pairs: jax.Array,
               convolve: Callable[[jax.Array, jax.Array], jax.Array] = _convolved) -> jax.Array:
  """[H, W, C] -> [2 H, 2 W, channels]: one convolution, whose outputs are blocks."""
  inputs, channels = pairs.shape[4:]
  # Of a block's two inputs on an axis, the first one meets the later pair of taps.
  kernel = pairs[::-1, :, ::-1].transpose(0, 2, 4, 1, 3, 5).reshape(2, 2, inputs, 4 * channels)
  # Padding by the convolution itself would make its gradient many times slower on a CPU.
  return depth_to_space(convolve(jnp.pad(x, FRAME), kernel))[1:-1, 1:-1]


@jax.custom_vjp
def convolution_by_cudnn(x: jax.Array, kernel: jax.Array) -> jax.Array:
  """Computes a convolution of kernel 2, whose gradient of the kernel is four matrix products.

  XLA makes that gradient a convolution with the map as its kernel, for which cuDNN has no fast
  program: with 4,160 maps of 64 x 64 cells it took a second on a GPU, two thirds of an update.

  Args:
    x: [H + 1, W + 1, C].
    kernel: [2, 2, C, D] float32, so that gradients of many maps are added in float32.

  Returns:
    [H, W, D] of x's dtype.
  """
  return convolution(x, kernel.astype(x.dtype))


def _cudnn_forward(x: jax.Array,
                   kernel: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
  return convolution_by_cudnn(x, kernel), (x, kernel)


def _cudnn_backward(arguments: tuple[jax.Array, jax.Array],
                    gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
  x, kernel = arguments
  _, pull_back = jax.vjp(lambda x: convolution(x, kernel.astype(x.dtype)), x)
  height, width, _ = gradient.shape
  products = [jax.lax.dot_general(
    x[down:down + height, right:right + width].reshape(height * width, -1),
    gradient.reshape(height * width, -1), (((0,), (0,)), ((), ())),
    preferred_element_type=jnp.float32) for down, right in np.ndindex(2, 2)]
  return pull_back(gradient)[0], jnp.stack(products).reshape(kernel.shape)


convolution_by_cudnn.defvjp(_cudnn_forward, _cudnn_backward)


def _by_products(x: jax.Array, pairs: jax.Array, dtype: DTypeLike | None = None) -> jax.Array:
  """[H, W, C] -> [2 H, 2 W, channels]: one matrix product, four blocks of each input, added."""
  kernel = pairs.transpose(4, 0, 2, 1, 3, 5).reshape(x.shape[-1], -1)
  products = jnp.matmul(x, kernel, preferred_element_type=dtype)
  blocks = jnp.zeros((), products.dtype)
  for (down, right), block in zip(np.ndindex(2, 2), jnp.split(products, 4, -1), strict=True):
    blocks = blocks + jnp.pad(block, ((down, 1 - down), (right, 1 - right), (0, 0)))
  return depth_to_space(blocks)[1:-1, 1:-1]


def _narrow(x: jax.Array, pairs: jax.Array, dtype: DTypeLike | None = None) -> jax.Array:
  """[H, W, C] -> [2 H, 2 W, channels] of `dtype`; None: of x's."""
  convolve = functools.partial(convolution, dtype=dtype)
  return jax.lax.platform_dependent(
    x, pairs, tpu=functools.partial(_by_blocks, convolve=convolve),
    default=functools.partial(_by_products, dtype=dtype))


@jax.custom_jvp
def _float32(x: jax.Array, pairs: jax.Array) -> jax.Array:
  """Computes `_narrow` with a float32 result, whose gradients are those of `_narrow`.

  They stay in x's dtype: JAX has none of a float32 convolution of bfloat16.
  """
  return _narrow(x, pairs, jnp.float32)


@_float32.defjvp
def _float32_jvp(primals: tuple[jax.Array, jax.Array],
                 tangents: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
  _, tangent = jax.jvp(_narrow, primals, tangents)
  return _float32(*primals), tangent.astype(jnp.float32)


def logits(config: AgentConfig, inputs: HeadInputs, autoregressive: Array,
           function: Array) -> Array:
  """Computes [L * L] masked float32 logits.

  The autoregressive embedding is reshaped to the coarse map and concatenated with the last map
  skip. FiLM blocks, conditioned on the embedding, add the other skips from last to first.
  Transposed convolutions upsample the result to the grid.
  """
  coarse = inputs.map_skips[-1]
  height, width, _ = coarse.shape
  with hk.name_scope("location"):
    x = jnp.concatenate([autoregressive.reshape(height, width, -1), coarse], axis=-1)
    x = hk.Conv2D(config.location_channels, 1, name="input")(relu(x))
    x = relu(x)
    for i, skip in enumerate(reversed(inputs.map_skips[:-1])):
      block = FilmGatedBlock(config.location_channels, name=f"block_{i}")
      x = recompute(block, config.remat)(x, skip, autoregressive)
    last = len(config.location_upsamples) - 1  # its outputs are the logits
    for i, channels in enumerate(config.location_upsamples):
      x = x if i == 0 else relu(x)
      upsample = TransposedConvolution(
        channels, name=f"upsample_{i}", dtype=jnp.float32 if i == last else None)
      x = recompute(upsample, config.remat)(x)
  legal = distributions.legal_locations(
    inputs.observation.camera, function, config.location_size, config.target_mask == "on_screen")
  if config.location_mask == "free":
    free = placement.free_cells(
      inputs.observation, function, config.location_size, config.map_units)
    both = legal & free
    legal = jnp.where(both.any(), both, legal)  # no free cell may be on the screen
  return distributions.apply_mask(x.reshape(-1), legal, config.temperature)
