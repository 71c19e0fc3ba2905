"""The z library: build orders, selection, files."""

import os
import subprocess
import sys
import zipfile

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.agent import build_order, types
from starleague.agent import vocabulary as v
from starleague.data.z import statistics_library
from starleague.data.z.statistics_library import PlayedGame, StatisticsLibrary

TERRAN, ZERG, PROTOSS = 1, 2, 3
UNIT = v.UNIT_TYPES.index


@pytest.mark.parametrize("name, built, ordered", [
  ("Gateway", 1, 1), ("Zealot", 1, 1), ("Nexus", 1, 1), ("Zergling", 1, 1), ("Lair", 1, 1),
  ("OrbitalCommand", 1, 1), ("BarracksTechLab", 1, 1), ("Archon", 1, 1), ("SpineCrawler", 1, 1),
  ("NydusCanal", 1, 1), ("SiegeTank", 1, 1),
  ("Probe", 1, 0), ("SCV", 1, 0), ("Drone", 1, 0),
  ("Pylon", 1, 0), ("SupplyDepot", 1, 0), ("Overlord", 1, 0),
  ("AutoTurret", 0, 0), ("Larva", 0, 0), ("MULE", 0, 0), ("Interceptor", 0, 0),
  ("Broodling", 0, 0), ("SiegeTankSieged", 0, 0), ("SupplyDepotLowered", 0, 0),
  ("BarracksFlying", 0, 0), ("StasisTrap", 0, 0), ("MineralField", 0, 0), ("Unknown", 0, 0),
])
def test_unit_types_in_build_orders(name, built, ordered):
  assert build_order.BUILT[UNIT(name)] == bool(built)
  assert build_order.IN_BUILD_ORDER[UNIT(name)] == bool(ordered)


def test_tables_cover_the_vocabulary():
  assert build_order.BUILT.shape == build_order.IN_BUILD_ORDER.shape == (v.NUM_UNIT_TYPES,)
  assert not (build_order.IN_BUILD_ORDER & ~build_order.BUILT).any()
  assert not build_order.BUILT[len(v.UNIT_TYPES.names):].any()


def test_filter_build_order_closes_gaps():
  order = [UNIT("Probe"), UNIT("Pylon"), UNIT("Gateway"), 0, UNIT("Probe"), UNIT("Zealot")]
  places = np.arange(12).reshape(6, 2)
  kept, kept_places = statistics_library.filter_build_order(order, places)
  assert kept.tolist() == [UNIT("Gateway"), UNIT("Zealot"), *[0] * 18]
  assert kept_places.tolist() == [[4, 5], [10, 11], *[[0, 0]] * 18]
  assert kept.dtype == kept_places.dtype == np.uint8


@hypothesis.given(st.lists(st.integers(0, 255), max_size=60))
@hypothesis.settings(max_examples=30)
def test_filter_build_order_equals_a_plain_loop(order):
  places = [(i, 255 - i) for i in range(len(order))]
  expected = [(unit_type, place) for unit_type, place in zip(order, places, strict=True)
              if build_order.IN_BUILD_ORDER[unit_type]][:20]
  kept, kept_places = statistics_library.filter_build_order(
    np.array(order, np.int64), np.array(places).reshape(-1, 2))
  assert kept[:len(expected)].tolist() == [unit_type for unit_type, _ in expected]
  assert kept_places[:len(expected)].tolist() == [list(place) for _, place in expected]
  assert not kept[len(expected):].any() and not kept_places[len(expected):].any()
  again, _ = statistics_library.filter_build_order(kept, kept_places)
  assert again.tolist() == kept.tolist()


def executed(number):
  """Returns statistics that identify their game by the place of the first building."""
  z = types.zeros(types.statistics_spec())
  z.build_order[:3] = UNIT("Probe"), UNIT("Gateway"), UNIT("Zealot")
  z.build_order_xy[:3] = (9, 9), (number, 1), (2, 3)
  z.units[[UNIT("Probe"), UNIT("Gateway")]] = True
  z.effects[number] = True
  z.upgrades[1] = True
  return z


GAMES = [
  PlayedGame("Kairos", PROTOSS, ZERG, 0, executed(0)),
  PlayedGame("Kairos", PROTOSS, ZERG, 1, executed(1)),
  PlayedGame("Kairos", ZERG, PROTOSS, 0, executed(2)),
  PlayedGame("Cyber Forest", PROTOSS, ZERG, 0, executed(3)),
  PlayedGame("Kairos", PROTOSS, TERRAN, 1, executed(4))]


@pytest.fixture(scope="module")
def library():
  return StatisticsLibrary.from_games(GAMES)


def numbers(z):
  return sorted(np.atleast_2d(z.build_order_xy.reshape(-1, 20, 2)[:, 0, 0])[0].tolist())


def test_selecting_by_map_and_match_up(library):
  assert len(library) == 5 and library.maps == ("Cyber Forest", "Kairos")
  assert numbers(library.select("Kairos", PROTOSS, ZERG)) == [0, 1]
  assert numbers(library.select("Cyber Forest", PROTOSS, ZERG)) == [3]
  assert numbers(library.select("Kairos", ZERG, PROTOSS)) == [2]
  assert numbers(library.select("Kairos", PROTOSS)) == [0, 1, 4]
  assert numbers(library.select(away_race=ZERG)) == [0, 1, 3]
  assert numbers(library.select()) == [0, 1, 2, 3, 4]
  assert numbers(library.select("Kairos", PROTOSS, side=1)) == [1, 4]
  assert numbers(library.select(side=0)) == [0, 2, 3]


def test_the_library_keeps_statistics_and_filters_build_orders(library):
  z = library.select("Cyber Forest")
  assert z.build_order[0, :3].tolist() == [UNIT("Gateway"), UNIT("Zealot"), 0]
  assert z.build_order_xy[0, :3].tolist() == [[3, 1], [2, 3], [0, 0]]
  assert z.units[0, UNIT("Probe")] and z.units.sum() == 2
  assert z.effects[0].nonzero()[0].tolist() == [3] and z.upgrades[0, 1]
  for value, spec in zip(z, types.statistics_spec(), strict=True):
    assert value.dtype == spec.dtype and value.shape == (1, *spec.shape)


def test_sampling_is_uniform_and_repeats_with_its_key(library):
  keys = jax.random.split(jax.random.key(0), 60)
  found = [numbers(library.sample(key, "Kairos", PROTOSS))[0] for key in keys]
  assert set(found) == {0, 1, 4}
  assert min(found.count(number) for number in (0, 1, 4)) > 10
  one = library.sample(keys[0])
  assert one.build_order.shape == (20,)
  for a, b in zip(one, library.sample(keys[0]), strict=True):
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("asked, message", [
  (("Kairos", TERRAN, ZERG),
   "map Kairos, terran against zerg, side any, among 5 games on maps Cyber Forest"),
  (("Cyber Forest", PROTOSS, ZERG, 1), "map Cyber Forest, protoss against zerg, side 1"),
  (("Nowhere",), "map Nowhere, any against any"),
])
def test_a_selection_without_games_is_an_error(library, asked, message):
  with pytest.raises(KeyError, match=message):
    library.select(*asked)
  with pytest.raises(KeyError, match=message):
    library.sample(jax.random.key(0), *asked)


def test_an_empty_library():
  empty = StatisticsLibrary.from_games([])
  assert len(empty) == 0
  with pytest.raises(KeyError, match="among 0 games on maps none"):
    empty.select()
  assert numbers(empty.merge(StatisticsLibrary.from_games(GAMES)).select()) == [0, 1, 2, 3, 4]


def test_merging_renumbers_maps(library):
  other = StatisticsLibrary.from_games([PlayedGame("Acropolis", ZERG, ZERG, 1, executed(7)),
                                        PlayedGame("Kairos", PROTOSS, ZERG, 0, executed(8))])
  both = library.merge(other)
  assert both.maps == ("Acropolis", "Cyber Forest", "Kairos")
  assert numbers(both.select("Kairos", PROTOSS, ZERG)) == [0, 1, 8]
  assert numbers(both.select("Acropolis")) == [7]
  assert numbers(both.select("Cyber Forest")) == [3]
  assert numbers(both.select(side=1)) == [1, 4, 7]


@pytest.mark.parametrize("change, message", [
  ({"home_race": 9}, "Game 1 on Kairos: home_race is 9"),
  ({"side": 2}, "Game 1 on Kairos: side is 2, expected 0 or 1"),
  ({"executed": executed(0)._replace(units=np.zeros(3, bool))},
   r"Game 1 on Kairos: executed.units has shape \(3,\), expected \(256,\)"),
])
def test_invalid_games_are_named(change, message):
  with pytest.raises(ValueError, match=message):
    StatisticsLibrary.from_games([GAMES[0], GAMES[1]._replace(**change)])


def test_saving_and_loading(library, tmp_path):
  path = tmp_path / "new" / "z.npz"
  library.save(path)
  library.save(path)  # overwrites itself
  loaded = StatisticsLibrary.load(path)
  assert os.listdir(path.parent) == ["z.npz"]
  assert loaded.maps == library.maps
  for a, b in zip(jax.tree.leaves((loaded.z, loaded.map_index, loaded.home_race,
                                   loaded.away_race, loaded.side)),
                  jax.tree.leaves((library.z, library.map_index, library.home_race,
                                   library.away_race, library.side)), strict=True):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


def test_a_single_array_is_no_library(tmp_path):
  with open(tmp_path / "z.npz", "wb") as file:
    np.save(file, np.zeros(3))
  with pytest.raises(ValueError, match="z.npz is not a readable z library"):
    StatisticsLibrary.load(tmp_path / "z.npz")


def test_an_empty_library_is_saved_too(tmp_path):
  StatisticsLibrary.from_games([]).save(tmp_path / "z.npz")
  assert len(StatisticsLibrary.load(tmp_path / "z.npz")) == 0


def test_a_damaged_file_is_named(library, tmp_path):
  path = tmp_path / "z.npz"
  library.save(path)
  data = path.read_bytes()
  path.write_bytes(data[:len(data) // 2])
  with pytest.raises(ValueError, match="z.npz is not a readable z library"):
    StatisticsLibrary.load(path)
  flipped = bytearray(data)
  path.write_bytes(data)
  with zipfile.ZipFile(path) as archive:
    second = archive.infolist()[1]  # the bytes before it are the compressed data of the first
  flipped[second.header_offset - 4] ^= 0xFF
  path.write_bytes(flipped)
  with pytest.raises(ValueError, match="z.npz is not a readable z library"):
    StatisticsLibrary.load(path)
  path.write_bytes(b"")
  with pytest.raises(ValueError, match="z.npz is not a readable z library"):
    StatisticsLibrary.load(path)
  with pytest.raises(FileNotFoundError):
    StatisticsLibrary.load(tmp_path / "none.npz")


@pytest.mark.parametrize("change, message", [
  ({"format": np.array(99)}, "has format 99, expected 2"),
  ({"format": np.array(1), "side": None}, "has format 1, expected 2"),
  ({"side": np.full(5, 2, np.uint8)}, "side is 2 of a game"),
  ({"vocabulary": np.array("0123")}, "numbers unit types by vocabulary 0123"),
  ({"units": np.zeros((5, 7), bool)}, r"units has shape \(5, 7\), expected \(5, 256\)"),
  ({"home_race": np.zeros(3, np.uint8)}, r"home_race has shape \(3,\), expected \(5,\)"),
  ({"effects": None}, "lacks effects"),
  ({"map_index": np.array([0, 1, 1, 2, 1], np.int32)}, "map_index names map 2 of 2"),
  ({"units": np.zeros((5, 256), np.int64)}, "units is int64, expected bool"),
  ({"home_race": np.full(5, 9, np.uint8)}, "home_race is 9 of a game, expected 0 to 4"),
  ({"away_race": np.full(5, 200, np.uint8)}, "away_race is 200 of a game, expected 0 to 4"),
  ({"format": np.zeros(2, np.int64)}, r"format is int64\[2\], expected an integer with 0 axes"),
  ({"format": np.array("two")}, r"format is <U3\[\], expected an integer"),
  ({"maps": np.array("Kairos")}, r"maps is <U6\[\], expected text with 1 axes"),
  ({"maps": np.arange(2)}, r"maps is int64\[2\], expected text"),
  ({"vocabulary": np.zeros(3)}, r"vocabulary is float64\[3\], expected text"),
  ({"units": np.zeros((5, 256), object)}, "not a readable z library"),  # pickled: never loaded
])
def test_other_files_are_refused(library, tmp_path, change, message):
  path = tmp_path / "z.npz"
  library.save(path)
  with np.load(path) as file:
    data = {name: file[name] for name in file.files}
  data.update(change)
  np.savez(path, **{name: value for name, value in data.items() if value is not None})
  with pytest.raises(ValueError, match=message):
    StatisticsLibrary.load(path)


_SAVES_FOR_EVER = """
import sys
from tests.data.z.test_statistics_library import GAMES
from starleague.data.z.statistics_library import StatisticsLibrary
library = StatisticsLibrary.from_games(GAMES * 200)
while True:
  library.save(sys.argv[1])
  print("saved", flush=True)
"""


def test_a_killed_save_leaves_the_previous_file(tmp_path):
  path = tmp_path / "z.npz"
  with subprocess.Popen([sys.executable, "-c", _SAVES_FOR_EVER, path], stdout=subprocess.PIPE,
                        text=True) as process:
    for _ in range(3):
      assert process.stdout.readline() == "saved\n"
    process.kill()
  assert len(StatisticsLibrary.load(path)) == 1000
