"""Two sessions play one game: one hosts it, the other forwards its requests."""

import asyncio
import socket
import struct

import portpicker
import pytest

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions import link
from starleague.environments.sc2.server.sessions.session import Session
from tests.environments.sc2.server import play

PARTICIPANT = sc_pb.PlayerSetup(type=sc_pb.Participant)


def _join(port, race, name):
  join = sc_pb.RequestJoinGame(race=race, options=play.interface(), player_name=name)
  join.server_ports.game_port, join.server_ports.base_port = port, port
  return join


async def _create(session):
  await play.ask(session, create_game=sc_pb.RequestCreateGame(
    local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"), random_seed=2,
    player_setup=[PARTICIPANT, PARTICIPANT]))


async def _start(host, guest):
  port = portpicker.pick_unused_port()
  await _create(host)
  return [response.join_game.player_id for response in await asyncio.gather(
    play.ask(host, join_game=_join(port, 1, "first")),
    play.ask(guest, join_game=_join(port, 1, "second")))]


def test_two_participants_play_and_one_leaves():
  async def script():
    host, guest = Session(wait_seconds=60), Session(wait_seconds=60)
    ids = await _start(host, guest)
    infos = [(await play.ask(session, game_info=sc_pb.RequestGameInfo())).game_info
             for session in (host, guest)]
    # A step is a barrier: the first to ask waits for the other.
    early = asyncio.create_task(play.step(host))
    await asyncio.sleep(0.05)
    waited = not early.done()
    seen = [await play.step(guest), await early]
    await play.ask(guest, leave_game=sc_pb.RequestLeaveGame())
    last = await play.ask(host, observation=sc_pb.RequestObservation())
    await play.ask(host, leave_game=sc_pb.RequestLeaveGame())
    again = await _start(guest, host)  # the roles can change
    await host.drop()
    await guest.drop()
    return ids, infos, waited, seen, last, again, guest.status

  ids, infos, waited, seen, last, again, status = asyncio.run(script())
  assert sorted(ids) == sorted(again) == [1, 2] and waited
  assert [[info.player_name for info in one.player_info] for one in infos] == [
    ["first", "second"]] * 2
  assert [one.observation.game_loop for one in seen] == [8, 8]
  assert sorted(one.observation.player_common.player_id for one in seen) == [1, 2]
  homes = [next(unit.pos for unit in one.observation.raw_data.units if unit.unit_type == 18)
           for one in seen]
  assert (homes[0].x + homes[1].x, homes[0].y + homes[1].y) == (24, 24)
  assert [(r.player_id, r.result) for r in last.observation.player_result] == [
    (1, sc_pb.Victory), (2, sc_pb.Defeat)]
  assert last.status == sc_pb.ended and status == sc_pb.launched


def test_a_guest_reads_its_result_after_the_host_has_left():
  async def script():
    host, guest = Session(wait_seconds=60), Session(wait_seconds=60)
    await _start(host, guest)
    waiting = asyncio.create_task(play.step(guest))
    await asyncio.sleep(0.05)
    await play.ask(host, leave_game=sc_pb.RequestLeaveGame())
    await waiting
    last = await play.ask(guest, observation=sc_pb.RequestObservation())
    await play.ask(guest, leave_game=sc_pb.RequestLeaveGame())
    await host.drop()
    return last

  last = asyncio.run(script())
  assert last.status == sc_pb.ended
  assert {r.result for r in last.observation.player_result if r.player_id == 2} == {sc_pb.Victory}


@pytest.mark.parametrize("kind", ["create_game", "start_replay"])
def test_a_host_that_goes_on_at_once_has_won_alone(kind):
  """The guest observes the end of the game after the host has begun another one."""
  async def script():
    host, guest = Session(wait_seconds=60), Session(wait_seconds=60)
    await _start(host, guest)
    await play.step(guest, 0)
    replay = (await play.ask(host, save_replay=sc_pb.RequestSaveReplay())).save_replay.data
    await play.ask(host, debug=sc_pb.RequestDebug(debug=[{"end_game": {"end_result": 2}}]))
    won = await play.ask(host, observation=sc_pb.RequestObservation())
    if kind == "create_game":
      await _create(host)
    else:
      await play.ask(host, start_replay=sc_pb.RequestStartReplay(
        replay_data=replay, observed_player_id=1, options=play.interface()))
    lost = await play.ask(guest, observation=sc_pb.RequestObservation())
    await guest.drop()
    await host.drop()
    return won, lost

  for response in asyncio.run(script()):
    assert [(r.player_id, r.result) for r in response.observation.player_result] == [
      (1, sc_pb.Victory), (2, sc_pb.Defeat)]
    assert response.status == sc_pb.ended


def test_an_error_in_a_guests_request_does_not_end_its_link(monkeypatch):
  async def script():
    host, guest = Session(wait_seconds=60), Session(wait_seconds=60)
    await _start(host, guest)

    def fail(player, request):
      raise ZeroDivisionError("an error of ours")
    monkeypatch.setattr(host._match, "perform", fail)
    failed = await guest.respond(sc_pb.Request(debug=sc_pb.RequestDebug()))
    monkeypatch.undo()
    fine = await play.ask(guest, observation=sc_pb.RequestObservation())
    await guest.drop()
    await host.drop()
    return failed, fine

  failed, fine = asyncio.run(script())
  assert failed.error == ["Internal error: ZeroDivisionError: an error of ours"]
  assert failed.status == fine.status == sc_pb.in_game


def test_the_end_of_a_game_by_debug_wakes_the_other_participant():
  async def script():
    host, guest = Session(wait_seconds=60), Session(wait_seconds=60)
    await _start(host, guest)
    waiting = asyncio.create_task(play.ask(guest, step=sc_pb.RequestStep(count=8)))
    await asyncio.sleep(0.05)
    await play.ask(host, debug=sc_pb.RequestDebug(debug=[{"end_game": {"end_result": 1}}]))
    found = await asyncio.wait_for(waiting, 20)
    await guest.drop()
    await host.drop()
    return found

  assert asyncio.run(script()).status == sc_pb.ended


def test_waiting_has_an_end():
  async def script():
    host, guest = Session(wait_seconds=0.05), Session(wait_seconds=0.05)
    await _create(host)
    port = portpicker.pick_unused_port()
    alone = await play.ask(host, join_game=_join(port, 1, "alone"))
    nobody = await guest.respond(sc_pb.Request(join_game=_join(port, 1, "lost")))
    host = Session(wait_seconds=60)
    await _start(host, guest)
    host._match._wait_seconds = 0.05
    stuck = await host.respond(sc_pb.Request(step=sc_pb.RequestStep(count=8)))
    await host.drop()
    gone = await guest.respond(sc_pb.Request(step=sc_pb.RequestStep(count=8)))
    return alone, nobody, stuck, gone

  alone, nobody, stuck, gone = asyncio.run(script())
  assert alone.join_game.error == sc_pb.ResponseJoinGame.NetworkError
  assert "no host of a game at 127.0.0.1" in nobody.error[0]
  assert "another player did not step" in stuck.error[0]
  assert "the host of the game is gone" in gone.error[0] and gone.status == sc_pb.launched


async def _connected(answer, gone=None):
  """A host end with this answer, and a guest end."""
  async def nothing():
    pass

  host, port = link.HostEnd(), portpicker.pick_unused_port()
  await host.listen("127.0.0.1", port, lambda: (answer, gone or nothing))
  return host, await link.GuestEnd.connect("127.0.0.1", port, 5)


def test_the_system_probes_connections_on_which_nothing_arrives():
  """A pulled cable ends them within 10 + 3 x 5 s."""
  async def script():
    async def serve(reader, writer):
      writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    end = link.GuestEnd(reader, writer)
    found = writer.get_extra_info("socket")
    values = [found.getsockopt(level, name) for level, name in (
      (socket.SOL_SOCKET, socket.SO_KEEPALIVE), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
      (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT))]
    await end.close()
    server.close()
    return values

  assert asyncio.run(script()) == [1, 10, 5, 3]


def test_a_request_that_waits_does_not_delay_later_ones():
  async def script():
    released, order = asyncio.Event(), []

    async def answer(request):
      if request.HasField("step"):
        await released.wait()
      order.append(request.id)
      return sc_pb.Response(id=request.id)

    host, guest = await _connected(answer)
    waiting = asyncio.create_task(guest.ask(sc_pb.Request(id=1, step=sc_pb.RequestStep())))
    fast = [(await guest.ask(sc_pb.Request(id=number, data=sc_pb.RequestData()))).id
            for number in (2, 3)]
    waited = not waiting.done()
    released.set()
    slow = (await waiting).id
    await guest.close()
    await host.close()
    return fast, waited, slow, order

  assert asyncio.run(script()) == ([2, 3], True, 1, [2, 3, 1])


@pytest.mark.parametrize("closes", ["guest", "host"])
def test_the_end_of_a_link_ends_requests_that_wait(closes):
  async def script():
    left = asyncio.Event()

    async def answer(request):
      await asyncio.Event().wait()

    async def gone():
      left.set()

    host, guest = await _connected(answer, gone)
    waiting = asyncio.create_task(guest.ask(sc_pb.Request(step=sc_pb.RequestStep())))
    await asyncio.sleep(0.05)
    await {"guest": guest, "host": host}[closes].close()
    errors = []
    for request in (waiting, guest.ask(sc_pb.Request(step=sc_pb.RequestStep()))):
      with pytest.raises(link.LinkError) as found:
        await asyncio.wait_for(request, 5)
      errors.append(str(found.value))
    await asyncio.wait_for(left.wait(), 5)
    await guest.close()
    await host.close()
    return errors

  reason = {"guest": "closed", "host": "IncompleteReadError"}[closes]
  assert asyncio.run(script()) == [f"the host of the game is gone: {reason}"] * 2


def test_damaged_frames_end_the_link():
  async def script(frame):
    left = asyncio.Event()

    async def gone():
      left.set()

    host, port = link.HostEnd(), portpicker.pick_unused_port()
    await host.listen("127.0.0.1", port, lambda: (None, gone))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(frame)
    ended = await asyncio.wait_for(reader.read(), 5)
    await asyncio.wait_for(left.wait(), 5)
    writer.close()
    await host.close()
    return ended

  too_long = struct.pack("!II", 0, 2 ** 31)
  no_request = struct.pack("!II", 0, 3) + b"\x07\xff\xff"
  for frame in (too_long, no_request):
    assert asyncio.run(script(frame)) == b""


def test_an_error_of_the_host_ends_the_link(caplog):
  async def script():
    async def answer(request):
      raise ZeroDivisionError("an error of ours")

    host, guest = await _connected(answer)
    with pytest.raises(link.LinkError, match="the host of the game is gone"):
      await asyncio.wait_for(guest.ask(sc_pb.Request(step=sc_pb.RequestStep())), 5)
    await guest.close()
    await host.close()

  asyncio.run(script())
  assert "guest's request=step failed" in caplog.text
