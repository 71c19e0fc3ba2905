"""The writer of datasets of games: continuing, refusing, and every kind of damage in one line."""

import os
import re
import shutil

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.common import manifests
from starleague.data import games
from starleague.data.games import files
from tests import processes
from tests.data.games import recorded_games

MINI = agent_config.mini()
PART = "part-00000.parquet"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
  return recorded_games.write(tmp_path_factory.mktemp("data") / "games", MINI, [5, 30, 4])


@pytest.fixture
def copy(recorded, tmp_path):
  return shutil.copytree(recorded, tmp_path / "copy")


def writer(path, *, config=MINI, tier="mini", maps=("open",), origin="a test"):
  return files.GamesWriter(path, config, tier, maps, origin, part_decisions=40)


def names(folder):
  """The files of a dataset, without the lock of its writer."""
  return sorted(set(os.listdir(folder)) - {files.LOCK})


def add(found, game):
  found.add([recorded_games.episode(MINI, 6, 2 * game, game=game)])


def test_parts_close_with_the_game_that_reaches_the_limit(recorded):
  assert names(recorded) == ["games.json", PART, "part-00001.parquet"]
  found = games.read(recorded)
  assert found.episodes.part.tolist() == [0, 0, 0, 0, 1, 1]
  description, digests = files.describe(recorded)
  assert (description.games, description.episodes, description.decisions) == (3, 6, 81)
  assert digests[PART] == manifests.file_digest(recorded / PART)


def test_a_writer_continues_its_dataset(copy):
  with writer(copy) as found:
    assert (found.complete.games, found.last_game, found.parts) == (3, 2, 2)
    add(found, 7)
    assert (found.complete.games, found.written.games) == (3, 4)
  assert games.read(copy).episodes.game.tolist() == [0, 0, 1, 1, 2, 2, 7]


def test_a_failed_or_killed_writer_loses_the_open_part_only(copy):
  (copy / ".part-00002.parquet-abc").write_bytes(b"half")
  (copy / "part-00002.parquet").write_bytes(b"complete, but not in the manifest")
  assert len(games.read(copy).episodes.game) == 6
  with pytest.raises(KeyboardInterrupt), writer(copy) as found:
    add(found, 7)
    raise KeyboardInterrupt
  assert len(games.read(copy).episodes.game) == 6
  with writer(copy) as found:
    add(found, 8)
  assert games.read(copy).episodes.game.tolist()[-1] == 8
  assert names(copy) == ["games.json", PART, "part-00001.parquet", "part-00002.parquet"]


def test_a_writer_killed_in_its_first_manifest_leaves_a_folder_to_use(tmp_path):
  (tmp_path / ".games.json-abc").write_text("half")
  (tmp_path / "part-00000.parquet").write_bytes(b"complete, but without a manifest")
  with writer(tmp_path) as found:
    add(found, 0)
  assert names(tmp_path) == ["games.json", PART]
  assert games.read(tmp_path).episodes.game.tolist() == [0]


@pytest.mark.parametrize("name", ["a,b", "a,b/games"])
def test_a_folder_that_would_be_read_as_several_is_refused(tmp_path, name):
  with pytest.raises(files.GamesError, match=(
      f"^dataset '{tmp_path}/{name}': expected a folder without ',', which separates folders; ")):
    writer(tmp_path / name)
  assert not any(tmp_path.iterdir())


def test_a_second_writer_is_refused_and_leaves_the_first_ones_part(tmp_path):
  with writer(tmp_path / "games") as found:
    add(found, 0)
    with pytest.raises(files.GamesError) as error:
      writer(tmp_path / "games")
    assert str(error.value) == (f"{tmp_path}/games is written by another process: wait until that "
                                "ends, or choose another folder.")
    add(found, 1)
  assert games.read(tmp_path / "games").episodes.game.tolist() == [0, 1]
  with pytest.raises(files.GamesError, match="another tier"):
    writer(tmp_path / "games", tier="large")  # a refused one frees the folder too
  with pytest.raises(KeyboardInterrupt), writer(tmp_path / "games"):
    raise KeyboardInterrupt
  with writer(tmp_path / "games") as found:
    assert found.complete.games == 2


def test_a_writer_that_is_killed_frees_the_folder(tmp_path):
  code = ("from tests.data.games import test_files\n"
          "found = test_files.writer(sys.argv[1])\n"
          "test_files.add(found, 0)")
  with processes.holding(code, tmp_path):
    with pytest.raises(files.GamesError, match="is written by another process"):
      writer(tmp_path)
  with writer(tmp_path) as found:
    add(found, 5)
  assert games.read(tmp_path).episodes.game.tolist() == [5]


def test_equal_games_give_equal_files(recorded, tmp_path):
  again = recorded_games.write(tmp_path / "again", MINI, [5, 30, 4])
  assert files.describe(again) == files.describe(recorded)


@pytest.mark.parametrize("change, message", [
  ({"origin": "seed 1"}, "another origin: expected 'seed 1', found 'a test'; choose another"),
  ({"tier": "large"}, "another tier: expected 'large', found 'mini'"),
  ({"config": agent_config.small()}, "another preset: expected 'small', found 'mini'"),
  ({"maps": ("open", "ramps")}, "another maps: expected"),
])
def test_other_arguments_are_refused(recorded, change, message):
  before = (recorded / "games.json").read_bytes()
  with pytest.raises(files.GamesError, match=message) as raised:
    writer(recorded, **change)
  assert "\n" not in str(raised.value)
  assert (recorded / "games.json").read_bytes() == before


def test_another_folder_is_refused(tmp_path):
  (tmp_path / "notes.txt").write_text("mine")
  with pytest.raises(files.GamesError, match="holds 'notes.txt' and no games.json"):
    writer(tmp_path)
  assert os.listdir(tmp_path) == ["notes.txt"]


def test_steps_of_another_preset_are_refused(tmp_path):
  with pytest.raises(ValueError, match=r"column 'int16' of game 0: expected \[7, \d+\], found"), (
      writer(tmp_path / "games")) as found:
    found.add([recorded_games.episode(agent_config.small(), 6, 0)])
  assert names(tmp_path / "games") == []


def flipped(folder):
  data = bytearray((folder / PART).read_bytes())
  data[len(data) // 2] ^= 1
  (folder / PART).write_bytes(data)


def truncated(folder):
  (folder / PART).write_bytes((folder / PART).read_bytes()[:-10])


def changed(**values):
  def change(folder):
    manifest = manifests.read(folder / "games.json")
    digests = manifest.pop("files")
    manifests.replace(folder / "games.json", manifest | values, digests)
  return change


def other_file(folder):
  (folder / PART).write_bytes(b"no table at all")
  _, digests = files.describe(folder)
  changed()(folder)
  manifest = manifests.read(folder / "games.json")
  manifest.pop("files")
  manifests.replace(folder / "games.json", manifest,
                    digests | {PART: manifests.file_digest(folder / PART)})


@pytest.mark.parametrize("damage, message", [
  (flipped, rf"{PART} is damaged: expected SHA-256 .* Copy the dataset again"),
  (truncated, rf"{PART} is damaged: expected SHA-256"),
  (lambda folder: (folder / PART).unlink(), f"{PART} is missing"),
  (lambda folder: (folder / "games.json").unlink(), "is not a dataset of games: expected a file"),
  (lambda folder: (folder / "games.json").write_text("{}"), "games.json: expected a JSON object"),
  (changed(schema=9), "another schema: expected 1, found 9"),
  (changed(vocabulary="0123"), "another vocabulary: expected .*, found '0123'"),
  (changed(preset="huge"), "preset: unknown agent preset 'huge'"),
  (changed(games="many"), "key 'games': expected int, found 'many'"),
  (changed(episodes=7), "expected 7 episodes as in games.json, found 6"),
  (other_file, "is not a part of a dataset of games"),
])
def test_damage_is_named_in_one_line(copy, damage, message):
  damage(copy)
  with pytest.raises(files.GamesError, match=message) as raised:
    games.read(copy)
  assert re.search(r"^\S*copy", str(raised.value)) and "\n" not in str(raised.value)


def test_an_empty_folder_and_another_preset_are_named(recorded, tmp_path):
  with pytest.raises(files.GamesError, match="expected a file games.json, found none; rec"):
    games.read(tmp_path)
  with pytest.raises(files.GamesError, match="another preset: expected 'full', found 'mini'"):
    games.read(recorded, preset="full")


def test_steps_that_do_not_fit_the_preset_are_named(copy):
  changed(preset="small")(copy)
  found = games.read(copy)
  with pytest.raises(files.GamesError, match=(
      "part-00000.parquet: column 'int16', row 0: expected 6 steps")):
    next(games.in_order(found, np.arange(1), 1, 4, 0))
