"""Matches with an observer, who sees one player's view or everything."""

from collections.abc import Iterable

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions.match import MatchSetup, Refused, ServerMatch
from starleague.environments.sc2.server.views.seats import ServerSeat

ALL = 0  # observed player: the first player's view without fog
_SHOWN = ("observation", "step", "game_info", "data", "query")


class Observed(ServerMatch):
  """A match that advances at its observer's requests, which cannot change the game."""

  def __init__(self, setup: MatchSetup, races: tuple[int, int], options: sc_pb.InterfaceOptions,
               observed: int, wait_seconds: float, participants: Iterable[ServerSeat] = ()):
    """Starts the game.

    Args:
      setup: see `ServerMatch`.
      races: see `ServerMatch`.
      options: the observer's interface.
      observed: id of the player whose view is shown, or `ALL`.
      wait_seconds: for a game loop in real time.
      participants: seats whose options are the observer's; none in a game of computer players.
    """
    self._everything, self.viewer = observed == ALL, max(0, observed - 1)
    seats = {self.viewer: ServerSeat(self.viewer, options),
             **{seat.player: seat for seat in participants}}
    super().__init__(setup, races, [seats[player] for player in sorted(seats)], wait_seconds)
    self._targets = {self.viewer: 0}

  async def answer(self, player: int, request: sc_pb.Request) -> sc_pb.Response:
    """Answers a request of the observer; see `ServerMatch.answer`."""
    kind = request.WhichOneof("request")
    if kind not in _SHOWN:
      raise Refused(f"{kind} is not possible for an observer")
    if kind == "observation" and self._everything:
      request.observation.disable_fog = True
    return await super().answer(player, request)
