"""World coordinates are exact at the centres of location grids; images unpack to their values."""

import numpy as np
import pytest

from starleague.agent import coordinates
from starleague.environments.sc2.server.game import engine, world
from starleague.environments.skirmish.rules.interface import acting


@pytest.mark.parametrize("tier", ["mini", "default", "large"])
def test_a_location_is_the_same_place_through_the_world(tier):
  rules = engine.rules_of(tier)
  size, ground = rules.location_size, world.make_world(rules, 0)
  location = np.arange(size * size)
  row, column = np.divmod(location, size)
  x, y = coordinates.to_game(column, row, ground.size, ground.size, size)
  found = ground.to_skirmish(x.astype(np.float32), y.astype(np.float32))
  direct = acting.location_to_place(rules, location)
  np.testing.assert_array_equal(found, np.array(direct))
  np.testing.assert_array_equal(ground.to_world(*found), (x, y))


def test_the_corners_of_the_world():
  ground = world.make_world(engine.rules_of("mini"), 0)
  assert ground.size == 24
  assert ground.to_world(np.float32(-12), np.float32(12)) == (0, 0)  # bottom left
  assert ground.to_world(np.float32(12), np.float32(-12)) == (24, 24)
  assert ground.to_skirmish(np.float32(0), np.float32(24)) == (-12, -12)


@pytest.mark.parametrize("tier, realistic, border", [
  ("mini", True, 0), ("default", True, 0), ("large", False, 0), ("large", True, 8)])
def test_large_realistic_maps_have_a_border_and_the_same_places(tier, realistic, border):
  rules = engine.rules_of(tier)
  ground, side = world.make_world(rules, 0, realistic), int(rules.tier.map_size)
  assert (ground.border, ground.playable, ground.size) == (border, side, side + 2 * border)
  for grid in (ground.passable, ground.buildable, ground.height):
    assert grid.shape == (ground.size, ground.size)
  assert ground.to_world(-side / 2, side / 2) == (border, border)  # bottom left
  places = np.array(acting.location_to_place(rules, np.arange(rules.location_size ** 2)))
  there = ground.to_world(*places)
  assert all(values.dtype == np.float32 for values in there)
  np.testing.assert_array_equal(ground.to_skirmish(*there), places)


def test_rows_of_the_ground_run_upwards():
  rules = engine.rules_of("default")
  ground = world.make_world(rules, 1)  # ramps: homes are high, at the top left and bottom right
  assert ground.height[-1, 0] == ground.height[0, -1] == 160
  assert ground.height[0, 0] == ground.height[-1, -1] == 96
  np.testing.assert_array_equal(ground.passable[::-1], rules.terrain.passable[1])
  np.testing.assert_allclose(ground.ground_at(np.array([0.5, 47.5]), np.array([47.5, 47.5])),
                             [-16 + 32 * 160 / 255, -16 + 32 * 96 / 255])


@pytest.mark.parametrize("dtype, bits", [(bool, 1), (np.uint8, 8), (np.int32, 32)])
def test_images_hold_their_values(dtype, bits):
  values = (np.arange(24 * 16).reshape(24, 16) % 3).astype(dtype)
  made = world.image(values)
  assert (made.bits_per_pixel, made.size.x, made.size.y) == (bits, 16, 24)
  data = np.frombuffer(made.data, np.uint8 if bits == 1 else dtype)
  data = np.unpackbits(data) if bits == 1 else data
  np.testing.assert_array_equal(data.reshape(24, 16), values)
