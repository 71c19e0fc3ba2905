"""A player's settings: sizes, races as they are known at the start, z."""

import jax
import numpy as np
import pytest

from starleague.agent import types
from starleague.environments import base
from starleague.environments.sc2.converter.setting import make_setting
from starleague.environments.sc2.protocol import common_pb, sc_pb
from tests.environments.sc2 import recorded

CONFIG = recorded.agent_config.mini()


def info_of(*players, size=(96, 64)):
  """The info of a game; players are (id, requested race, actual race, type)."""
  info = sc_pb.ResponseGameInfo()
  info.start_raw.map_size.x, info.start_raw.map_size.y = size
  for number, requested, actual, kind in players:
    info.player_info.add(
      player_id=number, race_requested=requested, race_actual=actual, type=kind)
  return info


@pytest.mark.parametrize("requested, actual, home, away", [
  ((common_pb.Terran, common_pb.Zerg), (0, 0), 1, 2),
  ((common_pb.Random, common_pb.Protoss), (common_pb.Zerg, 0), 2, 3),
  ((common_pb.Protoss, common_pb.Random), (common_pb.Protoss, 0), 3, 0)])
def test_races_are_those_that_the_player_knows(requested, actual, home, away):
  info = info_of(*((i + 1, requested[i], actual[i], sc_pb.Participant) for i in range(2)))
  setting = make_setting(CONFIG, info, 1)
  assert (setting.home_race, setting.away_race) == (home, away)


def test_observers_have_no_race():
  info = info_of((1, common_pb.Terran, 0, sc_pb.Participant),
                 (2, common_pb.Protoss, 0, sc_pb.Computer),
                 (3, common_pb.Zerg, common_pb.Zerg, sc_pb.Observer))
  assert make_setting(CONFIG, info, 2)[3:5] == (3, 1)
  assert make_setting(CONFIG, info, 1)[3:5] == (1, 3)


def test_defaults_are_unconditional_with_the_camera():
  setting = make_setting(CONFIG, info_of(), 1)
  assert (setting.map_width, setting.map_height) == (96, 64)
  assert (setting.home_race, setting.away_race) == (0, 0)
  assert (setting.mmr, setting.camera) == (base.AGENT_MMR, True)
  for z in (setting.z, setting.opponent_z):
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(z))
  assert make_setting(CONFIG, sc_pb.ResponseGameInfo(), 1)[1:3] == (1, 1)  # no division by zero


def test_both_z_are_kept_apart():
  blank = types.zeros(types.statistics_spec())
  own, other = (blank._replace(build_order=np.full_like(blank.build_order, i)) for i in (3, 4))
  setting = make_setting(CONFIG, info_of(), 1, own, other, mmr=4000, camera=False)
  assert setting.z is own and setting.opponent_z is other
  assert (setting.mmr, setting.camera) == (4000, False)


@recorded.needs_data
def test_recorded_games_have_a_map_and_races():
  for name in recorded.NAMES:
    setting = recorded.setting(name)
    assert setting.map_width >= 64 and setting.map_height >= 64, name
    assert setting.home_race in (1, 2, 3) and setting.away_race in (0, 1, 2, 3), name
