"""A participant's seat: interface, camera, selection, events since its last observation."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from starleague.environments.sc2.protocol import sc_pb

DEFAULT_WIDTH = 24.0  # of the camera's view, world units
_OF_STATE = ("dead", "alert")
_MOST_EVENTS = 4096  # kept for a participant that never asks for an observation


@dataclasses.dataclass
class ServerSeat:
  """A participant's interface, camera, selection and events."""

  player: int  # 0 or 1; its id in the API is one more
  options: sc_pb.InterfaceOptions  # of observations, and of requests
  name: str = ""
  camera: tuple[float, float] = (0.0, 0.0)  # world position of its middle
  selected: list[int] = dataclasses.field(default_factory=list)  # tags
  groups: dict[int, list[int]] = dataclasses.field(default_factory=dict)  # control groups: tags
  controls_enemy: bool = False  # by a debug request
  recorded: sc_pb.InterfaceOptions | None = None  # of the requests in playback, if known
  scene: Any = None  # the last `response_observation.Scene`
  _events: list[tuple[int, str, Any]] = dataclasses.field(default_factory=list)
  _looked: int = -1  # game loop of the last observation
  _before: int = -1  # and of the one at an earlier loop

  def note(self, loop: int, kind: str, value: Any) -> None:
    """Notes an event for the next observation at this game loop or later.

    Args:
      loop: from which the event shows.
      kind: "action", "error", "chat", "dead" or "alert".
      value: the protocol's message or number.
    """
    self._events.append((loop, kind, value))
    del self._events[:-_MOST_EVENTS]

  def look(self, loop: int) -> dict[str, list[Any]]:
    """Returns the events since the last observation at an earlier loop, by kind.

    Actions, errors and chat are returned once. Another observation at the same loop repeats deaths
    and alerts, which belong to the game's state.
    """
    if loop != self._looked:
      self._before, self._looked = self._looked, loop
      self._events = [event for event in self._events if event[0] > self._before]
    found: dict[str, list[Any]] = {}
    for at, kind, value in self._events:
      if at <= loop:
        found.setdefault(kind, []).append(value)
    self._events = [event for event in self._events if event[0] > loop or event[1] in _OF_STATE]
    return found

  @contextlib.contextmanager
  def acting(self) -> Iterator[None]:
    """Uses the interface of the participant's requests meanwhile: cells depend on it."""
    shown = self.options
    self.options = shown if self.recorded is None else self.recorded
    try:
      yield
    finally:
      self.options = shown

  def view_size(self) -> tuple[float, float]:
    """Width and height of the camera's view, world units."""
    setup = self.options.feature_layer
    width = setup.width if setup.width > 0 else DEFAULT_WIDTH
    x, y = setup.resolution.x, setup.resolution.y
    return width, width * y / x if x > 0 and y > 0 else width

  def screen(self) -> tuple[float, float, float, float]:
    """Left, bottom, right and top of the camera's view, world units."""
    width, height = self.view_size()
    x, y = self.camera
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2
