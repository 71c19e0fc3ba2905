"""Files of played games, as `save_replay` returns them.

A file is gzip of JSON lines: the settings and the result, then each participant's actions with
their game loop. It is no replay of StarCraft II; `replay_info` reads it back.
"""

import base64
import gzip
import io
import json
import pathlib
import zlib
from typing import Any

from starleague.environments.sc2.protocol import sc_pb

SCHEMA = 1
_MOST_BYTES = 1 << 24  # of the settings, unpacked
Entry = tuple[int, int, bytes]  # game loop, player, serialised RequestAction


def encode(settings: dict[str, Any], entries: list[Entry]) -> bytes:
  """Returns the bytes of a game's file.

  Args:
    settings: JSON values; `players` are serialised PlayerInfo and `results` numbers of Result.
    entries: the participants' actions in order.
  """
  out = io.BytesIO()
  with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as file:
    file.write(json.dumps({"schema": SCHEMA, **settings}).encode() + b"\n")
    for loop, player, action in entries:
      file.write(json.dumps([loop, player, base64.b64encode(action).decode()]).encode() + b"\n")
  return out.getvalue()


def settings_of(data: bytes) -> dict[str, Any]:
  """Returns the settings of a game's file.

  Raises:
    ValueError: the bytes are no such file.
  """
  try:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
      settings = json.loads(file.readline(_MOST_BYTES))
  except (OSError, EOFError, zlib.error, RecursionError) as error:
    raise ValueError(f"no file of a game: {error}") from error
  if not isinstance(settings, dict) or settings.get("schema") != SCHEMA:
    raise ValueError(f"schema: expected {SCHEMA}")
  return settings


def replay_info(request: sc_pb.RequestReplayInfo) -> sc_pb.ResponseReplayInfo:
  """Answers `replay_info`."""
  error, data = sc_pb.ResponseReplayInfo, request.replay_data
  if request.WhichOneof("replay") is None:
    return error(error=error.MissingReplay)
  if request.replay_path:
    try:
      with pathlib.Path(request.replay_path).open("rb") as file:
        data = file.read(_MOST_BYTES)
    except (OSError, ValueError) as problem:
      return error(error=error.InvalidReplayPath, error_details=str(problem))
  try:
    return _info(settings_of(data))
  except (ValueError, KeyError, TypeError) as problem:
    return error(error=error.ParsingError, error_details=str(problem))


def _info(settings: dict[str, Any]) -> sc_pb.ResponseReplayInfo:
  players = []
  for i, text in enumerate(settings["players"]):
    extra = sc_pb.PlayerInfoExtra(
      player_info=sc_pb.PlayerInfo.FromString(base64.b64decode(text)))
    if i < len(settings["results"]):
      extra.player_result.player_id = i + 1
      extra.player_result.result = settings["results"][i]
    players.append(extra)
  loops = int(settings["loops"])
  return sc_pb.ResponseReplayInfo(
    map_name=str(settings["map"]), local_map_path=str(settings["map"]), player_info=players,
    game_duration_loops=loops, game_duration_seconds=loops / 22.4,
    game_version=str(settings["version"]))
