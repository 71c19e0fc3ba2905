"""Pages and replays that `watch` writes."""

import os
import pathlib
import subprocess
import sys

import pytest

from starleague.environments.skirmish.games import replays
from starleague.experiments import watch
from starleague.viewers.watch import page as watch_page
from tests.experiments.launch import launch
from tests.viewers import games


@pytest.fixture(scope="module")
def replay():
  return games.record()


@pytest.fixture(scope="module")
def page(replay):
  return watch_page.render_page(replay, replays.resimulate(replay))


def test_page_is_written_beside_the_replay(replay, page, tmp_path, capsys):
  path = replays.save(tmp_path / "game.npz", replay)
  assert launch(watch, path) is None
  assert (tmp_path / "game.html").read_text() == page
  assert capsys.readouterr().out.startswith(f"page={tmp_path / 'game.html'} kilobytes=")
  assert launch(watch, path, "--output", tmp_path / "other.html") is None
  assert (tmp_path / "other.html").read_text() == page
  assert sorted(file.name for file in tmp_path.iterdir()) == ["game.html", "game.npz", "other.html"]


def test_game_is_played_and_saved(tmp_path, monkeypatch):
  record = replays.record
  monkeypatch.setattr(replays, "record", lambda *a, **k: record(*a, **k, max_steps=20))
  assert launch(watch, "--play", "passive", "rusher", "--seed", "5", "--swap_sides",
                "--save", tmp_path / "new.npz") is None
  saved = replays.load(tmp_path / "new.npz")
  assert saved.players == ("passive", "rusher") and saved.seed == 5 and saved.match_up.swap_sides
  assert "<h1>passive <span>vs</span> rusher</h1>" in (tmp_path / "new.html").read_text()


def test_damaged_replays_are_refused(replay, tmp_path):
  path = replays.save(tmp_path / "game.npz", replay._replace(hashes=("0" * 64,) * 2))
  assert launch(watch, path).startswith(f"error: {path}: step 0: the game is not the one")
  path.write_bytes(path.read_bytes()[:500])
  assert launch(watch, path).startswith(f"error: {path}: expected an .npz file, found ")
  assert [file.name for file in tmp_path.iterdir()] == ["game.npz"]


@pytest.mark.slow
def test_process_with_other_compiler_settings_plays_the_same_game(replay, page, tmp_path):
  """The tests compile without optimisation, unlike a user's process."""
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
  assert done.returncode == 1
  assert done.stderr == (
    f"error: '{tmp_path / 'none.npz'}': no such file or directory\n")
