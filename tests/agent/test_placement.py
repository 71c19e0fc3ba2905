"""The cells in which structures may fit, in hand-made observations."""

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import placement, types, vocabulary
from tests.environments.skirmish import default_games

UNITS, SIZE = 48.0, 32
MIDDLES = (np.arange(SIZE) + 0.5) * UNITS / SIZE


def function(name):
  return np.int32(vocabulary.FUNCTIONS.index(f"Build_{name}_pt"))


def observation(*entities):
  """An observation of flat ground, with entities (name, x, y) in cells of the 256 grid."""
  made = types.zeros(types.observation_spec(8, SIZE))
  for row, (name, x, y) in enumerate(entities):
    for column, value in (("unit_type", vocabulary.UNIT_TYPES.index(name)), ("x", x), ("y", y)):
      made.entities[row, types.COLUMN[column]] = value
  made.minimap[types.MINIMAP_PLANES.index("buildable")] = 1
  return made


def free(seen, name):
  return np.array(placement.free_cells(seen, function(name), SIZE, UNITS)).reshape(SIZE, SIZE)


def test_a_structure_keeps_apart_from_others_and_from_the_edge():
  """A Command Center in the middle of the map: by numpy, cell for cell."""
  found = free(observation(("CommandCenter", 128, 128), ("Marine", 10, 10)), "SupplyDepot")
  place, apart = 128.5 * UNITS / 256, 2.75 + 1.25 - UNITS / 256
  away = np.hypot(MIDDLES[:, None] - place, MIDDLES - place) >= apart
  edge = (MIDDLES >= 1.25) & (MIDDLES <= UNITS - 1.25)
  np.testing.assert_array_equal(found, away & edge[:, None] & edge)
  assert 0 < (~found[1:-1, 1:-1]).sum() < 25 and not found[0].any()
  larger = free(observation(("CommandCenter", 128, 128)), "CommandCenter")
  assert larger.sum() < found.sum() and not (larger & ~found).any()


def test_rows_are_y_and_columns_x():
  found = free(observation(("MineralField", 64, 192)), "Barracks")
  row, column = np.argwhere(~found[3:-3, 3:-3]).mean(0) + 3.5
  assert (row, column) == pytest.approx((24, 8), abs=0.5)


def test_ground_and_creep_are_the_planes():
  seen = observation()
  seen.minimap[types.MINIMAP_PLANES.index("buildable"), :, 16:] = 0
  seen.minimap[types.MINIMAP_PLANES.index("creep"), :8] = 1
  for name, rows in (("Bunker", slice(2, -2)), ("Hatchery", slice(2, -2)),
                     ("SpawningPool", slice(2, 8))):
    expected = np.zeros((SIZE, SIZE), bool)
    expected[rows, 2:16] = True
    found = free(seen, name)
    found[:2], found[-2:], found[:, :2] = False, False, False  # the edge, by radius
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["Attack_pt", "Move_pt", "Build_Refinery_pt", "no_op"])
def test_other_functions_reach_every_cell(name):
  index = np.int32(vocabulary.FUNCTIONS.index(name))
  assert placement.free_cells(observation(("Nexus", 9, 9)), index, SIZE, UNITS).all()


def test_a_structure_that_fits_nowhere_has_every_cell():
  seen = observation()
  seen.minimap[:] = 0
  assert free(seen, "Barracks").all()


def test_radii_are_those_of_the_games_tables():
  known = default_games.TYPES
  for name, radius, structure in zip(known.names[1:], known.radius[1:], known.structure[1:],
                                     strict=True):
    found = placement.RADII[vocabulary.UNIT_TYPES.index(name)]
    assert found == (radius if structure else 0), name
  placed = {vocabulary.UNIT_TYPES.names[i] for i in placement.PRODUCTS[placement.PRODUCTS > 0]}
  assert {name for name, structure, gas in zip(known.names, known.structure, known.gas, strict=True)
          if structure and not gas} - placed <= {"OrbitalCommand"}


def test_the_mask_is_for_skirmishs_maps():
  small = agent_config.small()
  assert agent_config.on_map(small, 96.0).map_units == 96.0
  assert agent_config.on_map(small, None).location_mask == "none"
  assert agent_config.on_map(agent_config.mini(), 24.0) == agent_config.mini()


def test_only_small_has_the_mask():
  presets = [agent_config.preset(name) for name in ("full", "mini", "small")]
  assert [config.location_mask for config in presets] == ["none", "none", "free"]
  assert presets[2].map_units == default_games.TIER.map_size
