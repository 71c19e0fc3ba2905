"""Panels, tables and differences of measures with known values."""

import math

import pytest

from starleague.experiments.run.evaluation import estimates, measures

TITLES = {"a": "first", "b": "second", "c": "third"}
SCORE = measures.Measure("score", 1, {"a": (1.0, 3.0), "b": (4.0, 8.0), "c": (5.0, math.inf)})


def test_a_panel_has_means_with_intervals():
  first, second, third = measures.panel(SCORE, TITLES).bars
  assert (first.label, first.value, first.points) == ("first", 2.0, (1.0, 3.0))
  assert first[1:4] == tuple(estimates.mean((1.0, 3.0)))
  assert second.high - second.value == pytest.approx(12.706 * 2, abs=1e-2)
  assert math.isinf(third.value)


def test_a_table_has_a_row_for_each_bar():
  other = measures.Measure("time", 0, {"b": (7.0,)})
  lines = measures.table([measures.panel(SCORE, TITLES), measures.panel(other, TITLES)])
  assert lines == ["| | score | time |", "|---|---|---|", "| first | 2.0 (-10.7 to 14.7) |  |",
                   "| second | 6.0 (-19.4 to 31.4) | 7 |", "| third | reached by 1 of 2 |  |"]


def test_differences_are_of_pairs_that_can_be_tested():
  single = measures.Measure("time", 0, {"a": (7.0,), "b": (7.0, 8.0)})
  rows = measures.differences([SCORE, single], [("a", "b"), ("b", "c"), ("a", "d")])
  assert [row[:3] for row in rows] == [["score", "b", "a"]]
  assert rows[0][3:] == list(estimates.difference((4.0, 8.0), (1.0, 3.0)))
  lines = measures.step_table(rows, TITLES)
  assert lines[:2] == ["| step | measure | difference | p |", "|---|---|---|---|"]
  assert lines[2].startswith("| first -> second | score | +4 (")
