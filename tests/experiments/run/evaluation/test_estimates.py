"""Means and differences with intervals, against known numbers and SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from starleague.experiments.run.evaluation import estimates


def test_a_mean_has_the_interval_of_students_t():
  # Standard deviation 1, N = 3: 4.302653 / sqrt(3) = 2.484138.
  found = estimates.mean([1.0, 2.0, 3.0])
  np.testing.assert_allclose(found, (2.0, 2.0 - 2.484138, 2.0 + 2.484138), atol=1e-6)
  assert estimates.mean([5.0]) == (5.0, -math.inf, math.inf)
  assert estimates.mean([4.0, 4.0]) == (4.0, 4.0, 4.0)


def test_a_difference_is_welchs():
  a, b = [10, 12, 9, 11, 13, 10, 12, 11, 9, 13], [14, 15, 13, 16, 12, 15, 14, 13, 16, 15]
  found = estimates.difference(b, a)
  expected = stats.ttest_ind(b, a, equal_var=False)
  interval = expected.confidence_interval()
  np.testing.assert_allclose(
    found, (3.3, interval.low, interval.high, expected.pvalue), rtol=1e-9)
  np.testing.assert_allclose(estimates.difference(a, b)[:3], (-3.3, -found.high, -found.low))
  assert estimates.difference(a, b).p_value == pytest.approx(found.p_value, rel=1e-12)


def test_equal_constant_samples_do_not_differ():
  assert estimates.difference([1.0, 1.0], [1.0, 1.0]) == (0.0, 0.0, 0.0, 1.0)
  assert estimates.difference([2.0, 2.0], [1.0, 1.0]) == (1.0, 1.0, 1.0, 0.0)
