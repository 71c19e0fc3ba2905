"""The page as one file: escaping, plots, how it looks in a browser."""

import json
import re

import numpy as np
import pytest

from starleague.league.payoff import wilson_interval
from starleague.viewers import pages as pages_of_viewers
from starleague.viewers.league import matrix, page
from tests.viewers import browser, pages

GAME = "<!doctype html><title>a game</title><p>played</p></script>"


@pytest.fixture(scope="module")
def text(facts):
  replays = [facts.replays[0]._replace(home="<b>"), *facts.replays[1:]]
  return page.render(facts._replace(name="<league>", replays=replays),
                     {facts.replays[0].id: GAME})


def test_the_page_is_self_contained_and_escapes_names(text, facts):
  pages.check_self_contained(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
  assert "<h1>&lt;league&gt;</h1>" in text and "<th>&lt;b&gt;</th>" in text
  assert "{{" not in text.replace(pages_of_viewers.plotly_elements(), "")
  kept = re.search(rf"<script type='application/json' id='replay-{facts.replays[0].id}'>(.*?)"
                   "</script>", text, re.DOTALL)[1]
  assert json.loads(kept) == GAME
  assert text.count("<button data-replay=") == 1  # the others are not in the file


def test_the_page_has_all_plots(text):
  assert [plot["data"][0]["type"] for plot in pages.plots_of(text)] == (
    ["image", "scatter", "scatter", "bar"] + ["scatter"] * 6 + ["bar", "heatmap", "scatter"])


def test_plotly_is_held_once_and_compressed(text):
  """It was 4.8 MB of the page."""
  assert text.count("plotly.js v") == 0 and text.count("id='plotly'") == 1
  assert len(text.replace(pages_of_viewers.plotly_elements(), "")) < 1_200_000


def test_names_of_players_stand_once_above_the_plots(text, facts):
  """Legends of twelve names would be higher than the plots."""
  keys = re.findall(r"<div class='key'>(.*?)</div>", text)
  names = [learner.name for learner in facts.learners]
  assert [re.findall(r"data-player='(.*?)'", key) for key in keys] == [names] * 3
  for plot in pages.plots_of(text):
    if plot["data"][0]["type"] == "scatter":
      assert not plot["layout"]["showlegend"]


def test_cells_of_tables_name_their_columns(text):
  """On a phone rows stand as blocks, which have no header."""
  learners, games = re.findall(r"<table class='stack'>(.*?)</table>", text, re.DOTALL)
  columns = re.findall("<th>(.*?)</th>", learners.partition("</thead>")[0])
  first = learners.partition("<tbody>")[2].partition("</tr>")[0]
  assert first.startswith("<tr><th>protoss-main-0</th>")
  assert re.findall("data-column='(.*?)'", first) == columns[1:]
  assert columns[1:] == ["kind", "race", "state", "steps", "snapshots", "resets", "Elo"]
  assert games.count("<th>") == 4 + games.count("<tr>") - 1


@browser.needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_overflows_in_a_browser(text, tmp_path, width):
  """On a phone the axes of the matrix have numbers, whose names stand below."""
  overflows, shown = browser.measure(text, width, tmp_path, boxes="html, .card, table")
  assert overflows == 0
  assert ("Payoff matrix" in shown) and ("Point at a cell or tap it." in shown)
  for part in ("Payoff matrix", "sorted by", "Family tree", "protoss-main-0", "Matchmaking"):
    assert part in shown


_ACT = """<script>
addEventListener("load", () => setTimeout(() => {
  const plot = document.querySelector("[data-pairs]"), select = document.getElementById("sort");
  const found = [];
  const pixel = () => new Promise(resolve => {
    const image = new Image(), context = document.createElement("canvas").getContext("2d");
    image.onload = () => {
      context.drawImage(image, 0, 0);
      resolve([...context.getImageData(1, 0, 1, 1).data]);
    };
    image.src = plot.querySelector(".im image, image").href.baseVal;
  });
  plot.emit("plotly_hover", {points: [{x: 1, y: 0}]});
  found.push(document.getElementById("pair").textContent);
  select.value = "age";
  select.dispatchEvent(new Event("change", {bubbles: true}));
  setTimeout(async () => {
    plot.emit("plotly_hover", {points: [{x: 1, y: 0}]});
    found.push(document.getElementById("pair").textContent, await pixel(),
               plot.layout.xaxis.ticktext[0]);
    document.querySelector("[data-player='zerg-main-0'] i").click();
    found.push([...document.querySelectorAll(".js-plotly-plot")].flatMap(each => each.data)
               .filter(trace => trace.visible === false).map(trace => trace.legendgroup));
    document.querySelector("[data-replay]").click();
    const viewer = document.getElementById("viewer");
    found.push(viewer.hidden, viewer.srcdoc.includes("played"));
    document.title = "found=" + JSON.stringify(found);
  }, 300);
}, 500));
</script>"""


@browser.needs_browser
@pytest.mark.slow
def test_cells_are_explained_and_sorted_and_games_open_in_place(text, facts, tmp_path):
  path = tmp_path / "page.html"
  path.write_text(text.replace("</body>", f"{_ACT}</body>"))
  dom = browser.dump(path.as_uri(), tmp_path / "profile")
  first, second, colour, tick, curves, hidden, opened = json.loads(
    re.search(r"<title>found=(.*?)</title>", dom)[1].replace("&lt;", "<"))
  assert not hidden and opened
  assert set(curves) == {"zerg-main-0"} and len(curves) >= 4  # in ratings, family tree, curves
  by_rating = sorted(range(len(facts.players)), key=lambda i: -facts.ratings.value[i])

  def explained(i, j):
    games, points = facts.games[i, j], facts.points[i, j]
    names = f"{facts.players[i].name} against {facts.players[j].name}: "
    if not games:
      return f"{names}no games"
    low, high = (round(100 * bound) for bound in wilson_interval(points, games))
    return (f"{names}{round(100 * points / games)}% ({low}% to {high}%), "
            f"{np.ceil(games):.0f} recent games (decayed)")

  assert first.startswith(explained(by_rating[0], by_rating[1]))
  assert second.startswith(explained(0, 1)) and tick == facts.players[0].name
  cell = round(100 * facts.points[0, 1] / facts.games[0, 1]) if facts.games[0, 1] else 101
  assert colour == [*matrix.palette()[cell].tolist(), 255]
