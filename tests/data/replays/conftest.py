"""A folder of replays, and the tables of it."""

import pytest

from starleague.data.replays import reading, refusals
from tests.data.replays.folders import run
from tests.data.replays.games import Game


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
  """Two games, one of them in two files, a copy, a picture, and half a file."""
  path = tmp_path_factory.mktemp("replays")
  (path / "deep").mkdir()
  other = Game(title="테스트".encode(), loops=2100, events=Game.events[:-1])
  for name, data in {
      "a": Game().replay(), "b": Game(seed=1).replay(), "deep/c": other.replay(),
      "d": Game().replay(), "e": b"\xff\xd8\xff\xe0JFIF", "f": Game(seed=2).replay()[:1500]
      }.items():
    (path / f"{name}.SC2Replay").write_bytes(data)
  (path / "notes.txt").write_text("no replay")
  (path / "UPPER.SC2REPLAY").write_bytes(b"")
  return path


@pytest.fixture(scope="session")
def out(folder, tmp_path_factory):
  out = tmp_path_factory.mktemp("out") / "tables"
  summary = run(folder, out)
  assert summary == reading.Summary(files=7, known=0, games=2, reasons={
    refusals.NOT_A_REPLAY: 2, refusals.DUPLICATE: 2, refusals.DAMAGED: 1})
  return out
