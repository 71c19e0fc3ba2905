"""Selection and exploration of population-based training, as pure functions.

Source: Jaderberg et al. 2017, "Population Based Training of Neural Networks", section 4.1.1. The
functions take evaluations, hyperparameters and a numpy generator; `population` stores the members.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from starleague.common.errors import UserError

Hyperparameters = Mapping[str, float]
Evaluations = Mapping[str, Sequence[float]]  # by member, oldest first; higher is better

LOG, LINEAR = "log", "linear"


class Range(NamedTuple):
  """The range of a hyperparameter, and its prior.

  The prior is uniform in the value for LINEAR, and in its logarithm for LOG.

  Attributes:
    low: inclusive; above 0 for the log scale.
    high: inclusive; above `low`.
    scale: LOG or LINEAR.
  """

  low: float
  high: float
  scale: str = LOG


class Welch(NamedTuple):
  """The result of `welch_test`."""

  statistic: float
  degrees_of_freedom: float
  p_value: float
  standard_error: float  # of the difference of the means


Select = Callable[[np.random.Generator, str, Evaluations], str | None]
Explore = Callable[[np.random.Generator, Hyperparameters, Mapping[str, Range]], dict[str, float]]


def welch_test(mine: Sequence[float], other: Sequence[float]) -> Welch:
  """Computes Welch's one-sided t-test of whether the mean of `mine` is below that of `other`.

  t = (mean(mine) - mean(other)) / sqrt(var(mine) / N + var(other) / M), with the degrees of freedom
  of Welch and Satterthwaite; variances may differ.

  Args:
    mine: [N] numbers, N >= 2.
    other: [M] numbers, M >= 2.

  Returns:
    The statistic, its degrees of freedom, the probability of one as low under equal means, and
    the standard error of the difference. Two constant samples give probability 0, 0.5 or 1 by their
    means, and N + M - 2 degrees of freedom.

  Raises:
    ValueError: a sample has fewer than two numbers, or is not finite.
  """
  for name, sample in (("mine", mine), ("other", other)):
    if len(sample) < 2 or not np.all(np.isfinite(sample)):
      raise ValueError(f"{name}: expected at least 2 finite numbers, found {list(sample)}")
  # Subtract the first number: equal constant samples then differ by exactly zero.
  a = np.asarray(mine, np.float64) - mine[0]
  b = np.asarray(other, np.float64) - mine[0]
  difference = float(a.mean() - b.mean())
  va, vb = float(a.var(ddof=1)) / a.size, float(b.var(ddof=1)) / b.size
  if va + vb == 0:
    statistic = math.copysign(math.inf, difference) if difference else 0.0
    return Welch(statistic, a.size + b.size - 2.0, float(difference > 0) if difference else 0.5,
                 0.0)
  error = math.sqrt(va + vb)
  statistic = difference / error
  # As fractions of their sum: squares of the variances could underflow.
  fa, fb = va / (va + vb), vb / (va + vb)
  degrees = 1 / (fa * fa / (a.size - 1) + fb * fb / (b.size - 1))
  return Welch(statistic, degrees, float(special.stdtr(degrees, statistic)), error)


def t_selection(rng: np.random.Generator, member: str, evaluations: Evaluations,
                significance: float = 0.05) -> str | None:
  """Draws another member and selects it if it is better by Welch's test (section 4.1.1).

  Args:
    rng: source of randomness.
    member: the one that may be overwritten.
    evaluations: of all members including `member`; the last 10 of each in the paper.
    significance: upper bound of the p-value. The paper gives none; 5% is usual.

  Returns:
    The member to copy, or None. None also if either has fewer than two evaluations.

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
  """Draws a member of the top 20% for a member of the bottom 20% to copy (section 4.1.1).

  Members rank by mean evaluation, ties by name; members without evaluations do not rank. Top and
  bottom have equal size, rounded down, but at least one if two or more members rank.

  Args:
    rng: source of randomness.
    member: the one that may be overwritten.
    evaluations: of all members including `member`.
    fraction: share of the members that form the top, and the bottom.

  Returns:
    The member to copy, or None. None also if no member of the top is better.

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
  """Multiplies each hyperparameter by a random factor and clips it to its range (section 4.1.1).

  A product never changes its sign and never leaves zero: use `resample` for ranges with zero.

  Args:
    rng: source of randomness.
    hyperparameters: name -> value.
    ranges: of the same names.
    factors: equally probable; IMPALA (Espeholt et al. 2018) has 1 / 1.2 in place of 0.8.
    probability: of a multiplication, for each; 0.33 in IMPALA.

  Raises:
    ValueError: names differ, or a value is outside its range.
  """
  result = checked(hyperparameters, ranges)
  for name in sorted(result):
    # Both are always drawn: the draws for a hyperparameter must not depend on those before it.
    change, factor = rng.random() < probability, factors[rng.integers(len(factors))]
    if change:
      result[name] = _clip(result[name] * factor, ranges[name])
  return result


def resample(rng: np.random.Generator, hyperparameters: Hyperparameters,
             ranges: Mapping[str, Range], probability: float = 0.25) -> dict[str, float]:
  """Replaces each hyperparameter with some probability by a draw from its prior (section 4.1.1).

  Args:
    rng: source of randomness.
    hyperparameters: name -> value.
    ranges: of the same names.
    probability: of a new draw, for each; the paper gives none.

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
  """Returns the hyperparameters as floats; raises ValueError for other names or values."""
  if set(hyperparameters) != set(ranges):
    raise ValueError(f"hyperparameters: expected {sorted(ranges)}, found {sorted(hyperparameters)}")
  for name, value in hyperparameters.items():
    low, high, _ = ranges[name]
    if not low <= value <= high:  # also false for NaN
      raise ValueError(f"hyperparameter {name!r}: expected {low} to {high}, found {value}")
  return {name: float(value) for name, value in hyperparameters.items()}


def parse_ranges(texts: Sequence[str], names: Iterable[str]) -> dict[str, Range]:
  """Returns the ranges of hyperparameters from texts NAME=LOW:HIGH, or NAME=LOW:HIGH:linear.

  Args:
    texts: of a command line or a config.
    names: that can be tuned.

  Raises:
    UserError: a text is no range, or its name cannot be tuned or stands twice.
  """
  names, found = tuple(names), {}
  for text in texts:
    name, _, bounds = text.partition("=")
    low, _, rest = bounds.partition(":")
    high, _, scale = rest.partition(":")
    try:
      chosen = Range(float(low), float(high), scale or LOG)
      if chosen.scale not in (LOG, LINEAR):
        raise ValueError(scale)
    except ValueError:
      raise UserError(f"range {text!r}: expected NAME=LOW:HIGH, as learning_rate=1e-4:1e-2, or "
                      "NAME=LOW:HIGH:linear") from None
    if name not in names:
      raise UserError(f"range {text!r}: {name!r} cannot be tuned; expected one of "
                      f"{', '.join(names)}")
    if name in found:
      raise UserError(f"range {text!r}: {name!r} has a range already; expected one")
    try:
      check_range(name, chosen)
    except ValueError:
      raise UserError(f"range {text!r}: expected LOW below HIGH, both finite, and above 0 without "
                      "':linear'") from None
    found[name] = chosen
  return found


def check_range(name: str, range_: Range) -> None:
  """Raises ValueError for a range without finite bounds, or with an unknown scale."""
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
