"""The state machine of a session, and the answers to requests in a game of `mini`."""


import numpy as np
import pytest

from starleague.environments.sc2.protocol import query_pb, raw_pb, sc_pb
from starleague.environments.sc2.server.game import engine
from starleague.environments.sc2.server.views import queries
from tests.environments.sc2.server import play

SCV, COMMAND_CENTER, BARRACKS, MINERALS = 45, 18, 21, 341


def _of(observation, unit_type, alliance=raw_pb.Self):
  return [unit for unit in observation.observation.raw_data.units
          if unit.unit_type == unit_type and unit.alliance == alliance]


def _command(ability, *tags, **target):
  return sc_pb.RequestAction(actions=[sc_pb.Action(action_raw=raw_pb.ActionRaw(
    unit_command=raw_pb.ActionRawUnitCommand(ability_id=ability, unit_tags=tags, **target)))])


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


@pytest.mark.parametrize("players, error", [
  ([], "MissingPlayerSetup"), ([2, 2], "InvalidPlayerSetup"), ([1, 1, 1], "InvalidPlayerSetup"),
  ([3], "InvalidPlayerSetup"), ([2, 2, 2, 3], "InvalidPlayerSetup")])
def test_players_that_cannot_play_are_refused(players, error):
  async def script(session):
    return await play.ask(session, create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"),
      player_setup=[sc_pb.PlayerSetup(type=kind) for kind in players]))

  response = play.run(script)
  assert sc_pb.ResponseCreateGame.Error.Name(response.create_game.error) == error
  assert response.status == sc_pb.launched


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
  assert len(_of(first, 48)) == len(_of(later, 48)) == 8
  assert later.observation.game_loop == 80 and not later.player_result


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
  (home,) = _of(first, COMMAND_CENTER)
  assert (home.pos.x, home.pos.y) == (5.5, 18.5)
  assert len(_of(first, SCV)) == 4 and len(_of(first, MINERALS, raw_pb.Neutral)) == 12
  assert ended == sc_pb.ended and last.observation.game_loop <= 4480
  assert {result.player_id for result in last.player_result} == {1, 2}
  assert list(over.error) == ["Game has already ended"]
  assert told.game_duration_loops == last.observation.game_loop
  assert again.observation.game_loop == 0 and status == sc_pb.launched


def test_commands_have_results_and_errors():
  async def script(session):
    await play.start(session)
    seen = await play.step(session)
    (home,) = _of(seen, COMMAND_CENTER)
    workers = [unit.tag for unit in _of(seen, SCV)]
    results = []
    for request in (
        _command(524, home.tag),  # 50 minerals are enough for one SCV
        _command(524, home.tag), _command(524, workers[0]), _command(623, home.tag),
        _command(16, *workers, target_world_space_pos={"x": 12, "y": 12}),
        _command(16, 12345, target_world_space_pos={"x": 12, "y": 12}),
        _command(23, workers[0], target_unit_tag=99)):
      results += (await play.ask(session, action=request)).action.result
    return results, await play.step(session), await play.step(session), home.tag

  results, after, later, home = play.run(script)
  # Success, NotEnoughMinerals, no selected unit can, NotSupported, Success, no unit, no target.
  assert results == [1, 9, 88, 2, 1, 88, 36]
  assert [error.result for error in after.action_errors] == [9, 88, 2, 88, 36]
  assert [error.ability_id for error in after.action_errors] == [524, 524, 623, 16, 23]
  assert after.action_errors[0].unit_tag == home
  assert len(after.actions) == 2 and not later.action_errors and not later.actions
  (center,) = _of(after, COMMAND_CENTER)
  assert [order.ability_id for order in center.orders] == [524]
  assert after.observation.player_common.minerals < 50
  targets = {(order.ability_id, order.target_world_space_pos.x) for unit in _of(after, SCV)
             for order in unit.orders}
  assert targets == {(16, 12.0)}


def test_queries():
  async def script(session):
    await play.start(session)
    seen = await play.step(session)
    (home,) = _of(seen, COMMAND_CENTER)
    worker = _of(seen, SCV)[0]
    request = query_pb.RequestQuery(ignore_resource_requirements=True)
    for tag in (home.tag, worker.tag, 1):
      request.abilities.add(unit_tag=tag)
    for x, y in ((12, 12), (5.5, 18.5), (0.2, 12), (float("nan"), 1)):
      request.placements.add(ability_id=321, target_pos={"x": x, "y": y})
    request.placements.add(ability_id=23, target_pos={"x": 12, "y": 12})
    request.pathing.add(start_pos={"x": 2, "y": 2}, end_pos={"x": 5, "y": 6})
    request.pathing.add(unit_tag=worker.tag, end_pos={"x": worker.pos.x, "y": worker.pos.y})
    request.pathing.add(start_pos={"x": 2, "y": 2}, end_pos={"x": 25, "y": 6})
    request.pathing.add(end_pos={"x": 3, "y": 4})
    return (await play.ask(session, query=request)).query

  answer = play.run(script)
  home, worker, unknown = ({ability.ability_id for ability in listed.abilities}
                           for listed in answer.abilities)
  assert 524 in home and {1, 4, 16, 18, 23, 295, 321} <= worker and unknown == set()
  assert [listed.unit_type_id for listed in answer.abilities] == [COMMAND_CENTER, SCV, 0]
  points = {ability.ability_id: ability.requires_point for ability in answer.abilities[1].abilities}
  assert points[321] and points[295] and not points[4]
  assert [placement.result for placement in answer.placements] == [1, 44, 44, 44, 2]
  np.testing.assert_allclose([way.distance for way in answer.pathing], [5, 0, 0, 5], atol=1e-5)


def test_ways_start_at_the_edge_of_the_map():
  """Its first row of cells from below is the last one of the terrain."""
  rules = engine.rules_of("default")
  size = rules.terrain.cells
  assert queries.walk(rules.terrain, 0, np.array([0.0, size]), np.array([0.0, size])) == 0.0


def test_numbers_that_are_none_change_nothing():
  nan = float("nan")

  async def script(session):
    await play.start(session)
    seen = await play.step(session)
    tag = _of(seen, SCV)[0].tag
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[
      {"create_unit": {"unit_type": 48, "owner": 1, "quantity": 1, "pos": {"x": nan, "y": 2}}},
      {"unit_value": {"unit_value": 2, "value": nan, "unit_tag": tag}}]))
    return seen, await play.step(session)

  before, after = play.run(script)
  assert not _of(after, 48)
  assert [unit.health for unit in _of(after, SCV)] == [unit.health for unit in _of(before, SCV)]


def test_debug_money_and_surrender():
  async def script(session):
    await play.start(session)
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"game_state": 5}]))
    rich = (await play.ask(session, observation=sc_pb.RequestObservation())).observation
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"end_game": {"end_result": 1}}]))
    return rich, (await play.ask(session, observation=sc_pb.RequestObservation())).observation

  rich, over = play.run(script)
  assert rich.observation.player_common.minerals == 5050
  assert [(r.player_id, r.result) for r in over.player_result] == [(1, 2), (2, 1)]


def test_debug_creates_and_kills_units():
  marine, depot, zergling = 48, 19, 105  # `mini` has no depots

  def created(unit_type, owner, count):
    return {"create_unit": {"unit_type": unit_type, "owner": owner, "quantity": count,
                            "pos": {"x": 12, "y": 12}}}

  async def script(session):
    await play.start(session)
    seen = []
    for given in ([created(marine, 1, 5), created(SCV, 2, 2), created(BARRACKS, 1, 1),
                   created(depot, 1, 1), created(zergling, 1, 1), created(marine, 16, 1)],
                  [created(marine, 1, 200)], []):
      if not given:
        marines = [unit.tag for unit in seen[0] if unit.unit_type == marine and unit.owner == 1]
        given = [{"kill_unit": {"tag": [*marines[:4], 12345]}},
                 {"unit_value": {"unit_value": 2, "value": 5, "unit_tag": marines[4]}}]
      await play.ask(session, debug=sc_pb.RequestDebug(debug=given))
      # After the first look, less than a step of Skirmish.
      await play.ask(session, step=sc_pb.RequestStep(count=2 if seen else 8))
      raw = (await play.ask(session, observation=sc_pb.RequestObservation())
             ).observation.observation.raw_data
      seen.append(list(raw.units))
    return seen, list(raw.event.dead_units), marines

  (first, second, third), dead, marines = play.run(script)

  def count(units, unit_type, owner=1):
    return sum(unit.unit_type == unit_type and unit.owner == owner for unit in units)

  assert [count(first, kind) for kind in (marine, BARRACKS, depot, zergling)] == [5, 1, 0, 0]
  assert count(first, SCV, owner=2) == 2  # in sight of the Marines
  found = [unit for unit in first if unit.unit_type == marine and unit.owner == 1]
  assert all(unit.health == 45 and unit.build_progress == 1 for unit in found)
  np.testing.assert_allclose(np.mean([(u.pos.x, u.pos.y) for u in found], axis=0), [12, 12], atol=1)
  slots = engine.rules_of("mini").tier.units
  assert count(second, marine) + count(second, SCV) == slots  # as many as there is room for
  assert count(third, marine) == count(second, marine) - 4
  assert set(marines[:4]) == set(dead)
  assert [unit.health for unit in third if unit.tag == marines[4]] == [5]


def test_real_time_goes_on_by_itself():
  async def script(session):
    await play.start(session, realtime=True)
    refused = await session.respond(sc_pb.Request(step=sc_pb.RequestStep(count=1)))
    loops = []
    for _ in range(200):  # the wait of a request is short here
      seen = await session.respond(sc_pb.Request(
        observation=sc_pb.RequestObservation(game_loop=10)))
      loops.append(seen.observation.observation.game_loop)
      if loops[-1] >= 10:
        break
    return refused, loops

  refused, loops = play.run(script)
  assert list(refused.error) == ["step is not possible in real time"]
  assert loops[-1] >= 10


def test_feature_layers_and_selection():
  async def script(session):
    await play.start(session, options=play.interface(32, 64))
    first = await play.step(session)
    select = sc_pb.RequestAction()
    action = select.actions.add().action_feature_layer.unit_selection_rect
    corner = action.selection_screen_coord.add()
    corner.p1.x = corner.p1.y = 31
    done = await play.ask(session, action=select)
    workers = await play.step(session)
    army = sc_pb.RequestAction()
    army.actions.add().action_ui.select_army.SetInParent()
    failed = await play.ask(session, action=army)
    return first, done, workers, failed

  first, done, workers, failed = play.run(script)
  assert not first.observation.abilities and not _selected(first)
  assert list(done.action.result) == [1] and list(failed.action.result) == [3]
  assert len(workers.observation.ui_data.multi.units) == 4 == len(_selected(workers))
  assert {1, 16, 23, 295} <= {a.ability_id for a in workers.observation.abilities}
  layers = workers.observation.feature_layer_data
  size = layers.renders.unit_type.size
  types = np.frombuffer(layers.renders.unit_type.data, np.int32).reshape(size.y, size.x)
  assert {SCV, COMMAND_CENTER, MINERALS} <= set(types.ravel().tolist())
  own = np.frombuffer(layers.minimap_renders.player_relative.data, np.uint8).reshape(64, 64)
  assert own[15, 14] == 1  # the town hall, at (5.5, 18.5) of a world of 24, rows downwards


def _selected(observation):
  return [unit for unit in observation.observation.raw_data.units if unit.is_selected]


def test_the_first_camera_move_is_reported_once_at_loop_2():
  """As the game does: pysc2's `replay_obs_test` expects it, and observes that loop twice."""
  async def script(session):
    await play.start(session, options=play.interface(24, 24))
    return [list((await play.step(session, 1)).actions) for _ in range(3)] + [
      list((await play.ask(session, observation=sc_pb.RequestObservation())).observation.actions)]

  before, (move,), after, again = play.run(script)
  assert not before and not after and not again
  assert move.game_loop == 1
  center, cell = (move.action_raw.camera_move.center_world_space,
                  move.action_feature_layer.camera_move.center_minimap)
  assert (center.x, center.y) == (5.5, 18.5)  # the home base
  assert (cell.x, cell.y) == (5, 5)  # rows run downwards, on a map of 24 x 24


@pytest.mark.parametrize("place, cell", [((12, 12), (12, 12)), ((0, 24), (0, 0)),
                                         ((30, -3), (23, 23))])
def test_a_camera_move_in_the_world_is_reported_in_cells_too(place, cell):
  async def script(session):
    await play.start(session, options=play.interface(24, 24))
    await play.step(session, 2)
    move = raw_pb.ActionRawCameraMove(center_world_space={"x": place[0], "y": place[1]})
    await play.ask(session, action=sc_pb.RequestAction(
      actions=[sc_pb.Action(action_raw=raw_pb.ActionRaw(camera_move=move))]))
    return (await play.step(session, 1)).actions

  (move,) = play.run(script)
  center = move.action_feature_layer.camera_move.center_minimap
  assert (center.x, center.y) == cell
  assert move.action_raw.camera_move.center_world_space.x == place[0]


def test_without_a_minimap_no_cells_are_reported():
  async def script(session):
    await play.start(session)
    return (await play.step(session, 2)).actions

  (move,) = play.run(script)
  assert move.action_raw.HasField("camera_move") and not move.HasField("action_feature_layer")
