"""The scalar encoder: features that are neither entities nor map planes.

Vinyals et al. 2019, detailed architecture ("scalar encoder"). The value functions use the same
features with their own parameters.
"""

from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from starleague.agent import blocks, linear, types
from starleague.agent import vocabulary as v
from starleague.agent.config import AgentConfig, ScalarConfig
from starleague.agent.encoders import fields
from starleague.agent.types import Array

_LONGEST_TIMESCALE = 1e5  # game loops; an hour has 80,640
_MMR_CLASSES = 7


class ScalarEncoding(NamedTuple):
  """Encoded scalars, of config.dtype."""

  embedded: jax.Array  # [C]: all features, concatenated
  context: jax.Array  # [C]: the features that describe the kind of game; they gate the heads


def time_embedding(game_loop: Array, size: int) -> jax.Array:
  """Computes sines and cosines at timescales of 1 to 1e5 game loops: [] -> [size] float32."""
  timescales = np.geomspace(1.0, _LONGEST_TIMESCALE, size // 2).astype(np.float32)
  angles = game_loop.astype(jnp.float32) / timescales
  return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)])


def mmr_class(mmr: Array) -> jax.Array:
  """Returns the matchmaking rating in thousands, 0 to 6."""
  return jnp.clip(mmr.astype(jnp.int32) // 1000, 0, _MMR_CLASSES - 1)


def log_counts(x: Array) -> jax.Array:
  """Computes log(x + 1) of counts and scores, float32; negative values count as zero."""
  return jnp.log1p(jnp.maximum(x, 0).astype(jnp.float32))


def _dense(x: Array, size: int, name: str, dtype: DTypeLike) -> jax.Array:
  return blocks.relu(linear.Linear(size, name=name)(x.astype(dtype)))


def _one_hot(x: Array, classes: int) -> jax.Array:
  return jax.nn.one_hot(jnp.clip(x.astype(jnp.int32), 0, classes - 1), classes)


def player(sizes: ScalarConfig, columns: Array, name: str, dtype: DTypeLike) -> jax.Array:
  """[10] int32 agent statistics -> [sizes.player]."""
  return _dense(log_counts(columns), sizes.player, name, dtype)


def unit_counts(sizes: ScalarConfig, counts: Array, name: str, dtype: DTypeLike) -> jax.Array:
  """[N] uint8 bag of own unit types -> [sizes.unit_counts]."""
  return _dense(jnp.sqrt(counts.astype(jnp.float32)), sizes.unit_counts, name, dtype)


def upgrades(size: int, owned: Array, name: str, dtype: DTypeLike) -> jax.Array:
  """[U] bool -> [size]."""
  return _dense(owned, size, name, dtype)


def score(sizes: ScalarConfig, columns: Array, name: str, dtype: DTypeLike) -> jax.Array:
  """[13] int32 cumulative score -> [sizes.score]."""
  return _dense(log_counts(columns), sizes.score, name, dtype)


def cumulative(sizes: ScalarConfig, z: types.Statistics, parts: tuple[str, ...],
               name: str, dtype: DTypeLike) -> jax.Array:
  """Embeds parts of z ("units", "effects", "upgrades") -> [parts * sizes.cumulative]."""
  return jnp.concatenate([
    _dense(getattr(z, part), sizes.cumulative, f"{name}_{part}", dtype)
    for part in parts])


class BuildOrderEncoder(hk.Module):
  """A small transformer over a build order: unit types, their order and positions."""

  def __init__(self, sizes: ScalarConfig, name: str):
    super().__init__(name=name)
    self._sizes = sizes

  def __call__(self, z: types.Statistics, dtype: DTypeLike) -> jax.Array:
    """z -> [tokens * width], or [width] with mean pooling; zero for an empty build order."""
    sizes = self._sizes
    width = sizes.build_order_attention_heads * sizes.build_order_key_size
    length = types.BUILD_ORDER_LENGTH
    unit_types = z.build_order.astype(jnp.int32)
    mask = unit_types > 0
    init = hk.initializers.TruncatedNormal(10 ** -0.5)  # about ten inputs are not zero
    by_type = hk.get_parameter("unit_types", (v.NUM_UNIT_TYPES, width), dtype, init)
    by_place = hk.get_parameter("places", (length, width), dtype, init)
    bits = fields.position_bits(z.build_order_xy).reshape(length, -1).astype(dtype)
    x = by_type[unit_types] + by_place + linear.Linear(width, w_init=init, name="positions")(bits)
    x = blocks.Transformer(
      sizes.build_order_layers, sizes.build_order_attention_heads, sizes.build_order_key_size,
      sizes.build_order_hidden, name="transformer")(x, mask)
    if sizes.build_order_pooling == "flatten":
      return x.reshape(-1)
    return x.sum(0) / jnp.maximum(mask.sum(), 1).astype(dtype)


def encode(config: AgentConfig, observation: types.Observation) -> ScalarEncoding:
  """Encodes the scalar features; call within a transform.

  Args:
    config: sizes.
    observation: of one step; entities and minimap are not read.

  Returns:
    ScalarEncoding of config.dtype.
  """
  dtype = jnp.dtype(config.dtype)
  sizes = config.scalar
  o = observation
  races = len(types.RACES)
  queued_repeat = jnp.concatenate([_one_hot(o.last_queued, 2), _one_hot(o.last_repeat, 3)])
  with hk.name_scope("scalar_encoder"):
    home_race = _dense(_one_hot(o.home_race, races), sizes.home_race, "home_race", dtype)
    away_race = _dense(_one_hot(o.away_race, races), sizes.away_race, "away_race", dtype)
    available = _dense(o.available_actions, sizes.available_actions, "available_actions", dtype)
    cumulative_z = cumulative(
      sizes, o.statistics, ("units", "effects", "upgrades"), "cumulative", dtype)
    build_order = BuildOrderEncoder(sizes, name="build_order")(o.statistics, dtype)
    embedded = jnp.concatenate([
      player(sizes, o.player, "player", dtype),
      home_race,
      away_race,
      upgrades(sizes.upgrades, o.upgrades, "upgrades", dtype),
      upgrades(sizes.enemy_upgrades, o.enemy_upgrades, "enemy_upgrades", dtype),
      time_embedding(o.game_loop, sizes.time).astype(dtype),
      available,
      unit_counts(sizes, o.unit_counts, "unit_counts", dtype),
      _dense(_one_hot(mmr_class(o.mmr), _MMR_CLASSES), sizes.mmr, "mmr", dtype),
      cumulative_z,
      build_order,
      _dense(_one_hot(o.last_delay, types.NUM_DELAYS), sizes.last_delay, "last_delay", dtype),
      _dense(_one_hot(o.last_function, v.NUM_FUNCTIONS), sizes.last_function, "last_function",
             dtype),
      _dense(queued_repeat, sizes.last_queued_repeat, "last_queued_repeat", dtype),
    ])
  context = jnp.concatenate([home_race, away_race, available, cumulative_z, build_order])
  return ScalarEncoding(embedded, context)
