"""Clients that wait, vanish or come late, and the end of a server."""

import asyncio

import portpicker
import pytest
import websocket
from websockets.asyncio import client
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidStatus

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions import connection
from starleague.environments.sc2.server.sessions.session import Session
from tests.environments.sc2.server import play

PARTICIPANT = sc_pb.PlayerSetup(type=sc_pb.Participant)
DEADLINE = 30.0  # s: far below the 120 s for another participant


class Client:
  """Asks one request after the other, and keeps the answers."""

  def __init__(self, *requests):
    self.requests, self.answers = list(requests), []

  async def recv(self, decode):
    return self.requests.pop(0).SerializeToString()

  async def wait_closed(self):
    await asyncio.Event().wait()

  async def send(self, data):
    self.answers.append(sc_pb.Response.FromString(data))


def test_a_server_ends_while_a_client_waits_for_a_participant():
  participant = sc_pb.PlayerSetup(type=sc_pb.Participant)
  join = sc_pb.RequestJoinGame(race=1)
  join.server_ports.game_port = join.server_ports.base_port = portpicker.pick_unused_port()
  waiting = Client(
    sc_pb.Request(create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"),
      player_setup=[participant, participant])),
    sc_pb.Request(join_game=join))

  async def script():
    session = Session(wait_seconds=600)
    talk = asyncio.create_task(connection._talk(session, waiting))
    await asyncio.sleep(0.2)
    waited = not talk.done()
    session.quits.set()
    await asyncio.wait_for(talk, 5)
    await session.drop()
    return waited

  assert asyncio.run(script())
  assert [answer.WhichOneof("response") for answer in waiting.answers] == ["create_game"]


class Remote:
  """A client of a server, over its websocket."""

  def __init__(self, websocket):
    self.websocket = websocket

  async def ask(self, **request):
    await self.websocket.send(sc_pb.Request(**request).SerializeToString())
    response = sc_pb.Response.FromString(await asyncio.wait_for(self.websocket.recv(), DEADLINE))
    assert not response.error, response.error
    return response

  def vanish(self):
    """Closes the connection without a farewell."""
    self.websocket.transport.abort()


async def connect(port):
  for _ in range(200):
    try:
      return Remote(await client.connect(f"ws://127.0.0.1:{port}/sc2api", max_size=None))
    except OSError:
      await asyncio.sleep(0.05)
  raise AssertionError("the server does not listen")


@pytest.mark.parametrize("origin, host, address, own", [
  (None, "127.0.0.1:5000", "127.0.0.1", True),
  ("http://127.0.0.1:5000", "127.0.0.1:5000", "127.0.0.1", True),
  ("http://[::1]:5000", "[::1]:5000", "::1", True),
  ("http://localhost:5000", "localhost:5000", "127.0.0.1", True),
  ("http://10.0.0.7:5000", "10.0.0.7:5000", "0.0.0.0", True),
  ("http://games:5000", "games:5000", "games", True),
  ("http://127.0.0.1:6000", "127.0.0.1:5000", "127.0.0.1", False),  # another local server's page
  ("https://evil.example", "127.0.0.1:5000", "127.0.0.1", False),
  ("null", "127.0.0.1:5000", "127.0.0.1", False),  # a page in a file
  ("http://evil.example:5000", "evil.example:5000", "127.0.0.1", False),  # it resolves to this host
  ("http://[:5000", "[:5000", "127.0.0.1", False)])
def test_pages_of_other_servers_are_no_clients(origin, host, address, own):
  headers = Headers(Host=host, **({} if origin is None else {"Origin": origin}))
  assert connection.is_own_origin(headers, address) is own


def test_a_server_refuses_the_handshake_of_another_origin():
  async def script():
    port = portpicker.pick_unused_port()
    server = asyncio.create_task(connection.run("127.0.0.1", port, None))
    await connect(port)
    url = f"ws://127.0.0.1:{port}/sc2api"
    with pytest.raises(InvalidStatus) as refused:
      await client.connect(url, origin="https://evil.example")
    # pysc2's library; it states the server's own origin.
    own = await asyncio.to_thread(websocket.create_connection, url, timeout=DEADLINE)
    own.close()
    await end([server])
    return refused.value.response

  refused = asyncio.run(script())
  assert refused.status_code == 403
  assert refused.body == b"expected no Origin, or this server's\n"


async def two_players():
  """Two servers, and the clients of a game of two participants."""
  ports = [portpicker.pick_unused_port() for _ in range(3)]
  servers = [asyncio.create_task(connection.run("127.0.0.1", port, None)) for port in ports[:2]]
  host, guest = [await connect(port) for port in ports[:2]]
  await host.ask(create_game=sc_pb.RequestCreateGame(
    local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"), player_setup=[PARTICIPANT] * 2))
  join = sc_pb.RequestJoinGame(race=1, options=play.interface())
  join.server_ports.game_port = join.server_ports.base_port = ports[2]
  await asyncio.gather(host.ask(join_game=join), guest.ask(join_game=join))
  for one in (host, guest):
    await one.ask(observation=sc_pb.RequestObservation())
  return servers, ports, host, guest


async def end(servers):
  for server in servers:
    server.cancel()
  await asyncio.wait(servers)


@pytest.mark.parametrize("waits", ["host", "guest"])
def test_a_client_that_vanishes_has_lost_at_once(waits):
  async def script():
    servers, _, host, guest = await two_players()
    one, other = (host, guest) if waits == "host" else (guest, host)
    step = asyncio.create_task(one.ask(step=sc_pb.RequestStep(count=8)))
    await asyncio.sleep(0.1)
    waited = not step.done()
    other.vanish()
    status = (await step).status
    last = (await one.ask(observation=sc_pb.RequestObservation())).observation
    left = (await one.ask(leave_game=sc_pb.RequestLeaveGame())).status
    await end(servers)
    return waited, status, [result.result for result in last.player_result], left

  waited, status, results, left = asyncio.run(script())
  assert waited and status == sc_pb.ended and left == sc_pb.launched
  assert results == ([sc_pb.Victory, sc_pb.Defeat] if waits == "host" else
                     [sc_pb.Defeat, sc_pb.Victory])


def test_a_guest_whose_hosts_process_ends_has_won():
  async def script():
    servers, _, host, guest = await two_players()
    await host.ask(quit=sc_pb.RequestQuit())
    await asyncio.wait(servers[:1], timeout=DEADLINE)
    step = await guest.ask(step=sc_pb.RequestStep(count=8))
    last = (await guest.ask(observation=sc_pb.RequestObservation())).observation
    await end(servers)
    return step, last

  step, last = asyncio.run(script())
  assert step.status == sc_pb.ended
  assert [result.result for result in last.player_result] == [sc_pb.Defeat, sc_pb.Victory]


@pytest.mark.parametrize("hosts", [True, False])
@pytest.mark.parametrize("kind", ["create_game", "start_replay", "quit"])
def test_other_connections_end_the_wait_of_a_client_that_joins(kind, hosts):
  """They are answered at once, and a second client cannot join beside the first."""
  async def script():
    port = portpicker.pick_unused_port()
    server = asyncio.create_task(connection.run("127.0.0.1", port, None))
    first, other = await connect(port), await connect(port)
    if hosts:
      await first.ask(create_game=sc_pb.RequestCreateGame(
        local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"), player_setup=[PARTICIPANT] * 2))
    join = sc_pb.RequestJoinGame(race=1, options=play.interface())
    join.server_ports.game_port = join.server_ports.base_port = portpicker.pick_unused_port()
    await first.websocket.send(sc_pb.Request(join_game=join).SerializeToString())
    await asyncio.sleep(0.3)
    errors = []
    for request in (sc_pb.Request(join_game=join), sc_pb.Request(leave_game={})):
      await other.websocket.send(request.SerializeToString())
      errors += sc_pb.Response.FromString(await asyncio.wait_for(other.websocket.recv(), 5)).error
    request = sc_pb.Request()
    getattr(request, kind).SetInParent()
    await other.websocket.send(request.SerializeToString())
    answer = sc_pb.Response.FromString(await asyncio.wait_for(other.websocket.recv(), 5))
    if kind != "quit":
      ended = sc_pb.Response.FromString(await asyncio.wait_for(first.websocket.recv(), 5))
      errors.append(ended.join_game.error_details or ended.error[0])
    await end([server])
    return errors, answer.WhichOneof("response")

  errors, answered = asyncio.run(script())
  assert errors[:2] == ["Another client is joining a game", "Not in a game"]
  assert answered == kind
  assert [error.removeprefix("no second participant: ") for error in errors[2:]] == (
    [] if kind == "quit" else ["another client's request has ended the wait"])


@pytest.mark.parametrize("number", [0, 1])
def test_other_connections_are_answered_while_a_step_waits(number):
  """The host's and the guest's."""
  async def script():
    servers, ports, *players = await two_players()
    step = asyncio.create_task(players[number].ask(step=sc_pb.RequestStep(count=8)))
    other = await connect(ports[number])
    ping = await other.ask(ping=sc_pb.RequestPing())
    seen = await other.ask(observation=sc_pb.RequestObservation())
    other.vanish()  # it is no player
    await asyncio.sleep(0.1)
    waits = not step.done()
    await players[1 - number].ask(step=sc_pb.RequestStep(count=8))
    loop = (await step).step.simulation_loop
    await end(servers)
    return ping, seen, waits, loop

  ping, seen, waits, loop = asyncio.run(script())
  assert ping.ping.data_build == 75689 and ping.status == seen.status == sc_pb.in_game
  assert seen.observation.observation.game_loop == 0 and waits and loop == 8


def test_a_participant_that_vanishes_while_it_joins_frees_the_server():
  async def script():
    port = portpicker.pick_unused_port()
    server = asyncio.create_task(connection.run("127.0.0.1", port, None))
    first, other = await connect(port), await connect(port)
    await first.ask(create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"), player_setup=[PARTICIPANT] * 2))
    join = sc_pb.RequestJoinGame(race=1, options=play.interface())
    join.server_ports.game_port = join.server_ports.base_port = portpicker.pick_unused_port()
    joining = asyncio.create_task(first.ask(join_game=join))
    await asyncio.sleep(0.1)
    first.vanish()
    with pytest.raises(ConnectionClosed):
      await joining
    while (await other.ask(ping=sc_pb.RequestPing())).status != sc_pb.launched:
      await asyncio.sleep(0.05)
    await other.ask(create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"), player_setup=[PARTICIPANT]))
    joined = await other.ask(join_game=sc_pb.RequestJoinGame(race=1))
    await end([server])
    return joined

  assert asyncio.run(script()).status == sc_pb.in_game


def test_a_game_of_one_participant_outlives_its_connection():
  async def script():
    port = portpicker.pick_unused_port()
    server = asyncio.create_task(connection.run("127.0.0.1", port, None))
    first = await connect(port)
    await first.ask(create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"), player_setup=[PARTICIPANT]))
    await first.ask(join_game=sc_pb.RequestJoinGame(race=1))
    first.vanish()
    again = await connect(port)
    found = await again.ask(step=sc_pb.RequestStep(count=8))
    await end([server])
    return found

  found = asyncio.run(script())
  assert found.status == sc_pb.in_game and found.step.simulation_loop == 8


def test_an_idle_timer_starts_when_the_last_client_leaves():
  async def script(seconds):
    ends, found = asyncio.Event(), []
    timer = connection._IdleTimer(ends, seconds)

    async def wait(*changes):
      for change in changes:
        change()
      await asyncio.sleep(0.15)
      found.append(ends.is_set())

    await wait()  # before the first client it waits
    await wait(timer.enter, timer.enter, timer.leave)  # there is another
    await wait(timer.leave, timer.enter)  # a new one in time
    await wait(timer.leave)
    return found

  assert asyncio.run(script(0.05)) == [False, False, False, True]
  assert asyncio.run(script(0)) == [False] * 4  # never


def test_a_server_ends_after_its_last_client_has_left():
  async def script():
    port = portpicker.pick_unused_port()
    server = asyncio.create_task(connection.run("127.0.0.1", port, None, idle_seconds=0.2))
    await asyncio.sleep(0.4)
    first = await connect(port)
    await asyncio.sleep(0.4)
    status = (await first.ask(ping=sc_pb.RequestPing())).status
    first.vanish()
    await asyncio.wait_for(server, DEADLINE)
    return status

  assert asyncio.run(script()) == sc_pb.launched
