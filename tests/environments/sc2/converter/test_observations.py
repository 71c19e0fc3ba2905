"""Observations against pysc2's features and the official converter, on real ones."""

import jax
import numpy as np
import pytest

pytest.importorskip("pysc2")

from starleague.agent import coordinates, types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter import memory as memories
from starleague.environments.sc2.converter import observations
from starleague.environments.sc2.protocol import raw_pb, sc_pb
from tests.environments.sc2 import recorded

COLUMN = types.COLUMN
needs_data = recorded.needs_data
# Columns of pysc2 that hold the game's ids, and how they become dense.
TO_DENSE = {
  "unit_type": np.vectorize(v.UNIT_TYPES.from_id, otypes=[int]),
  "addon_unit_type": np.vectorize(v.UNIT_TYPES.from_id, otypes=[int]),
  "buff_id_0": np.vectorize(v.BUFFS.from_id, otypes=[int]),
  "buff_id_1": np.vectorize(v.BUFFS.from_id, otypes=[int]),
  **{f"order_id_{i}": v.FUNCTIONS.lookup.__getitem__ for i in range(4)}}


def pysc2_observation(response, width, height):
  """pysc2's own conversion: raw units on the 256 grid, cargo included."""
  from pysc2.lib import features, point
  interface = features.AgentInterfaceFormat(
    use_raw_units=True, use_raw_actions=True, raw_resolution=256, add_cargo_to_units=True)
  return features.Features(interface, map_size=point.Point(width, height)).transform_obs(response)


def assert_equal_to_pysc2(response, setting):
  found = recorded.convert(response, setting)
  expected = pysc2_observation(response, setting.map_width, setting.map_height)
  units = np.asarray(expected["raw_units"])
  rows = found.observation.entities
  assert len(units) == found.observation.entity_count <= len(rows)
  for i, name in enumerate(types.ENTITY_COLUMNS[:units.shape[1]]):
    wanted = TO_DENSE.get(name, np.asarray)(units[:, i])
    if name == "tag":
      np.testing.assert_array_equal(found.tags, wanted.astype(np.uint64))
      wanted = np.arange(1, len(units) + 1)
    np.testing.assert_array_equal(rows[:len(units), i], wanted, err_msg=name)
  assert not rows[len(units):].any() and not rows[:, -2:].any()
  np.testing.assert_array_equal(found.observation.player, expected["player"][1:])
  np.testing.assert_array_equal(found.privileged.cumulative_score, expected["score_cumulative"])
  assert found.observation.game_loop == expected["game_loop"][0]
  wanted = np.zeros(v.NUM_UPGRADES, bool)
  wanted[[v.UPGRADES.from_id(u) for u in expected["upgrades"]]] = True
  np.testing.assert_array_equal(found.observation.upgrades[1:], wanted[1:])
  return found


@needs_data
@pytest.mark.parametrize("name", recorded.NAMES)
def test_real_observations_are_pysc2s(name):
  response = recorded.response(name)
  found = assert_equal_to_pysc2(response, recorded.setting(name, camera=False))
  if name != recorded.MIDGAME:
    assert found.observation.entity_count == recorded.units_of(name)
  spec = types.observation_spec(512, 128), types.privileged_spec()
  jax.tree.map(lambda array, leaf: np.testing.assert_equal(
    (array.shape, array.dtype), (leaf.shape, leaf.dtype)), tuple(found[:2]), spec)


@needs_data
def test_scalars_and_camera_are_the_official_converters():
  golden = recorded.golden()
  response = recorded.response(recorded.MIDGAME)
  found = recorded.convert(response, recorded.setting()).observation
  np.testing.assert_array_equal(found.player, golden["obs_cam1/player"][1:])
  assert found.game_loop == golden["obs_cam1/game_loop"][0]
  assert found.home_race == golden["obs_cam1/home_race_requested"][0]
  assert found.away_race == golden["obs_cam1/away_race_requested"][0]
  np.testing.assert_array_equal(
    coordinates.shown(found.camera, 256), golden["obs_cam1/camera"].astype(bool))
  counts = golden["obs_cam1/unit_counts_bow"]
  assert sorted(counts[counts > 0]) == sorted(found.unit_counts[found.unit_counts > 0])
  assert not golden["obs_cam1/upgrades_fixed_length"].any() and not found.upgrades.any()
  for name in types.MINIMAP_PLANES:
    theirs = golden[f"obs_cam1/minimap_{'visibility_map' if name == 'visibility' else name}"]
    np.testing.assert_array_equal(found.minimap[types.MINIMAP_PLANES.index(name)], theirs)


def test_an_empty_observation_has_no_entities():
  setting = recorded.make_setting(
    recorded.agent_config.mini(), sc_pb.ResponseGameInfo(), 1)
  found = recorded.convert(sc_pb.ResponseObservation(), setting)
  assert found.observation.entity_count == 0 and not found.observation.entities.any()
  assert not found.observation.minimap.any() and not found.observation.player.any()
  assert found.observation.available_actions.nonzero()[0].tolist()[0] == 0


@needs_data
def test_unknown_ids_are_zero_and_leave_the_rest_alone():
  response = recorded.response(recorded.MIDGAME)
  before = recorded.convert(response, recorded.setting()).observation.entities.copy()
  unit = next(unit for unit in response.observation.raw_data.units if unit.orders)
  row = list(response.observation.raw_data.units).index(unit)
  unit.unit_type, unit.orders[0].ability_id = 2_000_000_000, 999_999
  del unit.buff_ids[:]
  unit.buff_ids.extend([70_000, 4_000_000_000])
  response.observation.raw_data.player.upgrade_ids.append(1_000_000)
  found = recorded.convert(response, recorded.setting()).observation
  for name in ("unit_type", "order_id_0", "buff_id_0", "buff_id_1"):
    assert found.entities[row, COLUMN[name]] == 0
    before[row, COLUMN[name]] = 0
  np.testing.assert_array_equal(found.entities, before)
  assert not found.upgrades.any()


@needs_data
def test_orders_buffs_cargo_and_addons_are_pysc2s():
  """Fields that the recorded observations lack, filled in."""
  response = recorded.response(recorded.MIDGAME)
  rng = np.random.default_rng(0)
  units = list(response.observation.raw_data.units)
  abilities = np.array(sorted(v.ABILITIES))
  for i, unit in enumerate(units):
    for ability in rng.choice(abilities, i % 7):
      unit.orders.add(ability_id=int(ability), progress=float(rng.random()))
    unit.buff_ids.extend(int(x) for x in rng.choice(v.BUFFS.ids[1:], i % 4))
    unit.add_on_tag = units[rng.integers(len(units))].tag if i % 3 else 12345
    for k in range(i % 3 if i % 5 == 0 else 0):
      unit.passengers.add(tag=(1 << 34) + 8 * i + k, unit_type=48 + k, health=30.7, health_max=45,
                          shield=3.2, shield_max=50, energy=20, energy_max=200)
    for name in ("is_hallucination", "is_active", "is_powered", "is_selected", "is_blip"):
      setattr(unit, name, bool(rng.integers(2)))
    for name in ("buff_duration_remain", "buff_duration_max", "attack_upgrade_level",
                 "armor_upgrade_level", "shield_upgrade_level", "cargo_space_taken",
                 "assigned_harvesters"):
      setattr(unit, name, int(rng.integers(0, 300)))
    unit.weapon_cooldown = float(rng.random() * 60)
  response.observation.score.score = 1234
  response.observation.score.score_details.killed_value_units = 56.9
  found = assert_equal_to_pysc2(response, recorded.setting(camera=False))
  assert found.observation.entity_count > 166
  assert found.observation.entities[:, COLUMN["is_in_cargo"]].sum() == len(found.tags) - 166


@needs_data
def test_the_opponents_observation_is_privileged():
  response, setting = recorded.response(recorded.MIDGAME), recorded.setting()
  response.observation.score.score_details.collected_minerals = 77
  response.observation.raw_data.player.upgrade_ids.append(84)  # WarpGateResearch
  parsed, memory = recorded.watched(response, setting)
  nothing, _ = recorded.watched(sc_pb.ResponseObservation(), setting)
  found = observations.convert(nothing, parsed, setting, memories.initial(setting), memory)
  assert not found.observation.unit_counts.any() and not found.privileged.cumulative_score.any()
  own = observations.convert(parsed, None, setting, memory)
  np.testing.assert_array_equal(found.privileged.opponent_player, own.observation.player)
  np.testing.assert_array_equal(
    found.privileged.opponent_unit_counts, own.observation.unit_counts)
  assert found.privileged.opponent_cumulative_score[types.SCORE_COLUMNS.index(
    "collected_minerals")] == 77
  assert found.privileged.opponent_upgrades.nonzero()[0].tolist() == [
    v.UPGRADES.index("WarpGateResearch")]
  assert own.privileged.opponent_player.sum() == 0


def test_the_first_error_of_an_action_is_its_result():
  response = sc_pb.ResponseObservation()
  assert observations.action_result(response) == 0
  for result in (1, 9, 17):
    response.action_errors.add(result=result)
  assert observations.action_result(response) == 9


def test_functions_are_available_by_unit_types():
  counts = np.zeros(v.NUM_UNIT_TYPES, np.uint8)
  assert observations.available(counts, False).nonzero()[0].tolist() == [0]
  counts[v.UNIT_TYPES.index("Barracks")] = 1
  found = observations.available(counts, True)
  index = v.FUNCTIONS.index
  assert found[index("Train_Marine_quick")] and found[index("raw_move_camera")]
  assert not found[index("Train_Zealot_quick")]


@pytest.mark.parametrize("name", ["Hatchery", "Lair", "Hive"])
def test_any_town_hall_of_zerg_makes_units_of_larvae_available(name):
  counts = np.zeros(v.NUM_UNIT_TYPES, np.uint8)
  counts[v.UNIT_TYPES.index(name)] = 1
  found = observations.available(counts, True)
  for function in ("Train_Drone_quick", "Train_Zergling_quick", "Train_Overlord_quick"):
    assert found[v.FUNCTIONS.index(function)]
  assert not found[v.FUNCTIONS.index("Train_Marine_quick")]


def test_ordered_structures_do_not_count():
  """An ordered barracks has a row. It counts, and trains marines, once it is placed."""
  setting = recorded.make_setting(
    recorded.agent_config.mini(), recorded.make_game_info(128, 128, home=1), 1)
  barracks, marine = v.UNIT_TYPES.index("Barracks"), v.FUNCTIONS.index("Train_Marine_quick")
  for display, placed in ((raw_pb.Placeholder, False), (raw_pb.Visible, True)):
    response = sc_pb.ResponseObservation()
    response.observation.raw_data.units.add(
      tag=7 * placed, unit_type=21, alliance=raw_pb.Self, display_type=display)
    found = recorded.convert(response, setting).observation
    assert found.entity_count == 1 and found.entities[0, COLUMN["unit_type"]] == barracks
    assert found.unit_counts.sum() == found.unit_counts[barracks] == placed
    assert found.available_actions[marine] == placed


def _damage(message, rng):
  """Removes a fifth of what a message has, and gives numbers extreme values."""
  for field, value in message.ListFields():
    if rng.random() < 0.2:
      message.ClearField(field.name)
    elif field.cpp_type == field.CPPTYPE_MESSAGE:
      several = [value] if hasattr(value, "ListFields") else list(value)
      for part in several[:20]:
        _damage(part, rng)
    elif field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_INT32, field.CPPTYPE_UINT32):
      if isinstance(value, int | float) and rng.random() < 0.2:
        lowest = 0 if field.cpp_type == field.CPPTYPE_UINT32 else -2**31
        setattr(message, field.name, 2**31 - 1 if rng.random() < 0.5 else lowest)


@needs_data
def test_damaged_observations_are_converted_too():
  """Absent parts and extreme values: no exception, the shapes of the spec, finite rows."""
  setting, rng = recorded.setting(preset="mini"), np.random.default_rng(0)
  spec = types.observation_spec(64, 32)
  for _ in range(25):
    response = recorded.response(recorded.MIDGAME)
    _damage(response, rng)
    found = recorded.convert(response, setting).observation
    jax.tree.map(lambda array, leaf: np.testing.assert_equal(
      (array.shape, array.dtype), (leaf.shape, leaf.dtype)), found, spec)
    kinds = found.entities[:, COLUMN["unit_type"]]
    assert ((kinds >= 0) & (kinds < v.NUM_UNIT_TYPES)).all()
    places = found.entities[:, [COLUMN["x"], COLUMN["y"]]]
    assert places.min() >= 0 and places.max() < types.POSITION_GRID
