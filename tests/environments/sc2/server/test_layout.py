"""The folder that clients take for the game."""

import os
import stat
import subprocess

import pytest

from starleague.environments.sc2 import protocol
from starleague.environments.sc2.server import layout
from starleague.environments.sc2.server.game import battlefields
from starleague.environments.sc2.server.game.version import BUILD, DATA_VERSION, VERSION

assert protocol  # makes pysc2 importable


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  return layout.make_layout(tmp_path_factory.mktemp("it's the game"), ["MyMapLE"])


def test_the_program_is_an_executable_file(folder):
  program = folder / "Versions" / f"Base{BUILD}" / "SC2_x64"
  assert program.stat().st_mode & stat.S_IXUSR
  shown = subprocess.run([program, "-help"], capture_output=True, text=True, timeout=600)
  assert shown.returncode == 0 and "-port" in shown.stdout


def test_all_maps_can_be_read(folder):
  maps = {path.relative_to(folder / "Maps").as_posix(): battlefields.decode(path.read_bytes())
          for path in (folder / "Maps").rglob("*.SC2Map")}
  assert maps == layout.maps(["MyMapLE"])
  assert {"Melee/Simple64.SC2Map", "Skirmish/SkirmishMiniOpen.SC2Map", "MyMapLE.SC2Map",
          "AcropolisLE.SC2Map"} <= set(maps)
  assert len([name for name in maps if name.startswith("Ladder")]) > 40


@pytest.mark.parametrize("name", [
  "(2)CatalystLE", "2000AtmospheresAIE", "Abyssal Reef LE", "Acropolis", "GoldenAura513AIE",
  "PillarsofGoldLE", "Melee/Flat64", "mini_games/Marine Split Challenge"])
def test_maps_of_python_sc2s_examples_exist(folder, name):
  found = battlefields.decode((folder / "Maps" / f"{name}.SC2Map").read_bytes())
  assert found == battlefields.stand_in(name) and found.realistic


def test_pysc2_finds_program_and_maps(folder, monkeypatch):
  from absl import flags
  from pysc2 import maps, run_configs
  flags.FLAGS(["test"])
  monkeypatch.setenv("SC2PATH", str(folder))
  config = run_configs.get()
  assert config.data_dir == str(folder)
  assert config.version.build_version == BUILD
  for name in ("Simple64", "Flat32", "AbyssalReef", "Acropolis"):
    assert battlefields.decode(maps.get(name).data(config))
  known = run_configs.get(version="4.10").version
  assert (known.build_version, known.data_version) == (BUILD, DATA_VERSION)
  assert VERSION.startswith(known.game_version)


def test_a_layout_can_be_written_again(folder):
  before = sorted(os.listdir(folder / "Maps"))
  layout.make_layout(folder, ["MyMapLE"])
  assert sorted(os.listdir(folder / "Maps")) == before


def test_no_name_stands_for_two_maps():
  found = {}
  for path, battlefield in layout.maps(["Simple64", "Thunderbird LE", "MyMap.SC2Map"]).items():
    stem = path.rpartition("/")[2].removesuffix(".SC2Map").replace(" ", "").lower()
    found.setdefault(stem.removesuffix("le"), set()).add(battlefield)
  assert "mymap" in found and "thunderbird" in found
  assert {stem: maps for stem, maps in found.items() if len(maps) > 1} == {}


@pytest.mark.parametrize("path, content", [
  (f"Versions/Base{BUILD}/SC2_x64", b"\x7fELF\2\1\1"),
  ("Maps/Melee/Simple64.SC2Map", b"MPQ\x1a"), ("Maps/MyMap.SC2Map", b"[]")])
def test_an_installation_of_the_game_is_left_alone(tmp_path, monkeypatch, path, content):
  place = tmp_path / path
  place.parent.mkdir(parents=True)
  place.write_bytes(content)
  before = sorted(tmp_path.rglob("*"))
  message = (f"{place}: expected a file of an earlier layout or none, found another one: is "
             "StarCraft II installed here? Name another folder")
  with pytest.raises(layout.LayoutError) as found:
    layout.make_layout(tmp_path, ["MyMap"])
  assert str(found.value) == message
  monkeypatch.setattr("sys.argv", ["layout", str(tmp_path), "--map", "MyMap"])
  with pytest.raises(SystemExit) as ended:
    layout.main()
  assert str(ended.value) == f"error: {message}"
  assert sorted(tmp_path.rglob("*")) == before and place.read_bytes() == content


def test_a_map_file_with_a_wrong_value_is_replaced(tmp_path):
  place = tmp_path / "Maps" / "MyMap.SC2Map"
  place.parent.mkdir()
  place.write_text('{"skirmish": {"tier": "huge"}}')
  layout.make_layout(tmp_path, ["MyMap"])
  assert battlefields.decode(place.read_bytes()) == battlefields.stand_in("MyMap")


@pytest.mark.parametrize("name", [
  "../../x", "/tmp/x", "..", "", ".SC2Map", "a/b", "a\\b", "a\0b", "../x.SC2Map"])
def test_names_outside_the_folder_are_refused(tmp_path, name):
  with pytest.raises(battlefields.MapError) as found:
    layout.make_layout(tmp_path / "game", [name])
  assert str(found.value) == (
    f'map: expected a name without a folder, such as "AcropolisLE", found {name!r}')
  assert list(tmp_path.iterdir()) == []


def test_the_command_refuses_with_one_line(tmp_path, monkeypatch):
  monkeypatch.setattr("sys.argv", ["layout", str(tmp_path / "game"), "--map", "../../x"])
  with pytest.raises(SystemExit) as found:
    layout.main()
  assert str(found.value).startswith("error: map: expected a name without a folder")
  assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_is_refused_with_one_line(tmp_path, monkeypatch):
  place = tmp_path / "file"
  place.write_text("")
  monkeypatch.setattr("sys.argv", ["layout", str(place)])
  with pytest.raises(SystemExit) as found:
    layout.main()
  assert str(found.value) == (
    f"error: folder: expected one that can be written, found '{place}': Not a directory")
