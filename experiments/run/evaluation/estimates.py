"""Means and differences of means, with 95% intervals by Student's t distribution."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from starleague.experiments.run.evaluation.evaluating import Measured
from starleague.learner import evolution

_LEVEL = 0.975  # quantile of a two-sided 95% interval


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
  values = np.asarray(samples, np.float64)
  middle = float(values.mean())
  if values.size < 2:
    return Measured(middle, -np.inf, np.inf)
  error = float(values.std(ddof=1)) / np.sqrt(values.size)
  reach = _quantile(values.size - 1) * error
  return Measured(middle, middle - reach, middle + reach)


def difference(one: Sequence[float] | np.ndarray,
               other: Sequence[float] | np.ndarray) -> Difference:
  """Computes mean(one) - mean(other); the variances may differ.

  Args:
    one: [N] numbers, N >= 2.
    other: [M] numbers, M >= 2.
  """
  test = evolution.welch_test(list(one), list(other))
  value = float(np.mean(one) - np.mean(other))
  reach = _quantile(test.degrees_of_freedom) * test.standard_error
  # The upper tail by symmetry: 1 - p_value would round small probabilities to zero.
  tail = min(test.p_value, evolution.welch_test(list(other), list(one)).p_value)
  return Difference(value, value - reach, value + reach, min(1.0, 2 * tail))


def _quantile(degrees_of_freedom: float) -> float:
  from scipy import special  # slow to import
  return float(special.stdtrit(degrees_of_freedom, _LEVEL))
