"""Panels stand in a grid whose rows are as high as their highest panel."""

import xml.etree.ElementTree as ElementTree

from starleague.viewers import svg


def test_panels_stand_in_a_grid():
  text = svg.picture([svg.Drawing("<path/>", height) for height in (50, 70, 30)])
  root = ElementTree.fromstring(text)
  places = [group.get("transform") for group in root.findall("{http://www.w3.org/2000/svg}g")]
  assert places == ["translate(18 18)", "translate(546 18)", "translate(18 106)"]
  assert (root.get("width"), root.get("height")) == ("1074", "154")


def test_one_column_is_as_wide_as_a_panel():
  root = ElementTree.fromstring(svg.picture([svg.Drawing("", 10)] * 2, columns=1))
  assert root.get("width") == str(svg.WIDTH + 2 * svg.GAP) and root.get("height") == "74"
