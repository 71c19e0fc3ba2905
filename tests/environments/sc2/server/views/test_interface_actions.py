"""Actions of the interface: selection and camera."""

import numpy as np
import pytest

from starleague.environments.sc2.protocol import common_pb, raw_pb, sc_pb, spatial_pb, ui_pb
from starleague.environments.sc2.server.game import game
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.client_commands import Target, issue
from starleague.environments.sc2.server.views import interface_actions, raw_units
from starleague.environments.sc2.server.views.seats import ServerSeat
from tests.environments.sc2.server import play
from tests.environments.sc2.server.play import COMMAND_CENTER, MINERALS, SCV


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


@pytest.fixture
def played():
  return game.Game(Battlefield("mini", realistic=False), (1, 1), 2)


@pytest.fixture
def seat():
  found = ServerSeat(0, play.interface(24, 24))
  found.camera = 5.5, 18.5
  return found


def ui(**action):
  return sc_pb.Action(action_ui=ui_pb.ActionUI(**action))


def own(played, *kinds):
  """Own tags of these types."""
  local = [played.rules.types.local(name) for name in kinds]
  return played.tags[0][np.isin(played.state.kind[0], local)].tolist()


def perform(played, seat, *actions):
  return [interface_actions.perform(played, seat, action)[0] for action in actions]


def test_control_groups_are_set_added_to_stolen_and_recalled(played, seat):
  first, second, third, _ = own(played, "SCV")
  group = ui_pb.ActionControlGroup

  def control(action, index=1):
    return ui(control_group=group(action=action, control_group_index=index))

  seat.selected = [first, second]
  assert perform(played, seat, control(group.Set)) == [1] and seat.groups == {1: [first, second]}
  seat.selected = [second, third]
  perform(played, seat, control(group.Append))
  assert seat.groups == {1: [first, second, third]}
  seat.selected = [second]
  perform(played, seat, control(group.SetAndSteal, 2))
  assert seat.groups == {1: [first, third], 2: [second]}
  perform(played, seat, control(group.Recall))
  assert seat.selected == [first, third]
  assert perform(played, seat, control(group.Recall, 5), control(group.Set, 10)) == [3, 3]


def test_idle_workers_and_the_army_are_selected(played, seat):
  workers = own(played, "SCV")
  kinds = ui_pb.ActionSelectIdleWorker
  assert perform(played, seat, ui(select_idle_worker=kinds(type=kinds.All))) == [3]  # all mine
  assert issue(played, 0, 4, workers[:2], Target()) == 1  # stop
  list(played.play(1))
  assert perform(played, seat, ui(select_idle_worker=kinds(type=kinds.Set))) == [1]
  assert seat.selected == workers[:1]
  perform(played, seat, ui(select_idle_worker=kinds(type=kinds.AddAll)))
  assert seat.selected == workers[:2]
  played.create(0, played.rules.types.local("Marine"), (0.0, 0.0), 2)
  assert perform(played, seat, ui(select_army=ui_pb.ActionSelectArmy())) == [1]
  assert seat.selected == own(played, "Marine")
  perform(played, seat, ui(select_army=ui_pb.ActionSelectArmy(selection_add=True)))
  assert seat.selected == own(played, "Marine")  # each unit once


def test_the_panel_of_several_units_keeps_or_drops_some(played, seat):
  worker = own(played, "SCV")[:2]
  played.create(0, played.rules.types.local("Marine"), (0.0, 0.0), 2)
  marines, kinds = own(played, "Marine"), ui_pb.ActionMultiPanel
  assert len(marines) == 2

  def panel(action, index):
    seat.selected = [*worker, *marines]
    result = perform(played, seat, ui(multi_panel=kinds(type=action, unit_index=index)))
    return result, seat.selected

  assert panel(kinds.SingleSelect, 2) == ([1], marines[:1])
  assert panel(kinds.DeselectUnit, 0) == ([1], [worker[1], *marines])
  assert panel(kinds.SelectAllOfType, 3) == ([1], marines)
  assert panel(kinds.DeselectAllOfType, 3) == ([1], worker)
  assert panel(kinds.SingleSelect, 4) == ([3], [*worker, *marines])


def test_a_point_selects_the_nearest_unit_and_its_type(played, seat):
  (home,), workers = own(played, "CommandCenter"), own(played, "SCV")
  kinds = spatial_pb.ActionSpatialUnitSelectionPoint

  def click(x, y, action=kinds.Select):
    return perform(played, seat, sc_pb.Action(
      action_feature_layer=spatial_pb.ActionSpatial(unit_selection_point=kinds(
        type=action, selection_screen_coord=common_pb.PointI(x=x, y=y)))))

  assert click(12, 12) == [1] and seat.selected == [home]  # the centre of the screen
  assert click(12, 12, kinds.Toggle) == [1] and seat.selected == []
  assert click(23, 23) == [3]  # nothing is there
  slot = int(np.flatnonzero(played.tags[0] == workers[0])[0])
  x, y = played.world.to_world(float(played.state.x[0, slot]), float(played.state.y[0, slot]))
  cell = int(x - (5.5 - 12)), int(18.5 + 12 - y)
  assert click(*cell, kinds.AllType) == [1] and seat.selected == workers
  assert click(99, 0) == [3]  # off the screen


def test_a_command_at_the_screen_aims_at_the_unit_there(played, seat):
  """A worker sent to minerals by a click gathers; on free ground it moves."""
  worker = own(played, "SCV")[0]
  seat.selected = [worker]

  def click(x, y):
    command = spatial_pb.ActionSpatialUnitCommand(
      ability_id=1, target_screen_coord=common_pb.PointI(x=x, y=y))
    found = perform(played, seat, sc_pb.Action(
      action_feature_layer=spatial_pb.ActionSpatial(unit_command=command)))
    list(played.play(1))
    (unit,) = [unit for unit in raw_units.make_units(interface_actions.make_view(played, seat))
               if unit.tag == worker]
    return found, [order.ability_id for order in unit.orders]

  assert click(20, 12) == ([1], [16])
  assert click(7, 11) == ([1], [295])  # the patch at (0.75, 19.5)


def test_the_camera_stays_on_the_map(played, seat):
  def move(x, y):
    return sc_pb.Action(action_raw=raw_pb.ActionRaw(camera_move=raw_pb.ActionRawCameraMove(
      center_world_space=common_pb.Point(x=x, y=y))))

  assert perform(played, seat, move(99, -4)) == [1] and seat.camera == (24, 0)
  assert perform(played, seat, move(float("nan"), 1)) == [3] and seat.camera == (24, 0)


def test_actions_that_the_server_lacks_give_the_games_result(played, seat):
  blind = ServerSeat(0, play.interface())  # without feature layers
  toggle = sc_pb.Action(action_raw=raw_pb.ActionRaw(
    toggle_autocast=raw_pb.ActionRawToggleAutocast(ability_id=77)))
  assert interface_actions.perform(played, seat, toggle) == (2, 77)
  assert perform(played, seat, sc_pb.Action(action_render=spatial_pb.ActionSpatial()),
                 ui(cargo_panel=ui_pb.ActionCargoPanelUnload()), sc_pb.Action(
                   action_chat=sc_pb.ActionChat(message="hi"))) == [2, 2, 1]
  assert perform(played, blind, sc_pb.Action(
    action_feature_layer=spatial_pb.ActionSpatial(
      camera_move=spatial_pb.ActionSpatialCameraMove()))) == [2]
