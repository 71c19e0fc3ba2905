"""The page of a replay: it stands alone, holds the game, and what cannot be shown is refused."""

import base64
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import zlib

import jax
import numpy as np
import pytest
from absl import app, flags
from absl.testing import flagsaver
from rich.console import Console

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.games import replays
from starleague.environments.skirmish.rules import tables
from starleague.environments.skirmish.rules.config import DEFAULT_GAME_CONFIG, GAME_CONFIGS
from starleague.experiments import watch
from starleague.experiments.run import competitors
from starleague.viewers.watch import frames as watch_frames
from starleague.viewers.watch import gif as watch_gif
from starleague.viewers.watch import page as watch_page
from starleague.viewers.watch import terminal as watch_terminal
from tests.viewers.pages import Resources

RULES = tables.make_rules("mini", 64, 32, 32, 8)
S = RULES.tier.structures
LOCAL = {name: i for i, name in enumerate(RULES.types.names)}


@pytest.fixture(scope="module")
def replay():
  """Long enough for a first building and a first fighter each."""
  pair = (replays.scripted_player("rusher"), replays.scripted_player("builder"))
  return replays.record(pair, seed=3, max_steps=150)


@pytest.fixture(scope="module")
def states(replay):
  return replays.resimulate(replay)


@pytest.fixture(scope="module")
def page(replay, states):
  return watch_page.render_page(replay, states)


@pytest.fixture(scope="module")
def frames(page):
  """The arrays as they stand in the page."""
  return watch_frames.Frames(
    **{name: _unpack(packed) for name, packed in _game(page)["arrays"].items()})


def command(arguments):
  """What the command line does, in this process."""
  with flagsaver.flagsaver():
    watch.main(flags.FLAGS(["watch", *arguments]))


def _unpack(packed):
  raw = zlib.decompress(base64.b64decode(packed["data"]))
  total, *rest = packed["shape"]
  growth = np.frombuffer(raw, np.dtype(packed["type"]).newbyteorder("<")).reshape(*rest, total)
  return np.moveaxis(np.cumsum(growth, axis=-1, dtype=packed["type"]), -1, 0)


def _game(page):
  return json.loads(re.search(
    r'<script type="application/json" id="game">(.*?)</script>', page, re.DOTALL)[1])


def test_page_stands_alone(page):
  parser = Resources()
  parser.feed(page)
  assert parser.loaded == [] and parser.open == []
  assert "://" not in page and "@import" not in page and "url(" not in page
  for call in ("fetch(", "XMLHttpRequest", "WebSocket", "EventSource", "import("):
    assert call not in page, call
  assert "{{" not in page and len(page) < 100_000


def test_page_names_the_players_and_the_result(replay, page):
  assert "<title>rusher vs builder - Starleague</title>" in page
  assert "<h1>rusher <span>vs</span> builder</h1>" in page
  assert "<b>seed</b> 3</span>" in page and "<b>races</b> terran-terran</span>" in page
  assert "<b>result</b> broken off at 0:53</span>" in page  # 150 steps of 8 loops, 22.4 a second
  assert _game(page)["outcome"] == "broken off"
  for winner, expected in enumerate(("rusher (player 1) won", "builder (player 2) won", "a draw")):
    assert watch_frames.result(replay._replace(winner=winner)) == f"{expected} at 0:53"


def test_names_are_text(replay, states):
  page = watch_page.render_page(replay._replace(players=("<b>{{GAME}}", "</script>")), states)
  assert "<title>&lt;b&gt;{{GAME}} vs &lt;/script&gt; - Starleague</title>" in page
  assert _game(page)["players"] == ["<b>{{GAME}}", "</script>"]


def test_pictures_are_the_states(replay, states, frames):
  assert len(frames.kind) == replay.steps + 1
  np.testing.assert_array_equal(frames.kind, states.kind)
  np.testing.assert_array_equal(frames.health, np.ceil(states.health))
  grain = RULES.tier.map_size / watch_frames.PLACES
  for shown, real in ((frames.x, states.x), (frames.y, states.y)):
    np.testing.assert_allclose(shown * grain - RULES.half, real, atol=0.51 * grain)
  np.testing.assert_array_equal(
    frames.flags & watch_frames.HURT > 0, states.hurt & (states.kind > 0))
  for player in range(2):
    np.testing.assert_array_equal(
      frames.flags[:, 1 - player] & watch_frames.SEEN > 0, states.memory.seen[:, player])
  np.testing.assert_array_equal(
    frames.flags[..., S:] & watch_frames.MINERALS > 0, states.cargo > 0)
  assert (states.cargo > 0).any()
  np.testing.assert_array_equal(frames.visible, states.memory.visible)
  np.testing.assert_array_equal(frames.known_kind, states.memory.kind)
  np.testing.assert_array_equal(frames.known_patches, states.memory.patches)
  half = RULES.tier.resources // 2
  np.testing.assert_array_equal(frames.patches[:, :half], states.patches[:, 0])
  np.testing.assert_array_equal(frames.patches[:, half:], states.patches[:, 1])


def test_construction_and_training_are_shown_in_percent(states, frames):
  barracks = states.kind[..., :S] == LOCAL["Barracks"]
  loops = RULES.products.loops[LOCAL["Barracks"]]
  assert barracks.any()
  np.testing.assert_array_equal(
    frames.built[barracks], np.floor(100 - 100 * states.unfinished[barracks] / loops))
  assert np.all(frames.built[states.kind[..., :S] == 0] == 0)
  assert frames.built[0, :, 0].tolist() == [100, 100]  # the town hall stands from the start
  np.testing.assert_array_equal(frames.product, states.queue[..., 0])
  assert frames.trained.max() > 80 and np.all(frames.trained[frames.product == 0] == 0)


def test_figures_are_counted(states, frames):
  shown = dict(zip(watch_frames.FIGURES, np.moveaxis(frames.figures, -1, 0), strict=True))
  np.testing.assert_array_equal(shown["minerals"], states.minerals)
  np.testing.assert_array_equal(shown["mined"], states.score.collected)
  np.testing.assert_array_equal(
    shown["workers"], np.sum(states.kind == LOCAL["SCV"], axis=-1))
  fighters = [LOCAL[name] for name in ("Marine", "Marauder", "Hellion")]
  np.testing.assert_array_equal(
    shown["army"], np.sum(np.isin(states.kind, fighters), axis=-1))
  assert shown["food_used"][0].tolist() == [4, 4] and shown["food_cap"][0].tolist() == [18, 18]


def test_patches_lie_where_they_are_mined(replay):
  places, own = watch_frames.patch_middles(replay)
  size = RULES.tier.map_size
  x, y = RULES.tier.patches[0]
  np.testing.assert_allclose(places[0], [x / size + 0.5, y / size + 0.5])
  np.testing.assert_allclose(own[1], 1 - own[0])
  swapped = replay._replace(match_up=replays.make_match_up(swap_sides=True))
  np.testing.assert_allclose(watch_frames.patch_middles(swapped)[0], 1 - places)


def test_actions_are_told_in_words(replay, states, page):
  log = _game(page)["log"]
  assert len(log) == np.count_nonzero(replay.actions.function)
  assert log[0] == [0, 0, "Train SCV", "at Command Center"]
  refused = [states.refused[line[0] + 1, line[1]] for line in log]
  assert [line[3].endswith(")") for line in log] == [code > 0 for code in refused]
  build = next(line for line in log if line[2] == "Build Barracks")
  barracks = vocabulary.FUNCTIONS.index("Build_Barracks_pt")
  row = np.flatnonzero(replay.actions.function == barracks)[0]
  x, y = replay.actions.location[row] % 32 * 0.75, replay.actions.location[row] // 32 * 0.75
  assert build[:2] == [replay.step[row], replay.player[row]]
  assert build[3] == f"at {int(x + 0.375)}, {int(y + 0.375)} by SCV"


@pytest.mark.parametrize(("name", "rows", "target", "repeat", "expected"), [
  ("Attack_unit", [0, 1, 2], 4, 0, ("Attack", "enemy Barracks with Marine × 2")),
  ("Attack_unit", [2], 5, 0, ("Attack", "enemy Factory by nobody who can")),
  ("Harvest_Gather_unit", [3], 6, 0, ("Gather", "minerals with SCV")),
  ("Move_unit", [0, 3], 2, 0, ("Move", "own Command Center with SCV, Marine")),
  ("Move_unit", [0], 60, 0, ("Move", "nothing with Marine")),
  ("Train_SCV_quick", [2], 0, 2, ("Train SCV × 3", "at Command Center"))])
def test_words_for_what_is_selected_and_targeted(name, rows, target, repeat, expected):
  """Rows: two marines, a town hall, an SCV; enemy barracks seen, a factory remembered; a patch."""
  n = RULES.tier.slots
  own, enemy = np.zeros(n, int), np.zeros(n, int)
  remembered = np.zeros(S, int)
  own[[0, S, S + 1, S + 2]] = [LOCAL[k] for k in ("CommandCenter", "Marine", "Marine", "SCV")]
  enemy[0], remembered[1] = LOCAL["Barracks"], LOCAL["Factory"]
  row_of = np.full(2 * n + RULES.tier.resources, -1)
  row_of[[S, S + 1, 0, S + 2, n, n + 1, 2 * n]] = range(7)
  units = np.full(8, 64)
  units[:len(rows)] = rows
  action = types.Action(
    function=vocabulary.FUNCTIONS.index(name), delay=1, queued=0, repeat=repeat, units=units,
    target_unit=target, location=0)
  found = watch_frames._in_words(RULES, action, row_of, own, enemy, remembered)
  assert found == expected


def test_build_orders_are_those_that_the_engine_counts(states, page):
  builds = _game(page)["builds"]
  for player in range(2):
    mine = [line for line in builds if line[1] == player]
    made = states.executed.build_order[-1, player]
    names = [vocabulary.UNIT_TYPES.names[kind] for kind in made[made > 0]]
    assert [line[2] for line in mine] == names
    for place, (step, *_) in enumerate(mine):
      order = states.executed.build_order[:, player, place]
      assert order[step] > 0 and not order[step - 1]
  assert builds[0][2] == "Barracks"


def test_arrays_survive_the_page():
  for array in (np.arange(24, dtype=np.uint32).reshape(2, 3, 4) << 20, np.zeros((0, 2), np.uint16)):
    packed = json.loads(json.dumps(watch_frames.pack(array)))
    found = _unpack(packed)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_terminal_shows_the_map_the_figures_and_the_log(replay, states):
  show = watch_terminal.make_show(replay, states)

  def picture(step, view):
    console = Console(file=io.StringIO(), width=80)
    console.print(watch_terminal.render(show, step, view))
    return console.file.getvalue()

  text = picture(replay.steps, 0)
  assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
  built = int(np.argmax((states.kind[:, 0, :S] == LOCAL["Barracks"]).any(axis=1)))
  first = f"{watch_frames.clock(built)} Barracks"
  for expected in ("rusher vs builder", "broken off at 0:53", first, "with Marine", "CC"):
    assert expected in text, expected
  minerals = next(line for line in text.splitlines() if "minerals" in line).split()[-2:]
  assert minerals == [str(value) for value in states.minerals[-1]]
  # At the start neither sees the other's town hall.
  assert [picture(0, view).count("CC") for view in (0, 1, 2)] == [2, 1, 1]
  assert "░░" in picture(0, 1) and "░░" not in picture(0, 0)


def test_terminal_plays_to_the_end(replay, states):
  console, waited = Console(file=io.StringIO(), width=80, force_terminal=True), []
  watch_terminal.play(replay, states, speed=10.0, console=console, sleep=waited.append)
  assert "broken off at 0:53" in console.file.getvalue()
  assert 1 < len(waited) <= replay.steps
  assert sum(waited) == pytest.approx(150 * 8 / 22.4 / 10, rel=0.05)
  plain = Console(file=io.StringIO(), width=80)
  watch_terminal.play(replay, states, console=plain, sleep=waited.clear)
  assert waited and plain.file.getvalue().count("rusher vs builder") == 1


def test_command_writes_the_page_beside_the_replay(replay, page, tmp_path, capsys):
  path = replays.save(tmp_path / "game.npz", replay)
  command([str(path)])
  assert (tmp_path / "game.html").read_text() == page
  assert capsys.readouterr().out.startswith(f"page={tmp_path / 'game.html'} kilobytes=")
  command([str(path), "--output", str(tmp_path / "other.html")])
  assert (tmp_path / "other.html").read_text() == page
  assert sorted(file.name for file in tmp_path.iterdir()) == ["game.html", "game.npz", "other.html"]


def test_command_plays_a_game_and_keeps_it(tmp_path, monkeypatch):
  record = replays.record
  monkeypatch.setattr(replays, "record", lambda *a, **k: record(*a, **k, max_steps=20))
  command(["--play", "passive", "rusher", "--seed", "5", "--swap_sides",
              "--save", str(tmp_path / "new.npz")])
  kept = replays.load(tmp_path / "new.npz")
  assert kept.players == ("passive", "rusher") and kept.seed == 5 and kept.match_up.swap_sides
  assert "<h1>passive <span>vs</span> rusher</h1>" in (tmp_path / "new.html").read_text()


def test_agent_is_the_runs_newest_weights(tmp_path, monkeypatch):
  """Which weights play, and for which environment; the policy itself is not run."""
  run_dir = tmp_path / "mini"
  config = competitors.settings.complete({})
  competitors.settings.save(config, run_dir)
  monkeypatch.setattr(
    competitors.checkpoints, "load_params", lambda path, config: (path, config.name))
  game, (agent, script) = competitors.choose(("agent", "rusher"), run_dir=run_dir)
  assert game == DEFAULT_GAME_CONFIG
  assert agent.name == "agent mini" and agent.params == (run_dir / "checkpoints", "mini")
  assert script.name == "rusher"
  assert jax.tree.leaves(agent.memory)[0].shape
  with pytest.raises(ValueError, match=f"--tier is large, but {run_dir} plays at mini"):
    competitors.choose(("agent", "rusher"), run_dir=run_dir, tier="large")


def test_the_tier_is_one_that_has_the_players():
  assert competitors.choose(("L7", "macro"))[0].tier == "default"
  assert competitors.choose(("rusher", "builder"))[0].tier == "mini"
  assert competitors.choose(("L7", "macro"), tier="large")[0] == GAME_CONFIGS["large"]


@pytest.mark.parametrize(("arguments", "message"), [
  (["none.npz"], "watch: .*No such file or directory: 'none.npz'"),
  (["--play", "rusher", "nobody"], "watch: player 'nobody' does not exist in tier mini; expected "
   "one of passive, rusher, .*agent$"),
  (["--play", "L7", "rusher"], "watch: player 'rusher' does not exist in tier default; expected"),
  (["--play", "L7", "L7", "--tier", "huge"], "watch: tier 'huge' does not exist; expected one of "
   "mini, default, large"),
  (["--play", "L7", "L7", "--races", "zerg,orc"], "watch: race 'orc': expected one of terran, "
   "protoss, zerg in tier default"),
  (["--play", "L7", "L7", "--races", "zerg"], "watch: races: expected 2, found 1"),
  (["--play", "L7", "L7", "--map", "moon"], "watch: map 'moon': expected one of open, ramps, river"),
  (["--play", "agent", "rusher"], "watch: 'agent' is the newest weights of a run: name it with "
   "--run_dir"),
  (["--play", "rusher", "rusher", "--run_dir", "x"], "nobody of rusher rusher is 'agent'"),
  (["--play", "agent", "rusher", "--run_dir", "x"], "x/config.json does not exist"),
  (["--play", "rusher", "builder", "--seed", "-1"], "seed must be in")])
def test_what_cannot_be_is_refused(arguments, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit) as raised:
    command(arguments)
  assert re.search(message, raised.value.code)
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "message"), [
  ([], "name a replay, or two players with --play"),
  (["a.npz", "--play", "rusher", "builder"], "name a replay, or two players with --play"),
  (["--play", "rusher"], "name a replay, or two players with --play"),
  (["a.npz", "--save", "b.npz"], "--save is for a game that is played"),
  (["a.npz", "--speed", "0"], "--speed must be above 0, found 0.0")])
def test_what_makes_no_sense_is_answered_with_the_usage(arguments, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(app.UsageError, match=message):
    command(arguments)
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("view", [0, 2])
def test_a_gif_shows_the_whole_game(replay, states, view, tmp_path, monkeypatch):
  image = pytest.importorskip("PIL.Image")
  monkeypatch.setattr(watch_gif, "MOST_PICTURES", 10)
  path = watch_gif.write(tmp_path / "game.gif", replay, states, size=96, view=view)
  assert path.stat().st_size < watch_gif.MOST_BYTES
  with image.open(path) as shown:
    assert shown.size == (96, 96 + 26) and 2 <= shown.n_frames <= 11 and "loop" in shown.info
    first = np.asarray(shown.convert("RGB"), int)
    shown.seek(shown.n_frames - 1)
    last = np.asarray(shown.convert("RGB"), int)
    assert shown.info["duration"] == watch_gif.LAST_MILLISECONDS
  assert np.abs(last - first).max() > 60
  blue = (first[:96, :, 2] > 190) & (first[:96, :, 0] < 180)  # player 1's, top left, hidden from player 2
  assert blue[:48, :48].any() == (view == 0)


def test_a_gif_is_made_smaller_than_its_limit(replay, states, tmp_path, monkeypatch):
  pytest.importorskip("PIL.Image")
  path = watch_gif.write(tmp_path / "game.gif", replay, states, size=64)
  before = path.stat().st_size
  monkeypatch.setattr(watch_gif, "MOST_BYTES", before // 2)
  assert watch_gif.write(path, replay, states, size=64).stat().st_size <= before // 2


def test_damaged_replays_are_refused(replay, tmp_path):
  path = replays.save(tmp_path / "game.npz", replay._replace(hashes=("0" * 64,) * 2))
  with pytest.raises(SystemExit, match="watch: .*game.npz: step 0: the game is not the one"):
    command([str(path)])
  path.write_bytes(path.read_bytes()[:500])
  with pytest.raises(SystemExit, match="watch: .*game.npz: not a replay, or cut short"):
    command([str(path)])
  assert [file.name for file in tmp_path.iterdir()] == ["game.npz"]


@pytest.fixture(scope="module")
def whole():
  """A game of Protoss and Zerg on a map with cliffs, and its states."""
  game = GAME_CONFIGS["default"]
  setting = competitors.make_setting(game, 1, ("protoss", "zerg"), "ramps", False)
  pair = (replays.scripted_player("L7", game), replays.scripted_player("macro", game))
  replay = replays.record(pair, 1, game=game, match_up=setting.match_up, max_steps=400)
  return replay, replays.resimulate(replay)


@pytest.mark.slow
def test_the_whole_game_is_shown(whole):
  """Races, shields, vespene, cliffs, whole food, what is researched, who fires."""
  replay, states = whole
  page = watch_page.render_page(replay, states)
  game = _game(page)
  rules = watch_frames.rules_of(replay)
  frames = {name: _unpack(packed) for name, packed in game["arrays"].items()}
  assert len(page) < 200_000
  assert "<b>map</b> ramps</span>" in page and game["races"] == ["protoss", "zerg"]
  np.testing.assert_array_equal(frames["shield"], np.ceil(states.shield))
  figures = dict(zip(game["figures"], np.moveaxis(frames["figures"], -1, 0), strict=True))
  np.testing.assert_array_equal(figures["vespene"], states.vespene)
  assert figures["food_used"][0].tolist() == [6, 6] and figures["food_cap"][0].tolist() == [15, 14]
  high = np.array([[cell == "1" for cell in row] for row in game["terrain"]["high"]])
  np.testing.assert_array_equal(high, rules.terrain.high[1])
  assert sum(game["geysers"]) == 8
  counted = {player: np.count_nonzero(states.upgrades[-1, player]) for player in range(2)}
  for player in range(2):
    assert sum(line[1] == player for line in game["upgrades"]) == counted[player]
  fired = frames["flags"] & watch_frames.FIRED > 0
  assert fired.any() and np.all(frames["kind"][fired] > 0)
  shapes = json.loads(re.search(r"const SHAPES = (\{.*?\});", page)[1])
  units = {name for i, name in enumerate(rules.types.names) if i and not rules.types.structure[i]}
  assert units == set(shapes)


@pytest.mark.parametrize(("name", "expected"), [
  ("Effect_Stim_quick", "Stim"), ("Train_SCV_quick", "Train SCV"), ("Smart_unit", "Smart"),
  ("Effect_ChronoBoostEnergyCost_unit", "Chrono boost"), ("Harvest_Gather_unit", "Gather"),
  ("Cancel_Last_quick", "Cancel last"), ("Morph_OrbitalCommand_quick", "Orbital Command")])
def test_functions_in_words(name, expected):
  assert watch_frames.function_words(name) == expected


def test_upgrades_in_words():
  assert watch_frames.upgrade_words("TerranInfantryWeaponsLevel1") == "Infantry Weapons 1"
  assert watch_frames.upgrade_words("Stimpack") == "Stimpack"


@pytest.mark.slow
def test_a_process_with_other_compiler_settings_plays_the_same_game(replay, page, tmp_path):
  """The tests compile without optimisation; what users run does not."""
  path = replays.save(tmp_path / "game.npz", replay)
  command = [sys.executable, "-m", "starleague.experiments.watch"]
  environment = {**os.environ, "XLA_FLAGS": "", "JAX_PLATFORMS": "cpu"}
  root = pathlib.Path(__file__).resolve().parents[2]
  done = subprocess.run([*command, str(path)], cwd=root, env=environment, capture_output=True,
                        text=True, timeout=300)
  assert done.returncode == 0, done.stderr
  assert (tmp_path / "game.html").read_text() == page
  done = subprocess.run([*command, str(tmp_path / "none.npz")], cwd=root, env=environment,
                        capture_output=True, text=True, timeout=300)
  assert done.returncode == 1 and "No such file or directory" in done.stderr
