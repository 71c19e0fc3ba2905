"""Entity rows against the official converter's, of real and of invented observations.

Invented ones have all owners, display and cloak types, orders, buffs, add-ons, passengers, effects.
"""

import numpy as np
import pytest

pytest.importorskip("pysc2")

from starleague.agent import coordinates, types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter import camera as cameras
from starleague.environments.sc2.converter import entities, observations
from starleague.environments.sc2.converter import memory as memories
from starleague.environments.sc2.converter.setting import make_setting
from starleague.environments.sc2.protocol import raw_pb, sc_pb
from tests.environments.sc2 import invented, recorded

COLUMN = types.COLUMN
needs_data = recorded.needs_data
FIRST_EFFECT = 243  # the converter adds it to the ids of effects, which it puts among unit types


@pytest.fixture(scope="module")
def golden():
  with np.load(invented.GOLDEN) as file:
    return {name: file[name] for name in file.files}


@pytest.fixture(scope="module")
def pairs(golden):
  """(their rows, our rows) of all observations, without cloaked enemies outside the camera."""
  theirs, ours = [], []
  for seed in range(invented.COUNT):
    response = invented.observation(seed)
    setting = make_setting(recorded.agent_config.full(), invented.game_info(), 1)
    parsed = observations.read(response)
    memory = memories.watch(memories.initial(setting), response, parsed.units, setting)
    found = observations.convert(parsed, None, setting, memory)
    np.testing.assert_array_equal(
      np.packbits(coordinates.shown(found.observation.camera, 256)), golden[f"camera_{seed}"])
    shown = cameras.contains(memory.camera, parsed.units.x, parsed.units.y)
    rows = golden[f"rows_{seed}"]
    gone = [unit.alliance == 4 and unit.cloak == 1 and not shown[i]
            for i, unit in enumerate(response.observation.raw_data.units)]
    rows = np.delete(rows, np.flatnonzero(gone), axis=0)
    count = len(found.tags)
    assert not rows[count:].any() and sum(gone) > 0
    theirs.append(rows[:count])
    ours.append(found.observation.entities[:count])
  return np.concatenate(theirs), np.concatenate(ours)


@pytest.mark.parametrize("name", [name for name in types.ENTITY_COLUMNS if name != "tag"])
def test_columns_are_the_official_converters(pairs, name):
  theirs, ours = (rows[:, COLUMN[name]] for rows in pairs)
  if name in ("unit_type", "buff_id_0", "buff_id_1"):  # numbered otherwise: one to one
    alike = set(zip(theirs.tolist(), ours.tolist(), strict=True))
    if name == "unit_type":  # it gives several destructible rocks one id
      alike = {(a, b) for a, b in alike
               if b < len(v.UNIT_RACES) and v.UNIT_RACES[b] != "Neutral"}
    assert len(alike) == len({a for a, _ in alike}) == len({b for _, b in alike}) > 30
    return
  if name == "addon_unit_type":
    theirs = np.array([v.UNIT_TYPES.from_id(int(x)) for x in theirs])
  if name.startswith("order_id"):
    theirs = v.FUNCTIONS.lookup[theirs]
  effects = pairs[1][:, COLUMN["unit_type"]] == v.EFFECT_TYPE
  same = ~effects if name == "order_id_0" else slice(None)
  np.testing.assert_array_equal(ours[same], theirs[same])


def test_ordered_structures_have_rows(pairs):
  theirs, ours = (rows[:, COLUMN["display_type"]] == raw_pb.Placeholder for rows in pairs)
  np.testing.assert_array_equal(ours, theirs)
  assert ours.sum() == 42


def test_the_players_units_are_its_placed_ones():
  response = sc_pb.ResponseObservation()
  for alliance in (raw_pb.Self, raw_pb.Ally, raw_pb.Neutral, raw_pb.Enemy):
    for display in (raw_pb.Visible, raw_pb.Snapshot, raw_pb.Hidden, raw_pb.Placeholder):
      response.observation.raw_data.units.add(
        tag=len(response.observation.raw_data.units) + 1, alliance=alliance, display_type=display)
  own = entities.own_units(observations.read(response).units)
  assert own.tolist() == [True, True, True, False, *[False] * 12]


def test_effects_and_hidden_enemies_are_where_the_converter_has_them(pairs):
  theirs, ours = (rows[:, COLUMN["unit_type"]] for rows in pairs)
  effects = ours == v.EFFECT_TYPE
  assert effects.sum() == 10 * invented.COUNT
  assert ((theirs[effects] > FIRST_EFFECT) & (theirs[effects] <= FIRST_EFFECT + 12)).all()
  np.testing.assert_array_equal((theirs == 254) & ~effects, ours == v.HIDDEN_TYPE)
  assert (ours == v.HIDDEN_TYPE).sum() > 10


@needs_data
@pytest.mark.parametrize("camera", [False, True])
def test_rows_are_the_official_converters(camera):
  """Ids are numbered otherwise there: equal ids must be equal here. Its tags are cut to 32 bits."""
  expected = recorded.golden()[f"obs_cam{int(camera)}/raw_units"]
  found = recorded.convert(
    recorded.response(recorded.MIDGAME), recorded.setting(camera=camera)).observation.entities
  for name, i in COLUMN.items():
    if name in ("unit_type", "buff_id_0", "buff_id_1", "order_id_0", "order_id_1"):
      pairs = set(zip(expected[:, i].tolist(), found[:, i].tolist(), strict=True))
      assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}), name
      if name.startswith("order"):
        assert all(v.FUNCTIONS.lookup[a] == b for a, b in pairs)
    elif name != "tag":
      np.testing.assert_array_equal(found[:, i], expected[:, i], err_msg=name)


def test_effects_are_rows_behind_the_units():
  setting = recorded.make_setting(
    recorded.agent_config.mini(), recorded.make_game_info(128, 128), 1, camera=False)
  response = sc_pb.ResponseObservation()
  raw = response.observation.raw_data
  raw.units.add(tag=7, unit_type=48, alliance=1).pos.x = 3
  effect = raw.effects.add(effect_id=1, alliance=4, owner=2, radius=1.5)
  effect.pos.add(x=10, y=100)
  effect.pos.add(x=20.25, y=128)
  raw.effects.add(effect_id=500).pos.add(x=1, y=1)
  found = recorded.convert(response, setting)
  rows = found.observation.entities
  assert found.observation.entity_count == 4 and found.tags.tolist() == [7, 0, 0, 0]
  values = rows[1:4][:, [COLUMN[name] for name in (
    "unit_type", "alliance", "owner", "radius", "x", "y", "order_id_0", "tag")]]
  storm = v.FUNCTIONS.index("Effect_PsiStorm_pt")
  assert values.tolist() == [
    [v.EFFECT_TYPE, 4, 2, 1, 20, 56, storm, 0],
    [v.EFFECT_TYPE, 4, 2, 1, 40, 0, storm, 0],
    [v.EFFECT_TYPE, 1, 0, 0, 2, 254, 0, 0]]  # protobuf's default: Self


def test_enemies_outside_the_camera_lose_what_is_not_seen():
  setting = recorded.make_setting(
    recorded.agent_config.mini(), recorded.make_game_info(128, 128), 1)
  response = sc_pb.ResponseObservation()
  raw = response.observation.raw_data
  raw.player.camera.x, raw.player.camera.y = 50, 50
  visible, not_cloaked, cloaked = 1, 3, 1
  for x, y, alliance, display, cloak in [
      (66, 37, 4, visible, not_cloaked),  # at a corner of the view
      (66.5, 50, 4, visible, not_cloaked), (50, 57.5, 4, visible, cloaked),
      (50, 57.5, 4, 2, not_cloaked), (100, 100, 1, visible, not_cloaked)]:
    unit = raw.units.add(tag=len(raw.units) + 1, unit_type=48, alliance=alliance, cloak=cloak,
                         display_type=display, health=45, health_max=45, owner=2, radius=0.375,
                         attack_upgrade_level=2)
    unit.pos.x, unit.pos.y = x, y
  found = recorded.convert(response, setting)
  assert found.tags.tolist() == [1, 2, 4, 5]  # the cloaked one has no row
  marine = v.UNIT_TYPES.index("Marine")
  rows = found.observation.entities[:4]
  assert rows[:, COLUMN["unit_type"]].tolist() == [marine, v.HIDDEN_TYPE, marine, marine]
  assert rows[:, COLUMN["health"]].tolist() == [45, 0, 45, 45]
  assert rows[:, COLUMN["is_on_screen"]].tolist() == [1, 0, 0, 0]
  assert rows[1].nonzero()[0].tolist() == [COLUMN[name] for name in (
    "unit_type", "alliance", "display_type", "owner", "x", "y", "tag")]
  weapons = [v.UPGRADES.index(f"TerranInfantryWeaponsLevel{i}") for i in (1, 2)]
  assert found.observation.enemy_upgrades.nonzero()[0].tolist() == weapons
  assert found.observation.camera.tolist() == [68, 142, 133, 183]


def test_small_configs_drop_neutral_units_first():
  response = sc_pb.ResponseObservation()
  for i in range(100):
    response.observation.raw_data.units.add(tag=i + 1, unit_type=48, alliance=3 if i < 60 else 1)
  info = recorded.make_game_info(128, 128)
  mini = recorded.make_setting(recorded.agent_config.mini(), info, 1, camera=False)
  assert recorded.convert(response, mini).tags.tolist() == [*range(1, 25), *range(61, 101)]
  for i in range(500):
    response.observation.raw_data.units.add(tag=1000 + i, unit_type=48, alliance=1)
  full = recorded.make_setting(recorded.agent_config.full(), info, 1, camera=False)
  assert recorded.convert(response, full).tags.tolist() == [
    *range(1, 101), *range(1000, 1412)]  # as published: the first 512
