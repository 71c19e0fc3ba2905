"""Folders of replays to tables: resumed runs, duplicates, refusals, and the library of z."""

import os
import shutil

import jax
import numpy as np
import pytest

from starleague.actor import rewards
from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.data.replays import library, reading, refusals, tables, workers
from starleague.data.z import conditioning
from starleague.data.z.statistics_library import StatisticsLibrary
from tests.data.replays import decoders
from tests.data.replays.games import REAL, Game, needs_real

LIMITS = workers.Limits(seconds=60.0, megabytes=500)


def run(folder, out, **more):
  return reading.read(reading.find([folder]), tables.Store(out), 1, LIMITS, **more)


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def out(folder, tmp_path_factory):
  out = tmp_path_factory.mktemp("out") / "tables"
  summary = run(folder, out)
  assert summary == reading.Summary(files=7, known=0, games=2, reasons={
    refusals.NOT_A_REPLAY: 2, refusals.DUPLICATE: 2, refusals.DAMAGED: 1})
  return out


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
  for name, row in tables.ROWS.items():
    assert tables.schema(name).names == list(row._fields)


def test_a_resumed_run_decodes_new_files_only(out, folder, tmp_path):
  """Files that ran into a limit are tried again, all others are known by their content."""
  again, moved = tmp_path / "out", tmp_path / "moved"
  shutil.copytree(out, again)
  shutil.copytree(folder, moved)
  (moved / "hang.SC2Replay").write_bytes(Game(seed=3).replay())
  (moved / "new.SC2Replay").write_bytes(Game(seed=4).replay())
  paths = reading.find([moved])
  found = reading.read(paths, tables.Store(again), 1, LIMITS._replace(seconds=3.0),
                       decoder=decoders.misbehaving)
  assert (found.files, found.known, found.games) == (9, 7, 3)
  assert found.reasons[refusals.TIME_LIMIT] == 1 and found.reasons[refusals.DUPLICATE] == 2
  assert (moved / "calls.txt").read_text().split() == ["hang.SC2Replay", "new.SC2Replay"]
  assert len(tables.read(again, "refused")) == 6
  found = run(moved, again)
  assert (found.known, found.games) == (8, 4) and refusals.TIME_LIMIT not in found.reasons
  assert len(tables.read(again, "games")) == 4 and len(tables.read(again, "refused")) == 5


def test_a_killed_run_continues(folder, tmp_path, monkeypatch):
  """Parts of one file each; the run is stopped after two answers."""
  monkeypatch.setattr(reading, "_PART_FILES", 1)

  def stop(progress):
    if progress.done == 2:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    run(folder, tmp_path / "out", report=stop)
  store = tables.Store(tmp_path / "out")
  assert len(list(store.column("refused", "replay"))) + len(list(store.column("games", "key"))) == 2
  shutil.copytree(tmp_path / "out" / "parts" / "00000", tmp_path / "out" / "parts" / ".partial-x")
  summary = run(folder, tmp_path / "out")
  assert (summary.known, summary.games) == (3, 2)  # a copy of a known file is known
  assert summary.reasons == {refusals.NOT_A_REPLAY: 2, refusals.DUPLICATE: 1, refusals.DAMAGED: 1}


@pytest.mark.parametrize("damage, message", [
  (lambda part: (part / "games.parquet").write_bytes(b"PAR1"), "is damaged: expected SHA-256"),
  (lambda part: (part / "part.json").unlink(), "part.json is missing"),
  (lambda part: (part / "players.parquet").unlink(), "players.parquet is missing")])
def test_damaged_parts_are_named(out, tmp_path, damage, message):
  copy = tmp_path / "out"
  shutil.copytree(out, copy)
  damage(copy / "parts" / "00000")
  with pytest.raises(tables.TablesError, match=message) as error:
    tables.Store(copy)
  assert "parts/00000" in str(error.value) and "\n" not in str(error.value)


def test_other_folders_are_left_alone(tmp_path):
  (tmp_path / "a").write_text("x")
  with pytest.raises(tables.TablesError, match="holds 'a' and no folder 'parts'"):
    tables.Store(tmp_path)
  with pytest.raises(reading.ReplaysError, match="expected .SC2Replay files, found none"):
    reading.find([tmp_path])
  with pytest.raises(reading.ReplaysError, match="no such file or folder"):
    reading.find([tmp_path / "b"])
  with pytest.raises(tables.TablesError, match="games.parquet is missing"):
    library.make(tmp_path)
  (tmp_path / "games.parquet").write_bytes(b"PAR1 and no more")
  with pytest.raises(tables.TablesError, match="games.parquet is damaged"):
    library.make(tmp_path)


def test_pipes_and_broken_links_do_not_stop_a_run(tmp_path):
  os.mkfifo(tmp_path / "a.SC2Replay")
  (tmp_path / "b.SC2Replay").symlink_to(tmp_path / "none")
  (tmp_path / "c.SC2Replay").mkdir()
  with open(tmp_path / "d.SC2Replay", "wb") as file:
    file.truncate(reading.MOST_BYTES + 1)
  summary = run(tmp_path, tmp_path / "out")
  assert summary.files == 3 and summary.games == 0
  assert summary.reasons == {refusals.UNREADABLE: 2, refusals.TOO_LARGE: 1}


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


def test_titles_of_maps():
  found = [("1", "Ланч"), ("1", "Ланч"), ("1", "Lunch LE"), ("2", "사"), ("2", "사"), ("2", "Ж")]
  assert library.map_titles(found) == {"1": "Lunch LE", "2": "사"}


def test_the_library_of_z(out, tmp_path):
  """It has the statistics of the rows, and loads from its file."""
  made = library.make(out)
  made.save(tmp_path / "z.npz")
  made = StatisticsLibrary.load(tmp_path / "z.npz")
  assert len(made) == 4 and made.maps == ("Test LE",)
  assert made.home_race.tolist() == [3, 2, 3, 2] and made.away_race.tolist() == [2, 3, 2, 3]
  assert made.side.tolist() == [0, 1, 0, 1]
  gateway, zealot = v.UNIT_TYPES.index("Gateway"), v.UNIT_TYPES.index("Zealot")
  assert made.z.build_order[0, :3].tolist() == [gateway, zealot, 0]
  assert made.z.build_order_xy[0, :3].tolist() == [[70, 211], [69, 214], [0, 0]]
  assert np.flatnonzero(made.z.units[0]).tolist() == sorted(
    v.UNIT_TYPES.index(name) for name in ("Gateway", "Zealot", "Pylon"))
  assert np.flatnonzero(made.z.upgrades[1]).tolist() == [v.UPGRADES.index("MetabolicBoost")]
  assert not made.z.effects.any()


@needs_real
@pytest.mark.slow
def test_z_of_real_replays_loads_into_training_unchanged(tmp_path):
  """The library serves as the source of rollouts' conditioning, and its own z has distance 0."""
  for name in ("pysc2/replay_04", "di-star/replay_5.0.1", "sc2reader/3.4.0__issueYY"):
    shutil.copy(REAL / f"{name}.SC2Replay", tmp_path)
  summary = run(tmp_path, tmp_path / "out")
  assert summary.games == 3 and summary.reasons == {}
  made = library.make(tmp_path / "out")
  assert len(made) == 6 and {types.RACES[race] for race in made.home_race} == {
    "terran", "zerg", "protoss"}
  assert (made.z.build_order > 0).sum(axis=1).max() == 20
  zerg = types.RACES.index("zerg")
  drawn = conditioning.from_library(
    made, ["Kairos Junction LE"], [zerg], 2, np.ones(4, np.float32), 3500, seed=0)
  for side in range(2):
    row, = made.rows("Kairos Junction LE", zerg, zerg, side)
    z = jax.tree.map(lambda x: x[drawn.rows[0, zerg, zerg, side, 1]],  # noqa: B023
                     drawn.z)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[row]),  # noqa: B023
                 z, made.z)
    assert rewards.build_order_distance(
      z.build_order, z.build_order_xy, z.build_order, z.build_order_xy) == 0
