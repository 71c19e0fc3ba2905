"""The location head: the target cell of the location grid, index `y * L + x`."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import distributions
from starleague.agent.blocks import FilmGatedBlock, recompute
from starleague.agent.config import AgentConfig
from starleague.agent.heads.inputs import HeadInputs
from starleague.agent.types import Array


def _placement() -> np.ndarray:
  """Returns [3, 2, 4]: 1 at (d, p, a) if tap a connects input i + d - 1 to output 2i + p.

  A transposed convolution adds tap a of input i to output 2i + a - 1. An even output depends on the
  inputs before and at its position, an odd output on those at and after it.
  """
  placement = np.zeros((3, 2, 4), np.float32)
  for difference, parity, tap in ((0, 0, 3), (1, 0, 1), (1, 1, 2), (2, 1, 0)):
    placement[difference, parity, tap] = 1.0
  return placement


class TransposedConvolution(hk.Module):
  """A transposed convolution of kernel 4 and stride 2, which doubles the map.

  Computed as a 3x3 convolution with 4 channels per output channel, one for each position in a 2x2
  block of outputs. Its kernel holds the same 16 taps and zeros. On a CPU, forward and backward take
  less than a third of the time of the dilated form at the sizes of `mini` and `full`.
  """

  def __init__(self, channels: int, name: str):
    super().__init__(name=name)
    self._channels = channels

  def __call__(self, x: jax.Array) -> jax.Array:
    """[H, W, C] -> [2 H, 2 W, channels]."""
    height, width, inputs = x.shape
    channels = self._channels
    initial = hk.initializers.TruncatedNormal(1.0 / np.sqrt(4 * inputs))  # 4 taps meet an output
    taps = hk.get_parameter("w", (4, 4, inputs, channels), x.dtype, initial)
    bias = hk.get_parameter("b", (channels,), x.dtype, jnp.zeros)
    placement = jnp.asarray(_placement(), x.dtype)
    kernel = jnp.einsum("ypa,xqb,abio->yxipqo", placement, placement, taps)
    y = jax.lax.conv_general_dilated(
      x[None], kernel.reshape(3, 3, inputs, 4 * channels), (1, 1), "SAME",
      dimension_numbers=("NHWC", "HWIO", "NHWC"))[0]
    y = y.reshape(height, width, 2, 2, channels).transpose(0, 2, 1, 3, 4)
    return y.reshape(2 * height, 2 * width, channels) + bias


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
    x = hk.Conv2D(config.location_channels, 1, name="input")(jax.nn.relu(x))
    x = jax.nn.relu(x)
    for i, skip in enumerate(reversed(inputs.map_skips[:-1])):
      block = FilmGatedBlock(config.location_channels, name=f"block_{i}")
      x = recompute(block, config.remat)(x, skip, autoregressive)
    for i, channels in enumerate(config.location_upsamples):
      x = x if i == 0 else jax.nn.relu(x)
      x = recompute(TransposedConvolution(channels, name=f"upsample_{i}"), config.remat)(x)
  legal = distributions.legal_locations(
    inputs.observation.camera, function, config.location_size, config.target_mask == "on_screen")
  return distributions.apply_mask(x.reshape(-1), legal, config.temperature)
