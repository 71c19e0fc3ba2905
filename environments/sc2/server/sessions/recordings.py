"""Files of played games, as `save_replay` returns them.

A file is an MPQ archive, as a .SC2Replay of the game. Its file `mpq.RECORDING` is gzip of JSON
lines: the settings and the result, then the participants' requests with their game loops.
`replay_info` reads it, `playback` plays it. Other tools read the files of `replay_files`.
"""

import base64
import gzip
import io
import json
import pathlib
import stat
import zlib
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from starleague.common import mpq
from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.game import engine, exported, world
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.version import BUILD, DATA_VERSION
from starleague.environments.sc2.server.sessions import replay_files
from starleague.environments.skirmish.games import exact

SCHEMA = 4
_MOST_BYTES = 1 << 24  # of a line, unpacked
_MOST_ALL = 1 << 28  # of all requests, unpacked
# Two players with a request at each game loop reach it after six hours. Short lines, which an
# archive packs to almost nothing, would become gigabytes of objects otherwise.
_MOST_ENTRIES = 1 << 20
Entry = tuple[int, int, bytes]  # game loop, player, serialised Request: action or debug


class Recording(NamedTuple):
  """A recorded game: settings and requests."""

  settings: dict[str, Any]
  entries: list[Entry]


def rules_of(battlefield: Battlefield) -> dict[str, str | int]:
  """Returns the settings of a recording that identify what plays its game again.

  A border shifts the world coordinates of requests. Rules, scripted players and the meaning of
  requests are code, which the digest of the sources covers. The first call of a process takes
  seconds at `large`: the digest of the rules covers all flow fields.
  """
  rules = engine.rules_of(battlefield.tier)
  ground = world.make_world(rules, battlefield.map_index, battlefield.realistic)
  return {"rules": exact.rules_digest(battlefield.tier), "border": ground.border,
          "sources": exported.sources_digest()}


def encode(settings: dict[str, Any], entries: list[Entry], map_size: int) -> bytes:
  """Returns the bytes of a game's file.

  Args:
    settings: see `record`.
    entries: see `record`.
    map_size: side of the map, in cells.
  """
  game = replay_files.PlayedGame(
    settings["map"], map_size, settings["loops"], settings["seed"], _players(settings),
    settings["results"])
  return mpq.make_archive({mpq.RECORDING: record(settings, entries),
                           **replay_files.make_files(game)}, replay_files.header(game))


def record(settings: dict[str, Any], entries: list[Entry]) -> bytes:
  """Returns the bytes of a recording, a part of a game's file.

  Args:
    settings: JSON values; `players` are serialised PlayerInfo and `results` numbers of Result.
    entries: the participants' requests in order.
  """
  out = io.BytesIO()
  with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as file:
    file.write(json.dumps({"schema": SCHEMA, **settings}).encode() + b"\n")
    for loop, player, request in entries:
      line = json.dumps([loop, player, base64.b64encode(request).decode()])
      file.write(line.encode() + b"\n")
  return out.getvalue()


def decode(data: bytes, entries: bool = True) -> Recording:
  """Reads a game's file; with `entries` False, the settings alone.

  Raises:
    ValueError: the bytes are no such file, one of another version, or too large.
  """
  try:
    recorded = mpq.Archive(data).read(mpq.RECORDING)
    if not recorded:
      raise ValueError(f"an archive without {mpq.RECORDING}: no game of Skirmish")
    with gzip.GzipFile(fileobj=io.BytesIO(recorded)) as file:
      settings = json.loads(file.readline(_MOST_BYTES))
      schema = settings.get("schema") if isinstance(settings, dict) else None
      if schema != SCHEMA:
        raise ValueError(f"schema: expected {SCHEMA}, found {schema!r:.20}; record the game again")
      return Recording(settings, _entries(file) if entries else [])
  except mpq.ArchiveError as error:
    # A named file may be any file of this machine: its first bytes are not the client's to know.
    found = ("expected an MPQ archive with user data" if error.reason == mpq.NO_ARCHIVE
             else str(error))
    raise ValueError(f"no file of a game: {found}") from error
  except (OSError, EOFError, TypeError, zlib.error, RecursionError) as error:
    raise ValueError(f"no file of a game: {error}") from error


def _entries(file: gzip.GzipFile) -> list[Entry]:
  """Reads the lines of requests, within the limits."""
  found, size = list[Entry](), 0
  while line := file.readline(_MOST_BYTES + 1):
    size += len(line)
    if len(line) > _MOST_BYTES or size > _MOST_ALL or len(found) == _MOST_ENTRIES:
      raise ValueError(f"requests: expected at most {_MOST_ENTRIES}, a line of at most "
                       f"{_MOST_BYTES} bytes and {_MOST_ALL} bytes in all, found more")
    loop, player, text = json.loads(line)
    found.append((int(loop), int(player), base64.b64decode(text)))
  return found


class PathError(ValueError):
  """A replay's file cannot be read."""


def bytes_of(request: sc_pb.RequestReplayInfo | sc_pb.RequestStartReplay) -> bytes:
  """Returns the bytes of the replay that a request carries or names.

  As with the game, a relative name may be that of a file in `~/Documents/StarCraft II/Replays`:
  python-sc2 sends such names.

  Raises:
    PathError: its file cannot be read, or is no regular file.
  """
  if not request.replay_path:
    return request.replay_data
  try:
    path = pathlib.Path(request.replay_path)
    kept = pathlib.Path.home().joinpath("Documents", "StarCraft II", "Replays", path)
    found = path if path.is_file() else kept
    if not stat.S_ISREG(found.stat().st_mode):  # a pipe would block the server
      raise OSError(f"{found}: expected a regular file")
    with found.open("rb") as file:
      return file.read(_MOST_BYTES)
  except (OSError, RuntimeError, ValueError) as problem:  # RuntimeError: there is no home
    raise PathError(str(problem)) from problem


def replay_info(request: sc_pb.RequestReplayInfo) -> sc_pb.ResponseReplayInfo:
  """Answers `replay_info`."""
  error = sc_pb.ResponseReplayInfo
  if request.WhichOneof("replay") is None:
    return error(error=error.MissingReplay)
  try:
    return _info(decode(bytes_of(request), entries=False).settings)
  except PathError as problem:
    return error(error=error.InvalidReplayPath, error_details=str(problem))
  except (ValueError, KeyError, TypeError, OverflowError, DecodeError) as problem:
    return error(error=error.ParsingError, error_details=str(problem))


def _players(settings: dict[str, Any]) -> list[sc_pb.PlayerInfo]:
  return [sc_pb.PlayerInfo.FromString(base64.b64decode(text)) for text in settings["players"]]


def _info(settings: dict[str, Any]) -> sc_pb.ResponseReplayInfo:
  players = []
  for i, info in enumerate(_players(settings)):
    extra = sc_pb.PlayerInfoExtra(player_info=info)
    if i < len(settings["results"]):
      extra.player_result.player_id = i + 1
      extra.player_result.result = settings["results"][i]
    players.append(extra)
  loops = int(settings["loops"])
  return sc_pb.ResponseReplayInfo(
    map_name=str(settings["map"]), local_map_path=str(settings["map"]), player_info=players,
    game_duration_loops=loops, game_duration_seconds=loops / 22.4,
    game_version=str(settings["version"]), data_version=DATA_VERSION, data_build=BUILD,
    base_build=BUILD)
