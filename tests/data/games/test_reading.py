"""Datasets of games: what is read is what was written, the split, the z, and damage."""

import shutil

import jax
import numpy as np
import pytest

from starleague.common import manifests
from starleague.data import games, wire
from starleague.data.games import files
from tests.data.games import recorded_games
from tests.data.games.recorded_games import LENGTHS, MINI, PART


def test_episodes_have_their_columns(folder):
  found = games.read(folder)
  assert (found.config, found.tier, found.maps) == (MINI, "mini", ("open",))
  assert len(found.parts) == 3
  episodes = found.episodes
  count = 2 * len(LENGTHS)
  assert episodes.game.tolist() == [i // 2 for i in range(count)]
  assert episodes.player.tolist() == episodes.side.tolist() == [i % 2 for i in range(count)]
  assert episodes.result.tolist() == [1 - 2 * (i % 2) for i in range(count)]
  assert episodes.decisions.tolist() == [LENGTHS[i // 2] + i % 2 for i in range(count)]
  assert set(episodes.name) == {"demo_2000"} and set(episodes.mmr) == {2000}
  dtypes = {name: getattr(episodes, name).dtype for name in files.NUMBERS}
  assert dtypes == {name: np.dtype(dtype) for name, dtype in files.NUMBERS.items()}


def test_steps_are_those_that_were_written(folder):
  found = games.read(folder)
  for row, length in ((0, 3), (5, 2), (9, 21)):
    written = recorded_games.episode(MINI, length, row).steps
    for a, b in zip(games.steps(found, row), written, strict=True):
      assert a.dtype == b.dtype
      np.testing.assert_array_equal(a, b)


def test_an_epoch_unpacks_to_whole_games(folder):
  found = games.read(folder)
  rows = np.array([1, 4, 8, 9, 14])
  unpack = jax.jit(lambda packed: wire.unpack(packed, MINI))
  loops, batches = [], 0
  for batch in games.in_order(found, rows, 2, 5, seed=1):
    batches += 1
    steps = unpack(batch.packed).steps
    learnt = np.asarray(steps.weight)[:-1] > 0
    loops += np.asarray(steps.observation.game_loop)[:-1][learnt].tolist()
  assert batches == games.num_batches(found, rows, 2, 5, seed=1)
  assert sorted(loops) == sorted(
    1000 * row + i for row in rows for i in range(found.episodes.decisions[row]))


def test_the_order_depends_on_the_seed_and_an_epoch_can_continue(folder):
  found = games.read(folder)
  rows = np.arange(16)

  def read(seed, start=0):
    return [batch.int32.tobytes() for batch in games.in_order(found, rows, 3, 4, seed, start)]

  assert read(1) == read(1) != read(2)
  assert read(1)[7:] == read(1, start=7)


def test_invalid_sizes_are_refused(folder):
  with pytest.raises(ValueError, match="above 0, found 0 and 4"):
    games.in_order(games.read(folder), np.arange(2), 0, 4, 0)


def test_the_split_is_by_game(folder):
  found = games.read(folder)
  training, held_out = games.split(found, 0.25)
  assert sorted([*training, *held_out]) == list(range(16))
  assert len(held_out) == 4
  assert not set(found.episodes.game[training]) & set(found.episodes.game[held_out])
  np.testing.assert_array_equal(games.split(found, 0.25)[1], held_out)
  assert len(games.split(found, 0.0)[1]) == 0 and len(games.split(found, 0.001)[1]) == 2
  assert set(held_out) <= set(games.split(found, 0.5)[1])
  with pytest.raises(ValueError, match="expected 0 to 1, found 2"):
    games.split(found, 2)


def test_each_folder_is_split_as_it_is_alone(folder, tmp_path):
  """Weights that have learnt a folder alone measure with other games of it, whatever is joined."""
  added = recorded_games.write(tmp_path / "added", MINI, [2, 4, 3, 5, 8, 13], origin="others")
  paths = {"one": (folder, 16), "two": (added, 12),
           "none": (recorded_games.write(tmp_path / "empty", MINI, []), 0)}
  alone = {name: games.split(games.read(path), 0.25)[1] for name, (path, _) in paths.items()}
  assert [len(held_out) for held_out in alone.values()] == [4, 4, 0]
  for names in (("one", "two"), ("two", "one"), ("none", "two", "none", "one")):
    both = games.read(",".join(str(paths[name][0]) for name in names))
    starts = np.cumsum([0, *(paths[name][1] for name in names)])
    training, held_out = games.split(both, 0.25)
    assert held_out.tolist() == [
      start + row for start, name in zip(starts, names, strict=False) for row in alone[name]]
    assert sorted([*training, *held_out]) == list(range(28))
  # The choice of one folder is that of earlier versions.
  assert [alone[name].tolist() for name in ("one", "two")] == [[6, 7, 10, 11], [6, 7, 10, 11]]


def test_the_library_has_the_z_of_the_rows(folder):
  found = games.read(folder)
  library = games.library(found, np.array([3, 2, 15]))
  assert library.maps == ("open",) and library.side.tolist() == [1, 0, 1]
  assert library.z.build_order_xy[:, 0].tolist() == [[3, 1], [2, 0], [15, 1]]
  assert library.z.units.nonzero()[1].tolist() == [3, 2, 15 % 9]
  assert len(library.select("open", 1, 1, side=1).units) == 2


def test_an_empty_dataset_is_read(tmp_path):
  path = recorded_games.write(tmp_path / "games", MINI, [])
  found = games.read(path)
  assert len(found.episodes.game) == 0
  assert len(games.library(found, np.zeros(0, int))) == 0
  assert list(games.in_order(found, np.zeros(0, int), 2, 3, 0)) == []


def signed(copy):
  """Gives a dataset the digest that its first part has now."""
  manifest = manifests.read(copy / files.MANIFEST)
  digests = manifest.pop("files") | {PART: manifests.file_digest(copy / PART)}
  manifests.replace(copy / files.MANIFEST, manifest, digests)
  return copy


def rewritten(folder, copy, column, row, value, *, as_type=None):
  """Returns a copy of a dataset with one other value in its first part, and valid digests."""
  import pyarrow
  shutil.copytree(folder, copy)
  part = copy / PART
  table = files.parquet().read_table(part)
  field = table.schema.field(column)
  values = table[column].to_pylist()
  values[row] = value(values[row]) if callable(value) else value
  kind = as_type or field.type
  table = table.set_column(table.schema.get_field_index(column), pyarrow.field(column, kind),
                           pyarrow.array(values, kind))
  files.parquet().write_table(table, part, row_group_size=1)
  return signed(copy)


@pytest.mark.parametrize("column, value, message", [
  ("race", 200, "column 'race', row 2: expected 0 to 4, found 200"),
  ("away_race", 5, "column 'away_race', row 2: expected 0 to 4, found 5"),
  ("side", 9, "column 'side', row 2: expected 0 to 1, found 9"),
  ("player", 2, "column 'player', row 2: expected 0 to 1, found 2"),
  ("map_index", 77, "column 'map_index', row 2: expected 0 to 0, found 77"),
  ("map_index", -1, "column 'map_index', row 2: expected 0 to 0, found -1"),
  ("result", 5, "column 'result', row 2: expected -1 to 1, found 5"),
  ("decisions", -3, "column 'decisions', row 2: expected 0 to 2147483647, found -3"),
  ("mmr", None, "column 'mmr': expected int16, found float"),
])
def test_invalid_numbers_with_a_valid_digest_are_named(folder, tmp_path, column, value, message):
  copy = rewritten(folder, tmp_path / "copy", column, 2, value)
  with pytest.raises(files.GamesError, match=f"part-00000.parquet: {message}"):
    games.read(copy)


@pytest.mark.parametrize("column, value, message", [
  ("units", lambda z: z[:-1], "column 'units', row 2: expected 256 values, found 255"),
  ("build_order", lambda z: z + b"1", "column 'build_order', row 2: expected 20 values, found 21"),
  ("effects", None, "column 'effects', row 2: expected bytes, found nothing"),
])
def test_an_invalid_z_is_named(folder, tmp_path, column, value, message):
  found = games.read(rewritten(folder, tmp_path / "copy", column, 2, value))
  with pytest.raises(files.GamesError, match=f"part-00000.parquet: {message}"):
    games.library(found, np.arange(4))


@pytest.mark.parametrize("value, message", [
  (lambda steps: steps[:-1], r"expected a multiple of 4 bytes, found \d+"),
  (None, "expected bytes, found nothing"),
])
def test_invalid_steps_are_named(folder, tmp_path, value, message):
  found = games.read(rewritten(folder, tmp_path / "copy", "float32", 2, value))
  with pytest.raises(files.GamesError, match=f"column 'float32', row 2: {message}"):
    games.steps(found, 2)


def test_other_row_groups_are_refused(folder, tmp_path):
  """As of a part that another program wrote again: row i is not in row group i."""
  copy = shutil.copytree(folder, tmp_path / "copy")
  table = files.parquet().read_table(copy / PART)
  files.parquet().write_table(table, copy / PART, row_group_size=2)
  found = games.read(signed(copy))
  with pytest.raises(files.GamesError, match=f"{PART}: expected a row group for each of "
                     f"{len(table)} episodes, found {-(-len(table) // 2)}"):
    games.steps(found, 1)
  with pytest.raises(files.GamesError, match=f"{PART}: expected a row group for each of"):
    games.library(found, np.arange(1))


def test_damaged_steps_are_named(folder, tmp_path):
  """The bytes of steps are not read before they are needed."""
  copy = shutil.copytree(folder, tmp_path / "copy")
  group = files.parquet().ParquetFile(copy / PART).metadata.row_group(0)
  columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
  place = columns["bits"].dictionary_page_offset or columns["bits"].data_page_offset
  data = bytearray((copy / PART).read_bytes())
  data[place:place + 100] = bytes(100)
  (copy / PART).write_bytes(data)
  found = games.read(signed(copy))
  with pytest.raises(files.GamesError, match=f"{PART} is not a part of a dataset of games: "):
    games.steps(found, 0)
