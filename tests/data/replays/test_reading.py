"""Folders of replays to tables: resumed runs, duplicates, refusals."""

import os
import shutil

import pytest

from starleague.data.replays import reading, refusals, tables
from tests.data.replays import decoders
from tests.data.replays.folders import LIMITS, run
from tests.data.replays.games import Game


def test_tables(out, folder):
  games = tables.read(out, "games").to_pylist()
  assert [game["file"].rpartition("/")[2] for game in games] == ["a.SC2Replay", "b.SC2Replay"]
  assert games[0]["matchup"] == "PvZ" and games[0]["map"] == "Test LE"
  players = tables.read(out, "players").to_pylist()
  assert [(row["name"], row["mmr"]) for row in players] == [("Ann", 4321), ("Bob", None)] * 2
  assert len(tables.read(out, "builds")) == 2 * 13 and len(tables.read(out, "commands")) == 2 * 4
  refused = {row["file"].rpartition("/")[2]: row for row in tables.read(out, "refused").to_pylist()}
  assert refused["d.SC2Replay"]["detail"] == f"the same file as {folder / 'a.SC2Replay'}"
  assert refused["c.SC2Replay"]["detail"] == "another file of a game that was read"
  assert refused["e.SC2Replay"]["reason"] == refusals.NOT_A_REPLAY


def test_a_resumed_run_decodes_new_files_only(out, folder, tmp_path):
  """Files that ran into a limit are tried again, all others are known by their content."""
  again, moved = tmp_path / "out", tmp_path / "moved"
  shutil.copytree(out, again)
  shutil.copytree(folder, moved)
  (moved / "hang.SC2Replay").write_bytes(Game(seed=3).replay())
  (moved / "new.SC2Replay").write_bytes(Game(seed=4).replay())
  paths = reading.find([moved])
  with tables.Store(again) as store:
    found = reading.read(paths, store, 1, LIMITS._replace(seconds=3.0),
                         decoder=decoders.misbehaving)
  assert (found.files, found.known, found.games) == (9, 7, 3)
  assert found.reasons[refusals.TIME_LIMIT] == 1 and found.reasons[refusals.DUPLICATE] == 2
  assert (moved / "calls.txt").read_text().split() == ["hang.SC2Replay", "new.SC2Replay"]
  assert len(tables.read(again, "refused")) == 6
  found = run(moved, again)
  assert (found.known, found.games) == (8, 4) and refusals.TIME_LIMIT not in found.reasons
  assert len(tables.read(again, "games")) == 4 and len(tables.read(again, "refused")) == 5


def test_copies_of_a_file_that_ran_into_a_limit_do_not_make_it_known(tmp_path):
  folder, out = tmp_path / "games", tmp_path / "out"
  folder.mkdir()
  for name in ("die", "die_too"):
    (folder / f"{name}.SC2Replay").write_bytes(Game(seed=6).replay())
  found = run(folder, out, decoder=decoders.misbehaving)
  assert found.reasons == {refusals.DECODER_DIED: 1, refusals.DUPLICATE: 1}
  found = run(folder, out)
  assert (found.known, found.games) == (0, 1) and found.reasons == {refusals.DUPLICATE: 1}
  assert run(folder, out).known == 2


def test_a_killed_run_continues(folder, tmp_path, monkeypatch):
  """Parts of one file each; the run is stopped after two answers."""
  monkeypatch.setattr(reading, "_PART_FILES", 1)

  def stop(progress):
    if progress.done == 2:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    run(folder, tmp_path / "out", report=stop)
  with tables.Store(tmp_path / "out") as store:
    assert len([*store.column("refused", "replay"), *store.column("games", "key")]) == 2
  shutil.copytree(tmp_path / "out" / "parts" / "00000", tmp_path / "out" / "parts" / ".partial-x")
  summary = run(folder, tmp_path / "out")
  assert (summary.known, summary.games) == (3, 2)  # a copy of a known file is known
  assert summary.reasons == {refusals.NOT_A_REPLAY: 2, refusals.DUPLICATE: 1, refusals.DAMAGED: 1}


def test_folders_without_replays_are_named(tmp_path):
  (tmp_path / "a").write_text("x")
  with pytest.raises(reading.ReplaysError, match="expected .SC2Replay files, found none"):
    reading.find([tmp_path])
  with pytest.raises(reading.ReplaysError, match="no such file or folder"):
    reading.find([tmp_path / "b"])


def test_pipes_and_broken_links_do_not_stop_a_run(tmp_path):
  os.mkfifo(tmp_path / "a.SC2Replay")
  (tmp_path / "b.SC2Replay").symlink_to(tmp_path / "none")
  (tmp_path / "c.SC2Replay").mkdir()
  with open(tmp_path / "d.SC2Replay", "wb") as file:
    file.truncate(reading.MOST_BYTES + 1)
  summary = run(tmp_path, tmp_path / "out")
  assert summary.files == 3 and summary.games == 0
  assert summary.reasons == {refusals.UNREADABLE: 2, refusals.TOO_LARGE: 1}


def test_a_file_that_is_too_large_is_refused_once(tmp_path):
  """Nothing reads it, so that its path stands for its content."""
  folder, out = tmp_path / "games", tmp_path / "out"
  folder.mkdir()
  large = folder / "a.SC2Replay"
  with open(large, "wb") as file:
    file.truncate(reading.MOST_BYTES + 1)
  assert [run(folder, out).known for _ in range(3)] == [0, 1, 1]
  rows = tables.read(out, "refused").to_pylist()
  assert [(row["file"], row["reason"]) for row in rows] == [(str(large), refusals.TOO_LARGE)]
  large.write_bytes(Game(seed=5).replay())
  found = run(folder, out)
  assert (found.known, found.games, found.reasons) == (0, 1, {refusals.TOO_LARGE: 1})


def test_file_names_of_other_encodings_are_escaped(tmp_path):
  folder = os.fsencode(tmp_path / "games")
  os.mkdir(folder)
  for name, data in ((b"\xb0\xa1", Game(seed=5).replay()), (b"\xb0\xa2", b"no replay")):
    with open(folder + b"/" + name + b".SC2Replay", "wb") as file:
      file.write(data)
  assert run(tmp_path / "games", tmp_path / "out").games == 1
  for table, name in (("games", r"\xb0\xa1"), ("refused", r"\xb0\xa2")):
    (row,) = tables.read(tmp_path / "out", table).to_pylist()
    assert row["file"].endswith(f"/{name}.SC2Replay")
