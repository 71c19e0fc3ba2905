"""Curves are drawn to scale, bands are cut at the axes, ticks are round numbers."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from starleague.viewers import lines, svg

NAME = {"svg": "http://www.w3.org/2000/svg"}
NONE = (-math.inf, -math.inf, -math.inf)
PANEL = lines.Panel("A & B", "steps", (
  lines.Curve("a", (0, 500, 1000), (0.0, 5.0, 10.0), (-100.0, 4.0, 9.0), (1.0, 6.0, 11.0)),
  lines.Curve("<b>", (0, 500, 1000), (2.0, 2.0, 2.0), NONE, (math.inf,) * 3)))


@pytest.mark.parametrize("low, high, expected", [
  (0.0, 10.0, [0, 5, 10]), (0.0, 1000.0, [0, 500, 1000]), (-0.3, 0.45, [-0.2, 0, 0.2, 0.4]),
  (0.0, 4e6, [0, 1e6, 2e6, 3e6, 4e6]), (97.0, 99.0, [97, 97.5, 98, 98.5, 99])])
def test_ticks_are_round(low, high, expected):
  assert lines.ticks(low, high) == pytest.approx(expected)


def test_axes_hold_the_curves_and_half_as_much_of_the_bands():
  # Curves from 0 to 10: the band from -100 is cut at -5, that up to 11 is shown.
  assert lines.axes(PANEL) == (1000.0, -5.0, 11.0, 0.0, False)
  flat = lines.Panel("", "", (lines.Curve("a", (0,), (3.0,), (-math.inf,), (math.inf,)),))
  assert lines.axes(flat) == (1.0, 2.5, 3.5, 0.0, False)


def test_the_picture_draws_to_scale():
  root = ElementTree.fromstring(svg.picture([lines.drawing(PANEL)]))
  group = root.find("svg:g", NAME)
  points = [line.get("points") for line in group.findall("svg:polyline", NAME)]
  # x: 0 to 1000 on pixels 56 to 498. y: 11 to -5 on pixels 30 to 250.
  assert points[0] == "56.0,181.2 277.0,112.5 498.0,43.8"
  assert points[1] == "56.0,153.8 277.0,153.8 498.0,153.8"
  bands = group.findall("svg:polygon", NAME)
  assert [band.get("points") for band in bands] == [
    "56.0,167.5 277.0,98.8 498.0,30.0 498.0,57.5 277.0,126.2 56.0,250.0"]
  words = [element.text for element in group.findall("svg:text", NAME)]
  assert words == ["A & B", "-5", "0", "5", "10", "0", "500", "1 000", "steps", "a", "<b>"]


def test_a_plot_has_curves_bands_and_ranges():
  plot = lines.plot(PANEL)
  assert [trace.get("name") for trace in plot["data"]] == [None, None, "a", "&lt;b>"]
  assert plot["data"][0]["y"] == [-100.0, 4.0, 9.0] and plot["data"][2]["x"] == [0, 500, 1000]
  assert plot["layout"]["yaxis"]["range"] == [-5.0, 11.0]
  assert plot["layout"]["xaxis"]["title"]["text"] == "steps"


LOG_PANEL = lines.Panel("growth", "games", (
  lines.Curve("a", (1, 10, 1000), (10.0, 100.0, 1e4), (10.0, 50.0, 1e4), (10.0, 200.0, 1e4)),),
  logarithmic=True)


@pytest.mark.parametrize("low, high, expected", [
  (0.0, 3.0, [1, 10, 100, 1000]), (-1.0, 1.0, [0.1, 1, 10]),
  (math.log10(64), math.log10(512), [100, 200, 500]), (0.0, 0.9, [1, 2, 5]),
  (math.log10(3.1), math.log10(3.6), [3.2, 3.4, 3.6])])
def test_ticks_of_logarithmic_axes_are_round(low, high, expected):
  assert lines.log_ticks(low, high) == pytest.approx(expected)


def test_logarithmic_axes_draw_equal_ratios_as_equal_lengths():
  assert lines.axes(LOG_PANEL) == (3.0, 1.0, 4.0, 0.0, True)
  group = ElementTree.fromstring(svg.picture([lines.drawing(LOG_PANEL)])).find("svg:g", NAME)
  # x: 1 to 1000 on pixels 56 to 498. y: 10 000 to 10 on pixels 30 to 250. A decade is a third.
  points = "56.0,250.0 203.3,176.7 498.0,30.0"
  assert group.find("svg:polyline", NAME).get("points") == points
  assert [f"{mark.get('cx')},{mark.get('cy')}" for mark in group.findall("svg:circle", NAME)] == (
    points.split())
  words = [element.text for element in group.findall("svg:text", NAME)]
  assert words == ["growth", "10", "100", "1000", "10000", "1", "10", "100", "1 000", "games", "a"]
  layout = lines.plot(LOG_PANEL)["layout"]
  assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("log", "log")
  assert layout["yaxis"]["range"] == [1.0, 4.0]


def test_one_size_can_be_drawn_on_logarithmic_axes():
  one = lines.Panel("", "", (lines.Curve("a", (4,), (100.0,), (100.0,), (100.0,)),), True)
  assert lines.axes(one)[1:] == (1.5, 2.5, math.log10(4), True)
  assert 'cx="56.0" cy="140.0"' in lines.drawing(one).elements


def test_a_panel_without_curves_can_be_drawn():
  assert "empty" in lines.drawing(lines.Panel("empty", "x", ())).elements
