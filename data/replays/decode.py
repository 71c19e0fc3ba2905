"""A replay, decoded to rows: one function from the bytes of a file."""

import datetime
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.agent.build_order import IN_BUILD_ORDER
from starleague.agent.coordinates import to_grid
from starleague.common import mpq
from starleague.data.replays import commands, names, participants, protocol, tracker
from starleague.data.replays.participants import Participant
from starleague.data.replays.readers import ProtocolError, Value
from starleague.data.replays.records import BuildRow, CommandRow, Decoded, GameRow, PlayerRow
from starleague.data.replays.refusals import (
  DAMAGED,
  NOT_A_REPLAY,
  SKIRMISH,
  TOO_LARGE,
  UNSUPPORTED,
  Refusal,
)

UPGRADED = "upgraded"  # kind of a completed upgrade, beside those of `tracker`
_KEY_LOOPS = 2000  # the beginning of a game, which distinguishes it
_MAP_SIZES = range(16, 257)
_EPOCH = datetime.datetime(1601, 1, 1)  # of m_timeUTC, which counts 100 ns
LOOPS_PER_MINUTE = 60 * types.GAME_LOOPS_PER_SECOND
_EFFECTS = frozenset(v.EFFECT_FUNCTIONS.tolist())
# What damaged bytes raise where they decode to values of other types.
_MALFORMED = (ProtocolError, KeyError, TypeError, ValueError, IndexError, AttributeError,
              OverflowError, RecursionError, StopIteration)


_REASONS = {mpq.NO_ARCHIVE: NOT_A_REPLAY, mpq.DAMAGED: DAMAGED, mpq.TOO_LARGE: TOO_LARGE}


class _Files(NamedTuple):
  """The decoded files of an archive."""

  build: int  # whose protocol decoded them
  details: dict[str, Value]
  lobby: protocol.Lobby
  tracked: tracker.Tracked
  events: list[protocol.Event]  # game events
  unread: str  # why there are none


_Cell = tuple[int | None, int | None]


class _Map(NamedTuple):
  width: int
  height: int

  def cells(self, places: Sequence[tuple[float | None, float | None]]) -> list[_Cell]:
    """Returns columns and rows of places on the 256 grid: see `coordinates.to_grid`."""
    x, y = (np.array([place[i] or 0.0 for place in places]) for i in (0, 1))
    columns, rows = to_grid(x, y, self.width, self.height)
    return [(None, None) if place[0] is None else (int(column), int(row))
            for place, column, row in zip(places, columns, rows, strict=True)]


def decode(data: bytes, file: str) -> Decoded:
  """Decodes a replay.

  Args:
    data: the bytes of a .SC2Replay file.
    file: its name, for the rows.

  Raises:
    Refusal: the file is no replay of a melee game of two players, or cannot be decoded; says why.
  """
  try:
    return _decode(mpq.Archive(data), data, file)
  except mpq.ArchiveError as error:
    raise Refusal(_REASONS[error.reason], str(error)) from error


def _decode(archive: mpq.Archive, data: bytes, file: str) -> Decoded:
  try:
    header = protocol.header(archive.header)
    version, loops = header["m_version"], header["m_elapsedGameLoops"]
    build = version["m_baseBuild"]
    number = ".".join(str(version[f"m_{part}"]) for part in ("major", "minor", "revision", "build"))
    if loops not in protocol.LOOPS:
      raise ProtocolError(f"a game of {loops} game loops")
  except _MALFORMED as error:
    raise Refusal(DAMAGED, f"the header cannot be decoded: {error}") from error
  if archive.read(mpq.RECORDING) is not None:
    raise Refusal(SKIRMISH, _skirmish_game(archive, build, loops))
  files = _decode_files(archive, build, number)
  try:
    players = participants.read(files.details, files.lobby, files.tracked)
    return _rows(hashlib.sha256(data).hexdigest(), file, number, build, loops, files, players)
  except _MALFORMED as error:
    raise Refusal(DAMAGED, f"the game cannot be read: {type(error).__name__} {error}") from error


def _decode_files(archive: mpq.Archive, build: int, number: str) -> _Files:
  """Decodes the files by the protocol of the build, or of the nearest that fits.

  Commands are given up if only their stream is damaged: the tracker's events count more.
  """
  details = archive.read("replay.details") or archive.read("replay.details.backup")
  lobby = archive.read("replay.initData") or archive.read("replay.initData.backup")
  events = archive.read("replay.game.events") or b""
  if not details or not lobby:
    raise Refusal(DAMAGED, "the file lacks replay.details or replay.initData")
  tracks = participants.require_tracker(archive.read("replay.tracker.events"))
  first: Exception | None = None
  partial: _Files | None = None
  for other in protocol.nearest_builds(build):
    module = protocol.tables(other)
    try:
      found = _Files(other, protocol.details(module, details), protocol.lobby(module, lobby),
                     tracker.read(protocol.tracker_events(module, tracks)), [], "")
      _check_map(found.lobby)
    except _MALFORMED as error:
      first = first or error
      continue
    try:
      return found._replace(events=list(protocol.game_events(module, events)))
    except _MALFORMED as error:
      partial = partial or found._replace(unread=f"game events: {error}")
  if partial is not None:
    return partial
  exact = build in protocol.builds()
  raise Refusal(DAMAGED if exact else UNSUPPORTED,
                f"version {number} (build {build}) cannot be decoded: {first}")


def _skirmish_game(archive: mpq.Archive, build: int, loops: int) -> str:
  """Returns the map, the players and the length of a game of Skirmish."""
  try:
    details = protocol.details(protocol.tables(protocol.nearest_builds(build)[0]),
                               archive.read("replay.details") or b"")
    players = [f"{protocol.text(player['m_name'])} ({protocol.text(player['m_race'])})"
               for player in details["m_playerList"]]
    return f"{protocol.text(details['m_title'])}: {' against '.join(players)}, {loops} game loops"
  except _MALFORMED as error:
    raise Refusal(DAMAGED, f"replay.details cannot be decoded: {error}") from error


def _check_map(lobby: protocol.Lobby) -> None:
  size = lobby.description["m_mapSizeX"], lobby.description["m_mapSizeY"]
  if not all(side in _MAP_SIZES for side in size):
    raise ProtocolError(f"a map of {size[0]} x {size[1]}")


def _rows(digest: str, file: str, number: str, build: int, loops: int, files: _Files,
          players: Sequence[Participant]) -> Decoded:
  users = {player.user: player.name for player in players if player.user >= 0}
  try:
    inputs = commands.read(files.events, users)
    acted = commands.action_loops(files.events, list(users))
  except _MALFORMED as error:
    files = files._replace(events=[], unread=f"game events: {error}")
    inputs = commands.read((), users)
    acted = dict.fromkeys(users, [])
  players = participants.infer_results(players, {user: inputs[user].left for user in users})
  streams = [inputs[player.user].commands if player.user >= 0 else [] for player in players]
  resolution = commands.resolve([*streams[0], *streams[1]], build, files.tracked.types)
  functions = (resolution.functions[:len(streams[0])], resolution.functions[len(streams[0]):])
  map_ = _Map(files.lobby.description["m_mapSizeX"], files.lobby.description["m_mapSizeY"])
  rows = [_command_rows(digest, place + 1, stream, found, loops, files.tracked.types, map_)
          for place, (stream, found) in enumerate(zip(streams, functions, strict=True))]
  builds = [_build_rows(digest, place + 1, player.player, files.tracked, map_)
            for place, player in enumerate(players)]
  summaries = [_player_row(digest, place, players, inputs.get(player.user), acted.get(player.user),
                           builds[place], rows[place], loops)
               for place, player in enumerate(players)]
  game = _game_row(digest, file, number, build, loops, files, players)._replace(
    commands=sum(map(len, rows)), links=resolution.build,
    resolved=sum(row.vocabulary_index is not None for stream in rows for row in stream))
  return Decoded(game, summaries, [*builds[0], *builds[1]], [*rows[0], *rows[1]])


def _game_row(digest: str, file: str, number: str, build: int, loops: int, files: _Files,
              players: Sequence[Participant]) -> GameRow:
  details, description = files.details, files.lobby.description
  handles = details.get("m_cacheHandles")  # games on a local map, as those of agents, have none
  map_digest = (handles[-1][-32:].hex() if handles
                else f"{description['m_mapFileSyncChecksum']:08x}")
  beginning = [unit[:1] + unit[2:] for unit in files.tracked.units if unit.loop <= _KEY_LOOPS]
  key = repr((description["m_randomValue"], map_digest, sorted(player.name for player in players),
              beginning))
  results = [player.result for player in players]
  winner = results.index("win") + 1 if "win" in results else 0 if "tie" in results else -1
  return GameRow(
    replay=digest, file=file, key=hashlib.sha256(key.encode()).hexdigest(),
    map=protocol.text(details["m_title"]), map_digest=map_digest,
    width=description["m_mapSizeX"], height=description["m_mapSizeY"], version=number, build=build,
    protocol=files.build, started=_started(details.get("m_timeUTC")), loops=loops,
    matchup="v".join(player.race[0].upper() for player in players), winner=winner, commands=0,
    resolved=0, links=0, unread=files.unread)


def _started(time: Value) -> str:
  try:
    return (_EPOCH + datetime.timedelta(microseconds=time // 10)).isoformat(timespec="seconds")
  except (TypeError, OverflowError):
    return ""


def _player_row(digest: str, place: int, players: Sequence[Participant],
                inputs: commands.Inputs | None, acted: list[int] | None,
                builds: Sequence[BuildRow], rows: Sequence[CommandRow], loops: int) -> PlayerRow:
  player, opponent = players[place], players[1 - place]
  actions = inputs.actions if inputs else []
  minutes = np.bincount((np.array(actions, np.int64) / LOOPS_PER_MINUTE).astype(np.int64),
                        minlength=int(loops / LOOPS_PER_MINUTE) + 1)
  built = {row.name for row in builds if row.kind not in (tracker.START, UPGRADED)
           and tracker.is_built(row.vocabulary_index)}
  return PlayerRow(
    replay=digest, player=place + 1, name=player.name, race=player.race, opponent=opponent.race,
    computer=player.computer, mmr=player.mmr, result=player.result, start_x=player.x,
    start_y=player.y, side=int((player.x, player.y) > (opponent.x, opponent.y)),
    actions=len(actions), actions_by_minute=minutes.tolist(), action_loops=acted or [],
    commands=len(rows), resolved=sum(row.vocabulary_index is not None for row in rows),
    units=sorted(built),
    upgrades=sorted({row.name for row in builds
                     if row.kind == UPGRADED and row.vocabulary_index}),
    effects=sorted({row.function for row in rows
                    if row.function and row.vocabulary_index in _EFFECTS}))


def _build_rows(digest: str, place: int, player: int, tracked: tracker.Tracked,
                map_: _Map) -> list[BuildRow]:
  """Returns a player's units and upgrades in order of time."""
  rows, count = [], 0
  units = [unit for unit in tracked.units if unit.player == player]
  cells = map_.cells([(unit.x, unit.y) for unit in units])
  for unit, cell in zip(units, cells, strict=True):
    order = -1
    if (unit.kind != tracker.START and IN_BUILD_ORDER[unit.vocabulary_index]
        and count < types.BUILD_ORDER_LENGTH):
      order, count = count, count + 1
    rows.append(BuildRow(
      digest, place, unit.loop, unit.kind, _unit_name(unit.name), unit.vocabulary_index, order,
      unit.tag, unit.x, unit.y, *cell))
  rows += [BuildRow(digest, place, upgrade.loop, UPGRADED,
                    v.UPGRADES.names[upgrade.vocabulary_index] if upgrade.vocabulary_index
                    else upgrade.name, upgrade.vocabulary_index, -1, 0, None, None, None, None)
           for upgrade in tracked.upgrades if upgrade.player == player]
  return sorted(rows, key=lambda row: row.loop)


def _command_rows(digest: str, place: int, stream: Sequence[commands.Command],
                  functions: Sequence[int | None], loops: int, unit_types: tracker.Types,
                  map_: _Map) -> list[CommandRow]:
  rows = []
  following = [*(command.loop for command in stream[1:]), loops]
  cells = map_.cells([(command.x, command.y) for command in stream])
  for command, function, then, cell in zip(stream, functions, following, cells, strict=False):
    rows.append(CommandRow(
      digest, place, command.loop, max(then - command.loop, 0),
      None if function is None else v.FUNCTIONS.names[function], function, command.queued,
      command.repeat, list(command.units), command.target or None,
      _unit_name(unit_types.at(command.target, command.loop)) if command.target else None,
      command.x, command.y, *cell, command.link, command.link_index))
  return rows


def _unit_name(name: str) -> str:
  index = names.unit_type(name)
  return v.UNIT_TYPES.names[index] if index else name
