"""A guest's game with and without its host: statuses, the result of a game whose host is gone."""

import asyncio

import pytest

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions.guest import GuestGame
from starleague.environments.sc2.server.sessions.link import LinkError
from starleague.environments.sc2.server.sessions.match import Refused


class End:
  """A link that gives these answers, and then breaks."""

  def __init__(self, *answers):
    self.answers, self.asked, self.closed = list(answers), [], 0

  async def ask(self, request):
    self.asked.append(request.WhichOneof("request"))
    if not self.answers:
      raise LinkError("the host of the game is gone: closed")
    return self.answers.pop(0)

  async def close(self):
    self.closed += 1


def ask(game, kind):
  request = sc_pb.Request()
  getattr(request, kind).SetInParent()
  return asyncio.run(game.answer(request))


def seen(loop, status=sc_pb.in_game, **fields):
  return sc_pb.Response(status=status, observation=sc_pb.ResponseObservation(
    observation=sc_pb.Observation(game_loop=loop), **fields))


def results(response):
  return [(one.player_id, one.result) for one in response.observation.player_result]


def test_answers_are_the_hosts_and_so_is_the_status():
  game = GuestGame(End(seen(8), sc_pb.Response(
    status=sc_pb.ended, step=sc_pb.ResponseStep(simulation_loop=16))), 2)
  assert game.status == sc_pb.in_game
  assert ask(game, "observation").observation.observation.game_loop == 8
  assert ask(game, "step").step.simulation_loop == 16 and game.status == sc_pb.ended


def test_a_guest_whose_host_is_gone_has_won():
  end = End(seen(8, chat=[sc_pb.ChatReceived(message="hi")]))
  game = GuestGame(end, 2)
  ask(game, "observation")
  assert ask(game, "step").step.simulation_loop == 8 and game.status == sc_pb.ended
  last = ask(game, "observation")
  assert results(last) == [(1, sc_pb.Defeat), (2, sc_pb.Victory)]
  assert last.observation.observation.game_loop == 8 and not last.observation.chat
  with pytest.raises(Refused, match="query is not possible: the host of the game is gone"):
    ask(game, "query")
  assert end.asked == ["observation", "step"]  # the broken link is not used again
  asyncio.run(game.leave())
  assert end.asked == ["observation", "step"] and end.closed == 1


def test_a_result_that_the_host_has_sent_stays():
  game = GuestGame(End(seen(24, sc_pb.ended, player_result=[
    sc_pb.PlayerResult(player_id=1, result=sc_pb.Victory),
    sc_pb.PlayerResult(player_id=2, result=sc_pb.Defeat)])), 2)
  ask(game, "observation")
  assert results(ask(game, "observation")) == [(1, sc_pb.Victory), (2, sc_pb.Defeat)]


LOST = [sc_pb.PlayerResult(player_id=1, result=sc_pb.Victory),
        sc_pb.PlayerResult(player_id=2, result=sc_pb.Defeat)]
ENDED = sc_pb.Response(status=sc_pb.ended, step=sc_pb.ResponseStep(simulation_loop=16))


def test_the_end_of_a_game_is_observed_before_its_host_leaves():
  end = End(seen(8), ENDED, seen(16, sc_pb.ended, player_result=LOST,
                                 chat=[sc_pb.ChatReceived(message="bye")],
                                 action_errors=[sc_pb.ActionError(ability_id=23)]))
  game = GuestGame(end, 2)
  ask(game, "observation")
  assert ask(game, "step").step.simulation_loop == 16
  assert end.asked == ["observation", "step", "observation"]
  last = ask(game, "observation")  # the host is gone
  assert results(last) == [(1, sc_pb.Victory), (2, sc_pb.Defeat)]
  assert last.observation.observation.game_loop == 16
  assert [one.message for one in last.observation.chat] == ["bye"]
  assert [one.ability_id for one in last.observation.action_errors] == [23]
  again = ask(game, "observation").observation
  assert not again.chat and not again.action_errors and list(again.player_result) == LOST


def test_events_of_the_end_are_shown_once_to_the_client():
  """The host reports them once, to the observation that the guest has made by itself."""
  later = [seen(16, sc_pb.ended, player_result=LOST) for _ in range(2)]
  first = seen(16, sc_pb.ended, player_result=LOST, chat=[sc_pb.ChatReceived(message="bye")],
               actions=[sc_pb.Action(game_loop=9)])
  end = End(ENDED, first, later[0], ENDED, later[1])
  game = GuestGame(end, 2)
  ask(game, "step")
  shown = [ask(game, kind) for kind in ("observation", "step", "observation")]
  assert [one.message for one in shown[0].observation.chat] == ["bye"]
  assert [one.game_loop for one in shown[0].observation.actions] == [9]
  assert not shown[2].observation.chat and not shown[2].observation.actions
  assert end.asked == ["step", "observation", "observation", "step", "observation"]


def test_before_its_first_observation_a_guest_has_no_result():
  game = GuestGame(End(), 1)
  with pytest.raises(LinkError, match="the host of the game is gone"):
    ask(game, "observation")


def test_leaving_tells_the_host_and_ends_the_link():
  for answers in ((sc_pb.Response(),), ()):  # a host that is gone is no error
    end = End(*answers)
    asyncio.run(GuestGame(end, 2).leave())
    assert end.asked == ["leave_game"] and end.closed == 1
