"""Names in replays, and the vocabulary's indices for them.

Tracker events name unit types and upgrades as the game's data does: "HellionTank" is a Hellbat.
Game events name abilities by a link, their place in the catalogue of the build, and an index. The
tables beside this file come from `python -m starleague.experiments.generate.replay_tables`.
"""

import csv
import functools
import pathlib
from typing import NamedTuple

import numpy as np

from starleague.agent import vocabulary as v
from starleague.data.replays.protocol import FIRST_LOTV

_TABLES = pathlib.Path(__file__).parent
QUICK, POINT, UNIT, AUTOCAST = "raw_cmd", "raw_cmd_pt", "raw_cmd_unit", "raw_autocast"
SMART = {POINT: v.FUNCTIONS.index("Smart_pt"), UNIT: v.FUNCTIONS.index("Smart_unit")}


def _rows(name: str) -> list[dict[str, str]]:
  with (_TABLES / name).open(newline="", encoding="utf-8") as file:
    return list(csv.DictReader(file))


@functools.cache
def _indices(kind: str) -> dict[str, int]:
  table = {"unit": v.UNIT_TYPES, "upgrade": v.UPGRADES}[kind]
  found = {name: index for index, name in enumerate(table.names) if index}
  aliases = {row["game"]: table.index(row["vocabulary"])
             for row in _rows("names.csv") if row["kind"] == kind}
  return {**aliases, **found}


def unit_type(name: str) -> int:
  """Returns the index of a unit type by its name in replays, 0 if the vocabulary has none."""
  return _indices("unit").get(name, 0)


def upgrade(name: str) -> int:
  """Returns the index of an upgrade by its name in replays, 0 if the vocabulary has none."""
  return _indices("upgrade").get(name, 0)


class Links(NamedTuple):
  """The names of the abilities of a build and of its successors up to the next table."""

  build: int
  names: dict[int, str]  # by link


@functools.cache
def all_links() -> tuple[Links, ...]:
  """Returns the tables of links, by build."""
  rows = _rows("links.csv")
  builds = [key for key in rows[0] if key != "name"]
  return tuple(Links(int(build), {int(row[build]): row["name"] for row in rows if row[build]})
               for build in builds)


def links_of(build: int) -> Links | None:
  """Returns the table of a build: that of the last one listed before it; None before 3.0."""
  found = [links for links in all_links() if links.build <= max(build, FIRST_LOTV)]
  return found[-1] if build >= FIRST_LOTV else None


@functools.cache
def _functions() -> dict[tuple[str, int], dict[str, int]]:
  """Returns the functions of (link name, index), by function type."""
  return {(row["name"], int(row["index"])): {
    v.FUNCTION_TYPES[function]: function for function in v.ABILITIES[int(row["ability"])]}
          for row in _rows("abilities.csv")}


def function(name: str, index: int, target: str) -> int | None:
  """Returns the function of a command.

  Args:
    name: of the ability's link.
    index: of the ability's command.
    target: QUICK, POINT, UNIT or AUTOCAST. A command on a unit that has a function for points only
      is that function, at the unit's place.

  Returns:
    An index of `vocabulary.FUNCTIONS`, or None if no function is this command.
  """
  found = _functions().get((name, index), {})
  return found.get(target, found.get(POINT) if target == UNIT else None)


# [A] bool: functions that only some unit types can execute, so that the types of the selected units
# show whether a table of links is right.
SPECIFIC = ~v.CAPABLE[:, :len(v.UNIT_TYPES.names)].all(axis=1)


def capable(function_index: int, types: set[int]) -> bool:
  """Returns whether one of the unit types can execute a function."""
  return bool(np.any(v.CAPABLE[function_index, list(types)]))
