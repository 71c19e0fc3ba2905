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
