"""The start of a process that leads a session of its own. Light: a new process imports it first."""

import os
from collections.abc import Callable
from typing import Any


def lead(target: Callable[..., object], *arguments: Any) -> None:
  """Calls a main function in a session of its own: what it starts can be ended with it."""
  os.setsid()
  target(*arguments)
