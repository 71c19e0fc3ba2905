"""A match that a client watches instead of playing: one player's view, or everything."""

from collections.abc import Mapping

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions.match import Match, Refused, Setup
from starleague.environments.sc2.server.views.seats import Seat

ALL = 0  # observed player of an observer: the view of the first one without fog
_SHOWN = ("observation", "step", "game_info", "data", "query")


class Observed(Match):
  """A match that advances as its observer asks; nothing that it asks changes the game."""

  def __init__(self, setup: Setup, races: tuple[int, int], options: sc_pb.InterfaceOptions,
               observed: int, wait_seconds: float, names: Mapping[int, str] | None = None):
    """Starts the game.

    Args:
      setup: see `Match`.
      races: see `Match`.
      options: the observer's interface.
      observed: id of the player whose view is shown, or `ALL`.
      wait_seconds: for a game loop in real time.
      names: of the participants, by player; none in a game of computer players.
    """
    self._everything, self.viewer = observed == ALL, max(0, observed - 1)
    named = names or {}
    super().__init__(setup, races, [
      Seat(player, options, named.get(player, "")) for player in sorted({self.viewer, *named})],
      wait_seconds)
    self._targets = {self.viewer: 0}

  async def answer(self, player: int, request: sc_pb.Request) -> sc_pb.Response:
    """Answers a request of the observer; see `Match.answer`."""
    kind = request.WhichOneof("request")
    if kind not in _SHOWN:
      raise Refused(f"{kind} is not possible for an observer")
    if kind == "observation" and self._everything:
      request.observation.disable_fog = True
    return await super().answer(player, request)
