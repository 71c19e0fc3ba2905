"""The game's names as dense indices: functions, unit types, upgrades, buffs.

Everything inside Starleague speaks in dense indices; the game's own ids appear only where an
environment meets its client. The tables are CSV files in `agent/data`, written by
`python -m starleague.experiments.generate.vocabulary` from pysc2 and a technology tree.

The 564 raw functions are reduced to the 327 that have no general equivalent: `Build_Refinery_pt`
stays, `Attack_Attack_pt` becomes `Attack_pt`. An index of 0 is `no_op` among functions, "unknown or
none" among unit types, upgrades and buffs.
"""

import csv
import dataclasses
import functools
import hashlib
import pathlib
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

_DATA = pathlib.Path(__file__).resolve().parent / "data"


def _read(name: str) -> list[dict[str, str]]:
  with (_DATA / name).open(newline="") as file:
    return list(csv.DictReader(file))


class Arguments(NamedTuple):
  """One thing of each argument of an action: logits, log-probs, masks, entropies."""

  function: Any
  delay: Any
  queued: Any
  repeat: Any
  units: Any
  target_unit: Any
  location: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
  """Names and game ids of one kind of thing, by dense index.

  Several game ids may share an index (the wild animals do); `ids` and `names` then hold the first.
  """

  names: tuple[str, ...]
  ids: np.ndarray  # [N] int32
  lookup: np.ndarray  # [highest id + 1] int16: game id -> index, 0 where unknown

  @functools.cached_property
  def _index(self) -> dict[str, int]:
    return {name: i for i, name in enumerate(self.names)}

  def index(self, name: str) -> int:
    """The index of a name; KeyError with the name where the table does not have it."""
    return self._index[name]

  def from_id(self, game_id: int) -> int:
    """The index of a game id, 0 for one the table does not have."""
    return int(self.lookup[game_id]) if 0 <= game_id < len(self.lookup) else 0


def _table(rows: list[dict[str, str]]) -> Table:
  size = 1 + max(int(row["index"]) for row in rows)
  names, ids = [""] * size, np.zeros(size, np.int32)
  lookup = np.zeros(1 + max(int(row["id"]) for row in rows), np.int16)
  for row in reversed(rows):  # so that the first id of a shared index is the one kept
    index, game_id = int(row["index"]), int(row["id"])
    names[index], ids[index], lookup[game_id] = row["name"], game_id, index
  return Table(tuple(names), ids, lookup)


_FUNCTION_ROWS = _read("functions.csv")
_ALIAS_ROWS = _read("aliases.csv")

FUNCTIONS = dataclasses.replace(
  _table(_FUNCTION_ROWS), lookup=np.array([int(row["index"]) for row in _ALIAS_ROWS], np.int16))
UNIT_TYPES = _table(_read("unit_types.csv"))
UPGRADES = _table(_read("upgrades.csv"))
BUFFS = _table(_read("buffs.csv"))

NUM_FUNCTIONS = len(FUNCTIONS.names)
NUM_UNIT_TYPES = 256  # the published width; indices past the table's end are never seen
NUM_UPGRADES = len(UPGRADES.names)
NUM_BUFFS = len(BUFFS.names)

FUNCTION_TYPES = tuple(row["type"] for row in _FUNCTION_ROWS)
CATEGORIES = tuple(row["category"] for row in _FUNCTION_ROWS)
# [A] bool: must the target be where the camera looks?
ON_SCREEN = np.array([row["on_screen"] == "1" for row in _FUNCTION_ROWS])

# Functions whose orders occupy a production queue: what order_2 to order_4 may name. 0 is none.
TRAINING_FUNCTIONS = np.array(
  [0] + [i for i, c in enumerate(CATEGORIES) if c == "train"], np.int32)
EFFECT_FUNCTIONS = np.array([i for i, c in enumerate(CATEGORIES) if c == "effect"], np.int32)
NUM_EFFECTS = len(EFFECT_FUNCTIONS)

# Which arguments a function takes, by its *type*: the suffix of its name can deceive (pysc2's
# FUNCTION_TYPES; Build_Refinery_pt targets a unit). Columns are those of Arguments.
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
  # The technology tree names no executor for a few functions (unloading, switching off): there
  # every type may, as the game itself decides.
  table[~table.any(axis=1)] = True
  return table


CAPABLE = _capabilities()  # [A, N] bool: may a unit of this type execute this function?


def argument_mask(function) -> Arguments:
  """Which arguments a function takes.

  Args:
    function: [...] integer function index; a numpy or JAX array, or an int.

  Returns:
    Arguments of [...] bool.
  """
  rows = jnp.asarray(ARGUMENT_TABLE)[function]
  return Arguments(*(rows[..., i] for i in range(len(Arguments._fields))))


@functools.lru_cache(maxsize=1)
def digest() -> str:
  """SHA-256 of the data files: two programs agree on indices exactly if it is the same."""
  digest_ = hashlib.sha256()
  for path in sorted(_DATA.glob("*.csv")):
    digest_.update(path.name.encode() + b"\0" + path.read_bytes())
  return digest_.hexdigest()
