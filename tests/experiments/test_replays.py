"""The launch file of replays: from files to tables, a library of z and a page."""

import pytest
from absl.testing import flagsaver

from starleague.data.replays import tables
from starleague.data.z.statistics_library import StatisticsLibrary
from starleague.experiments import replays
from starleague.experiments.run.config import entry
from tests.data.replays.games import Game


def run(monkeypatch, *words):
  """Returns the launch file's exit status, the text of its error, or None for success."""
  monkeypatch.setattr("sys.argv", ["replays", *map(str, words)])
  with flagsaver.flagsaver(), pytest.raises(SystemExit) as ended:
    entry.run(replays.main, required=["out"], arguments=[("FOLDER...",)])
  return ended.value.code


def test_replays(monkeypatch, tmp_path, capsys):
  folders = [tmp_path / "a", tmp_path / "b"]
  for seed, folder in enumerate(folders):
    folder.mkdir()
    (folder / "game.SC2Replay").write_bytes(Game(seed=seed).replay())
  (folders[0] / "photo.sc2replay").write_bytes(b"\xff\xd8\xff\xe0JFIF")
  out = tmp_path / "out"
  assert run(monkeypatch, *folders, "--out", out, "--workers=1") is None
  printed = capsys.readouterr().out
  assert "refused files=1 reason='not a replay'" in printed
  assert "read files=3 known=0 games=2 z=4" in printed
  assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
    "builds.parquet", "commands.parquet", "games.parquet", "parts", "players.parquet",
    "refused.parquet", "replays.html", "z.npz"]
  assert len(StatisticsLibrary.load(out / "z.npz")) == 4
  assert len(tables.read(out, "games")) == 2
  assert run(monkeypatch, *folders, "--out", out, "--workers=1") is None
  assert "read files=3 known=3 games=2 z=4" in capsys.readouterr().out


@pytest.mark.parametrize("words, message", [
  ([], "error: expected FOLDER... beside the flags"),
  (["empty"], "empty: expected .SC2Replay files, found none"),
  (["missing"], "missing: no such file or folder"),
  (["empty", "--workers=0"], "--workers=0"), (["empty", "--time_limit=0"], "--time_limit")])
def test_wrong_command_lines_get_one_line(monkeypatch, tmp_path, words, message):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "empty").mkdir()
  error = run(monkeypatch, *words, "--out", "out")
  assert error.startswith("error: ") and message in error and "\n" not in error
