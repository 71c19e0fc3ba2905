"""Conditioning: the z that games are drawn from, by match-up."""

import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.data.conditioning import Recent


def test_recent_z_repeat_until_full_then_drop_the_oldest():
  marine = v.UNIT_TYPES.index("Marine")
  recent, zerg = Recent(2, 3, np.ones(4), 6200), types.RACES.index("zerg")
  empty = types.zeros(types.statistics_spec())

  def drawn(field: str) -> np.ndarray:
    """Returns a field of all z, [maps, races, races, sides, 2, ...]."""
    found = recent.conditioning()
    return getattr(found.statistics, field)[found.rows]

  shape = drawn("build_order").shape
  assert shape == (3, 5, 5, 2, 2, 20) and not drawn("build_order").any()
  for x in (3, 5, 9):
    order = np.zeros(types.BUILD_ORDER_LENGTH, np.uint8)
    order[:2] = v.UNIT_TYPES.index("SCV"), marine
    places = np.full((types.BUILD_ORDER_LENGTH, 2), x, np.uint8)
    recent.add(zerg, 1, empty._replace(build_order=order, build_order_xy=places))
    if x == 3:
      np.testing.assert_array_equal(
        drawn("build_order_xy")[:, zerg, :, 1, :, 0], np.full((3, 5, 2, 2), 3))
  np.testing.assert_array_equal(
    drawn("build_order_xy")[:, zerg, :, 1, :, 0, 0], np.broadcast_to([5, 9], (3, 5, 2)))
  orders = drawn("build_order")
  assert (orders[:, zerg, :, 1, :, :2] == [marine, 0]).all()  # no workers
  assert drawn("build_order").shape == shape
  orders[:, zerg, :, 1] = 0
  assert not orders.any()
