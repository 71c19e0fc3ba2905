"""The plots of the report."""

import math

import numpy as np
import pytest

from starleague.common.results import Row
from starleague.viewers import plots
from starleague.viewers.report import figures as report_figures


def test_long_curves_are_thinned_to_means_and_smoothed():
  rows = [Row(float(i), i, "loss/total", float(i % 2)) for i in range(12_000)]
  raw, smooth = report_figures.curves({"total": rows}, report_figures.time_axis(12_000))["data"]
  assert len(raw["y"]) == len(smooth["y"]) == 600
  assert raw["y"] == [0.5] * 600  # each the mean of 20
  assert raw["x"][0] == pytest.approx(10 / 3600, rel=1e-5)
  assert raw["opacity"] < 1 and smooth["line"]["width"] > raw["line"]["width"]


def test_a_name_has_one_colour_and_place_in_several_figures():
  rows, axis = [Row(1.0, 1, "x", 0.0)], report_figures.time_axis(1)
  names = ["delay", "function", "units"]
  styles = plots.styles(names)
  some = report_figures.curves({"units": rows, "delay": rows}, axis, styles=styles)["data"]
  every = report_figures.curves(dict.fromkeys(reversed(names), rows), axis, styles=styles)["data"]
  assert [line["name"] for line in every] == names
  assert [(line["name"], line["line"]["color"]) for line in some] == [
    (line["name"], line["line"]["color"]) for line in every if line["name"] != "function"]


def test_thinned_scores_keep_the_last():
  rows = [Row(float(i), i, "score/eval/x", 0.5, 0.4, 0.6) for i in range(1000)]
  figure = report_figures.score(rows, [], [], report_figures.time_axis(1000))
  assert len(figure["data"][-1]["x"]) == 500 and figure["data"][-1]["customdata"][-1] == 999


@pytest.mark.parametrize(("low", "high"), [
  (-math.inf, 0.6), (0.4, math.inf), (math.nan, math.nan), (None, 0.6), (0.4, None), (None, None)])
def test_bands_have_finite_bounds(low, high):
  rows = [Row(1.0, 1, "score/eval/x", 0.5, 0.4, 0.6), Row(2.0, 2, "score/eval/x", 0.5, low, high)]
  data = report_figures.score(rows, [], rows[1:], report_figures.time_axis(2))["data"]
  bands = [trace for trace in data if "fill" in trace]
  assert [list(trace["x"]) for trace in bands] == [[1.0]]  # none of the initial weights
  assert [trace["y"] for trace in data[-1:]] == [[0.5, 0.5]]
  assert "stroke-opacity" not in report_figures.interval_svg(None, None, rows[1])


def test_running_mean_equals_numpy_and_skips_gaps():
  values = np.random.default_rng(0).normal(size=50).round(3)
  expected = [values[max(0, i - 3):i + 4].mean() for i in range(50)]
  np.testing.assert_allclose(report_figures.running_mean(values.tolist(), 7), expected, rtol=1e-5)
  assert report_figures.running_mean([1.0, None, 3.0, None, None, None], 3) == [
    1.0, 2.0, 3.0, 3.0, None, None]


@pytest.mark.parametrize(("seconds", "unit", "end"), [
  (0, "s", 1.0), (179, "s", 179.0), (180, "min", 3.0), (10_799, "min", 10_799 / 60),
  (10_800, "h", 3.0), (259_200, "d", 3.0)])
def test_time_axis(seconds, unit, end):
  axis = report_figures.time_axis(seconds)
  assert (axis.unit, axis.end) == (unit, end)


def test_interval_drawing_is_to_scale():
  """From 8 to 212 across: 0.25 is at 59, 0.75 at 161."""
  drawing = report_figures.interval_svg(None, None, Row(1.0, 1, "x", 0.5, 0.25, 0.75))
  assert "<line x1='59.0' x2='161.0'" in drawing and "<circle cx='110.0'" in drawing
  assert drawing.count("<circle") == 1
