"""Self-contained HTML pages: templates filled with data and with the scripts beside them."""

import base64
import functools
import html
import json
import pathlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from starleague.viewers import plots

_CHARTS = pathlib.Path(__file__).with_name("charts.html")
_DRAW = pathlib.Path(__file__).with_name("plots.js")
SHAPES_FILE = pathlib.Path(__file__).with_name("shapes.json")  # unit outlines by type


def fill(template: pathlib.Path, parts: Mapping[str, str]) -> str:
  """Returns a page: a template with its places filled.

  All places are filled in one pass, because a value may itself look like a place.

  Args:
    template: file with places. `{{NAME}}` becomes `parts["NAME"]`; `{{../map.js}}`, with a dot in
      it, becomes the text of that file, relative to the template's folder.
    parts: values of the places, as HTML.

  Raises:
    KeyError: a place without a value.
  """
  def value(place: re.Match) -> str:
    name = place[1]
    return (template.parent / name).read_text(encoding="utf-8") if "." in name else parts[name]

  return re.sub(r"\{\{([\w./]+)\}\}", value, template.read_text(encoding="utf-8"))


@functools.cache
def plotly_elements() -> str:
  """Returns the script elements that give a page plotly and `drawPlots` (plots.js).

  Plotly is 4.8 MB of a page, 2.0 MB compressed and as base64.
  """
  from plotly.offline import get_plotlyjs  # slow to import
  packed = base64.b64encode(zlib.compress(get_plotlyjs().encode(), 9)).decode()
  draw = _DRAW.read_text(encoding="utf-8")
  return f"<script type='text/plain' id='plotly'>{packed}</script>\n<script>{draw}</script>"


def plot_element(title: str, figure: plots.Figure) -> str:
  """Returns the place of a plot, which `drawPlots` fills; the title is for screen readers."""
  label = html.escape(plots.alternative(title, figure), quote=True)
  return (f"<div class='plot' role='img' aria-label='{label}' "
          f"style='min-height: {figure['layout']['height']}px'>"
          f"<script type='application/json'>{json_element(figure)}</script></div>")


def tiles(found: Iterable[tuple[str, str, str]]) -> str:
  """Returns the figures at the top of a page, each (name, value, remark); "" without any."""
  inside = "".join(
    f"<div class='tile'><div class='name'>{html.escape(name)}</div>"
    f"<div class='figure'>{html.escape(value)}</div>"
    f"<div class='remark'>{html.escape(remark)}</div></div>" for name, value, remark in found)
  return f"<div class='tiles'>{inside}</div>" if inside else ""


class Charts(NamedTuple):
  """Plots under a heading. Each plot is a dict of Plotly's data and layout."""

  title: str
  plots: Sequence[plots.Figure]


def charts_page(title: str, text: str, charts: Sequence[Charts]) -> str:
  """Returns a self-contained page of charts.

  Args:
    title: of the page, plain text.
    text: below the title, plain text.
    charts: in reading order.
  """
  body = "".join(
    f"<h2>{html.escape(chart.title)}</h2><div class='pair'>"
    + "".join(plot_element(chart.title, plot) for plot in chart.plots) + "</div>"
    for chart in charts)
  return fill(_CHARTS, {"TITLE": html.escape(title), "TEXT": html.escape(text), "BODY": body,
                        "PLOTLY": plotly_elements()})


def json_element(data: Any) -> str:
  """Returns JSON for the inside of a script element.

  Raises:
    ValueError: a value that is not finite, which JSON cannot hold.
  """
  # "</script>" would end the element, so no "<" is written out.
  return json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
