"""Templates and their places."""

import base64
import re
import zlib

import pytest
from plotly.offline import get_plotlyjs

from starleague.viewers import pages, plots
from tests.viewers.pages import check_self_contained


def test_places_are_filled_once(tmp_path):
  (tmp_path / "script.js").write_text("const a = '{{TITLE}}';")
  template = tmp_path / "page.html"
  template.write_text("<h1>{{TITLE}}</h1><script>{{script.js}}</script>")
  assert pages.fill(template, {"TITLE": "{{script.js}}"}) == (
    "<h1>{{script.js}}</h1><script>const a = '{{TITLE}}';</script>")
  with pytest.raises(KeyError, match="TITLE"):
    pages.fill(template, {})


def test_json_cannot_end_its_script_element():
  assert pages.json_element(["</script>", "é"]) == '["\\u003c/script>", "é"]'
  with pytest.raises(ValueError):
    pages.json_element(float("nan"))


def test_plotly_is_held_compressed():
  found = pages.plotly_elements()
  packed = re.search(r"<script type='text/plain' id='plotly'>(.*?)</script>", found)[1]
  assert zlib.decompress(base64.b64decode(packed)).decode() == get_plotlyjs()
  assert len(found) < 2_000_000 < len(get_plotlyjs()) / 2


def test_places_of_plots_name_them_for_screen_readers():
  figure = {"data": [{"type": "bar", "y": ["</script>"]}], "layout": plots.layout(210)}
  assert pages.plot_element("it's <b>", figure).startswith(
    "<div class='plot' role='img' aria-label='it&#x27;s &lt;b&gt;' style='min-height: 210px'>"
    "<script type='application/json'>{")
  assert pages.plot_element("", figure).count("</script>") == 1


def test_tiles():
  assert pages.tiles([]) == ""
  assert pages.tiles([("a<", "1", "")]) == (
    "<div class='tiles'><div class='tile'><div class='name'>a&lt;</div>"
    "<div class='figure'>1</div><div class='remark'></div></div></div>")


def test_a_page_of_charts():
  charts = [pages.Charts("first", [{"data": [], "layout": plots.layout(100)}] * 2)]
  page = pages.charts_page("<title>", "text", charts)
  check_self_contained(page)
  assert "<h1>&lt;title&gt;</h1>" in page and page.count("<div class='plot'") == 2
