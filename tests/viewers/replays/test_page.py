"""The page of replays: figures, escaping, and how it looks in a browser."""

import json
import re

import pytest

from starleague.data.replays import decode, refusals
from starleague.viewers.replays import page, summary
from tests.data.replays.games import Game
from tests.viewers import browser, pages


def inputs(*games, refused=()):
  rows = [decode.decode(game.replay(), "a.SC2Replay") for game in games]
  return summary.Inputs(
    [row.game._asdict() for row in rows],
    [player._asdict() for row in rows for player in row.players],
    [build._asdict() for row in rows for build in row.builds if build.order >= 0], list(refused))


EVIL = {"replay": "", "file": "x/</script><b>.SC2Replay", "reason": refusals.DAMAGED,
        "detail": "<img src=x>"}


@pytest.fixture(scope="module")
def whole():
  return inputs(Game(), Game(seed=1, title=b"</script>"), refused=[EVIL])


def test_the_page_is_self_contained_and_escapes_names(whole):
  text = page.render("my <replays>", whole)
  head, _, _ = text.partition("<script type='text/plain' id='plotly'>")
  pages.check_self_contained(re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))
  assert "my &lt;replays&gt;" in head and "&lt;img src=x&gt;" in head and "<img" not in head
  assert "</script>" not in "".join(json.dumps(plot) for plot in pages.plots_of(text)[:1])


def test_the_plots_of_the_page(whole):
  found = pages.plots_of(page.render("a", whole))
  assert [plot["data"][0]["type"] for plot in found] == [
    "icicle", "scatter", "scatter", "scatter", "histogram", "box", "bar", "bar", "bar"]
  tree = found[0]["data"][0]
  assert tree["labels"][:5] == ["Players", "Protoss", "Zerg", "PvZ", "ZvP"]
  assert tree["values"][:5] == [4, 2, 2, 2, 2] and tree["parents"][:5] == ["", "0", "0", "1", "2"]
  assert found[4]["data"][0]["x"] == [4321, 4321]
  assert found[-1]["data"][0]["x"] == [1] and found[-1]["data"][0]["y"] == [refusals.DAMAGED]


def map_counts(*digests):
  games = inputs(Game()).games
  rows = inputs(Game())._replace(games=[
    {**games[0], "map_digest": digest, "map": f"Map {digest}"} for digest in digests])
  text = page.render("a", rows)
  bars = pages.plots_of(text)[-2]
  assert f"<div class='figure'>{len(set(digests))}</div>" in text  # the tile agrees
  return re.findall("<h3>(.*?)</h3>", text)[-2], bars


def test_the_bars_of_maps_say_of_how_many():
  title, bars = map_counts("a", "a", "a", "b")
  assert title == "Maps" and bars["data"][0]["x"] == [3, 1]
  title, bars = map_counts(*(f"{i:02d}" for i in range(31)))
  assert title == "The 12 most played of 31 maps" and len(bars["data"][0]["x"]) == 12


def test_a_page_without_games():
  text = page.render("a", inputs(refused=[EVIL]))
  assert "No file was read." in text and len(pages.plots_of(text)) == 1


@browser.needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_overflows_in_a_browser(whole, tmp_path, width):
  overflows, text = browser.measure(page.render("a", whole), width, tmp_path)
  assert overflows == 0
  for part in ("Openings", "Build timelines", "Length by match-up", "Test LE", "Refused files"):
    assert part in text
