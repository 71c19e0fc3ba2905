"""Data contracts: columns in the game's order, shapes and dtypes."""

import random

import jax
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types, vocabulary


@pytest.fixture(scope="module")
def features():
  """pysc2.lib.features; its palettes need the old two-argument `random.shuffle` at import."""
  pytest.importorskip("pysc2")
  shuffle = random.shuffle
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(random, "shuffle", lambda x, _=None: shuffle(x))
    from pysc2.lib import features
  return features


def test_entity_columns_are_the_games_then_our_two(features):
  names = tuple(column.name for column in features.FeatureUnit)
  assert types.ENTITY_COLUMNS == (*names, "was_selected", "was_targeted")
  assert types.NUM_ENTITY_COLUMNS == 48 and types.COLUMN["was_targeted"] == 47


def test_scalar_columns_are_the_games(features):
  assert types.PLAYER_COLUMNS == tuple(x.name for x in features.Player)[1:]
  assert types.SCORE_COLUMNS == tuple(x.name for x in features.ScoreCumulative)[:13]


def test_minimap_planes_are_the_games(features):
  renamed = tuple(x.replace("visibility", "visibility_map") for x in types.MINIMAP_PLANES)
  assert [x for x in features.MinimapFeatures._fields if x in renamed] == list(renamed)


def test_alliances_and_races():
  assert (types.ALLIANCE_SELF, types.ALLIANCE_ALLY, types.ALLIANCE_NEUTRAL,
          types.ALLIANCE_ENEMY) == (1, 2, 3, 4)
  assert types.RACES.index("terran") == 1 and len(types.RACES) == 5


def test_observation_shapes():
  spec = types.observation_spec(max_entities=64, map_size=32)
  assert spec.entities.shape == (64, 48) and spec.entities.dtype == np.int16
  assert spec.minimap.shape == (7, 32, 32) and spec.minimap.dtype == np.uint8
  assert spec.available_actions.shape == (327,)
  assert spec.statistics.effects.shape == (82,)


def test_action_shapes_hold_their_values():
  spec = types.action_spec(max_selected=64)
  assert spec.units.shape == (64,)
  largest = {"function": 326, "delay": 127, "queued": 1, "repeat": 2, "units": 512,
             "target_unit": 511, "location": 256 * 256 - 1}
  assert types.Action._fields == vocabulary.Arguments._fields == tuple(largest)
  for field, value in largest.items():
    assert np.iinfo(getattr(spec, field).dtype).max >= value, field


def test_trajectories_are_time_major_and_one_longer():
  config = agent_config.mini()
  spec = types.trajectory_spec(config, unroll_length=16)
  step = types.step_spec(config.max_entities, config.map_size, config.max_selected)
  assert all(long.shape == (17, *one.shape) and long.dtype == one.dtype for long, one in zip(
    jax.tree.leaves(spec.steps), jax.tree.leaves(step), strict=True))
  assert spec.initial_state.hidden.shape == (config.core_layers, config.core_size)
  assert spec.initial_state.cell.dtype == np.float32
  assert step.reward.shape == (5,) and step.pseudo_active.shape == (4,)


def test_zeros_follow_their_spec():
  spec = types.step_spec(3, 8, 2)
  for value, expected in zip(
      jax.tree.leaves(types.zeros(spec)), jax.tree.leaves(spec), strict=True):
    assert (value.shape, value.dtype) == (expected.shape, expected.dtype) and not value.any()
