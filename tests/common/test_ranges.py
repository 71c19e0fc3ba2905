"""Ranges hold their values and describe them."""

import math

import pytest

from starleague.common.ranges import MAX_INT, Range


@pytest.mark.parametrize("valid, inside, outside, text", [
  (Range(0.0, 1.0), [0.0, 0.5, 1.0], [-0.1, 1.1, math.nan], "in [0, 1]"),
  (Range(0.0, 1.0, low_open=True), [1e-9, 1.0], [0.0], "in (0, 1]"),
  (Range(0.0, 1.0, high_open=True), [0.0], [1.0], "in [0, 1)"),
  (Range(2, MAX_INT), [2, MAX_INT], [1, MAX_INT + 1], "in [2, 2147483647]"),
  (Range(0.0, math.inf, high_open=True), [0.0, 1e300], [math.inf, -1e-9], "at least 0"),
  (Range(0.0, math.inf, low_open=True, high_open=True), [1e-300], [0.0, math.nan], "above 0")])
def test_a_range_holds_its_values_and_tells_them(valid, inside, outside, text):
  assert all(value in valid for value in inside)
  assert not any(value in valid for value in outside)
  assert str(valid) == text
