"""Imports of the game's protocol and of pysc2 that work on Python 3.11.

Import the message modules from here. After this import, `from pysc2... import ...` works anywhere.
Two problems of Python 3.11 are handled:

- pysc2 needs the package `s2clientprotocol`, whose generated code fails with protobuf above 3.20.
  `pys2clientprotocol` provides the same module for protobuf 6 and above, and replaces its files.
- `pysc2.lib.colors` calls `random.shuffle` with two arguments, `features` through it at import;
  Python 3.11 takes one.
"""

import random
from collections.abc import Callable, MutableSequence
from types import ModuleType, SimpleNamespace

from starleague.common.errors import UserError

__all__ = ["common_pb", "data_pb", "debug_pb", "error_pb", "query_pb", "raw_pb", "sc_pb",
           "score_pb", "spatial_pb", "tables", "ui_pb", "ProtocolImportError"]


class ProtocolImportError(UserError, ImportError):
  """pysc2 or the game's protocol cannot be imported."""


def _shuffle(values: MutableSequence, uniform: Callable[[], float] = random.random) -> None:
  """Shuffles in place as `random.shuffle` of Python 3.10: Fisher-Yates with a given generator."""
  for i in range(len(values) - 1, 0, -1):
    j = int(uniform() * (i + 1))
    values[i], values[j] = values[j], values[i]


def _repair_colors() -> None:
  """Gives `pysc2.lib.colors` the older `random.shuffle`; the module `random` is unchanged."""
  from pysc2.lib import colors
  colors.random = SimpleNamespace(shuffle=_shuffle)


try:
  from s2clientprotocol import common_pb2 as common_pb
  from s2clientprotocol import data_pb2 as data_pb
  from s2clientprotocol import debug_pb2 as debug_pb
  from s2clientprotocol import error_pb2 as error_pb
  from s2clientprotocol import query_pb2 as query_pb
  from s2clientprotocol import raw_pb2 as raw_pb
  from s2clientprotocol import sc2api_pb2 as sc_pb
  from s2clientprotocol import score_pb2 as score_pb
  from s2clientprotocol import spatial_pb2 as spatial_pb
  from s2clientprotocol import ui_pb2 as ui_pb
except ImportError as error:
  raise ProtocolImportError(
    f"StarCraft II's protocol: expected the package pys2clientprotocol, found: {error}; "
    "pip install 'starleague[sc2]'") from error
except TypeError as error:  # protobuf refuses the older generated code
  raise ProtocolImportError(
    "StarCraft II's protocol: expected the files of pys2clientprotocol, found those of "
    "s2clientprotocol; pip install --force-reinstall --no-deps pys2clientprotocol") from error

try:
  _repair_colors()
except ImportError as error:
  raise ProtocolImportError(
    f"pysc2: expected version 4.0.0, found: {error}; pip install 'starleague[sc2]'") from error


def tables() -> tuple[ModuleType, ModuleType, ModuleType, ModuleType]:
  """Returns pysc2's modules of the game's ids: actions, units, upgrades and buffs."""
  from pysc2.lib import actions, buffs, units, upgrades
  return actions, units, upgrades, buffs
