"""Means and differences of means, with 95% intervals by Student's t distribution."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from starleague.common import intervals
from starleague.experiments.run.evaluation.evaluating import Measured
from starleague.learner import evolution


class Difference(NamedTuple):
  """A difference of two means with its 95% interval, and Welch's two-sided test."""

  value: float
  low: float
  high: float
  p_value: float  # of a difference as large under equal means


def mean(samples: Sequence[float] | np.ndarray) -> Measured:
  """Computes a mean with its interval, which is infinite for a single sample.

  Args:
    samples: [N] numbers, N >= 1.
  """
  return Measured(*intervals.mean(samples))


def difference(one: Sequence[float] | np.ndarray,
               other: Sequence[float] | np.ndarray) -> Difference:
  """Computes mean(one) - mean(other); the variances may differ.

  Args:
    one: [N] numbers, N >= 2.
    other: [M] numbers, M >= 2.
  """
  test = evolution.welch_test(list(one), list(other))
  value = float(np.mean(one) - np.mean(other))
  reach = intervals.quantile(test.degrees_of_freedom) * test.standard_error
  # The upper tail by symmetry: 1 - p_value would round small probabilities to zero.
  tail = min(test.p_value, evolution.welch_test(list(other), list(one)).p_value)
  return Difference(value, value - reach, value + reach, min(1.0, 2 * tail))
