"""Datasets of several folders: one order, one numbering, and each game once."""

import shutil

import numpy as np
import pytest

from starleague.agent import types
from starleague.data import games
from starleague.data.games import files, joining, reading
from tests.data.games import recorded_games
from tests.data.games.recorded_games import LENGTHS, MINI, PART


def test_steps_that_do_not_fit_are_named_by_the_file_and_row_of_their_folder(folder, tmp_path):
  other = recorded_games.write(tmp_path / "labels", MINI, [5, 7], origin="labels")
  found = games.read(f"{folder},{other}")
  row = 2 * len(LENGTHS) + 2
  found.episodes.decisions[row] += 1
  with pytest.raises(games.GamesError, match=(
      f"^{other / PART}: column 'bits', row 2: expected 9 steps of .* record again.$")):
    games.steps(found, row)


def test_several_folders_are_read_as_one(folder, tmp_path):
  other = recorded_games.write(tmp_path / "labels", MINI, [5, 7], origin="labels")
  one, found = games.read(folder), games.read(f"{folder},{other}", "mini")
  orders = (f"{folder}", f"{other}", f"{folder},{other}", f"{other},{folder}")
  assert len({games.read(order).digest for order in orders}) == 4
  count = 2 * len(LENGTHS)
  assert found.episodes.game.tolist() == [i // 2 for i in range(count + 4)]
  assert found.episodes.decisions[count:].tolist() == [5, 6, 7, 8]
  for row in (0, 7, count, count + 3):
    of, at = (one, row) if row < count else (games.read(other), row - count)
    for a, b in zip(games.steps(found, row), games.steps(of, at), strict=True):
      np.testing.assert_array_equal(a, b)
  library = games.library(found, np.arange(count + 4)).z
  np.testing.assert_array_equal(library.build_order_xy[count:, 0, 0], [0, 1, 2, 3])
  learnt, held_out = games.split(found, 0.2)
  assert sorted([*learnt, *held_out]) == list(range(count + 4))
  assert not set(found.episodes.game[learnt]) & set(found.episodes.game[held_out])


def test_folders_of_other_games_are_refused(folder, tmp_path):
  with files.GamesWriter(tmp_path / "large", MINI, "default", ("open",), "a test") as writer:
    writer.add([recorded_games.episode(MINI, 3, 0)])
  with pytest.raises(files.GamesError, match="another tier than .*: expected 'mini', found 'def"):
    games.read(f"{folder},{tmp_path / 'large'}")


def test_games_that_are_given_twice_are_refused(folder, tmp_path):
  copy = tmp_path / "copy"
  shutil.copytree(folder, copy)
  for again in (folder, f"{folder}/", copy):
    with pytest.raises(files.GamesError, match=(
        f"^dataset .*: expected each game once, found those of {folder} again in {again}; leave")):
      games.read(f"{folder},{again}")
  empty = [recorded_games.write(tmp_path / name, MINI, []) for name in "ab"]
  assert games.read(f"{empty[0]},{empty[1]}").parts == ()


@pytest.mark.parametrize("names", ["{folder},", ",{folder}", "{folder},,{folder}", ""])
def test_an_empty_name_is_refused(folder, names):
  names = names.format(folder=folder)
  with pytest.raises(files.GamesError, match=f"^dataset {names!r}: expected folders, .*name '';"):
    games.read(names)


def write(path, played):
  """Writes games of two sides, each (fields of `recorded_games.episode`, its number)."""
  with files.GamesWriter(path, MINI, "mini", ("open", "river"), "a test") as writer:
    for game, (fields, number) in enumerate(played):
      writer.add([recorded_games.episode(MINI, 4 + player, 2 * number + player, game=game,
                                         player=player, **fields) for player in (0, 1)])
  return path


def test_a_dataset_and_its_extended_copy_are_refused(folder, tmp_path):
  """As of an equal seed and another number of games: no file is the same."""
  longer = recorded_games.write(tmp_path / "longer", MINI, [*LENGTHS, 5, 7], part_decisions=60)
  assert not set(files.describe(folder)[1].values()) & set(files.describe(longer)[1].values())
  other = recorded_games.write(tmp_path / "other", MINI, [9, 9], origin="others")
  for one, again, total in ((folder, longer, 10), (longer, folder, 8)):
    with pytest.raises(files.GamesError) as error:
      games.read(f"{one},{other},{again}")
    assert str(error.value) == (
      f"dataset '{one},{other},{again}': expected each game once, found 8 of the {total} games of "
      f"{again} in {one}, too; leave one of the folders out, or record one of them with another "
      "seed.")


def test_one_repeated_game_is_refused(tmp_path):
  one = write(tmp_path / "one", [({}, 0), ({}, 1), ({}, 2)])
  assert len(games.read(f"{one},{write(tmp_path / 'two', [({}, 3), ({}, 4)])}").episodes.game) == 10
  again = write(tmp_path / "again", [({}, 3), ({}, 1)])
  with pytest.raises(files.GamesError, match=f"found 1 of the 2 games of {again} in {one}, too"):
    games.read(f"{one},{again}")


@pytest.mark.parametrize("fields", [
  {"name": "demo_3000"}, {"map_index": 1}, {"race": 2}, {"away_race": 2}, {"mmr": 3000},
  {"result": 0}])
def test_games_of_the_same_z_differ_in_one_column(tmp_path, fields):
  one, other = write(tmp_path / "one", [({}, 0)]), write(tmp_path / "other", [(fields, 0)])
  assert games.read(f"{one},{other}").episodes.game.tolist() == [0, 0, 1, 1]


def test_games_of_passive_players_are_equal_by_nature(tmp_path):
  """The other side of the last game builds: it is the same game."""
  passive = {"z": types.zeros(types.statistics_spec())}
  one = write(tmp_path / "one", [(passive, 0), (passive, 1), ({}, 2)])
  other = write(tmp_path / "other", [({}, 3), (passive, 5)])
  assert len(games.read(f"{one},{other}").parts) == 2
  built = recorded_games.episode(MINI, 4, 9)
  for name in "ab":
    with files.GamesWriter(tmp_path / name, MINI, "mini", ("open",), "a test") as writer:
      for game in range(3 if name == "a" else 2):
        sides = [built, built._replace(player=1, side=1, result=-1, **passive)]
        if game != 1:
          sides[0] = sides[0]._replace(**passive)
        writer.add([side._replace(game=game) for side in sides])
  with pytest.raises(files.GamesError, match="found 1 of the 2 games of .*b in .*a, too"):
    games.read(f"{tmp_path / 'a'},{tmp_path / 'b'}")


def test_z_is_read_of_games_with_equal_columns_alone(folder, tmp_path, monkeypatch):
  """Ten thousand games take no time that matters: most differ in the number of decisions."""
  read, library = [], reading.library
  monkeypatch.setattr(joining.reading, "library",
                      lambda found, rows: read.append(rows.tolist()) or library(found, rows))
  other = recorded_games.write(tmp_path / "other", MINI, [5, 8, 1, 7], origin="others")
  with pytest.raises(files.GamesError, match="found 1 of the 4 games"):
    games.read(f"{folder},{other}")
  assert read == [[4, 5], [4, 5]]
