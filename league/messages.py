"""The messages between the coordinator and its clients: JSON, checked against their types.

Each method has one request, an object of the method's arguments, and one answer; both hold named
tuples as arrays. A message of another shape, type or size is refused with one line that names the
first value that is wrong.
"""

import os
import re
from typing import Annotated, Any, NamedTuple

import msgspec

from starleague.league.league_file import Order, Progress
from starleague.league.leases import MOST_GAMES, Assignment
from starleague.league.payoff import GameResult
from starleague.league.players import LeagueError, Player
from starleague.league.reporting import GamesReport, Receipt
from starleague.league.shared_files import PIECE_BYTES, FileEntry

SERVICE = "starleague.League3"  # the number changes with the messages
MAX_BYTES = 16 * 2 ** 20
_MOST_SHOWN = 80  # characters of a refused value

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
PathWithin = Annotated[str, msgspec.Meta(max_length=4096)]  # empty: the shared file itself
Offset = Annotated[int, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1, le=4096)]
Games = Annotated[int, msgspec.Meta(ge=1, le=MOST_GAMES)]


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
  """A request or answer without values."""


class MatchesRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.matches`."""

  name: Name
  count: Count
  games: Games
  holder: Name
  request: Name


class EvaluationRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.evaluation_matches`."""

  count: Count
  games: Games
  among: list[Name] | None
  holder: Name
  request: Name


class AssignmentsRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.renew` and `release`."""

  assignments: list[Assignment]
  holder: Name


class ReportRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.report_games`."""

  reports: list[GamesReport]
  holder: Name


class ResultsRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.report_many`."""

  results: list[GameResult]
  steps: dict[Name, int]


class PlayerRequest(msgspec.Struct, forbid_unknown_fields=True):
  """The name of a player."""

  name: Name


class StepsRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.set_steps`."""

  name: Name
  steps: int


class TimeRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.training_time`."""

  seconds: float


class OrdersRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.orders`."""

  name: Name | None


class CompleteRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.complete`."""

  order_id: int


class PauseRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.pause`."""

  name: Name
  paused: bool


class ReplayRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.keep_replay`."""

  result_id: Name
  path: Path


class ScoresRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `Coordinator.scores`."""

  home: Name
  away: list[Name]


class FilesRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `SharedFiles.list_files`."""

  name: Path


class ReadRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `SharedFiles.read_file`."""

  name: Path
  path: PathWithin
  offset: Offset


class OfferRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `SharedFiles.offer_files`."""

  name: Path
  files: Annotated[list[FileEntry], msgspec.Meta(min_length=1)]


class WriteRequest(msgspec.Struct, forbid_unknown_fields=True):
  """Arguments of `SharedFiles.write_file`."""

  name: Path
  key: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
  path: PathWithin
  offset: Offset
  data: Annotated[bytes, msgspec.Meta(max_length=PIECE_BYTES)]


class Method(NamedTuple):
  """The types of a method's request and answer."""

  request: Any
  answer: Any


METHODS = {
  "matches": Method(MatchesRequest, list[Assignment]),
  "evaluation_matches": Method(EvaluationRequest, list[Assignment]),
  "renew": Method(AssignmentsRequest, list[str]),
  "release": Method(AssignmentsRequest, Nothing),
  "report_games": Method(ReportRequest, list[list[Receipt]]),
  "report_many": Method(ResultsRequest, list[Order]),
  "set_steps": Method(StepsRequest, Nothing),
  "training_time": Method(TimeRequest, float),
  "progress": Method(PlayerRequest, Progress),
  "orders": Method(OrdersRequest, list[Order]),
  "complete": Method(CompleteRequest, Player),
  "pause": Method(PauseRequest, Nothing),
  "keep_replay": Method(ReplayRequest, Nothing),
  "list_files": Method(FilesRequest, list[FileEntry] | None),
  "read_file": Method(ReadRequest, bytes),
  "offer_files": Method(OfferRequest, list[int] | None),
  "write_file": Method(WriteRequest, Nothing),
  "players": Method(Nothing, list[Player]),
  "scores": Method(ScoresRequest, list[float]),
}

_DECODERS = {(name, part): msgspec.json.Decoder(getattr(method, part))
             for name, method in METHODS.items() for part in Method._fields}


def encode(value: Any) -> bytes:
  """Returns a message; raises LeagueError if it is larger than `MAX_BYTES`."""
  message = msgspec.json.encode(value)
  if len(message) > MAX_BYTES:
    raise LeagueError(f"A message of {len(message)} bytes is too large, expected at most "
                      f"{MAX_BYTES}. Send its parts one by one.")
  return message


def decode(method: str, part: str, message: bytes) -> Any:
  """Returns the value of a message.

  Args:
    method: one of METHODS.
    part: "request" or "answer".
    message: JSON.

  Raises:
    LeagueError: the method is unknown, or the message is not its `part`.
  """
  if method not in METHODS:
    raise LeagueError(f"Unknown method {method[:100]!r}, expected one of {sorted(METHODS)}.")
  try:
    return _DECODERS[method, part].decode(message)
  except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
    raise LeagueError(f"The {part} of {method} is refused: {error}{_found(message, error)}."
                      ) from error


def _found(message: bytes, error: Exception) -> str:
  """Returns the value of a message that an error refuses, as text; empty if it is unknown."""
  path = re.search(r"at `\$((?:\.\w+|\[\d+\])*)`$", str(error))
  if not path or not isinstance(error, msgspec.ValidationError):
    return ""
  try:
    value = msgspec.json.decode(message)
    for key in re.findall(r"\w+", path[1]):
      value = value[int(key) if isinstance(value, list) else key]
  except (msgspec.DecodeError, LookupError, TypeError, ValueError):
    return ""
  text = repr(value)
  return f", found {text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + '...'}"


def load_grpc() -> Any:
  """Returns the grpc module, loaded on first use: every process of a run imports the league."""
  # Its errors reach Python; the log of its C++ core repeats them on standard error.
  os.environ.setdefault("GRPC_VERBOSITY", "NONE")
  import grpc
  return grpc
