"""The page of a replay stands alone and holds the game."""

import json
import re

import numpy as np
import pytest

from starleague.environments.skirmish.games import dm_environment, replays
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from starleague.viewers.watch import frames as watch_frames
from starleague.viewers.watch import page as watch_page
from tests.viewers.browser import dump, measure, needs_browser
from tests.viewers.games import DEFAULT_RULES
from tests.viewers.pages import check_self_contained, data_of, unpack


def test_page_is_self_contained(page):
  check_self_contained(page)
  assert "://" not in page and "@import" not in page and "url(" not in page
  for call in ("fetch(", "XMLHttpRequest", "WebSocket", "EventSource", "import("):
    assert call not in page, call
  assert "{{" not in page and len(page) < 100_000


def test_page_names_the_players_and_the_result(page):
  assert "<title>rusher vs builder - Starleague</title>" in page
  assert "<h1>rusher <span>vs</span> builder</h1>" in page
  assert "<b>seed</b> 3</span>" in page and "<b>races</b> terran-terran</span>" in page
  assert "<b>result</b> unfinished at 0:53</span>" in page
  assert data_of(page, "game")["outcome"] == "unfinished"


def test_names_are_escaped(replay, states):
  page = watch_page.render_page(replay._replace(players=("<b>{{GAME}}", "</script>")), states)
  assert "<title>&lt;b&gt;{{GAME}} vs &lt;/script&gt; - Starleague</title>" in page
  assert data_of(page, "game")["players"] == ["<b>{{GAME}}", "</script>"]


def test_packed_arrays_round_trip():
  for array in (np.arange(24, dtype=np.uint32).reshape(2, 3, 4) << 20, np.zeros((0, 2), np.uint16)):
    packed = json.loads(json.dumps(watch_page.pack(array)))
    found = unpack(packed)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_figures_of_a_player_wrap_on_narrow_screens(page):
  """Three columns in half of a phone's 390 pixels overflow: columns have a minimum width."""
  columns = r"dl \{[^}]*grid-template-columns: repeat\(auto-fit, minmax\(\d+px, 1fr\)\)"
  assert re.search(columns, page)
  narrow = re.search(r"@media \(max-width: 480px\) \{(.*?)\n\s*\}", page, re.DOTALL)[1]
  assert ".pair { grid-template-columns: minmax(0, 1fr)" in narrow


def test_long_names_leave_the_race_in_sight(page):
  """An ellipsis cut the race off beside names such as "pretrained middle"."""
  name, = re.findall(r"\.player \.name \{(.*?)\}", page, re.DOTALL)
  assert "flex-wrap: wrap" in name and "ellipsis" not in name and "nowrap" not in name


def test_figures_name_their_units(page):
  assert '["army units", "army"], ["cost destroyed", "destroyed"]' in page
  assert "army units, 0 to ${most}" in page


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_page_fits_the_screen_in_a_browser(replay, states, width, tmp_path):
  names = ("pretrained middle", "macro_three_quarters")
  page = watch_page.render_page(replay._replace(players=names), states)
  overflows, text = measure(page, width, tmp_path, boxes="html, .card, dl div, .name")
  assert overflows == 0
  assert "cannot show the game" not in text and "player 1, Terran" in text
  assert "Train SCV" in text  # the log of actions


# Player 0's first slot gets another type at step 5, then elsewhere. Into the title: the deaths that
# this adds.
_MORPH = """<script>
const waiting = setInterval(() => {
  if (!deaths) return;
  clearInterval(waiting);
  const {kind, x} = arrays, each = 2 * slots, before = deaths.length, added = [];
  for (let t = 5; t <= game.steps; t++) kind[t * each] = kind[0] === 1 ? 2 : 1;
  prepare();
  added.push(deaths.length - before);
  for (let t = 5; t <= game.steps; t++) x[t * each] = PLACES - x[0];
  prepare();
  added.push(deaths.length - before);
  document.title = "found=" + JSON.stringify(added);
}, 50);
</script></body>"""


@pytest.mark.slow
@needs_browser
def test_a_morph_is_no_death(page, tmp_path):
  path = tmp_path / "page.html"
  path.write_text(page.replace("</body>", _MORPH))
  dom = dump(path.as_uri(), tmp_path / "profile")
  assert re.search(r"<title>found=(.*?)</title>", dom)[1] == "[0,1]"


@pytest.mark.slow
@needs_browser
def test_a_long_name_wraps_in_the_title_and_in_the_result(replay, states, tmp_path):
  names = ("a" * 150, "b" * 150)
  page = watch_page.render_page(replay._replace(players=names, winner=0), states)
  overflows, text = measure(page, 390, tmp_path, boxes="html, header, h1, .brief, .card, .name")
  assert overflows == 0
  assert f"{names[0]} vs {names[1]}" in text and f"{names[0]} (player 1) won at" in text


@pytest.fixture(scope="module")
def whole_game():
  """A game of Protoss and Zerg on a map with cliffs, and its states."""
  game = GAME_CONFIGS["default"]
  match_up = dm_environment.draw_match_up(
    np.random.default_rng(1), game.tier, ("protoss", "zerg"), "ramps", False)
  pair = (replays.scripted_player("L7", game), replays.scripted_player("macro", game))
  replay = replays.record(pair, 1, game=game, match_up=match_up, max_steps=400)
  return replay, replays.resimulate(replay)


@pytest.mark.slow
def test_page_shows_the_whole_game(whole_game):
  """Races, shields, vespene, cliffs, supply, upgrades, shots and a shape for each unit type."""
  replay, states = whole_game
  page = watch_page.render_page(replay, states)
  game = data_of(page, "game")
  frames = {name: unpack(packed) for name, packed in game["arrays"].items()}
  assert len(page) < 200_000
  assert "<b>map</b> ramps</span>" in page and game["races"] == ["protoss", "zerg"]
  np.testing.assert_array_equal(frames["shield"], np.ceil(states.shield))
  figures = dict(zip(game["figures"], np.moveaxis(frames["figures"], -1, 0), strict=True))
  np.testing.assert_array_equal(figures["vespene"], states.vespene)
  assert figures["food_used"][0].tolist() == [6, 6] and figures["food_cap"][0].tolist() == [15, 14]
  high = np.array([[cell == "1" for cell in row] for row in game["terrain"]["high"]])
  np.testing.assert_array_equal(high, DEFAULT_RULES.terrain.high[1])
  assert sum(game["geysers"]) == 8
  for player in range(2):
    assert sum(line[1] == player for line in game["upgrades"]) == np.count_nonzero(
      states.upgrades[-1, player])
  fired = frames["flags"] & watch_frames.FIRED > 0
  assert fired.any() and np.all(frames["kind"][fired] > 0)
  shapes = json.loads(re.search(r"const SHAPES = (\{.*?\})\s*;", page, re.DOTALL)[1])
  of = DEFAULT_RULES.types
  assert {name for i, name in enumerate(of.names) if i and not of.structure[i]} == set(shapes)
