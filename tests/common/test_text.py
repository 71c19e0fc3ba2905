"""Short text for counts; names of files."""

import os

import pytest

from starleague.common import text


@pytest.mark.parametrize("value, expected", [
  (0, "0"), (999, "999"), (9_999, "9 999"), (10_000, "10.0 k"), (999_499, "999 k"),
  (999_500, "1.00 M"), (123.4e6, "123 M"), (2.28e9, "2.28 G"), (2.28e12, "2.28 T"),
  (-12_345, "-12.3 k"), (999.4e12, "999 T"), (999.5e12, "1 000 T"), (1e15, "1 000 T"),
  (-1.234567e18, "-1 234 567 T"), (-0.4, "0"), (-0.0, "0"), (-0.6, "-1")])
def test_counts(value, expected):
  assert text.count(value) == expected


def test_undecodable_bytes_of_names_are_escaped():
  assert text.printable(os.fsdecode(b"game\xff.SC2Replay")) == "game\\xff.SC2Replay"
  assert text.printable("Königshügel 돌") == "Königshügel 돌"
