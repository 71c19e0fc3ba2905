"""What population-based training does to a member: copy a better one, vary what was copied.

Jaderberg et al. 2017, "Population Based Training of Neural Networks", section 4.1.1, as pure
functions of evaluations, hyperparameters and a numpy generator; `population` keeps the members.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

Hyperparameters = Mapping[str, float]
Evaluations = Mapping[str, Sequence[float]]  # by member, oldest first; higher is better

LOG, LINEAR = "log", "linear"


class Range(NamedTuple):
  """Where a hyperparameter may lie, and its prior: uniform, of its logarithm for the log scale.

  Attributes:
    low: inclusive; above 0 for the log scale.
    high: inclusive; above `low`.
    scale: LOG or LINEAR.
  """

  low: float
  high: float
  scale: str = LOG


class Welch(NamedTuple):
  """What `welch_test` gives."""

  statistic: float
  degrees_of_freedom: float
  p_value: float


Select = Callable[[np.random.Generator, str, Evaluations], str | None]
Explore = Callable[[np.random.Generator, Hyperparameters, Mapping[str, Range]], dict[str, float]]


def welch_test(mine: Sequence[float], other: Sequence[float]) -> Welch:
  """Welch's t-test, one-sided: how surely is the mean of `mine` below that of `other`?

  t = (mean(mine) - mean(other)) / sqrt(var(mine) / N + var(other) / M), the degrees of freedom by
  Welch and Satterthwaite; variances may differ.

  Args:
    mine: [N] numbers, N >= 2.
    other: [M] numbers, M >= 2.

  Returns:
    The statistic, its degrees of freedom, and how probable one as low is were the means equal. Two
    constant samples give 0, 0.5 or 1 with N + M - 2 degrees of freedom, as their means compare.

  Raises:
    ValueError: a sample has fewer than two numbers, or one that is not finite.
  """
  for name, sample in (("mine", mine), ("other", other)):
    if len(sample) < 2 or not np.all(np.isfinite(sample)):
      raise ValueError(f"{name}: expected at least 2 finite numbers, found {list(sample)}")
  # Less their first number: samples that are constant and equal then differ by exactly zero.
  a = np.asarray(mine, np.float64) - mine[0]
  b = np.asarray(other, np.float64) - mine[0]
  difference = float(a.mean() - b.mean())
  va, vb = float(a.var(ddof=1)) / a.size, float(b.var(ddof=1)) / b.size
  if va + vb == 0:
    statistic = math.copysign(math.inf, difference) if difference else 0.0
    return Welch(statistic, a.size + b.size - 2.0, float(difference > 0) if difference else 0.5)
  statistic = difference / math.sqrt(va + vb)
  # As fractions of their sum, which cannot underflow as their squares could.
  fa, fb = va / (va + vb), vb / (va + vb)
  degrees = 1 / (fa * fa / (a.size - 1) + fb * fb / (b.size - 1))
  return Welch(statistic, degrees, float(special.stdtr(degrees, statistic)))


def t_selection(rng: np.random.Generator, member: str, evaluations: Evaluations,
                significance: float = 0.05) -> str | None:
  """Draws another member; to be copied where it is better by Welch's test (section 4.1.1).

  Args:
    rng: for the draw.
    member: that may be overwritten.
    evaluations: of all members, this one too: its last 10 in the paper.
    significance: below which the p-value must be. The paper does not say; 5% is usual.

  Returns:
    The member to copy; None to go on, as where either has fewer than two evaluations.

  Raises:
    ValueError: `member` has no entry, or `significance` is not in (0, 0.5).
  """
  if not 0 < significance < 0.5:
    raise ValueError(f"significance: expected a number in (0, 0.5), found {significance}")
  mine = _of(member, evaluations)
  others = sorted(name for name in evaluations if name != member)
  if not others:
    return None
  source = others[rng.integers(len(others))]
  if min(len(mine), len(evaluations[source])) < 2:
    return None
  return source if welch_test(mine, evaluations[source]).p_value < significance else None


def truncation_selection(rng: np.random.Generator, member: str, evaluations: Evaluations,
                         fraction: float = 0.2) -> str | None:
  """For a member of the bottom 20%, draws one of the top 20% to be copied (section 4.1.1).

  Members rank by their mean evaluation, those without any not at all; equal ones by name. Top and
  bottom have the same number, rounded down, but at least one of two or more members.

  Args:
    rng: for the draw.
    member: that may be overwritten.
    evaluations: of all members, this one too.
    fraction: of the members that are the top, and the bottom.

  Returns:
    The member to copy; None to go on, as where nobody at the top is better.

  Raises:
    ValueError: `member` has no entry, or `fraction` is not in (0, 0.5].
  """
  if not 0 < fraction <= 0.5:
    raise ValueError(f"fraction: expected a number in (0, 0.5], found {fraction}")
  _of(member, evaluations)
  scores = {name: float(np.mean(values)) for name, values in evaluations.items() if len(values)}
  ranking = sorted(scores, key=lambda name: (scores[name], name))
  # 0.29 * 100 is 28.999999999999996.
  number = max(1, math.floor(fraction * len(ranking) + 1e-9))
  if len(ranking) < 2 or member not in ranking[:number]:
    return None
  top = [name for name in ranking[-number:] if scores[name] > scores[member]]
  return top[rng.integers(len(top))] if top else None


def sample(rng: np.random.Generator, ranges: Mapping[str, Range]) -> dict[str, float]:
  """Draws every hyperparameter from its prior."""
  return {name: _draw(rng, ranges[name]) for name in sorted(ranges)}


def perturb(rng: np.random.Generator, hyperparameters: Hyperparameters,
            ranges: Mapping[str, Range], factors: Sequence[float] = (0.8, 1.2),
            probability: float = 1.0) -> dict[str, float]:
  """Multiplies every hyperparameter by a factor drawn for it (section 4.1.1), within its range.

  A product never crosses zero, nor leaves it: give a range that holds zero to `resample`.

  Args:
    rng: for the draws.
    hyperparameters: name -> value.
    ranges: of the same names.
    factors: equally probable; IMPALA (Espeholt et al. 2018) divides by 1.2 rather than take 0.8.
    probability: with which each is multiplied at all; 0.33 in IMPALA.

  Raises:
    ValueError: names differ, or a value is outside its range.
  """
  result = checked(hyperparameters, ranges)
  for name in sorted(result):
    # Both are always drawn: what one hyperparameter does must not shift the draws of the next.
    change, factor = rng.random() < probability, factors[rng.integers(len(factors))]
    if change:
      result[name] = _clip(result[name] * factor, ranges[name])
  return result


def resample(rng: np.random.Generator, hyperparameters: Hyperparameters,
             ranges: Mapping[str, Range], probability: float = 0.25) -> dict[str, float]:
  """Draws each hyperparameter anew from its prior with some probability (section 4.1.1).

  Args:
    rng: for the draws.
    hyperparameters: name -> value.
    ranges: of the same names.
    probability: with which each is drawn anew; the paper does not say.

  Raises:
    ValueError: names differ, or a value is outside its range.
  """
  result = checked(hyperparameters, ranges)
  for name in sorted(result):
    change, value = rng.random() < probability, _draw(rng, ranges[name])
    if change:
      result[name] = value
  return result


def checked(hyperparameters: Hyperparameters, ranges: Mapping[str, Range]) -> dict[str, float]:
  """The hyperparameters as floats; ValueError where names differ or one is outside its range."""
  if set(hyperparameters) != set(ranges):
    raise ValueError(f"hyperparameters: expected {sorted(ranges)}, found {sorted(hyperparameters)}")
  for name, value in hyperparameters.items():
    low, high, _ = ranges[name]
    if not low <= value <= high:  # nor is NaN
      raise ValueError(f"hyperparameter {name!r}: expected {low} to {high}, found {value}")
  return {name: float(value) for name, value in hyperparameters.items()}


def check_range(name: str, range_: Any) -> None:
  low, high, scale = Range(*range_)
  if scale not in (LOG, LINEAR):
    raise ValueError(f"range of {name!r}: expected scale {LOG!r} or {LINEAR!r}, found {scale!r}")
  if not (math.isfinite(low) and math.isfinite(high) and low < high and (scale != LOG or low > 0)):
    raise ValueError(f"range of {name!r}: expected finite low < high"
                     f"{' and low > 0' if scale == LOG else ''}, found {low} and {high}")


def _of(member: str, evaluations: Evaluations) -> Sequence[float]:
  if member not in evaluations:
    raise ValueError(f"member: expected one of {sorted(evaluations)}, found {member!r}")
  return evaluations[member]


def _draw(rng: np.random.Generator, range_: Range) -> float:
  low, high, scale = range_
  drawn = rng.random()
  if scale == LOG:
    return _clip(math.exp(math.log(low) + (math.log(high) - math.log(low)) * drawn), range_)
  return _clip(low + (high - low) * drawn, range_)


def _clip(value: float, range_: Range) -> float:
  return min(max(value, range_.low), range_.high)
