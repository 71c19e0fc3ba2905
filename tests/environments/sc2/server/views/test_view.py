"""Places in a player's view."""

import pytest

from starleague.environments.sc2.protocol import common_pb
from starleague.environments.sc2.server.views.view import View
from tests.environments.sc2.server.views.test_sentries import view_of
from tests.environments.skirmish.technology import RULES, with_sentry


def test_places_of_skirmish_in_the_world():
  """The world's origin is at the bottom left. Flyers are above the ground."""
  view = view_of(with_sentry())
  half = view.game.world.half
  ground, air = view.point(3.0, -4.0), view.point(3.0, -4.0, True)
  assert half >= RULES.half
  assert (ground.x, ground.y) == (air.x, air.y) == (half + 3.0, half + 4.0)
  assert air.z > ground.z


@pytest.mark.parametrize("x, y, inside", [
  (1.0, 2.0, True), (4.9, 5.9, True), (5.0, 3.0, False), (3.0, 6.0, False), (0.9, 3.0, False)])
def test_the_screen_shows_its_rectangle(x, y, inside):
  view = View(None, None, 0, (), (1.0, 2.0, 5.0, 6.0))
  assert view.shown(common_pb.Point(x=x, y=y)) is inside
