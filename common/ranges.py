"""Ranges of valid numbers, of configs and of options."""

import math
from typing import NamedTuple

MAX_INT = 2**31 - 1  # seeds and counts are int32 on devices


class Range(NamedTuple):
  """The valid values of a number; NaN is in no range."""

  low: float
  high: float
  low_open: bool = False  # low itself is invalid
  high_open: bool = False

  def __contains__(self, value: object) -> bool:
    assert isinstance(value, int | float)
    return ((self.low < value if self.low_open else self.low <= value)
            and (value < self.high if self.high_open else value <= self.high))

  def __str__(self) -> str:
    if self.high == math.inf:
      return f"{'above' if self.low_open else 'at least'} {self.low:g}"
    high = f"{self.high:.0f}" if self.high == MAX_INT else f"{self.high:g}"
    return f"in {'(' if self.low_open else '['}{self.low:g}, {high}{')' if self.high_open else ']'}"


POSITIVE = Range(0.0, math.inf, low_open=True, high_open=True)
COST = Range(0.0, math.inf, high_open=True)
COUNT = Range(1, MAX_INT)
COUNT_OR_NONE = Range(0, MAX_INT)
FRACTION = Range(0.0, 1.0)
DECAY = Range(0.0, 1.0, high_open=True)
