"""Discs on the planes."""

import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish.rules.interface.discs import discs, union
from tests.environments.skirmish import default_games
from tests.environments.skirmish.cells import bits, disc
from tests.environments.skirmish.mini_games import RULES

SIDE = np.array([1.0, -1.0], np.float32)


@pytest.mark.parametrize("rules", [RULES, default_games.RULES])
def test_discs_contain_the_cells_whose_middles_are_inside(rules):
  rng = np.random.default_rng(0)
  x, y = rng.uniform(-rules.half, rules.half, (2, 2, 5)).astype(np.float32)
  x[:, 0], y[:, 0] = 3.0, 0.0  # on the boundary of two cells
  radius = rng.uniform(0, 9, (2, 5)).astype(np.float32)
  radius[:, 1] = 6.0  # exactly eight cells
  chosen = np.array([[1, 1, 1, 0, 1], [1, 1, 0, 1, 1]], bool)
  found = bits(union(discs(rules, SIDE, x, y, radius), chosen))
  for p in range(2):
    expected = [disc(rules, SIDE[p], *row) for row in zip(x[p], y[p], radius[p], strict=True)]
    np.testing.assert_array_equal(found[p], np.array(expected)[chosen[p]].any(axis=0))


def test_a_disc_leaves_out_its_excluded_cells():
  x = np.array([[-5.0, 5.0]] * 2, np.float32)
  radius = np.full((2, 2), 3.0, np.float32)
  around = discs(RULES, SIDE, x, 0 * x, radius)
  left = np.zeros((2, 2, 32, 1), np.uint32)
  left[:, 0] = 0xFFFFFFFF
  chosen = np.ones((2, 2), bool)
  found = bits(union(around, chosen, jnp.asarray(left)))
  for p in range(2):
    np.testing.assert_array_equal(found[p], disc(RULES, SIDE[p], 5.0, 0.0, 3.0))
