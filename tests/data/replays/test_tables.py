"""Parquet tables of replays: schemas, parts, damage."""

import shutil

import pyarrow
import pytest

from starleague.data.replays import records, refusals, tables
from tests.data.replays.games import decoded


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


def test_schemas_have_the_columns_of_the_rows():
  for name, row in tables.ROWS.items():
    assert tables.schema(name).names == list(row._fields)
  fields = tables.schema("players")
  assert fields.field("mmr") == pyarrow.field("mmr", pyarrow.int64())
  assert fields.field("start_x") == pyarrow.field("start_x", pyarrow.float64(), nullable=False)
  assert fields.field("units") == pyarrow.field(
    "units", pyarrow.list_(pyarrow.string()), nullable=False)


def part(name):
  """Returns a part of one synthetic game and one file that is refused."""
  found = decoded()
  refused = records.RefusalRow("", name, refusals.DAMAGED, "x")
  return tables.Part([found.game], found.players, found.builds, found.commands, [refused])


def test_parts_are_read_back_and_merged(tmp_path):
  for name in "ab":  # a further run continues the numbers
    with tables.Store(tmp_path / "out") as store:
      store.add(part(name))
  store = tables.Store(tmp_path / "out")
  assert [path.name for path in sorted((tmp_path / "out" / "parts").iterdir())] == [
    "00000", "00001"]
  assert list(store.column("refused", "file")) == ["a", "b"]
  store.merge([records.RefusalRow("", "c", refusals.TIME_LIMIT, "60 s")])
  found = tables.read(tmp_path / "out", "refused").to_pylist()
  assert [row["file"] for row in found] == ["a", "b", "c"]
  rows = tables.read(tmp_path / "out", "commands").to_pylist()
  assert rows == [row._asdict() for row in decoded().commands] * 2
  assert tables.read(tmp_path / "out", "players", ["name"]).to_pylist() == [
    {"name": "Ann"}, {"name": "Bob"}] * 2


def test_what_a_killed_run_left_is_removed(tmp_path):
  with tables.Store(tmp_path) as store:
    store.add(part("a"))
  partial, temporary = tmp_path / "parts/.partial-00001-a", tmp_path / ".games.parquet-b"
  partial.mkdir()
  (partial / "games.parquet").write_bytes(b"PAR1")
  temporary.write_bytes(b"PAR1")
  assert list(tables.Store(tmp_path).column("refused", "file")) == ["a"]
  assert not partial.exists() and not temporary.exists()


def test_a_second_store_is_refused_and_leaves_what_the_first_one_writes(tmp_path):
  with tables.Store(tmp_path) as store:
    partial = tmp_path / "parts/.partial-00000-a"
    partial.mkdir()
    with pytest.raises(tables.TablesError) as error:
      tables.Store(tmp_path)
    assert str(error.value) == (f"{tmp_path} is written by another process: wait until that ends, "
                                "or choose another --out")
    assert partial.exists()
    store.add(part("a"))
  with tables.Store(tmp_path) as store:
    assert list(store.column("refused", "file")) == ["a"] and not partial.exists()


def test_other_folders_are_left_alone(tmp_path):
  (tmp_path / "a").write_text("x")
  with pytest.raises(tables.TablesError) as error:
    tables.Store(tmp_path)
  assert str(error.value) == f"{tmp_path} holds 'a' and no folder 'parts': choose a new --out"


def test_tables_of_another_version_are_refused(tmp_path, monkeypatch):
  with tables.Store(tmp_path) as store:
    store.add(tables.empty_part())
  monkeypatch.setattr(tables, "SCHEMA", 2)
  with pytest.raises(tables.TablesError) as error:
    tables.Store(tmp_path)
  assert str(error.value) == (f"{tmp_path}/parts/00000: expected schema 2, found 1; choose a new "
                              "--out")


def test_missing_and_damaged_tables_are_named(tmp_path):
  with pytest.raises(tables.TablesError) as error:
    tables.read(tmp_path, "games")
  assert str(error.value) == (f"{tmp_path}/games.parquet is missing: make it with "
                              "starleague.experiments.replays")
  (tmp_path / "games.parquet").write_bytes(b"PAR1 and no more")
  with pytest.raises(tables.TablesError, match="games.parquet is damaged"):
    tables.read(tmp_path, "games")
