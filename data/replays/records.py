"""The rows of the tables that replays are decoded to. docs/replays.md describes them."""

from typing import NamedTuple


class GameRow(NamedTuple):
  """A game of two players."""

  replay: str  # SHA-256 of the file, which the other tables refer to
  file: str
  key: str  # the same for all files of one game
  map: str  # title in the language of the file
  map_digest: str  # the same for all languages: SHA-256 of the file, a checksum of local maps
  width: int  # of the map, in game coordinates
  height: int
  version: str
  build: int  # base build, which fixes the format
  protocol: int  # build whose protocol decoded the file
  started: str  # UTC, ISO 8601; "" if unknown
  loops: int  # length of the game in game loops
  matchup: str  # of the races of players 1 and 2: "TvZ"
  winner: int  # 1 or 2; 0 for a tie, -1 if unknown
  commands: int  # of both players
  resolved: int  # of these, those with a function
  links: int  # build of the table of links; 0 without one
  unread: str  # why the commands could not be read; "" if they were


class PlayerRow(NamedTuple):
  """A player of a game."""

  replay: str
  player: int  # 1 or 2
  name: str
  race: str  # of types.RACES
  opponent: str  # the opponent's race
  computer: bool
  mmr: int | None
  result: str  # win, loss, tie or unknown
  start_x: float  # game coordinates of the first town hall
  start_y: float
  side: int  # 0 if its start comes before the opponent's in (x, y) order, else 1
  actions: int  # inputs except camera moves
  actions_by_minute: list[int]
  action_loops: list[int]  # game loops at which a raw interface would have acted
  commands: int
  resolved: int
  units: list[str]  # unit types that were built, names of the vocabulary
  upgrades: list[str]
  effects: list[str]  # effect functions that were commanded


class BuildRow(NamedTuple):
  """A unit, structure or upgrade of a player, in order of time."""

  replay: str
  player: int
  loop: int
  kind: str  # start, born, placed, morphed or upgraded
  name: str  # in the vocabulary; the game's own where the vocabulary has none
  vocabulary_index: int  # of vocabulary.UNIT_TYPES or UPGRADES; 0 if unknown
  order: int  # place in the build order, 0 to 19; -1 if it is not in it
  tag: int  # 0 for upgrades
  x: float | None  # game coordinates
  y: float | None
  column: int | None  # on the 256 grid
  row: int | None


class CommandRow(NamedTuple):
  """A command of a player."""

  replay: str
  player: int
  loop: int
  delay: int  # game loops to the player's next command, or to the end
  function: str | None  # of the vocabulary; None if it was not resolved
  vocabulary_index: int | None  # of vocabulary.FUNCTIONS
  queued: bool
  repeat: int  # 0 to 2
  units: list[int]  # tags of the selected units
  target: int | None  # tag of the target unit
  target_type: str | None  # its type, as in BuildRow.name
  x: float | None  # game coordinates of the target
  y: float | None
  column: int | None  # on the 256 grid
  row: int | None
  link: int  # of the ability in the file; -1 for smart commands
  link_index: int


class RefusalRow(NamedTuple):
  """A file that is not read."""

  replay: str  # SHA-256; "" if the file cannot be read
  file: str
  reason: str  # one of refusals.REASONS
  detail: str


class Decoded(NamedTuple):
  """The rows of a replay."""

  game: GameRow
  players: list[PlayerRow]
  builds: list[BuildRow]
  commands: list[CommandRow]
