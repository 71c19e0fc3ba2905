"""Bar charts: places of bars, intervals and points."""

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from starleague.viewers import bars

PANEL = bars.Panel("A & B", (
  bars.Bar("half", 50.0, 25.0, 100.0, (40.0, 60.0)),
  bars.Bar("<none>", math.inf, math.nan, math.nan, (math.inf, 80.0)),
  bars.Bar("one seed", -100.0, -math.inf, math.inf, (-100.0,))), digits=1)


def test_the_picture_draws_to_scale():
  text = bars.picture([PANEL, PANEL, PANEL])
  root = ElementTree.fromstring(text)
  name = {"svg": "http://www.w3.org/2000/svg"}
  groups = root.findall("svg:g", name)
  assert len(groups) == 3
  drawn = groups[0].findall("svg:rect", name)
  # From -100 to 100 over 186 pixels, after 200 pixels of labels: 0 is at 293.
  assert [float(drawn[0].get(key)) for key in ("x", "width")] == [293.0, 46.5]
  assert [float(drawn[1].get(key)) for key in ("x", "width")] == [200.0, 93.0]
  assert [path.get("d") for path in groups[0].findall("svg:path", name)] == ["M316.2 43.0H386.0"]
  points = [float(dot.get("cx")) for dot in groups[0].findall("svg:circle", name)]
  assert points == pytest.approx([330.2, 348.8, 367.4, 200.0], abs=0.051)
  words = [element.text for element in groups[0].findall("svg:text", name)]
  assert words == ["A & B", "half", "50.0 (25.0 to 100.0)", "<none>", "reached by 1 of 2",
                   "one seed", "-100.0"]
  first, second, third = (tuple(map(float, re.findall(r"[\d.]+", group.get("transform"))))
                          for group in groups)
  assert first[1] == second[1] < third[1] and first[0] == third[0] < second[0]
  assert float(root.get("width")) > second[0] + 400


def test_a_plot_has_the_values_from_the_bottom_up():
  data = bars.plot(PANEL)["data"]
  assert data[0]["y"] == ["one seed", "half"] and data[0]["x"] == [-100.0, 50.0]
  assert data[0]["error_x"]["array"] == [0.0, 50.0]
  assert data[0]["error_x"]["arrayminus"] == [0.0, 25.0]
  assert data[1]["x"] == [-100.0, 40.0, 60.0]


def test_a_panel_of_zeros_can_be_drawn():
  assert "width=\"0.0\"" in bars.picture([bars.Panel("zeros", (bars.Bar("a", 0.0, 0.0, 0.0, ()),))])
