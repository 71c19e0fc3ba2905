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


def test_a_plot_has_a_text_that_stands_for_it():
  def figure(*traces, **axis):
    return {"data": list(traces), "layout": {"yaxis": axis}}

  line = {"type": "scatter", "name": "a", "y": [0.12345, None, 2.0]}
  faint = {**line, "opacity": 0.25, "y": [9.0]}
  assert plots.alternative("Loss", figure(faint, line)) == "Loss: a 0.123 to 2"
  assert plots.alternative("", figure({**line, "name": "&lt;b>", "y": [1]})) == "<b> 1"
  assert plots.alternative("Share", figure({**line, "y": [0.5, 0.5]}, tickformat=".0%")) == (
    "Share: a 50%")
  assert plots.alternative("Maps", figure({"type": "bar", "y": ["x"]})) == "Maps"
  assert plots.alternative("", figure({"type": "icicle"})) == "plot"


def test_legends_stand_below_the_names_of_the_axis():
  """A place relative to the axes would be over them in low plots."""
  assert plots.LEGEND_BELOW["yref"] == "container" and plots.layout(100)["font"]["size"] == 12


def test_a_band_is_the_area_between_its_bounds():
  low, high = plots.band([0, 1], [0.1234567, -1.0], [2.0, 3.0], "#ff8000")
  assert (low["y"], high["y"], low["x"]) == ([0.123457, -1.0], [2.0, 3.0], [0, 1])
  assert high["fill"] == "tonexty" and high["fillcolor"] == "rgba(255,128,0,0.15)"
