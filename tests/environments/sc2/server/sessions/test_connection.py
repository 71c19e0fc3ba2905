"""The end of a server whose client waits."""

import asyncio

import portpicker

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions import connection
from starleague.environments.sc2.server.sessions.session import Session


class Client:
  """Asks one request after the other, and keeps the answers."""

  def __init__(self, *requests):
    self.requests, self.answers = list(requests), []

  async def recv(self, decode):
    return self.requests.pop(0).SerializeToString()

  async def send(self, data):
    self.answers.append(sc_pb.Response.FromString(data))


def test_a_server_ends_while_a_client_waits_for_a_participant():
  participant = sc_pb.PlayerSetup(type=sc_pb.Participant)
  join = sc_pb.RequestJoinGame(race=1)
  join.server_ports.game_port = join.server_ports.base_port = portpicker.pick_unused_port()
  client = Client(
    sc_pb.Request(create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"),
      player_setup=[participant, participant])),
    sc_pb.Request(join_game=join))

  async def script():
    session = Session(wait_seconds=600)
    talk = asyncio.create_task(connection._talk(session, client))
    await asyncio.sleep(0.2)
    waited = not talk.done()
    session.quits.set()
    await asyncio.wait_for(talk, 5)
    await session.drop()
    return waited

  assert asyncio.run(script())
  assert [answer.WhichOneof("response") for answer in client.answers] == ["create_game"]
