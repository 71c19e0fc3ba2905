"""The plots of the page of replays: the numbers that they show."""

import pytest

from starleague.viewers.replays import figures
from starleague.viewers.replays.summary import Node, Rate, Timeline


def test_openings_show_counts_times_and_shares():
  tree = figures.openings([
    Node(-1, "players", 4, 1, 3, 0.0), Node(0, "protoss", 4, 1, 3, 0.0),
    Node(1, "PvZ", 3, 1, 2, 0.0), Node(2, "Gateway", 2, 0, 0, 65.4)])["data"][0]
  assert tree["labels"] == ["Players", "Protoss", "PvZ", "Gateway"]
  assert tree["parents"] == ["", "0", "1", "2"] and tree["values"] == [4, 4, 3, 2]
  assert tree["text"] == ["", "", "", "1:05"]
  assert tree["customdata"] == [
    [4, "33% of 3 won"], [4, "33% of 3 won"], [3, "50% of 2 won"], [2, "results unknown"]]
  # Four games with equal results are added: a branch without decided games is in the middle.
  assert tree["marker"]["colors"] == [3 / 7, 3 / 7, 0.5, 0.5]


def test_timelines_show_medians_and_quartiles():
  plot = figures.timelines([Timeline("Gateway", 9, (35.0, 40.0, 47.5)),
                            Timeline("CyberneticsCore", 7, (90.0, 100.0, 130.0))], "protoss")
  dots = plot["data"][0]
  assert dots["x"] == [40.0, 100.0]
  assert dots["error_x"]["array"] == [7.5, 30.0] and dots["error_x"]["arrayminus"] == [5.0, 10.0]
  assert dots["customdata"] == [["0:40", 9], ["1:40", 7]]
  assert plot["layout"]["xaxis"]["ticktext"] == ["0:00", "1:00", "2:00", "3:00"]


def test_lengths_are_boxes_by_match_up():
  boxes = figures.lengths({"PvZ": [1.234, 2.0], "TvT": [3.0]})["data"]
  assert [(box["name"], box["y"]) for box in boxes] == [("PvZ", [1.23, 2.0]), ("TvT", [3.0])]


def test_action_rates_are_a_median_between_its_quartiles():
  data = figures.action_rates({"zerg": [Rate(0, 5, (10.0, 20.0, 40.0)),
                                        Rate(1, 4, (11.0, 21.0, 41.0))]})["data"]
  assert [line["y"] for line in data] == [[10.0, 11.0], [40.0, 41.0], [20.0, 21.0]]
  assert all(line["x"] == [0.5, 1.5] for line in data)
  assert [line.get("name") for line in data] == [None, None, "zerg"]
  assert data[2]["customdata"] == [5, 4]


def test_ratings_leave_out_races_without_any():
  bars = figures.ratings({"terran": [], "zerg": [3000, 4100]})["data"]
  assert [(bar["name"], bar["x"]) for bar in bars] == [("zerg", [3000, 4100])]


def test_counts_keep_their_order():
  bars = figures.counts({"b": 3, "a": 1})["data"][0]
  assert (bars["y"], bars["x"], bars["orientation"]) == (["b", "a"], [3, 1], "h")


def test_titles_of_maps_are_no_markup():
  bars = figures.counts({'<a href="x">A & B</a> %{x}': 1})["data"][0]
  assert bars["y"] == ['&lt;a href="x">A &amp; B&lt;/a> % {x}']


@pytest.mark.parametrize(("counts", "dtick"), [([2, 1], 1), ([5], 1), ([6], 2), ([33, 2], 7)])
def test_ticks_of_counts_are_whole(counts, dtick):
  layout = figures.counts({str(i): value for i, value in enumerate(counts)})["layout"]
  assert (layout["xaxis"]["tick0"], layout["xaxis"]["dtick"]) == (0, dtick)
  rated = figures.ratings({"zerg": [1000] * counts[0], "terran": [2000]})["layout"]
  assert rated["yaxis"]["dtick"] == dtick


def test_races_differ_in_colour_and_pattern():
  """Okabe and Ito's colours, which the colour-blind tell apart; and patterns beside them."""
  assert figures.COLOURS == {"terran": "#0072b2", "zerg": "#cc79a7", "protoss": "#d55e00"}
  rows = [Rate(0, 5, (10.0, 20.0, 40.0))]
  lines = figures.action_rates(dict.fromkeys(figures.RACES, rows))["data"][2::3]
  assert len({line["line"]["dash"] for line in lines}) == 3
  bars = figures.ratings(dict.fromkeys(figures.RACES, [3000]))["data"]
  assert len({bar["marker"]["pattern"]["shape"] for bar in bars}) == 3


@pytest.mark.parametrize("seconds, text", [(0, "0:00"), (59.9, "0:59"), (61, "1:01")])
def test_clock(seconds, text):
  assert figures.clock(seconds) == text
