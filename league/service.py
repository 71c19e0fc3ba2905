"""The coordinator as a service: a method's name and a message in, a message out.

It does not depend on the transport: `server` serves it with gRPC. A Ray actor would be

    @ray.remote
    class LeagueActor:
      def __init__(self, path):
        self._service = Service(Coordinator(path))

      def call(self, method, message):
        return self._service.call(method, message)
"""

import pathlib

import msgspec

from starleague.league import messages
from starleague.league.coordinator import Coordinator
from starleague.league.shared_files import SharedFiles


class Service:
  """Answers the messages of clients: of the league, and of the files beside its own."""

  def __init__(self, coordinator: Coordinator):
    """Takes the coordinator; the caller closes it."""
    self._coordinator = coordinator
    self._files = SharedFiles(pathlib.Path(coordinator.payoff.database.path).parent)

  def call(self, method: str, message: bytes) -> bytes:
    """Returns the answer to a message.

    Args:
      method: one of `messages.METHODS`.
      message: its request, as JSON.

    Raises:
      UserError, ValueError: the request is refused, and nothing is changed.
      sqlite3.Error, OSError: a file cannot be written now. The same request may succeed later.
    """
    arguments = msgspec.structs.asdict(messages.decode(method, "request", message))
    if method == "players":
      return messages.encode(self._coordinator.players)
    owner = self._files if hasattr(self._files, method) else self._coordinator
    answer = getattr(owner, method)(**arguments)
    if messages.METHODS[method].answer is messages.Nothing:
      answer = messages.Nothing()
    return messages.encode(answer)
