"""Jumps of the system's time: it is set by hand, or follows a time server."""

import time
from collections.abc import Callable


class ClockWatch:
  """Compares the system's time with a clock that is never set."""

  def __init__(self, system: Callable[[], float] = time.time,
               monotonic: Callable[[], float] = time.monotonic):
    """Takes the two clocks, in seconds."""
    self._system, self._monotonic = system, monotonic
    self._offset = system() - monotonic()

  def jump(self) -> float:
    """Returns the seconds by which the system's time was set since the last call; < 0: back."""
    offset = self._system() - self._monotonic()
    jump, self._offset = offset - self._offset, offset
    return jump
