"""Intervals of means, against known numbers and SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from starleague.common import intervals


def test_a_mean_has_the_interval_of_students_t():
  # Standard deviation 1, N = 3: 4.302653 / sqrt(3) = 2.484138.
  found = intervals.mean([1.0, 2.0, 3.0])
  np.testing.assert_allclose(found, (2.0, 2.0 - 2.484138, 2.0 + 2.484138), atol=1e-6)
  samples = np.array([0.0, 3.0, 4.0, 9.0])
  expected = stats.t.interval(0.95, 3, samples.mean(), stats.sem(samples))
  np.testing.assert_allclose(intervals.mean(samples)[1:], expected, rtol=1e-9)


def test_a_single_sample_has_an_infinite_interval_and_equal_ones_none():
  assert intervals.mean([5.0]) == (5.0, -math.inf, math.inf)
  assert intervals.mean([4.0, 4.0]) == (4.0, 4.0, 4.0)


@pytest.mark.parametrize("degrees, expected", [(1, 12.706205), (9, 2.262157), (1e9, 1.959964)])
def test_quantiles_of_the_t_distribution(degrees, expected):
  assert intervals.quantile(degrees) == pytest.approx(expected, abs=1e-6)
