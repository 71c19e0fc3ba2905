"""The files of a replay, decoded by s2protocol's tables of the game's builds."""

import functools
import importlib.util
import pathlib
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

from starleague.data.replays.readers import BitReader, ProtocolError, Value, VersionedReader

FIRST_LOTV = 34784  # the first build of Legacy of the Void
LOOPS = range(2**31)  # game loops that events and games may have
_ATTEMPTS = 6  # builds tried for a replay
# The last field of the lobby's description that is read: all builds of a generation agree up to it.
_LAST_LOBBY_FIELD = "m_mapFileName"


class Event(NamedTuple):
  """An event of a stream."""

  loop: int  # game loop
  user: int  # index of the user who caused it; -1 in streams without users
  name: str  # without prefix and suffix: "UnitBorn", "Cmd"
  fields: dict[str, Value]


@functools.cache
def builds() -> tuple[int, ...]:
  """Returns the builds that have tables, in ascending order."""
  return tuple(sorted(int(path.stem.removeprefix("protocol"))
                      for path in _folder().glob("protocol[0-9]*.py")))


def _folder() -> pathlib.Path:
  """Returns s2protocol's folder of tables. Its own loader needs `imp`, which Python 3.12 removed.

  Raises:
    ModuleNotFoundError: s2protocol is not installed.
  """
  found = importlib.util.find_spec("s2protocol")
  if found is None or found.origin is None:
    raise ModuleNotFoundError("StarCraft II replays: expected the package s2protocol, found none; "
                              "pip install 'starleague[replays]'", name="s2protocol")
  return pathlib.Path(found.origin).parent / "versions"


def nearest_builds(build: int) -> list[int]:
  """Returns the builds to decode a build with: itself if it has tables, then its neighbours.

  The neighbours are of the same generation of the game: Legacy of the Void changed the protocol.
  """
  same = [other for other in builds() if (other < FIRST_LOTV) == (build < FIRST_LOTV)]
  return sorted(same, key=lambda other: abs(other - build))[:_ATTEMPTS]


@functools.lru_cache(maxsize=8)
def tables(build: int) -> ModuleType:
  """Returns s2protocol's module of a build that has one."""
  name = f"protocol{build:05d}"
  spec = importlib.util.spec_from_file_location(name, _folder() / f"{name}.py")
  assert spec is not None and spec.loader is not None  # the suffix is that of a source file
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def header(data: bytes) -> dict[str, Value]:
  """Decodes the header, whose layout no build has changed.

  Raises:
    ProtocolError: the bytes are no header.
  """
  module = tables(builds()[-1])
  return VersionedReader(data, module.typeinfos).of(module.replay_header_typeid)()


def details(module: ModuleType, data: bytes) -> dict[str, Value]:
  """Decodes replay.details: players as the result screen lists them, map and time.

  Raises:
    ProtocolError: the bytes are no details of this build.
  """
  return VersionedReader(data, module.typeinfos).of(module.game_details_typeid)()


class Lobby(NamedTuple):
  """The beginning of replay.initData."""

  users: list[dict[str, Value]]  # by user index
  description: dict[str, Value]  # of the game, up to `_LAST_LOBBY_FIELD`


def lobby(module: ModuleType, data: bytes) -> Lobby:
  """Decodes the users and the description of the game from replay.initData.

  The slots that follow are not read: their layout changes often, and half of the builds have no
  tables.

  Raises:
    ProtocolError: the bytes are no lobby of this build.
  """
  reader = BitReader(data, module.typeinfos)

  def fields(type_id: int) -> dict[str, int]:
    return {field[0]: field[1] for field in module.typeinfos[type_id][1][0]}

  state = fields(fields(module.replay_initdata_typeid)["m_syncLobbyState"])
  users = reader.of(state["m_userInitialData"])()
  description: dict[str, Value] = {}
  for name, type_id in fields(state["m_gameDescription"]).items():
    description[name] = reader.of(type_id)()
    if name == _LAST_LOBBY_FIELD:
      break
  return Lobby(users, description)


def tracker_events(module: ModuleType, data: bytes) -> Iterator[Event]:
  """Yields the tracker events: births, deaths, upgrades.

  Raises:
    ProtocolError: the bytes are no tracker events of this build.
  """
  reader = VersionedReader(data, module.typeinfos)
  return _events(reader, module, module.tracker_eventid_typeid, module.tracker_event_types, False)


def game_events(module: ModuleType, data: bytes) -> Iterator[Event]:
  """Yields the game events: the inputs of the users.

  Raises:
    ProtocolError: the bytes are no game events of this build.
  """
  reader = BitReader(data, module.typeinfos)
  return _events(reader, module, module.game_eventid_typeid, module.game_event_types, True)


def _events(reader: BitReader | VersionedReader, module: ModuleType, id_type: int,
            event_types: dict[int, tuple[int, str]], users: bool) -> Iterator[Event]:
  read_step, read_id = reader.of(module.svaruint32_typeid), reader.of(id_type)
  read_user = reader.of(module.replay_userid_typeid)
  known = {event: (reader.of(type_id), name.rpartition(".S")[2].removesuffix("Event"))
           for event, (type_id, name) in event_types.items()}
  loop, user = 0, -1
  while not reader.done():
    loop += next(iter(read_step().values()), 0)
    if loop not in LOOPS:
      raise ProtocolError(f"an event at game loop {loop}")
    if users:
      user = next(iter(read_user().values()))
    found = known.get(event := read_id())
    if found is None:
      raise ProtocolError(f"unknown event {event} at game loop {loop}")
    read, name = found
    yield Event(loop, user, name, read())
    reader.align()


def text(value: Value, limit: int = 200) -> str:
  """Returns a blob as text, limited in length; "" for no blob.

  Null characters at the end are left out: NumPy's arrays of text, as of maps in z.npz, keep none.
  """
  if not isinstance(value, bytes):
    return ""
  return value.decode("utf-8", errors="replace")[:limit].rstrip("\0")

