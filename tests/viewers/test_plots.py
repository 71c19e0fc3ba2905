"""The shared parts of plots."""

from starleague.viewers import plots


def test_layouts_do_not_share_their_axes():
  first, second = plots.layout(100), plots.layout(200)
  first["yaxis"]["range"] = [0, 1]
  first["xaxis"]["title"] = "x"
  assert "range" not in second["yaxis"] and "title" not in second["xaxis"]
  assert "range" not in first["xaxis"]
  assert (first["height"], second["height"]) == (100, 200)


def test_colours_and_labels():
  assert plots.faint("#ff8000", 0.25) == "rgba(255,128,0,0.25)"
  assert plots.plain("<b>&%{x}") == "&lt;b>&amp;% {x}"
