"""Self-contained HTML pages: templates filled with data and with the scripts beside them."""

import html
import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_CHARTS = pathlib.Path(__file__).with_name("charts.html")
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


class Charts(NamedTuple):
  """Plots under a heading. Each plot is a dict of Plotly's data and layout."""

  title: str
  plots: Sequence[Mapping[str, Any]]


def charts_page(title: str, text: str, charts: Sequence[Charts]) -> str:
  """Returns a self-contained page of charts.

  Args:
    title: of the page, plain text.
    text: below the title, plain text.
    charts: in reading order.
  """
  from plotly.offline import get_plotlyjs  # slow to import
  return fill(_CHARTS, {
    "TITLE": html.escape(title), "TEXT": html.escape(text), "PLOTLY": get_plotlyjs(),
    "CHARTS": json_element([chart._asdict() for chart in charts])})


def json_element(data: Any) -> str:
  """Returns JSON for the inside of a script element.

  Raises:
    ValueError: a value that is not finite, which JSON cannot hold.
  """
  # "</script>" would end the element, so no "<" is written out.
  return json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
