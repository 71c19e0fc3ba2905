"""Map files of the server: each represents a map of a tier of Skirmish.

A map file is JSON, `{"skirmish": {...}}` with the fields of a Battlefield. Clients send the name,
and some of them the bytes. Names that pysc2 and python-sc2 know, such as
`Melee/Simple64.SC2Map`, are map files too, so that unmodified clients find their maps.
"""

import dataclasses
import functools
import json
import pathlib
import re
import zlib

from starleague.common.errors import UserError
from starleague.environments.skirmish.games.dm_environment import map_names
from starleague.environments.skirmish.rules.tables import tiers

SUFFIX = ".SC2Map"
OWN_FOLDER = "Skirmish"
MOST_MARINES = 12
_MOST_BYTES = 4096  # of a map file of this server
_FIELDS = {"tier": str, "map": str, "realistic": bool, "marines": int}


class MapError(UserError, ValueError):
  """An invalid map file."""


@dataclasses.dataclass(frozen=True)
class Battlefield:
  """A map of Skirmish, as map files state it."""

  tier: str = "large"
  map: str = "open"
  # For clients that expect the real game: larvae are units, and resources are shown as far from
  # their base as in the real game. Otherwise the hatchery represents its larvae.
  realistic: bool = True
  marines: int = 0  # extra units of a participant without an opponent

  def __post_init__(self) -> None:
    if self.tier not in tiers.TIERS:
      raise MapError(f"map: tier {self.tier!r}: expected one of {', '.join(tiers.TIERS)}")
    if self.map not in map_names(self.tier):
      raise MapError(f"map: {self.map!r}: expected one of {', '.join(map_names(self.tier))} "
                     f"in tier {self.tier}")
    if not 0 <= self.marines <= MOST_MARINES:
      raise MapError(f"map: marines {self.marines}: expected 0 to {MOST_MARINES}")

  @property
  def map_index(self) -> int:
    """Index of the map in its tier."""
    return map_names(self.tier).index(self.map)


def encode(battlefield: Battlefield) -> bytes:
  """Returns the bytes of a map file."""
  return (json.dumps({"skirmish": dataclasses.asdict(battlefield)}) + "\n").encode()


def is_own(data: bytes) -> bool:
  """Returns whether bytes are a map file of this server: a JSON object with its key.

  Its values may be wrong; see `decode`.
  """
  if len(data) > _MOST_BYTES:
    return False
  try:
    values = json.loads(data)
  except (ValueError, RecursionError):
    return False
  return isinstance(values, dict) and "skirmish" in values


def decode(data: bytes) -> Battlefield:
  """Reads the bytes of a map file.

  Raises:
    MapError: the bytes are no map of this server.
  """
  try:
    if len(data) > _MOST_BYTES:
      raise ValueError(f"{len(data)} bytes")
    values = json.loads(data)["skirmish"]
    if set(values) != set(_FIELDS) or any(
        type(values[name]) is not kind for name, kind in _FIELDS.items()):
      raise ValueError(f"fields {values}")
  except (ValueError, KeyError, TypeError, RecursionError) as error:
    raise MapError(f'map: expected JSON {{"skirmish": {{{", ".join(_FIELDS)}}}}}, '
                   f"found {data[:40]!r}: write it with the layout command") from error
  return Battlefield(**values)


def stand_in(name: str) -> Battlefield:
  """Returns the battlefield of a map's name: a fixed one, or one of `large` by the name.

  Folder, spelling and edition make no difference: "(2)CatalystLE", "Catalyst LE" and
  "Ladder2018Season2/CatalystLE.SC2Map" are one map.
  """
  key, maps = _key(name), map_names("large")
  drawn = Battlefield("large", maps[zlib.crc32(f"{key}le".encode()) % len(maps)])
  return _fixed().get(key, drawn)


def _key(name: str) -> str:
  """Returns a map's letters and digits, without folder, number of players and edition."""
  stem = re.sub(r"\.sc2map$", "", name.replace("\\", "/").rpartition("/")[2], flags=re.IGNORECASE)
  stem = re.sub(r"^\(\d+\)|[\W_]+", "", stem)
  return re.sub(r"(?<=.)([Ll][Ee]|TE)$", "", stem).casefold()


@functools.cache
def _fixed() -> dict[str, Battlefield]:
  return {_key(path): battlefield for path, battlefield in stand_ins().items()}


def own_maps() -> dict[str, Battlefield]:
  """Returns the server's own maps by their path below `Maps/`: each tier's, not realistic."""
  return {
    f"{OWN_FOLDER}/{own_name(tier, name)}{SUFFIX}": Battlefield(tier, name, realistic=False)
    for tier in tiers.TIERS for name in map_names(tier)}


def own_name(tier: str, name: str) -> str:
  """Returns the name of an own map, such as "SkirmishDefaultRamps"."""
  return f"Skirmish{tier.capitalize()}{name.capitalize()}"


def melee_maps() -> dict[str, Battlefield]:
  """Returns the maps of StarCraft II's `Melee` folder by their path below `Maps/`."""
  chosen = {
    "Flat32": Battlefield("mini"), "Flat48": Battlefield("default"), "Flat64": Battlefield(),
    "Flat96": Battlefield(), "Flat128": Battlefield(), "Empty128": Battlefield(),
    "Simple64": Battlefield("large", "ramps"),
    "Simple96": Battlefield("large", "ramps"), "Simple128": Battlefield("large", "river")}
  return {f"Melee/{name}{SUFFIX}": battlefield for name, battlefield in chosen.items()}


def mini_game_maps() -> dict[str, Battlefield]:
  """Returns stand-ins for mini games and arcade maps: one participant with Marines."""
  mini_games = ("BuildMarines", "CollectMineralShards", "CollectMineralsAndGas", "DefeatRoaches",
                "DefeatZerglingsAndBanelings", "FindAndDefeatZerglings", "MoveToBeacon")
  # python-sc2 looks for bases within 15 of the resources: a smaller map has no room for that.
  arcade = ("Marine Split Challenge", "Marine Split Challenge-LOTV")
  chosen = (dict.fromkeys(mini_games, Battlefield("mini", marines=8))
            | dict.fromkeys(arcade, Battlefield("large", marines=8)))
  return {f"mini_games/{name}{SUFFIX}": battlefield for name, battlefield in chosen.items()}


def stand_ins() -> dict[str, Battlefield]:
  """Returns the maps with fixed battlefields by their path below `Maps/`."""
  return {**own_maps(), **melee_maps(), **mini_game_maps()}


def paths(folder: pathlib.Path | None) -> list[str]:
  """Returns the paths of the maps, in order.

  Args:
    folder: the installation's `Maps`; None: there is none, and the maps are the stand-ins.
  """
  if folder is None:
    return sorted(stand_ins())
  return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(f"*{SUFFIX}"))


def battle_net_names() -> list[str]:
  """Returns the Battle.net names of pysc2's ladder maps, in order; others are accepted, too."""
  from pysc2 import maps as pysc2_maps

  return sorted(kind.battle_net for kind in pysc2_maps.get_maps().values() if kind.battle_net)


def find(name: str, data: bytes, folder: pathlib.Path | None) -> Battlefield:
  """Returns the battlefield that a client asks for.

  Args:
    name: the path that the client sends: absolute, or relative to `folder`.
    data: the map file's bytes if the client sends them.
    folder: the installation's `Maps`; None: there is no installation, and every name is a map.

  Raises:
    FileNotFoundError: the client sends no bytes, and there is no file of that name.
    MapError: there is neither a name nor bytes, or a map file of this server has a wrong value.
  """
  if not data and folder is not None:
    try:
      data = _read(name, folder)
    except OSError as error:
      raise FileNotFoundError(f"map {name!r}: no such file in {folder}") from error
  if not name and not data:
    raise MapError("map: expected a name or the bytes of a map, found neither")
  return decode(data) if is_own(data) else stand_in(name)


def _read(name: str, folder: pathlib.Path) -> bytes:
  """Reads a map's file; its suffix may be left out. Raises OSError if there is none."""
  path = folder / name  # an absolute name replaces the folder
  if path.name and not path.is_file() and not path.suffix:
    path = path.with_suffix(SUFFIX)
  if not name or not path.is_file():
    raise FileNotFoundError(name)
  return beginning(path)


def beginning(path: pathlib.Path) -> bytes:
  """Returns the bytes of a file, at most one more than those of a map file of this server."""
  with path.open("rb") as file:
    return file.read(_MOST_BYTES + 1)
