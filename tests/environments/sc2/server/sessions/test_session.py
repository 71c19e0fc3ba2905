"""The state machine of a session, and the answers to requests in a game of `mini`."""

import asyncio

import portpicker
import pytest
from pysc2 import maps

from starleague.environments.sc2.protocol import raw_pb, sc_pb
from starleague.environments.sc2.server.game import battlefields
from starleague.environments.sc2.server.sessions.session import Session
from tests.environments.sc2.server import play
from tests.environments.sc2.server.play import COMMAND_CENTER, MINERALS, SCV


@pytest.mark.parametrize("kind", [
  "game_info", "observation", "action", "step", "query", "data", "debug", "save_replay",
  "restart_game", "leave_game"])
def test_requests_of_a_game_need_one(kind):
  async def script(session):
    request = sc_pb.Request(id=7)
    getattr(request, kind).SetInParent()
    return await session.respond(request)

  response = play.run(script)
  assert list(response.error) == ["Not in a game"]
  assert (response.id, response.status) == (7, sc_pb.launched)


@pytest.mark.parametrize("join, error", [
  (sc_pb.RequestJoinGame(options=play.interface()), "MissingParticipation"),
  (sc_pb.RequestJoinGame(observed_player_id=1, options=play.interface()), "FeatureUnsupported"),
  (sc_pb.RequestJoinGame(race=1, options=play.interface()), "MissingPorts"),
  (sc_pb.RequestJoinGame(race=1, options=play.interface(99999, 64)), "OtherError")])
def test_participants_that_cannot_join_are_told_why(join, error):
  async def script(session):
    await play.ask(session, create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"),
      player_setup=[sc_pb.PlayerSetup(type=sc_pb.Participant)] * 2))
    return await play.ask(session, join_game=join)

  assert sc_pb.ResponseJoinGame.Error.Name(play.run(script).join_game.error) == error


@pytest.mark.parametrize("name, marines, error, message", [
  ("Mine.SC2Map", 99, "InvalidMapPath", "map: marines 99: expected 0 to 12"),
  ("", 99, "InvalidMapPath", "map: marines 99: expected 0 to 12"),
  ("", None, "MissingMap", "map: expected a name or the bytes of a map, found neither")])
def test_wrong_maps_are_named(name, marines, error, message):
  data = b"" if marines is None else battlefields.encode(
    battlefields.Battlefield("mini")).replace(b'"marines": 0', b'"marines": %d' % marines)

  async def script(session):
    return (await play.ask(session, create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path=name, map_data=data),
      player_setup=[sc_pb.PlayerSetup(type=sc_pb.Participant)] * 2))).create_game

  found = play.run(script)
  assert sc_pb.ResponseCreateGame.Error.Name(found.error) == error
  assert found.error_details == message


def test_a_participant_that_stays_alone_is_told_why():
  async def script(session):
    await play.ask(session, create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"),
      player_setup=[sc_pb.PlayerSetup(type=sc_pb.Participant)] * 2))
    join = sc_pb.RequestJoinGame(race=1, options=play.interface())
    join.server_ports.game_port = portpicker.pick_unused_port()
    return (await play.ask(session, join_game=join)).join_game

  found = play.run(script)
  assert found.error == sc_pb.ResponseJoinGame.NetworkError
  assert found.error_details == "no second participant: none in time"


def test_a_guest_whose_client_leaves_while_it_joins_ends_its_link():
  """A host whose program still compiles has admitted the guest, and would wait for its steps."""
  async def script(session):
    asked, ended = asyncio.Event(), asyncio.Event()

    async def host(reader, writer):
      await reader.readexactly(1)
      asked.set()
      await reader.read()  # up to the end of the link
      ended.set()
      writer.close()

    server = await asyncio.start_server(host, "127.0.0.1", 0)
    join = sc_pb.RequestJoinGame(race=1, options=play.interface())
    join.server_ports.game_port = server.sockets[0].getsockname()[1]
    joins = asyncio.ensure_future(session.answer(sc_pb.Request(join_game=join).SerializeToString()))
    await asyncio.wait_for(asked.wait(), 5)
    joins.cancel()
    await asyncio.wait((joins,))
    await asyncio.wait_for(ended.wait(), 5)
    server.close()
    return joins.cancelled(), session.status

  assert play.run(script) == (True, sc_pb.launched)


def two_participants():
  return sc_pb.Request(create_game=sc_pb.RequestCreateGame(
    local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"),
    player_setup=[sc_pb.PlayerSetup(type=sc_pb.Participant)] * 2))


@pytest.mark.parametrize("race, error", [(None, "MissingParticipation"), (1, "NetworkError")])
def test_a_client_that_fails_to_join_leaves_the_created_game(race, error):
  """It asks for no race, or no second participant comes in time."""
  async def script(session):
    host, other = object(), object()

    async def ask(request, client):
      return sc_pb.Response.FromString(await session.answer(request.SerializeToString(), client))

    created = await ask(two_participants(), host)
    join = sc_pb.RequestJoinGame(race=race, options=play.interface())
    join.server_ports.game_port = portpicker.pick_unused_port()
    joined = await ask(sc_pb.Request(join_game=join), other)
    await session.client_left(other)
    ping = await ask(sc_pb.Request(ping=sc_pb.RequestPing()), host)
    return created.status, joined.join_game.error, ping.status

  assert play.run(script) == (
    sc_pb.init_game, sc_pb.ResponseJoinGame.Error.Value(error), sc_pb.init_game)


@pytest.mark.parametrize("address, host_ip", [
  ("127.0.0.2", ""), ("127.0.0.2", "127.0.0.2"), ("0.0.0.0", ""), ("", "")])
def test_processes_of_a_game_meet_at_the_address_that_they_listen_on(address, host_ip):
  async def script():
    host, guest = (Session(None, address, wait_seconds=5.0) for _ in range(2))
    join = sc_pb.RequestJoinGame(race=1, options=play.interface())
    join.server_ports.game_port = portpicker.pick_unused_port()
    await host.respond(two_participants())
    hosts = asyncio.ensure_future(host.respond(sc_pb.Request(join_game=join)))
    join.host_ip = host_ip
    found = [await guest.respond(sc_pb.Request(join_game=join)), await hosts]
    await guest.drop()
    await host.drop()
    return [(list(response.error), response.join_game.player_id) for response in found]

  assert asyncio.run(script()) == [([], 2), ([], 1)]


def test_a_client_of_an_earlier_game_leaves_the_next_one():
  async def script(session):
    first = object()
    create = sc_pb.Request(create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"),
      player_setup=[sc_pb.PlayerSetup(type=sc_pb.Participant)]))
    await session.answer(create.SerializeToString(), first)
    join = sc_pb.Request(join_game=sc_pb.RequestJoinGame(race=1, options=play.interface()))
    await session.answer(join.SerializeToString(), first)
    played = session.status
    await session.respond(two_participants())
    await session.client_left(first)
    return played, session.status

  assert play.run(script) == (sc_pb.in_game, sc_pb.init_game)


def test_a_participant_without_options_sees_its_resources_and_no_units():
  """pysc2's host of a LAN game joins so where the game draws itself."""
  async def script(session):
    await play.ask(session, create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"),
      player_setup=[sc_pb.PlayerSetup(type=sc_pb.Participant)]))
    await play.ask(session, join_game=sc_pb.RequestJoinGame(race=1))
    return await play.ask(session, observation=sc_pb.RequestObservation())

  observation = play.run(script).observation.observation
  assert observation.player_common.minerals == 50
  assert not observation.HasField("raw_data") and not observation.HasField("feature_layer_data")


def test_there_must_be_a_game_to_join():
  async def script(session):
    return await session.respond(sc_pb.Request(join_game=sc_pb.RequestJoinGame(race=1)))

  assert play.run(script).error[0].startswith("No game to join")


def test_a_mini_game_has_marines_and_no_opponent():
  async def script(session):
    await play.ask(session, create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="mini_games/MoveToBeacon.SC2Map"),
      player_setup=[sc_pb.PlayerSetup(type=sc_pb.Participant)]))
    await play.ask(session, join_game=sc_pb.RequestJoinGame(race=1, options=play.interface()))
    first = (await play.ask(session, observation=sc_pb.RequestObservation())).observation
    await play.ask(session, step=sc_pb.RequestStep(count=0))
    return first, await play.step(session, 80)

  first, later = play.run(script)
  assert first.observation.player_common.army_count == 8
  assert len(play.units_of(first, 48)) == len(play.units_of(later, 48)) == 8
  assert later.observation.game_loop == 80 and not later.player_result


def test_available_maps_have_a_path_or_a_battle_net_name():
  """pysc2's environment asks for the Battle.net names before it creates a game of one."""
  async def script(session):
    seen = (await play.ask(session, available_maps=sc_pb.RequestAvailableMaps())).available_maps
    created = await play.ask(session, create_game=sc_pb.RequestCreateGame(
      battlenet_map_name="Winter's Gate LE",
      player_setup=[sc_pb.PlayerSetup(type=sc_pb.Participant)] * 2))
    return seen, created.status

  seen, status = play.run(script)
  assert status == sc_pb.init_game
  assert len(seen.battlenet_map_names) > 40
  for name in ("WintersGate", "AbyssalReef"):
    assert maps.get(name).battle_net in seen.battlenet_map_names
  assert "Melee/Simple64.SC2Map" in seen.local_map_paths


def test_a_game_from_its_start_to_its_end():
  async def script(session):
    await play.start(session, seed=4)
    info = (await play.ask(session, game_info=sc_pb.RequestGameInfo())).game_info
    first = (await play.ask(session, observation=sc_pb.RequestObservation())).observation
    await play.ask(session, debug=sc_pb.RequestDebug())
    later = await play.step(session, 20)
    last = await play.step(session, 60000)
    ended = session.status
    over = await session.respond(sc_pb.Request(step=sc_pb.RequestStep(count=1)))
    replay = (await play.ask(session, save_replay=sc_pb.RequestSaveReplay())).save_replay.data
    told = (await play.ask(session, replay_info=sc_pb.RequestReplayInfo(
      replay_data=replay))).replay_info
    await play.ask(session, restart_game=sc_pb.RequestRestartGame())
    again = (await play.ask(session, observation=sc_pb.RequestObservation())).observation
    await play.ask(session, leave_game=sc_pb.RequestLeaveGame())
    return info, first, later, last, ended, over, told, again, session.status

  info, first, later, last, ended, over, told, again, status = play.run(script)
  assert [player.race_requested for player in info.player_info] == [1, 1]
  assert (info.start_raw.map_size.x, info.start_raw.map_size.y) == (24, 24)
  assert [(place.x, place.y) for place in info.start_raw.start_locations] == [(18.5, 5.5)]
  assert first.observation.game_loop == 0 and later.observation.game_loop == 20
  (home,) = play.units_of(first, COMMAND_CENTER)
  assert (home.pos.x, home.pos.y) == (5.5, 18.5)
  assert len(play.units_of(first, SCV)) == 4
  assert len(play.units_of(first, MINERALS, raw_pb.Neutral)) == 12
  assert ended == sc_pb.ended and last.observation.game_loop <= 4480
  assert {result.player_id for result in last.player_result} == {1, 2}
  assert list(over.error) == ["Game has already ended"]
  assert told.game_duration_loops == last.observation.game_loop
  assert again.observation.game_loop == 0 and status == sc_pb.launched
