"""The spatial encoder: the camera."""

import numpy as np

from tests.agent.encoders.observations import observation


def test_camera_is_an_input(encode):
  o = observation()
  here, there = (encode(o._replace(camera=np.int16(corners)))[0]
                 for corners in ([0, 0, 128, 128], [128, 128, 256, 256]))
  assert np.abs(here.map_skips[0] - there.map_skips[0]).max() > 1e-3
