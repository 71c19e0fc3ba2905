"""A guest's game: another process hosts it, and answers the requests of this one's client.

If the host leaves without a word, the guest has won: its last observation then has the results. A
game that ends is therefore observed at once: the host may leave before the guest's client asks.
"""

import contextlib

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions import link
from starleague.environments.sc2.server.sessions.match import Refused

_MOST_PLAYERS = 2
_REPORTED_ONCE = ("actions", "action_errors", "chat")  # fields of an observation


class GuestGame:
  """A game over a link to its host."""

  def __init__(self, end: link.GuestEnd, player_id: int):
    """Wraps a link whose host has admitted the guest.

    Args:
      end: the link.
      player_id: of the guest, as the host has given it.
    """
    self.status: sc_pb.Status.ValueType = sc_pb.in_game
    self._end, self._player_id = end, player_id
    self._last: sc_pb.ResponseObservation | None = None  # newest one
    self._unseen: sc_pb.ResponseObservation | None = None  # the client has not asked for it
    self._abandoned = False  # whether the host is gone

  async def answer(self, request: sc_pb.Request) -> sc_pb.Response:
    """Answers one of `link.FORWARDED`.

    Raises:
      LinkError: the host is gone, and the guest has not observed the game.
      Refused: the host is gone, and the request needs it.
    """
    if self._abandoned:
      return self._answer_alone(request)
    try:
      response = await self._end.ask(request)
    except link.LinkError:
      if self._last is None:
        raise
      self._abandoned, self.status = True, sc_pb.ended
      return self._answer_alone(request)
    self.status = response.status
    if response.HasField("observation"):
      self._last = self._with_unseen(response.observation)
    elif response.status == sc_pb.ended and not (self._last and self._last.player_result):
      await self._observe_end()
    return response

  async def _observe_end(self) -> None:
    """Observes the game for its result; a host that is gone already has not sent any."""
    with contextlib.suppress(link.LinkError):
      found = await self._end.ask(sc_pb.Request(observation=sc_pb.RequestObservation()))
      if found.HasField("observation"):
        self._last = self._unseen = self._with_unseen(found.observation)

  def _with_unseen(self, shown: sc_pb.ResponseObservation) -> sc_pb.ResponseObservation:
    """Adds the events that the host reports once, and has reported to an unseen observation."""
    if self._unseen is not None:
      for name in _REPORTED_ONCE:
        getattr(shown, name).MergeFrom(getattr(self._unseen, name))
      self._unseen = None
    return shown

  def _answer_alone(self, request: sc_pb.Request) -> sc_pb.Response:
    """Answers without the host: the last observation, with the result."""
    assert self._last is not None
    kind, loop = request.WhichOneof("request"), self._last.observation.game_loop
    if kind == "step":
      return sc_pb.Response(step=sc_pb.ResponseStep(simulation_loop=loop))
    if kind != "observation":
      raise Refused(f"{kind} is not possible: the host of the game is gone")
    response = sc_pb.Response(observation=sc_pb.ResponseObservation(
      observation=self._last.observation, player_result=self._last.player_result))
    self._with_unseen(response.observation)
    if not self._last.player_result:
      for player_id in range(1, _MOST_PLAYERS + 1):
        response.observation.player_result.add(
          player_id=player_id,
          result=sc_pb.Victory if player_id == self._player_id else sc_pb.Defeat)
    return response

  async def leave(self) -> None:
    """Leaves the game and ends the link."""
    if not self._abandoned:
      with contextlib.suppress(link.LinkError):  # the host has left already
        await self._end.ask(sc_pb.Request(leave_game=sc_pb.RequestLeaveGame()))
    await self._end.close()
