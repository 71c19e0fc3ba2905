"""SVG pictures of panels in a grid, and what their panels share."""

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, GAP = 510, 18  # of a panel, and between panels, pixels
INK, GREY = "#0f172a", "#64748b"
_FONT = 'font-family="system-ui, Segoe UI, DejaVu Sans, sans-serif"'


class Drawing(NamedTuple):
  """A panel: SVG elements within WIDTH and a height, in pixels."""

  elements: str
  height: float


def picture(drawings: Sequence[Drawing], columns: int = 2) -> str:
  """Returns panels as an SVG picture.

  Args:
    drawings: in reading order.
    columns: panels side by side.
  """
  rows = [drawings[i:i + columns] for i in range(0, len(drawings), columns)]
  parts, top = [], float(GAP)
  for row in rows:
    parts += [f'<g transform="translate({GAP + i * (WIDTH + GAP)} {top:g})">{drawing.elements}'
              "</g>\n" for i, drawing in enumerate(row)]
    top += max(drawing.height for drawing in row) + GAP
  width = GAP + min(columns, len(drawings)) * (WIDTH + GAP)
  return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top:g}" width="{width}" '
          f'height="{top:g}" {_FONT} font-size="12" fill="{INK}">\n'
          f'<rect width="100%" height="100%" fill="white"/>\n{"".join(parts)}</svg>\n')
