"""Networks of the companion systems: torsos for each kind of observation, and a recurrent core.

They are written for T steps of one copy, leaves [T, ...]; callers vmap over a batch. Call them
within a Haiku transform.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import blocks, linear
from starleague.agent.types import Array
from starleague.common.errors import UserError
from starleague.companions.system import Inputs

SHALLOW, DEEP, DENSE = TORSOS = ("shallow", "deep", "dense")
DEEP_CHANNELS = (16, 32, 32)  # of the three sections (Espeholt et al. 2018, Figure 3)


class Network(NamedTuple):
  """A recurrent or feed-forward network, as pure functions.

  Attributes:
    init: key -> parameters.
    initial_state: () -> the state at the start, unbatched.
    unroll: (params, Inputs [T, ...], state) -> (outputs [T, ...], states after each step [T, ...]).
  """

  init: Callable[[Any], Any]
  initial_state: Callable[[], Any]
  unroll: Callable[..., tuple[Any, Any]]


def make_network(inputs: Any, forward: Callable[[Any, Any], tuple[Any, Any]],
                 initial_state: Callable[[], Any]) -> Network:
  """Makes a network of a function within a Haiku transform.

  Args:
    inputs: specs of unbatched inputs, `Inputs` or a system's own.
    forward: (inputs [T, ...], state) -> (outputs [T, ...], states [T, ...]).
    initial_state: the state at the start.
  """
  transformed: Any = hk.without_apply_rng(hk.transform(forward))
  example = jax.tree.map(lambda x: jnp.zeros((1, *x.shape), x.dtype), inputs)

  def init(key: jax.Array) -> Any:
    return transformed.init(key, example, initial_state())

  return Network(init, initial_state, transformed.apply)


def step(network: Network, params: Any, inputs: Any, state: Any) -> tuple[Any, Any]:
  """Applies a network to one step of one copy; returns its output and the state after it."""
  found = network.unroll(params, jax.tree.map(lambda x: jnp.asarray(x)[None], inputs), state)
  return jax.tree.map(lambda x: x[0], found)


def unroll_batch(network: Network, params: Any, inputs: Any, state: Any) -> tuple[Any, Any]:
  """Applies a network to a batch: inputs [T, B, ...], state [B, ...] -> outputs [T, B, ...]."""
  return jax.vmap(network.unroll, in_axes=(None, 1, 0), out_axes=1)(params, inputs, state)


def observe(observation: Any, torso: str, size: int,
            symbols: tuple[int, ...] = ()) -> jax.Array:
  """Encodes observations by their kind.

  Maps [T, H, W, C] of bool (planes) or uint8 (colours, 0 to 255) pass the convolutions of the
  torso. Everything else is flattened for two dense layers. The parts of a tree are concatenated.
  Symbols become one-hot channels first.

  Args:
    observation: leaves [T, ...].
    torso: SHALLOW or DEEP (Espeholt et al. 2018, Figure 3); DENSE flattens maps too.
    size: units of dense layers.
    symbols: of the task; see `Task.symbols`.

  Returns:
    [T, size] float32 of one leaf, [T, n size] of n.

  Raises:
    UserError: the torso is unknown.
  """
  if torso not in TORSOS:
    raise UserError(f"torso: found {torso!r}, expected one of {', '.join(TORSOS)}")
  parts = []
  for number, leaf in enumerate(jax.tree.leaves(observation)):
    if symbols:
      leaf = one_hot(leaf, symbols)
    x = leaf.astype(jnp.float32) / (255.0 if leaf.dtype == jnp.uint8 else 1.0)
    if x.ndim == 4 and torso != DENSE:
      encode = _shallow if torso == SHALLOW else _deep
    else:
      encode = _dense
    with hk.name_scope(f"part_{number}"):
      parts.append(encode(x, size))
  return jnp.concatenate(parts, axis=-1)


def one_hot(x: jax.Array, symbols: tuple[int, ...]) -> jax.Array:
  """Converts ids of symbols to one-hot channels.

  Args:
    x: [..., C] ids for C numbers of symbols, [...] for one.
    symbols: numbers of symbols.

  Returns:
    [..., sum(symbols)] bool.
  """
  channels = jnp.moveaxis(x, -1, 0) if len(symbols) > 1 or x.shape[-1:] == (1,) else x[None]
  return jnp.concatenate([
    channel[..., None] == jnp.arange(count, dtype=x.dtype)
    for channel, count in zip(channels, symbols, strict=True)], axis=-1)


def _dense(x: jax.Array, size: int) -> jax.Array:
  """Two layers on the flattened observation."""
  x = x.reshape(len(x), math.prod(x.shape[1:]))
  x = jax.nn.relu(linear.Linear(size, name="dense_0")(x))
  return jax.nn.relu(linear.Linear(size, name="dense_1")(x))


def _shallow(x: jax.Array, size: int) -> jax.Array:
  """Two convolutions and a linear layer; on small maps both keep the map's size."""
  large = x.shape[1] >= 32
  x = jax.nn.relu(hk.Conv2D(16, 8 if large else 3, 4 if large else 1, name="conv_0")(x))
  x = jax.nn.relu(hk.Conv2D(32, 4 if large else 3, 2, name="conv_1")(x))
  return jax.nn.relu(linear.Linear(size, name="map")(x.reshape(len(x), math.prod(x.shape[1:]))))


def _deep(x: jax.Array, size: int) -> jax.Array:
  """Three sections of a convolution, a pooling and two residual blocks: 15 convolutions."""
  for section, channels in enumerate(DEEP_CHANNELS):
    x = hk.Conv2D(channels, 3, name=f"conv_{section}")(x)
    x = hk.max_pool(x, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for block in range(2):
      y = x
      for layer in range(2):
        y = hk.Conv2D(channels, 3, name=f"residual_{section}_{block}_{layer}")(jax.nn.relu(y))
      x = x + y
  x = jax.nn.relu(x).reshape(len(x), math.prod(x.shape[1:]))
  return jax.nn.relu(linear.Linear(size, name="map")(x))


def context(inputs: Inputs, num_actions: int) -> jax.Array:
  """Encodes the last action and reward: [T, n].

  The reward is clipped to [-1, 1]. Where several agents act, their actions are side by side.
  """
  action = jax.nn.one_hot(inputs.last_action, num_actions)
  return jnp.concatenate([action.reshape(len(action), math.prod(action.shape[1:])),
                          jnp.clip(inputs.last_reward, -1.0, 1.0)[:, None]], axis=-1)


def lstm_state(size: int) -> blocks.LSTMState:
  """Returns the state of `lstm` at the start: zeros."""
  return blocks.LSTMState(jnp.zeros(size), jnp.zeros(size))


def lstm_step(x: Array, state: blocks.LSTMState, size: int,
              name: str) -> tuple[jax.Array, blocks.LSTMState]:
  """Applies the layer of `lstm` to one step, [C], for cores that scan over time themselves."""
  output, states = blocks.LayerNormLSTM(size, name=name)(
    jnp.asarray(x)[None], jnp.ones(1), state)
  return output[0], jax.tree.map(lambda leaf: leaf[0], states)


def lstm(x: Array, first: Array, state: blocks.LSTMState, size: int,
         name: str = "lstm") -> tuple[jax.Array, blocks.LSTMState]:
  """Applies an LSTM with layer norm, the agent's, that starts again with each episode.

  Args:
    x: [T, C] float32.
    first: [T] bool.
    state: before the first step, leaves [size].
    size: units.
    name: of the module.

  Returns:
    [T, size] outputs, and the states after each step, leaves [T, size].
  """
  keep = 1.0 - jnp.asarray(first).astype(jnp.float32)
  return blocks.LayerNormLSTM(size, name=name)(jnp.asarray(x), keep, state)
