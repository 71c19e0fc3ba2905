"""The page as one file: escaping, plots, how it looks in a browser."""

import json
import re

import pytest

from starleague.viewers.league import matrix, page
from tests.viewers import browser, pages

GAME = "<!doctype html><title>a game</title><p>played</p></script>"


@pytest.fixture(scope="module")
def text(facts):
  replays = [facts.replays[0]._replace(home="<b>"), *facts.replays[1:]]
  return page.render(facts._replace(name="<league>", replays=replays),
                     {facts.replays[0].id: GAME})


def plots(text):
  return [json.loads(found) for found in re.findall(
    r"<script type='application/json'>(.*?)</script>", text, re.DOTALL)]


def test_the_page_is_self_contained_and_escapes_names(text, facts):
  pages.check_self_contained(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
  assert "<h1>&lt;league&gt;</h1>" in text and "<td>&lt;b&gt;</td>" in text
  assert "{{" not in text.partition("<script>/**")[0]
  kept = re.search(rf"<script type='application/json' id='replay-{facts.replays[0].id}'>(.*?)"
                   "</script>", text, re.DOTALL)[1]
  assert json.loads(kept) == GAME
  assert text.count("<button data-replay=") == 1  # the others are not in the file


def test_the_page_has_all_plots(text):
  assert [plot["data"][0]["type"] for plot in plots(text)] == (
    ["image", "scatter", "scatter", "bar"] + ["scatter"] * 6 + ["bar"])


@browser.needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_overflows_in_a_browser(text, tmp_path, width):
  overflows, shown = browser.measure(text, width, tmp_path)
  assert overflows == 0
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
  first, second, colour, tick, hidden, opened = json.loads(
    re.search(r"<title>found=(.*?)</title>", dom)[1].replace("&lt;", "<"))
  assert not hidden and opened
  by_rating = sorted(range(len(facts.players)), key=lambda i: -facts.ratings.value[i])

  def explained(i, j):
    games, points = facts.games[i, j], facts.points[i, j]
    names = f"{facts.players[i].name} against {facts.players[j].name}: "
    return names + (f"{round(100 * points / games)}% (" if games else "no games")

  assert first.startswith(explained(by_rating[0], by_rating[1]))
  assert second.startswith(explained(0, 1)) and tick == facts.players[0].name
  cell = round(100 * facts.points[0, 1] / facts.games[0, 1]) if facts.games[0, 1] else 101
  assert colour == [*matrix.palette()[cell].tolist(), 255]
