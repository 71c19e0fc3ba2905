"""What a player's observations are made of: a frame, a selection and a camera."""

from collections.abc import Collection
from typing import Any, NamedTuple

from starleague.environments.sc2.protocol import common_pb
from starleague.environments.sc2.server.game.game import Frame, Game
from starleague.environments.sc2.server.game.world import FLYING_HEIGHT

NEUTRAL_OWNER = 16


class View(NamedTuple):
  """A player's view of a frame."""

  game: Game
  frame: Frame
  player: int
  selected: Collection[int]  # tags
  screen: tuple[float, float, float, float]  # left, bottom, right, top of the camera's view

  def point(self, x: Any, y: Any, flying: bool = False) -> common_pb.Point:
    """World position of a place of Skirmish."""
    wx, wy = self.game.world.to_world(float(x), float(y))
    z = self.game.world.ground_below(wx, wy) + FLYING_HEIGHT * flying
    return common_pb.Point(x=wx, y=wy, z=z)

  def shown(self, position: common_pb.Point) -> bool:
    """Whether a world position is in the camera's view."""
    left, bottom, right, top = self.screen
    return left <= position.x < right and bottom <= position.y < top
