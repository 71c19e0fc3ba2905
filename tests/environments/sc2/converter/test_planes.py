"""Minimap planes against pysc2's, on real observations."""

import numpy as np
import pytest

pytest.importorskip("pysc2")

from starleague.agent import types
from starleague.environments.sc2.converter import planes
from tests.environments.sc2 import recorded

needs_data = recorded.needs_data


@needs_data
def test_minimap_planes_are_pysc2s():
  from pysc2.lib import features
  response = recorded.response(recorded.MIDGAME)
  found = recorded.convert(response, recorded.setting()).observation.minimap
  names = {"visibility": "visibility_map"}
  for plane, name in zip(found, types.MINIMAP_PLANES, strict=True):
    feature = features.MINIMAP_FEATURES._asdict()[names.get(name, name)]
    wanted = feature.unpack(response.observation)
    wanted = np.zeros((128, 128)) if wanted is None else wanted  # a plane that it lacks
    np.testing.assert_array_equal(plane, wanted, err_msg=name)
  assert found[0].max() > 0 and found[3].any()


@needs_data
@pytest.mark.parametrize("config, size", [
  (recorded.agent_config.mini(), 32), (recorded.MIDDLE, 64)], ids=["mini", "middle"])
def test_planes_of_smaller_configs_are_sampled_from_larger_ones(config, size):
  response = recorded.response(recorded.MIDGAME)
  full = recorded.convert(response, recorded.setting()).observation.minimap
  found = recorded.convert(response, recorded.make_setting(
    config, recorded.game_info(recorded.MIDGAME), 1)).observation.minimap
  step = 128 // size
  np.testing.assert_array_equal(found, full[:, step // 2::step, step // 2::step])


@pytest.mark.parametrize("bits, data, expected", [
  (1, bytes([0b10100000, 0b01000000]), [[1, 0, 1], [0, 0, 0], [0, 0, 0]]),
  (8, bytes(range(9)), [[0, 1, 2], [3, 4, 5], [6, 7, 8]]),
  (16, b"".join(i.to_bytes(2, "little") for i in range(9)), [[0, 1, 2], [3, 4, 5], [6, 7, 8]]),
  (8, bytes(8), None), (4, bytes(9), None)])
def test_layers_are_unpacked(bits, data, expected):
  image = planes.common_pb.ImageData(bits_per_pixel=bits, data=data)
  image.size.x = image.size.y = 3
  found = planes.unpack(image)
  assert (found is None) if expected is None else found.tolist() == expected
