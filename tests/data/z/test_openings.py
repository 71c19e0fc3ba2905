"""Entropy of openings."""

import math

import numpy as np
import pytest

from starleague.data.z import openings


def orders(*given):
  rows = np.zeros((len(given), 20), np.uint8)
  for row, opening in enumerate(given):
    rows[row, :len(opening)] = opening
  return rows


@pytest.mark.parametrize("built, length, bits", [
  ([(1, 2, 3)] * 8, 5, 0.0),
  ([(1, 2), (1, 3), (2, 2), (2, 3)], 2, 2.0),
  ([(1, 2), (1, 3), (2, 2), (2, 3)], 1, 1.0),
  ([(1, 2, 7), (1, 2, 8), (1, 2, 9), (4, 4, 4)], 2, 0.811278),  # 3 / 4 and 1 / 4
  ([(1,), (1, 2), (), (2,)], 2, 2.0),  # shorter openings differ from longer ones
])
def test_entropy_of_openings(built, length, bits):
  found = openings.opening_entropy(orders(*built), length)
  assert found == pytest.approx(bits, abs=1e-6)
  assert math.copysign(1, found) == 1
