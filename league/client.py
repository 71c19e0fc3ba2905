"""A client of a league's coordinator, for actors, learners and evaluators.

Each call has a deadline. A call that breaks off, because the coordinator was killed for instance,
is sent again with the same ids when a coordinator listens again, and counts once.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from starleague.common.errors import UserError
from starleague.league import messages as m
from starleague.league.league_file import Order, Progress
from starleague.league.leases import Assignment
from starleague.league.payoff import GameResult
from starleague.league.players import LeagueError, Player
from starleague.league.reporting import GamesReport, Receipt
from starleague.league.shared_files import FileEntry

_RETRIES = json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": {
  "maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
  "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]})


class LeagueUnavailableError(UserError, ConnectionError):
  """The coordinator did not answer within the deadline."""


class Transport(Protocol):
  """Carries messages to a `Service`."""

  def call(self, method: str, message: bytes) -> bytes:
    """Returns the answer to a request.

    Raises:
      LeagueError: the service refuses the request.
      LeagueUnavailableError: it did not answer within the deadline.
    """

  def close(self) -> None:
    """Ends the connection."""


class GrpcTransport:
  """A connection to a `Server`. It reconnects by itself."""

  def __init__(self, address: str, deadline_s: float = 60.0):
    """Connects in the background.

    Args:
      address: host:port of the server.
      deadline_s: seconds of each call, with all attempts.
    """
    self._address, self._deadline_s, self._grpc = address, deadline_s, m.load_grpc()
    self._channel = self._grpc.insecure_channel(address, options=[
      ("grpc.service_config", _RETRIES),
      ("grpc.per_rpc_retry_buffer_size", m.MAX_BYTES),
      ("grpc.max_send_message_length", m.MAX_BYTES),
      ("grpc.max_receive_message_length", m.MAX_BYTES),
      ("grpc.initial_reconnect_backoff_ms", 100),
      ("grpc.min_reconnect_backoff_ms", 100),
      ("grpc.max_reconnect_backoff_ms", 1000)])
    self._methods = {name: self._channel.unary_unary(f"/{m.SERVICE}/{name}") for name in m.METHODS}

  def call(self, method: str, message: bytes) -> bytes:
    """Returns the answer to a request; see `Transport`."""
    try:
      return self._methods[method](message, timeout=self._deadline_s, wait_for_ready=True)
    except self._grpc.RpcError as error:
      raise self._translated(method, error) from error

  def _translated(self, method: str, error: Any) -> UserError:
    code, details = error.code(), " ".join(str(error.details()).split())
    where = f"The coordinator at {self._address}"
    if code is self._grpc.StatusCode.INVALID_ARGUMENT:
      return LeagueError(details)
    if code is self._grpc.StatusCode.UNIMPLEMENTED:
      return LeagueError(f"{where} has no {m.SERVICE}/{method}: it is of another version. Run the "
                         "same version here and there.")
    return LeagueUnavailableError(
      f"{where} did not answer {method} within {self._deadline_s:g} s ({code.name.lower()}: "
      f"{details}). Check the address and that it runs.")

  def close(self) -> None:
    """Ends the connection."""
    self._channel.close()


class LeagueClient:
  """The methods of a coordinator in another process. Threads may share it; a fork may not."""

  def __init__(self, transport: Transport, name: str = ""):
    """Takes the connection and the name of this actor, which must be unique; by default random."""
    self._transport, self.name = transport, name or uuid.uuid4().hex

  def _call(self, method: str, request: Any) -> Any:
    message = m.encode(request)
    m.decode(method, "request", message)  # refused here, before it is sent
    return m.decode(method, "answer", self._transport.call(method, message))

  def matches(self, player: str, count: int = 1, games: int = 1) -> list[Assignment]:
    """Returns assignments of a learning player; see `Coordinator.matches`.

    After a lapse of its leases, the caller may get assignments that it already holds, under the
    same ids: their leases are renewed. It plays each id once, and continues the games in progress.
    """
    return self._call("matches", m.MatchesRequest(player, count, games, self.name, _new_id()))

  def evaluation_matches(self, count: int = 1, games: int = 1,
                         among: Sequence[str] | None = None) -> list[Assignment]:
    """Returns assignments of the pairs known least; see `Coordinator.evaluation_matches`."""
    names = None if among is None else list(among)
    return self._call("evaluation_matches",
                      m.EvaluationRequest(count, games, names, self.name, _new_id()))

  def renew(self, assignments: Iterable[Assignment]) -> list[str]:
    """Extends leases and returns the ids still held; see `Coordinator.renew`."""
    return self._call("renew", m.AssignmentsRequest(list(assignments), self.name))

  def release(self, assignments: Iterable[Assignment]) -> None:
    """Gives unfinished assignments to others; see `Coordinator.release`."""
    self._call("release", m.AssignmentsRequest(list(assignments), self.name))

  def report_games(self, reports: Iterable[GamesReport]) -> list[list[Receipt]]:
    """Counts games of assignments, on disk on return; see `Coordinator.report_games`."""
    return self._call("report_games", m.ReportRequest(list(reports), self.name))

  def report_many(self, results: Iterable[GameResult],
                  steps: Mapping[str, int] | None = None) -> list[Order]:
    """Counts games without an assignment; see `Coordinator.report_many`."""
    return self._call("report_many", m.ResultsRequest(list(results), dict(steps or {})))

  def set_steps(self, player: str, steps: int) -> None:
    """Stores the agent steps of a player's policy; see `Coordinator.set_steps`."""
    self._call("set_steps", m.StepsRequest(player, steps))

  def training_time(self, seconds: float) -> float:
    """Returns the seconds that the league has trained; see `Coordinator.training_time`."""
    return self._call("training_time", m.TimeRequest(seconds))

  def progress(self, player: str) -> Progress:
    """Returns the progress of a learning player."""
    return self._call("progress", m.PlayerRequest(player))

  def orders(self, player: str | None = None) -> list[Order]:
    """Returns the open orders, oldest first: of one player, or of all."""
    return self._call("orders", m.OrdersRequest(player))

  def complete(self, order_id: int) -> Player:
    """Completes an order and returns its snapshot; see `Coordinator.complete`."""
    return self._call("complete", m.CompleteRequest(order_id))

  def pause(self, player: str, paused: bool = True) -> None:
    """Pauses a player, or lets it play again; see `Coordinator.pause`."""
    self._call("pause", m.PauseRequest(player, paused))

  def keep_replay(self, result_id: str, path: str) -> None:
    """Stores the path of a game's replay; see `Coordinator.keep_replay`."""
    self._call("keep_replay", m.ReplayRequest(result_id, path))

  def list_files(self, name: str) -> list[FileEntry] | None:
    """Returns the files of a shared folder; see `SharedFiles.list_files`."""
    return self._call("list_files", m.FilesRequest(name))

  def read_file(self, name: str, path: str, offset: int) -> bytes:
    """Returns a piece of a shared file; see `SharedFiles.read_file`."""
    return self._call("read_file", m.ReadRequest(name, path, offset))

  def offer_files(self, name: str, files: Sequence[FileEntry]) -> list[int] | None:
    """Returns the bytes that the coordinator has; see `SharedFiles.offer_files`."""
    return self._call("offer_files", m.OfferRequest(name, list(files)))

  def write_file(self, name: str, key: str, path: str, offset: int, data: bytes) -> None:
    """Sends a piece of an offered file; see `SharedFiles.write_file`."""
    self._call("write_file", m.WriteRequest(name, key, path, offset, data))

  def players(self) -> list[Player]:
    """Returns all players, in order of creation."""
    return self._call("players", m.Nothing())

  def scores(self, home: str, away: Sequence[str]) -> list[float]:
    """Returns the decayed score of `home` against each of `away`."""
    return self._call("scores", m.ScoresRequest(home, list(away)))

  def close(self) -> None:
    """Ends the connection."""
    self._transport.close()


def _new_id() -> str:
  return uuid.uuid4().hex
