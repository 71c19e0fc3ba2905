"""Confidence intervals of means by Student's t distribution."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_LEVEL = 0.975  # quantile of a two-sided 95% interval


class Mean(NamedTuple):
  """A mean with its 95% interval."""

  value: float
  low: float
  high: float


def mean(samples: Sequence[float] | np.ndarray) -> Mean:
  """Computes a mean with its interval, which is infinite for a single sample.

  Args:
    samples: [N] numbers, N >= 1.
  """
  values = np.asarray(samples, np.float64)
  middle = float(values.mean())
  if values.size < 2:
    return Mean(middle, -math.inf, math.inf)
  error = float(values.std(ddof=1)) / math.sqrt(values.size)
  reach = quantile(values.size - 1) * error
  return Mean(middle, middle - reach, middle + reach)


def quantile(degrees_of_freedom: float) -> float:
  """Returns the 97.5% quantile of the t distribution: the reach of a 95% interval."""
  from scipy import special  # slow to import
  return float(special.stdtrit(degrees_of_freedom, _LEVEL))
