"""Real observations of StarCraft II, and settings for them."""

import dataclasses
import functools
import json
import lzma
import pathlib

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.environments.sc2.converter import memory as memories
from starleague.environments.sc2.converter import observations
from starleague.environments.sc2.converter.setting import make_setting
from starleague.environments.sc2.protocol import sc_pb

DATA = pathlib.Path(__file__).resolve().parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(not (DATA / "protos").is_dir(), reason=f"needs {DATA}/protos")
NAMES = sorted(path.name.partition(".")[0] for path in (DATA / "protos" / "obs").glob("*.xz"))
MIDGAME = "pysc2_obs_data1"  # 166 units, minimap planes, orders, buffs


def _read(folder, name):
  return lzma.decompress((DATA / "protos" / folder / f"{name}.pb.xz").read_bytes())


@functools.cache
def _serialised(name):
  return _read("obs", name)


# Sizes between those of the presets.
MIDDLE = dataclasses.replace(
  agent_config.full(), max_entities=192, map_size=64, location_size=128, max_selected=16)


def response(name):
  """A ResponseObservation of its own."""
  return sc_pb.ResponseObservation.FromString(_serialised(name))


def game_info(name):
  """The game's info; of the mid-game observation, what the golden output was made with."""
  if name == MIDGAME:
    return make_game_info(184, 184)
  return sc_pb.ResponseGameInfo.FromString(_read("game_info", name))


def make_game_info(width, height, home=3, away=1):
  """The info of a game of two players."""
  info = sc_pb.ResponseGameInfo()
  info.start_raw.map_size.x, info.start_raw.map_size.y = width, height
  info.player_info.add(player_id=1, type=sc_pb.Participant, race_requested=home, race_actual=home)
  info.player_info.add(player_id=2, type=sc_pb.Participant, race_requested=away)
  return info


def setting(name=MIDGAME, preset="full", **options):
  return make_setting(agent_config.preset(preset), game_info(name), 1, **options)


def watched(response_, setting_):
  """(parsed observation, memory) after the first observation of a game."""
  parsed = observations.read(response_)
  return parsed, memories.watch(memories.initial(setting_), response_, parsed.units, setting_)


def convert(response_, setting_):
  parsed, memory = watched(response_, setting_)
  return observations.convert(parsed, None, setting_, memory)


@functools.cache
def golden():
  """The official converter's output for the mid-game observation."""
  path = DATA / "golden" / "cpp_converter_obs_data1.npz"
  with np.load(path) as file:
    return {name: file[name] for name in file.files}


def units_of(name):
  return json.loads((DATA / "protos" / "index.json").read_text())[name]["units"]
