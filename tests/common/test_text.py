"""Short text for counts."""

import pytest

from starleague.common import text


@pytest.mark.parametrize("value, expected", [
  (0, "0"), (999, "999"), (9_999, "9 999"), (10_000, "10.0 k"), (999_499, "999 k"),
  (999_500, "1.00 M"), (123.4e6, "123 M"), (2.28e9, "2.28 G"), (2.28e12, "2.28 T"),
  (-12_345, "-12.3 k")])
def test_counts(value, expected):
  assert text.count(value) == expected
