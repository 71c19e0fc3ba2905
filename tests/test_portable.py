"""Programs that need no Reverb, where there is no TensorFlow: any Python and JAX of setup.py."""

import importlib.util
import re
import shutil

import pytest

from starleague.common import results, run_files
from starleague.data.z.statistics_library import StatisticsLibrary
from starleague.environments.skirmish.games import replays
from starleague.experiments import evaluate, imitate, offline, play_skirmish, watch
from starleague.experiments import replays as read_replays
from starleague.experiments.run.config import settings
from starleague.viewers.play import session
from tests.data.replays.games import Game
from tests.experiments import imitated_games
from tests.experiments.launch import launch
from tests.experiments.runs import saved_steps
from tests.test_imports import FILES, after_importing, module_name

pytestmark = pytest.mark.skipif(
  importlib.util.find_spec("tensorflow") is not None,
  reason="TensorFlow is installed: `make test-newest` runs these without it")
# Modules that need an extra to be imported: StarCraft II's protocol, adapters, the dashboard,
# companions' tasks.
EXTRA = ("environments/sc2/", "environments/skirmish/adapters/", "viewers/league/live.py", *(
  f"companions/tasks/{name}.py"
  for name in ("atari", "bsuite", "gymnasium", "jaxmarl", "minatar", "minigrid", "popgym")))


def test_every_room_imports():
  names = {module_name(file) for file in FILES
           if not file.startswith(EXTRA) and not file.endswith("__main__.py")}
  modules, _ = after_importing(sorted(names))
  assert names <= modules and len(names) > 400
  assert not modules & {"tensorflow", "reverb"}


def test_watch_shows_a_game(tmp_path, monkeypatch):
  record = replays.record
  monkeypatch.setattr(replays, "record", lambda *a, **k: record(*a, **k, max_steps=20))
  path = tmp_path / "game.npz"
  assert launch(watch, "--play", "passive", "rusher", "--seed", "5", "--save", path) is None
  assert replays.load(path).players == ("passive", "rusher")
  assert "<h1>passive <span>vs</span> rusher</h1>" in path.with_suffix(".html").read_text()


def test_play_saves_a_game(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(play_skirmish, "_DELIVERY_SECONDS", 0.0)
  monkeypatch.setattr(session.Session, "run", lambda self: [self.step() for _ in range(5)])
  path = tmp_path / "game.npz"
  assert launch(play_skirmish, "--opponent", "rusher", "--seed", "3", "--save_replay", path) is None
  assert "url=http://127.0.0.1:" in capsys.readouterr().out
  assert replays.load(path).steps == 5


def test_replays_are_read(tmp_path, monkeypatch):
  (tmp_path / "game.SC2Replay").write_bytes(Game(seed=0).replay())
  out = tmp_path / "out"
  monkeypatch.setattr(read_replays, "ARGUMENTS", [("FOLDER...",)], raising=False)
  assert launch(read_replays, tmp_path, "--out", out, "--workers=1") is None
  assert len(StatisticsLibrary.load(out / "z.npz")) == 2


def test_an_agent_learns_from_a_dataset_and_is_evaluated(tmp_path, capsys):
  run_dir = tmp_path / "run"
  settings.save(settings.complete({
    "environment": {"opponents": "rusher,builder"},
    "imitation": {"batch_size": 8, "seconds": 0.0, "epochs": 1, "held_out": 0.25,
                  "fine_tune_seconds": 0.0}}), run_dir)
  data = imitated_games.write(tmp_path / "games", 8, 32)
  assert launch(imitate, "--run_dir", run_dir, "--dataset", data) is None
  tags = results.by_tag(results.read(run_dir / results.FILE_NAME))
  # 6 games of two episodes of two chunks: four of the eight slots learn a second one.
  assert saved_steps(run_dir / run_files.IMITATION)[-1] == 4
  assert 0 < tags["imitation/loss/held_out"][-1].value < 100
  for name in (run_files.INITIAL, run_files.CHECKPOINTS):
    shutil.copytree(run_dir / run_files.IMITATED, run_dir / name)
  capsys.readouterr()
  assert launch(evaluate, "--run_dir", run_dir, "--games", 2, "--opponents", "rusher") is None
  initial, trained, report = capsys.readouterr().out.splitlines()
  assert re.match(r"agent=initial update=0 opponent=rusher games=2 wins=\d draws=\d", initial)
  # Equal weights and seeds give equal games.
  assert trained.partition("opponent=")[2] == initial.partition("opponent=")[2]
  assert report == f"report={run_dir / 'report.html'}"
  assert "rusher" in (run_dir / "report.html").read_text()


def test_an_agent_learns_offline(tmp_path):
  data = imitated_games.write(tmp_path / "games", 4, 20)
  assert launch(offline, "--runs_dir", tmp_path, "--run", "clone", "--dataset", data,
                "--config.imitation.batch_size=8", "--config.offline.updates=1") is None
  assert saved_steps(tmp_path / "clone" / run_files.CHECKPOINTS) == [1]
