"""Flat observations: their values, both sides alike, nothing hidden."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish.adapters import features
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from tests.environments.skirmish.mini_games import RULES, start

SIZE = features.size(RULES)
ROWS, COLUMNS = 60, 27
GRID = slice(SIZE - ROWS * COLUMNS - 7 * 64, SIZE - ROWS * COLUMNS)


@pytest.fixture(scope="module")
def flat():
  return jax.jit(jax.vmap(lambda state: jax.vmap(
    lambda player: features.features(RULES, state, player))(jnp.arange(2))))


@pytest.fixture(scope="module")
def first(game):
  return start(game, 1), start(game, 1, swap_sides=True)


@pytest.mark.parametrize("tier, size", [("mini", 2107), ("default", 5283), ("large", 9437)])
def test_the_length(tier, size):
  assert features.size(tables.make_rules(**GAME_CONFIGS[tier]._asdict())) == size


def test_the_values_of_a_first_state(flat, first):
  vectors = np.asarray(flat(first[0]))
  assert vectors.shape == (16, 2, SIZE) and vectors.dtype == np.float32
  scalars = vectors[0, 0, :18]
  np.testing.assert_allclose(scalars[[0, 2, 3]], [50 / 500, 4 / 18, 1.0])  # money, food, food cap
  assert scalars[10] == 0 and scalars[11:14].tolist() == [1, 0, 0]  # time, Terran
  assert scalars[14:17].tolist() == [1, 0, 0]  # the opponent is Terran
  assert vectors[0, 0, 18] == np.float32(4 / 10)  # SCVs
  rows = vectors[0, 0, -ROWS * COLUMNS:].reshape(ROWS, COLUMNS)
  assert rows[:, 0].sum() == 5 + RULES.tier.resources and rows[:, 1].sum() == 5
  assert (rows[rows[:, 0] == 0] == 0).all()
  grid = vectors[0, 0, GRID].reshape(7, 8, 8) * 5
  assert grid.sum(axis=(1, 2)).round().tolist() == [4, 0, 1, 0, 0, 0, RULES.tier.resources]
  assert grid[2, 1, 1] == pytest.approx(1)  # the Command Center is near the top left


def test_both_sides_look_alike(flat, first):
  one, other = (np.asarray(flat(state)) for state in first)
  np.testing.assert_allclose(one[..., :GRID.start], other[..., :GRID.start], atol=1e-6)
  np.testing.assert_allclose(one[..., GRID.stop:], other[..., GRID.stop:], atol=0.02)  # places
  np.testing.assert_allclose(one[:, 0, :GRID.start], one[:, 1, :GRID.start], atol=1e-6)


def test_values_are_finite_and_small(flat, played):
  for states in played:
    vectors = np.asarray(flat(states))
    assert np.isfinite(vectors).all() and np.abs(vectors).max() < 100
    assert vectors[..., :GRID.start].max() <= 20


def test_nothing_hidden_is_in_it(flat, first):
  state = first[0]
  hidden = state._replace(
    minerals=state.minerals.at[:, 1].add(500), health=state.health.at[:, 1].mul(0.5),
    x=state.x.at[:, 1].add(1.0), next_loop=state.next_loop.at[:, 1].add(64))
  np.testing.assert_array_equal(flat(state)[:, 0], flat(hidden)[:, 0])
  assert (flat(state)[:, 1] != flat(hidden)[:, 1]).any()
