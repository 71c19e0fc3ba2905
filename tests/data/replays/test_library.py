"""The library of z of decoded replays."""

import shutil

import jax
import numpy as np
import pytest

from starleague.actor import rewards
from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.data.replays import library, tables
from starleague.data.z import conditioning
from starleague.data.z.statistics_library import StatisticsLibrary
from tests.data.replays import games
from tests.data.replays.folders import run
from tests.data.replays.games import REAL, Game, needs_real


def test_titles_of_maps():
  found = [("1", "Ланч"), ("1", "Ланч"), ("1", "Lunch LE"), ("2", "사"), ("2", "사"), ("2", "Ж")]
  assert library.map_titles(found) == {"1": "Lunch LE", "2": "사"}


def test_the_library_of_z(out, tmp_path):
  """It has the statistics of the rows, and loads from its file."""
  made = library.make(out)
  made.save(tmp_path / "z.npz")
  made = StatisticsLibrary.load(tmp_path / "z.npz")
  assert len(made) == 4 and made.maps == ("Test LE",)
  assert made.home_race.tolist() == [3, 2, 3, 2] and made.away_race.tolist() == [2, 3, 2, 3]
  assert made.side.tolist() == [0, 1, 0, 1]
  gateway, zealot = v.UNIT_TYPES.index("Gateway"), v.UNIT_TYPES.index("Zealot")
  assert made.z.build_order[0, :3].tolist() == [gateway, zealot, 0]
  assert made.z.build_order_xy[0, :3].tolist() == [[70, 211], [69, 214], [0, 0]]
  assert np.flatnonzero(made.z.units[0]).tolist() == sorted(
    v.UNIT_TYPES.index(name) for name in ("Gateway", "Zealot", "Pylon"))
  assert np.flatnonzero(made.z.upgrades[1]).tolist() == [v.UPGRADES.index("MetabolicBoost")]
  assert not made.z.effects.any()


def test_titles_that_differ_in_null_characters_are_one_map(tmp_path):
  """NumPy drops those at the end: the file would have one name twice, which is refused."""
  with tables.Store(tmp_path) as store:
    for number, title in enumerate((b"Test LE", b"Test LE\0")):
      found = games.decoded(Game(title=title, seed=number, handles=(
        b"s2ma\0\0EU" + bytes([number]) * 32,)))
      store.add(tables.Part([found.game], found.players, found.builds, found.commands, []))
    store.merge()
  library.make(tmp_path).save(tmp_path / "z.npz")
  loaded = StatisticsLibrary.load(tmp_path / "z.npz")
  assert len(loaded) == 4 and loaded.maps == ("Test LE",)


@needs_real
@pytest.mark.slow
def test_z_of_real_replays_loads_into_training_unchanged(tmp_path):
  """The library serves as the source of rollouts' conditioning, and its own z has distance 0."""
  for name in ("pysc2/replay_04", "di-star/replay_5.0.1", "sc2reader/3.4.0__issueYY"):
    shutil.copy(REAL / f"{name}.SC2Replay", tmp_path)
  summary = run(tmp_path, tmp_path / "out")
  assert summary.games == 3 and summary.reasons == {}
  made = library.make(tmp_path / "out")
  assert len(made) == 6 and {types.RACES[race] for race in made.home_race} == {
    "terran", "zerg", "protoss"}
  assert (made.z.build_order > 0).sum(axis=1).max() == 20
  zerg = types.RACES.index("zerg")
  drawn = conditioning.from_library(
    made, ["Kairos Junction LE"], [zerg], 2, np.ones(4, np.float32), 3500, seed=0)
  for side in range(2):
    row, = made.rows("Kairos Junction LE", zerg, zerg, side)
    z = jax.tree.map(lambda x: x[drawn.rows[0, zerg, zerg, side, 1]],  # noqa: B023
                     drawn.z)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[row]),  # noqa: B023
                 z, made.z)
    assert rewards.build_order_distance(
      z.build_order, z.build_order_xy, z.build_order, z.build_order_xy) == 0


def test_a_folder_without_tables_is_named(tmp_path):
  with pytest.raises(tables.TablesError, match="games.parquet is missing"):
    library.make(tmp_path)
