"""Dense indices for the game's functions, unit types, upgrades and buffs.

All rooms use dense indices; the game's own ids appear only where an environment meets its client.
The tables are CSV files in `agent/data`, generated from pysc2 and a technology tree by
`python -m starleague.experiments.generate.vocabulary`.

A function is the first argument of an action; the paper calls it the action type. The 564 raw
functions reduce to the 327 without a general equivalent: `Build_Refinery_pt` stays,
`Attack_Attack_pt` becomes `Attack_pt`. Index 0 is `no_op` among functions, and "unknown or none"
among unit types, upgrades and buffs.
"""

import csv
import dataclasses
import functools
import hashlib
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_DATA = pathlib.Path(__file__).resolve().parent / "data"


def _read(name: str) -> list[dict[str, str]]:
  with (_DATA / name).open(newline="") as file:
    return list(csv.DictReader(file))


class Arguments(NamedTuple):
  """One value for each argument of an action: logits, log-probs, masks or entropies."""

  function: Any
  delay: Any
  queued: Any
  repeat: Any
  units: Any
  target_unit: Any
  location: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
  """Names and game ids by dense index.

  Several game ids may share an index, as critters do; `ids` and `names` then hold the first.
  """

  names: tuple[str, ...]
  ids: np.ndarray  # [N] int32
  lookup: np.ndarray  # [highest id + 1] int16: game id -> index, 0 where unknown

  @functools.cached_property
  def _index(self) -> dict[str, int]:
    return {name: i for i, name in enumerate(self.names)}

  def index(self, name: str) -> int:
    """Returns the index of a name. Raises KeyError if it is unknown."""
    return self._index[name]

  def from_id(self, game_id: int) -> int:
    """Returns the index of a game id, 0 if it is unknown."""
    return int(self.lookup[game_id]) if 0 <= game_id < len(self.lookup) else 0


def _table(rows: list[dict[str, str]]) -> Table:
  size = 1 + max(int(row["index"]) for row in rows)
  names, ids = [""] * size, np.zeros(size, np.int32)
  lookup = np.zeros(1 + max(int(row["id"]) for row in rows), np.int16)
  for row in reversed(rows):  # the first id of a shared index is written last, and stays
    index, game_id = int(row["index"]), int(row["id"])
    names[index], ids[index], lookup[game_id] = row["name"], game_id, index
  return Table(tuple(names), ids, lookup)


_FUNCTION_ROWS = _read("functions.csv")
_ALIAS_ROWS = _read("aliases.csv")

FUNCTIONS = dataclasses.replace(
  _table(_FUNCTION_ROWS), lookup=np.array([int(row["index"]) for row in _ALIAS_ROWS], np.int16))
_UNIT_ROWS = _read("unit_types.csv")
UNIT_TYPES = _table(_UNIT_ROWS)
UPGRADES = _table(_read("upgrades.csv"))
BUFFS = _table(_read("buffs.csv"))

# [table's size] str: race of each unit type, "Neutral", or "None" for the unknown type
UNIT_RACES = np.array([row["race"] for row in sorted(
  {row["index"]: row for row in reversed(_UNIT_ROWS)}.values(), key=lambda row: int(row["index"]))])

NUM_FUNCTIONS = len(FUNCTIONS.names)
NUM_UNIT_TYPES = 256  # the published width
# Of the indices past the table's end, those of an enemy outside the camera and of an effect.
HIDDEN_TYPE, EFFECT_TYPE = NUM_UNIT_TYPES - 2, NUM_UNIT_TYPES - 1
NUM_UPGRADES = len(UPGRADES.names)
NUM_BUFFS = len(BUFFS.names)

FUNCTION_TYPES = tuple(row["type"] for row in _FUNCTION_ROWS)
# Game ids of abilities -> the functions that issue them, specific ids and general ones.
ABILITIES: dict[int, set[int]] = {}
for _row in [*_FUNCTION_ROWS, *_ALIAS_ROWS]:
  ABILITIES.setdefault(int(_row["ability"]), set()).add(int(_row["index"]))
# [highest id + 1] int16: the general function of each ability's game id; of several functions, the
# one with the lowest game id; 0 if there is none.
ABILITY_FUNCTIONS = np.zeros(1 + max(ABILITIES), np.int16)
for _row in reversed(_ALIAS_ROWS):
  ABILITY_FUNCTIONS[int(_row["ability"])] = int(_row["index"])
CATEGORIES = tuple(row["category"] for row in _FUNCTION_ROWS)
# [A] int32: the game id of each function's ability; 0 for no_op and for camera moves
FUNCTION_ABILITIES = np.array([int(row["ability"]) for row in _FUNCTION_ROWS], np.int32)
# [A] bool: whether the target must be in the camera's view
ON_SCREEN = np.array([row["on_screen"] == "1" for row in _FUNCTION_ROWS])

# Functions whose orders occupy a production queue: the values of order_2 to order_4. 0 is none.
TRAINING_FUNCTIONS = np.array(
  [0] + [i for i, c in enumerate(CATEGORIES) if c == "train"], np.int32)
EFFECT_FUNCTIONS = np.array([i for i, c in enumerate(CATEGORIES) if c == "effect"], np.int32)
NUM_EFFECTS = len(EFFECT_FUNCTIONS)

# The arguments that a function takes, by its *type* in pysc2's FUNCTION_TYPES. The suffix of a name
# is no guide: Build_Refinery_pt targets a unit. Columns are those of Arguments.
_USES = {
  #                   function delay queued repeat units target_unit location
  "raw_no_op":       (1, 1, 0, 0, 0, 0, 0),
  "raw_move_camera": (1, 1, 0, 0, 0, 0, 1),
  "raw_cmd":         (1, 1, 1, 1, 1, 0, 0),
  "raw_cmd_pt":      (1, 1, 1, 0, 1, 0, 1),
  "raw_cmd_unit":    (1, 1, 1, 0, 1, 1, 0),
  "raw_autocast":    (1, 1, 0, 0, 1, 0, 0),
}
ARGUMENT_TABLE = np.array([_USES[t] for t in FUNCTION_TYPES], bool)  # [A, 7]


def _capabilities() -> np.ndarray:
  table = np.zeros((NUM_FUNCTIONS, NUM_UNIT_TYPES), bool)
  for row in _read("capabilities.csv"):
    for unit_type in row["unit_types"].split():
      table[int(row["function"]), int(unit_type)] = True
  # The technology tree names no executor for a few functions (unloading, switching off). Any type
  # may execute these; the game itself decides.
  table[~table.any(axis=1)] = True
  return table


CAPABLE = _capabilities()  # [A, N] bool: whether a unit of this type can execute this function
# [A, N] bool: the same, with the types that a Hatchery morphs into: they execute the functions of
# larvae, too. Networks read CAPABLE, which is as it was when the shipped weights were trained.
EXECUTORS = CAPABLE.copy()
EXECUTORS[:, [UNIT_TYPES.index("Lair"), UNIT_TYPES.index("Hive")]] |= (
  CAPABLE[:, UNIT_TYPES.index("Larva"), None])


def argument_mask(function: jax.Array | np.ndarray | int) -> Arguments:
  """Returns the mask of the arguments that a function takes.

  Args:
    function: [...] integer function index; a numpy or JAX array, or an int.

  Returns:
    Arguments of [...] bool.
  """
  rows = jnp.asarray(ARGUMENT_TABLE)[function]
  return Arguments(*(rows[..., i] for i in range(len(Arguments._fields))))


@functools.lru_cache(maxsize=1)
def digest() -> str:
  """Returns the SHA-256 of the data files; equal digests mean equal indices."""
  digest_ = hashlib.sha256()
  for path in sorted(_DATA.glob("*.csv")):
    digest_.update(path.name.encode() + b"\0" + path.read_bytes())
  return digest_.hexdigest()
