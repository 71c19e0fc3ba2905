"""The z library: build orders, selection, files."""

import os
import subprocess
import sys

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.agent import build_order, types
from starleague.agent import vocabulary as v
from starleague.common import arrays
from starleague.data.z import statistics_library
from starleague.data.z.statistics_library import PlayedGame, StatisticsLibrary
from tests.common import damage

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
  with np.load(path) as file:  # files that were written before must still load
    assert set(file.files) == {
      "format", "vocabulary", "maps", "map_index", "home_race", "away_race", "side",
      "build_order", "build_order_xy", "units", "effects", "upgrades"}
  assert loaded.maps == library.maps
  for a, b in zip(jax.tree.leaves((loaded.z, loaded.map_index, loaded.home_race,
                                   loaded.away_race, loaded.side)),
                  jax.tree.leaves((library.z, library.map_index, library.home_race,
                                   library.away_race, library.side)), strict=True):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


def test_an_empty_library_is_saved_too(tmp_path):
  StatisticsLibrary.from_games([]).save(tmp_path / "z.npz")
  assert len(StatisticsLibrary.load(tmp_path / "z.npz")) == 0


def test_a_missing_file(tmp_path):
  with pytest.raises(FileNotFoundError):
    StatisticsLibrary.load(tmp_path / "none.npz")


@pytest.mark.parametrize("kind", damage.KINDS)
@pytest.mark.parametrize("name", ["home_race", "units", "build_order_xy"])
def test_every_kind_of_damage_is_one_line(library, tmp_path, kind, name):
  path = tmp_path / "z.npz"
  library.save(path)
  damage.KINDS[kind](path, name)
  with pytest.raises(arrays.ArraysError) as error:
    StatisticsLibrary.load(path)
  damage.check_message(str(error.value), path, name if kind in damage.OF_ARRAYS else "")


@pytest.mark.parametrize("change, message", [
  ({"format": np.array(99)}, "format: expected 2, found 99; make it again with this version"),
  ({"format": np.array(1), "side": None}, "format: expected 2, found 1; make it again"),
  ({"side": np.full(5, 2, np.uint8)}, r"side\[0\]: expected 0 to 1, found 2"),
  ({"vocabulary": np.array("0123")}, "vocabulary: expected '[0-9a-f]{64}', found '0123'; make it"),
  ({"units": np.zeros((5, 7), bool)},
   r"units: expected bool\[5, 256\] as map_index has, found bool\[5, 7\]"),
  ({"home_race": np.zeros(3, np.uint8)},
   r"home_race: expected uint8\[5\] as map_index has, found uint8\[3\]"),
  ({"map_index": np.zeros(3, np.int32)},
   r"build_order: expected uint8\[3, 20\] as map_index has, found uint8\[5, 20\]"),
  ({"effects": None}, "effects: expected an array of this name, found away_race, "),
  ({"notes": np.zeros(1)}, "notes: expected no array of this name, only away_race, "),
  ({"map_index": np.array([0, 1, 1, 2, 1], np.int32)},
   r"map_index\[3\]: expected 0 to 1, found 2"),
  ({"map_index": np.array([0, -1, 1, 0, 1], np.int32)},
   r"map_index\[1\]: expected 0 to 1, found -1"),
  ({"units": np.zeros((5, 256), np.int64)}, r"units: expected bool\[5, 256\] .*found int64"),
  ({"units": np.full((5, 256), 2, np.uint8).view(bool)},
   r"units\[0, 0\]: expected bytes 0 or 1, found 2"),
  ({"home_race": np.full(5, 9, np.uint8)}, r"home_race\[0\]: expected 0 to 4, found 9"),
  ({"away_race": np.uint8([1, 200, 1, 1, 1])}, r"away_race\[1\]: expected 0 to 4, found 200"),
  ({"build_order": np.full((5, 20), 255, np.uint8)},
   r"build_order\[0, 0\]: expected 0 to \d+, found 255"),
  ({"format": np.zeros(2, np.int64)}, r"format: expected int64\[\], found int64\[2\]"),
  ({"format": np.array("two")}, r"format: expected int64\[\], found text\[\]"),
  ({"maps": np.array("Kairos")}, r"maps: expected text\[maps\], found text\[\]"),
  ({"maps": np.arange(2)}, r"maps: expected text\[2\], found int64\[2\]"),
  ({"maps": np.array(["Kairos", "Kairos"])}, "maps: expected each name once, found 'Kairos' 2"),
  ({"maps": np.zeros(0, "U1")}, r"map_index\[0\]: expected 0 to -1, found 1"),
  ({"maps": np.uint32([[0x110000], [65]]).view("<U1")[:, 0]},
   r"maps\[0\]: expected text of Unicode characters, found others"),
  ({"vocabulary": np.zeros(3)}, r"vocabulary: expected text\[\], found float64\[3\]"),
])
def test_other_files_are_refused(library, tmp_path, change, message):
  path = tmp_path / "z.npz"
  library.save(path)
  with np.load(path) as file:
    data = {name: file[name] for name in file.files}
  data.update(change)
  np.savez(path, **{name: value for name, value in data.items() if value is not None})
  with pytest.raises(arrays.ArraysError, match=f"^{path}: {message}"):
    StatisticsLibrary.load(path)


def test_the_number_of_games_is_bounded(library, tmp_path, monkeypatch):
  library.save(tmp_path / "z.npz")
  monkeypatch.setattr(statistics_library, "MOST_GAMES", 4)
  with pytest.raises(arrays.ArraysError, match=(
      r"map_index: expected 0 to 4 along axis 0, found int32\[5\]$")):
    StatisticsLibrary.load(tmp_path / "z.npz")


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
