"""Observations of mini's shapes, single entities, and encoders as functions of parameters."""

from collections.abc import Callable
from typing import Any

import haiku as hk
import numpy as np

from starleague.agent import blocks, config, types

MINI = config.mini()


def transformed(function: Callable[..., Any]) -> hk.Transformed:
  """The function of (params, inputs...), with float32 parameters."""
  def in_float32(*args):
    with blocks.float32_parameters():
      return function(*args)
  return hk.without_apply_rng(hk.transform(in_float32))


def entity_row(**columns: int) -> np.ndarray:
  """[1, F] int16: one entity with the given columns, zero elsewhere."""
  row = np.zeros((1, types.NUM_ENTITY_COLUMNS), np.int16)
  for name, value in columns.items():
    row[0, types.COLUMN[name]] = value
  return row


def observation(seed: int = 0, count: int = 20) -> types.Observation:
  """A made-up observation of mini's shapes with plausible values and `count` entities."""
  random = np.random.default_rng(seed)
  o = types.zeros(types.observation_spec(MINI.max_entities, MINI.map_size))
  o.entities[:count] = random.integers(0, 200, (count, types.NUM_ENTITY_COLUMNS))
  o.minimap[:] = random.integers(0, 2, o.minimap.shape)
  o.player[:] = random.integers(0, 300, o.player.shape)
  o.available_actions[:] = random.random(o.available_actions.shape) < 0.3
  o.upgrades[:] = random.random(o.upgrades.shape) < 0.3
  o.unit_counts[:] = random.integers(0, 4, o.unit_counts.shape)
  o.statistics.build_order[:5] = random.integers(1, 250, 5)
  o.statistics.units[:] = random.random(o.statistics.units.shape) < 0.3
  return o._replace(entity_count=np.int16(count), game_loop=np.int32(1234), mmr=np.int16(3500),
                    home_race=np.uint8(1), away_race=np.uint8(3), last_delay=np.int16(8),
                    last_function=np.int16(2), last_queued=np.uint8(1))
