"""The files of a .SC2Replay that other tools read: header, details, lobby and metadata.

They have the layout of the stated version of the game. A recording has no time of day, so that
equal games have equal files.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from starleague.environments.sc2.protocol import common_pb, sc_pb
from starleague.environments.sc2.server.game.version import BUILD, DATA_VERSION, VERSION
from starleague.environments.sc2.server.sessions.encodings import (
  BitWriter,
  array,
  blob,
  boolean,
  four,
  integer,
  optional,
  struct,
)

_LOOPS_PER_SECOND = 16  # of the game's clock in metadata, which counts seconds at normal speed
_MAP_SUFFIX = re.compile(r"\.sc2map$", re.IGNORECASE)
_RACES: dict[int, str] = {
  common_pb.Terran: "Terran", common_pb.Zerg: "Zerg", common_pb.Protoss: "Protoss"}
_SHORT_RACES: dict[int, str] = {
  common_pb.Terran: "Terr", common_pb.Zerg: "Zerg", common_pb.Protoss: "Prot",
  common_pb.Random: "Rand"}
_RESULTS: dict[int, tuple[int, str]] = {
  sc_pb.Victory: (1, "Win"), sc_pb.Defeat: (2, "Loss"), sc_pb.Tie: (3, "Tie")}
_UNDECIDED = (0, "Undecided")
_COLOURS = ((255, 180, 20, 30), (255, 0, 66, 255))  # alpha, red, green, blue
_HUMAN, _COMPUTER = 2, 3
_FASTER = 4  # game speed


class PlayedGame(NamedTuple):
  """A game as its files state it."""

  map_name: str  # as the client gave it
  map_size: int
  loops: int
  seed: int
  players: Sequence[sc_pb.PlayerInfo]
  results: Sequence[int]  # of Result, by player; none of an undecided game

  @property
  def title(self) -> str:
    """The map's name without folder and suffix."""
    return _MAP_SUFFIX.sub("", self.map_name.replace("\\", "/").rpartition("/")[2])

  def result(self, player: int) -> tuple[int, str]:
    """Number and name of a player's result."""
    return _RESULTS.get(self.results[player], _UNDECIDED) if self.results else _UNDECIDED


def make_files(game: PlayedGame) -> dict[str, bytes]:
  """Returns the files of a game by their names."""
  return {"replay.details": _details(game), "replay.initData": _lobby(game),
          "replay.gamemetadata.json": _metadata(game)}


def header(game: PlayedGame) -> bytes:
  """Returns the content of the archive's user data: version and length."""
  parts = [1, *map(int, VERSION.split(".")), BUILD]
  return struct({
    0: blob(b"StarCraft II replay\x1b11"), 1: struct(dict(enumerate(map(integer, parts)))),
    2: integer(2), 3: integer(game.loops), 4: boolean(True),
    5: struct({1: blob(bytes.fromhex(DATA_VERSION))}), 6: integer(BUILD),
    7: struct({1: blob(bytes(16))}), 8: boolean(False)})


def player_name(info: sc_pb.PlayerInfo) -> str:
  """Returns a player's name; unnamed players have that of their seat."""
  if info.player_name:
    return info.player_name
  if info.type == sc_pb.Computer:
    return f"A.I. {info.player_id} ({sc_pb.Difficulty.Name(info.difficulty)})"
  return f"Player {info.player_id}"


def _name(info: sc_pb.PlayerInfo, most: int = 255) -> bytes:
  """UTF-8 of a player's name, of so many bytes at most."""
  return player_name(info).encode()[:most].decode(errors="ignore").encode()


def _details(game: PlayedGame) -> bytes:
  players = [struct({
    0: blob(_name(info)),
    1: struct({0: integer(0), 1: four(bytes(4)), 2: integer(0), 4: integer(0)}),
    2: blob(_RACES.get(info.race_actual, "").encode()),
    3: struct(dict(enumerate(map(integer, _COLOURS[seat])))),
    4: integer(_COMPUTER if info.type == sc_pb.Computer else _HUMAN),
    5: integer(seat), 6: integer(100), 7: integer(0), 8: integer(game.result(seat)[0]),
    9: optional(integer(seat)), 10: blob(b"")}) for seat, info in enumerate(game.players)]
  return struct({
    0: optional(array(players)), 1: blob(game.title.encode()[:1023]), 2: blob(b""),
    3: struct({0: blob(b"Minimap.tga")}), 4: boolean(False), 5: integer(0), 6: integer(0),
    16: optional(None), 17: boolean(False), 7: blob(b""), 8: blob(b""), 15: integer(0),
    9: blob(b""), 10: optional(array([])), 11: boolean(False), 12: integer(_FASTER),
    13: integer(0), 14: optional(None)})


def _metadata(game: PlayedGame) -> bytes:
  return json.dumps({
    "Title": game.title, "MapName": game.map_name, "GameVersion": VERSION, "DataBuild": str(BUILD),
    "DataVersion": DATA_VERSION, "BaseBuild": f"Base{BUILD}",
    "Duration": game.loops // _LOOPS_PER_SECOND, "Players": [{
      "PlayerID": info.player_id, "Result": game.result(seat)[1],
      "SelectedRace": _SHORT_RACES.get(info.race_requested, ""),
      "AssignedRace": _SHORT_RACES.get(info.race_actual, "")}
      for seat, info in enumerate(game.players)]}, indent=2).encode()


def _lobby(game: PlayedGame) -> bytes:
  """The lobby: users, the description of the game, slots."""
  out, users = BitWriter(), [info for info in game.players if info.type != sc_pb.Computer]
  out.bits(5, len(users))
  for info in users:
    out.blob(8, _name(info))
    for count in (8, 0, 8, 32):  # clan, its logo, league, levels
      out.optional(count)
    out.bits(32)  # seed
    out.optional(8)  # race
    out.optional(8)  # team
    out.bits(4 + 32 + 2)  # flags, test type, observer
    for count in (9, 9, 9, 7):  # hero, skin, mount, handle
      out.blob(count)
    out.optional(32)  # rating
  _write_description(out, game, len(users))
  _write_slots(out, game, users)
  return out.data()


def _write_description(out: BitWriter, game: PlayedGame, users: int) -> None:
  out.bits(32, game.seed)
  out.blob(10, b"Dflt")
  out.bits(11)  # options
  for count in (2, 2, 2, 64, 1):  # fog, observers, difficulty, debug flags, coach
    out.bits(count)
  for count, value in ((3, _FASTER), (3, 0), (5, users), (5, 0), (5, len(game.players)),
                       (4, 1), (6, 1), (8, 1), (8, 0),  # teams and races count from 1
                       (8, game.map_size), (8, game.map_size), (32, 0)):
    out.bits(count, value)
  out.blob(11)  # file of the map
  out.blob(8)  # its author
  out.bits(32)  # checksum of mods
  out.bits(5)  # descriptions of slots
  out.bits(6 + 8)  # difficulty and build of computers
  out.bits(6)  # cache handles
  out.bits(6)  # flags


def _write_slots(out: BitWriter, game: PlayedGame, users: list[sc_pb.PlayerInfo]) -> None:
  out.bits(3)  # phase
  out.bits(5, len(users))
  out.bits(5)  # observers
  out.bits(5, len(game.players))
  for seat, info in enumerate(game.players):
    computer = info.type == sc_pb.Computer
    out.bits(8, _COMPUTER if computer else _HUMAN)
    out.optional(4, None if computer else users.index(info))
    out.bits(4, seat)
    out.optional(5, seat + 1)  # colour
    out.optional(8)  # race
    out.bits(6, max(int(info.difficulty) - 1, 0))
    out.bits(8, max(int(info.ai_build) - 1, 0))
    out.bits(7, 100)  # handicap
    out.bits(2 + 32)  # observer, logo
    for _ in range(3):  # hero, skin, mount
      out.blob(9)
    out.bits(4)  # artifacts
    out.optional(8, seat)
    out.bits(17)  # rewards
    out.blob(7)  # handle
    out.bits(13)  # licences
    out.optional(4)  # leader
    out.blob(9)  # commander
    out.bits(32 + 1)  # its level, penalty
    out.optional(4)  # leader
    out.bits(32 + 3 + 32 + 17)  # mastery, talents, trophy, rewards
  out.bits(32, game.seed)
  out.optional(4, 0 if users else None)  # host
  out.bits(1, len(users) == 1)
  out.bits(8 + 32 + 6 + 8)  # tag of the map, duration, difficulty and build of computers
