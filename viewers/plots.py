"""What the plots of all pages share, in plotly's JSON format.

Plots are plain data instead of plotly's classes, which take a second to import.
"""

from typing import Any

Figure = dict[str, Any]  # data and layout, the arguments of Plotly.newPlot

COLOURS = ("#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed", "#0891b2", "#65a30d", "#b91c1c",
           "#475569", "#a16207")
LEGEND_BELOW = {"orientation": "h", "y": -0.14, "yanchor": "top", "x": 0}


def layout(height: int) -> dict[str, Any]:
  """Returns the layout of a plot of a height in pixels, without a legend."""
  axis = {"gridcolor": "#f1f5f9", "zerolinecolor": "#cbd5e1", "linecolor": "#cbd5e1",
          "ticks": "outside", "tickcolor": "#cbd5e1", "ticklen": 4, "automargin": True}
  return {
    "height": height, "margin": {"l": 44, "r": 12, "t": 8, "b": 28},
    "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"family": "system-ui, sans-serif", "size": 11, "color": "#475569"},
    "xaxis": {**axis, "showgrid": False, "zeroline": False}, "yaxis": axis, "showlegend": False,
    "hoverlabel": {"bgcolor": "#fff", "bordercolor": "#cbd5e1", "font": {"color": "#0f172a"}}}


def faint(colour: str, opacity: float) -> str:
  """Returns a colour `#rrggbb` with an opacity."""
  red, green, blue = (int(colour[i:i + 2], 16) for i in (1, 3, 5))
  return f"rgba({red},{green},{blue},{opacity})"


def plain(label: str) -> str:
  """Escapes a label for hover texts, in which plotly reads markup and %{...}."""
  return label.replace("&", "&amp;").replace("<", "&lt;").replace("%{", "% {")
