"""The coordinator as a service: a method's name and a message in, a message out.

It does not depend on the transport: `server` serves it with gRPC. A Ray actor would be

    @ray.remote
    class LeagueActor:
      def __init__(self, path):
        self._service = Service(Coordinator(path))

      def call(self, method, message):
        return self._service.call(method, message)
"""

import msgspec

from starleague.league import messages
from starleague.league.coordinator import Coordinator


class Service:
  """Answers the messages of clients. Threads share it."""

  def __init__(self, coordinator: Coordinator):
    """Takes the coordinator; the caller closes it."""
    self._coordinator = coordinator

  def call(self, method: str, message: bytes) -> bytes:
    """Returns the answer to a message.

    Args:
      method: one of `messages.METHODS`.
      message: its request, as JSON.

    Raises:
      UserError, ValueError: the request is refused, and nothing is changed.
      sqlite3.Error: the file cannot be written now. The same request may succeed later.
    """
    arguments = msgspec.structs.asdict(messages.decode(method, "request", message))
    if method == "players":
      return messages.encode(self._coordinator.players)
    answer = getattr(self._coordinator, method)(**arguments)
    return messages.encode(messages.Nothing() if answer is None else answer)
