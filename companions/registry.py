"""The companion systems by name."""

import difflib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from starleague.common.errors import UserError
from starleague.companions import (
  coma,
  ftw,
  impala,
  merlin,
  policy_distillation,
  popart,
  r2d2,
  relational,
  self_imitation,
)
from starleague.companions.system import Inputs, System
from starleague.companions.tasks.task import Task

_MODULES: tuple[ModuleType, ...] = (
  impala, popart, ftw, r2d2, merlin, coma, self_imitation, policy_distillation, relational)


class Entry(NamedTuple):
  """A system that can be trained.

  Attributes:
    name: of the system, and of its module in this room.
    title: one line: the idea.
    config: frozen dataclass of the system's choices, whose docstring describes them.
    make: (config, Task, specs of Inputs) -> System.
    options: options of its runs that differ from those of `RunOptions`.
  """

  name: str
  title: str
  config: type
  make: Callable[[Any, Task, Inputs], System]
  options: Mapping[str, Any]


def systems() -> dict[str, Entry]:
  """Returns the systems by name."""
  return {name: Entry(name, (module.__doc__ or "").partition("\n")[0], module.Config, module.make,
                      module.OPTIONS)
          for module in _MODULES for name in [module.__name__.rpartition(".")[2]]}


def find(name: str) -> Entry:
  """Returns a system; raises UserError, with the nearest name, if there is none."""
  found = systems()
  if name not in found:
    nearest = difflib.get_close_matches(name, found, 1, 0.0)[0]
    raise UserError(f"system {name!r} does not exist; the nearest is {nearest!r} of "
                    f"{', '.join(found)}")
  return found[name]
