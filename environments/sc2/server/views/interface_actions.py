"""Actions of the game's interface: camera, selection, control groups, commands at screen places."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from starleague.environments.sc2.protocol import common_pb, raw_pb, sc_pb, spatial_pb, ui_pb
from starleague.environments.sc2.server.game import catalogue
from starleague.environments.sc2.server.game.client_commands import (
  SUCCESS,
  Target,
  issue,
  issue_to_all,
  unload_one,
)
from starleague.environments.sc2.server.game.game import Game
from starleague.environments.sc2.server.views import layers, raw_units
from starleague.environments.sc2.server.views.layers import Grid
from starleague.environments.sc2.server.views.seats import ServerSeat
from starleague.environments.sc2.server.views.view import View
from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.state.queries import warp_gates
from starleague.environments.skirmish.rules.tables import constants

_CANCEL_LAST = 304  # ability: removes the last product of a queue
_FAILED = action_results.ERROR
FIRST_CAMERA_LOOP = 2  # of the observation that reports the camera's first move, as in the game


def make_view(game: Game, seat: ServerSeat) -> View:
  """Returns a participant's view of the current frame."""
  return View(game, game.frame(), seat.player, frozenset(seat.selected), seat.screen())


def drop_unlisted(game: Game, seat: ServerSeat) -> None:
  """Takes units that are not listed any more, such as dead ones, out of the selection.

  Called before actions, not in observations: those of a playback come at other loops.
  """
  listed = {unit.tag for unit in raw_units.make_units(make_view(game, seat))}
  seat.selected = [tag for tag in seat.selected if tag in listed]


def perform(game: Game, seat: ServerSeat, action: sc_pb.Action) -> tuple[int, int]:
  """Performs an action and returns its ActionResult and the ability concerned, 0 for none."""
  if action.HasField("action_raw"):
    return _raw(game, seat, action.action_raw)
  if action.HasField("action_feature_layer"):
    return _spatial(game, seat, action.action_feature_layer)
  if action.HasField("action_ui"):
    return _ui(game, seat, action.action_ui), 0
  if action.HasField("action_render"):
    return action_results.NOT_SUPPORTED, 0
  return SUCCESS, 0  # chat, or nothing


def reported(game: Game, seat: ServerSeat, action: sc_pb.Action, loop: int) -> sc_pb.Action:
  """Returns an action as observations report it; a camera move also in the minimap's cells."""
  found = sc_pb.Action()
  found.CopyFrom(action)
  found.game_loop = loop
  grid, (x, y) = layers.minimap_grid(game, seat), seat.camera
  if action.action_raw.HasField("camera_move") and grid.columns > 0 and grid.rows > 0:
    cell = found.action_feature_layer.camera_move.center_minimap
    cell.x = min(int(x / grid.width * grid.columns), grid.columns - 1)
    cell.y = min(int((1 - y / grid.height) * grid.rows), grid.rows - 1)
  return found


def first_camera(game: Game, seat: ServerSeat) -> sc_pb.Action:
  """Returns the camera's first move, to the home base, which the game reports by itself."""
  action = sc_pb.Action()
  center = action.action_raw.camera_move.center_world_space
  center.x, center.y = seat.camera
  return reported(game, seat, action, FIRST_CAMERA_LOOP - 1)


def _raw(game: Game, seat: ServerSeat, action: raw_pb.ActionRaw) -> tuple[int, int]:
  kind = action.WhichOneof("action")
  if kind == "camera_move":
    center = action.camera_move.center_world_space
    return _move_camera(game, seat, center.x, center.y), 0
  if kind == "toggle_autocast":
    return action_results.NOT_SUPPORTED, action.toggle_autocast.ability_id
  if kind != "unit_command":
    return _FAILED, 0
  command = action.unit_command
  target = Target()
  if command.WhichOneof("target") == "target_world_space_pos":
    place = command.target_world_space_pos
    target = Target(x=place.x, y=place.y, is_point=True)
  elif command.WhichOneof("target") == "target_unit_tag":
    target = Target(tag=command.target_unit_tag)
  if seat.options.raw_affects_selection:
    seat.selected = list(dict.fromkeys(command.unit_tags))
  return _issue(game, seat, command.ability_id, command.unit_tags, target,
                command.queue_command), command.ability_id


def _issue(game: Game, seat: ServerSeat, ability: int, tags: Sequence[int], target: Target,
           queued: bool) -> int:
  """Executes a command of a participant and returns its ActionResult."""
  execute = issue_to_all if seat.controls_enemy else issue
  return execute(game, seat.player, ability, tags, target, queued)


def _move_camera(game: Game, seat: ServerSeat, x: float, y: float) -> int:
  """Moves the camera; its middle stays on the playable area."""
  if not (np.isfinite(x) and np.isfinite(y)):
    return _FAILED
  least, most = float(game.world.border), float(game.world.size - game.world.border)
  seat.camera = min(max(x, least), most), min(max(y, least), most)
  return SUCCESS


def _place(grid: Grid, point: common_pb.PointI) -> tuple[float, float] | None:
  """World position of a cell, None if it is off the grid."""
  if not (0 <= point.x < grid.columns and 0 <= point.y < grid.rows):
    return None
  return (grid.left + (point.x + 0.5) * grid.width / grid.columns,
          grid.top - (point.y + 0.5) * grid.height / grid.rows)


def _at(listed: list[raw_pb.Unit], x: float, y: float) -> raw_pb.Unit | None:
  """The unit at a world position: the nearest of those that cover it."""
  there = [(float(np.hypot(unit.pos.x - x, unit.pos.y - y)), i) for i, unit in enumerate(listed)]
  there = [(far, i) for far, i in there if far <= max(listed[i].radius, 0.5)]
  return listed[min(there)[1]] if there else None


def _spatial(game: Game, seat: ServerSeat, action: spatial_pb.ActionSpatial) -> tuple[int, int]:
  kind = action.WhichOneof("action")
  if not seat.options.HasField("feature_layer"):
    return action_results.NOT_SUPPORTED, 0
  view = make_view(game, seat)
  if kind == "camera_move":
    place = _place(layers.minimap_grid(game, seat), action.camera_move.center_minimap)
    return (_move_camera(game, seat, *place) if place else _FAILED), 0
  if kind == "unit_command":
    return _screen_command(game, seat, view, action.unit_command), action.unit_command.ability_id
  if kind == "unit_selection_point":
    return _select_point(seat, view, action.unit_selection_point), 0
  if kind == "unit_selection_rect":
    return _select_rectangle(seat, view, action.unit_selection_rect), 0
  return _FAILED, 0


def _screen_command(game: Game, seat: ServerSeat, view: View,
                    command: spatial_pb.ActionSpatialUnitCommand) -> int:
  """A command of the selected units, at a cell of the screen or of the minimap."""
  kind, target = command.WhichOneof("target"), Target()
  if kind is not None:
    on_screen = kind == "target_screen_coord"
    grid = layers.screen_grid(seat) if on_screen else layers.minimap_grid(game, seat)
    place = _place(grid, getattr(command, kind))
    if place is None:
      return _FAILED
    target = Target(x=place[0], y=place[1], is_point=True)
    under = _at(raw_units.make_units(view), *place) if on_screen else None
    abilities = catalogue.make_catalogue(game.rules)
    function = abilities.pick(command.ability_id, False, True) if under else None
    if under and function is not None and game.rules.functions.takes_unit[function]:
      target = Target(tag=under.tag)
  return _issue(game, seat, command.ability_id, seat.selected, target, command.queue_command)


def _select(seat: ServerSeat, tags: Iterable[int], add: bool) -> int:
  tags = list(tags)
  if not tags:
    return _FAILED if not add else SUCCESS
  seat.selected = list(dict.fromkeys([*seat.selected, *tags] if add else tags))
  return SUCCESS


def _select_point(seat: ServerSeat, view: View,
                  action: spatial_pb.ActionSpatialUnitSelectionPoint) -> int:
  place = _place(layers.screen_grid(seat), action.selection_screen_coord)
  listed = raw_units.make_units(view)
  unit = _at(listed, *place) if place else None
  if unit is None:
    return _FAILED
  kinds = spatial_pb.ActionSpatialUnitSelectionPoint
  if action.type in (kinds.AllType, kinds.AddAllType):
    same = [other.tag for other in listed if other.unit_type == unit.unit_type
            and other.alliance == unit.alliance and other.is_on_screen]
    return _select(seat, same or [unit.tag], action.type == kinds.AddAllType)
  if action.type == kinds.Toggle:
    if unit.tag in seat.selected:
      seat.selected.remove(unit.tag)
      return SUCCESS
    return _select(seat, [unit.tag], True)
  return _select(seat, [unit.tag], False)


def _select_rectangle(seat: ServerSeat, view: View,
                      action: spatial_pb.ActionSpatialUnitSelectionRect) -> int:
  """Own units in the rectangles; structures only where there are no units."""
  grid = layers.screen_grid(seat)
  chosen: list[raw_pb.Unit] = []
  for rectangle in action.selection_screen_coord:
    corners = [_place(grid, corner) for corner in (rectangle.p0, rectangle.p1)]
    if corners[0] is None or corners[1] is None:
      return _FAILED
    (x0, y0), (x1, y1) = corners[0], corners[1]
    chosen += [unit for unit in raw_units.make_units(view) if unit.alliance == raw_pb.Self
               and min(x0, x1) - unit.radius <= unit.pos.x <= max(x0, x1) + unit.radius
               and min(y0, y1) - unit.radius <= unit.pos.y <= max(y0, y1) + unit.radius]
  structures = _structure_tags(view)
  movable = [unit.tag for unit in chosen if unit.tag not in structures]
  return _select(seat, movable or [unit.tag for unit in chosen], action.selection_add)


def _structure_tags(view: View) -> set[int]:
  return set(view.frame.tags[view.player, :view.game.rules.tier.structures].tolist()) - {0}


def _ui(game: Game, seat: ServerSeat, action: ui_pb.ActionUI) -> int:
  kind = action.WhichOneof("action")
  if kind is None or kind not in _UI_ACTIONS:
    return action_results.NOT_SUPPORTED
  return _UI_ACTIONS[kind](game, seat, getattr(action, kind))


def _control_group(game: Game, seat: ServerSeat, action: ui_pb.ActionControlGroup) -> int:
  del game
  index, kinds = action.control_group_index, ui_pb.ActionControlGroup
  if not 0 <= index <= 9:
    return _FAILED
  if action.action == kinds.Recall:
    return _select(seat, seat.groups.get(index, []), False)
  if action.action in (kinds.SetAndSteal, kinds.AppendAndSteal):
    for group in seat.groups.values():
      group[:] = [tag for tag in group if tag not in seat.selected]
  before = seat.groups.get(index, []) if action.action in (
    kinds.Append, kinds.AppendAndSteal) else []
  seat.groups[index] = list(dict.fromkeys([*before, *seat.selected]))
  return SUCCESS


def _own_tags(game: Game, player: int, chosen: np.ndarray) -> list[int]:
  """Tags of units [M] bool."""
  tags = game.tags[player, game.rules.tier.structures:]
  return tags[chosen & (tags > 0)].tolist()


def _select_army(game: Game, seat: ServerSeat, action: ui_pb.ActionSelectArmy) -> int:
  kind = game.state.kind[seat.player, game.rules.tier.structures:]
  worker, supply = (table[kind] for table in (
    game.rules.types.worker, game.rules.types.gives_food > 0))
  return _select(seat, _own_tags(game, seat.player, ~worker & ~supply), action.selection_add)


def _select_idle_worker(game: Game, seat: ServerSeat, action: ui_pb.ActionSelectIdleWorker) -> int:
  state = game.state
  kind = state.kind[seat.player, game.rules.tier.structures:]
  idle = game.rules.types.worker[kind] & (state.orders.verb[seat.player] == constants.IDLE)
  tags, kinds = _own_tags(game, seat.player, idle), ui_pb.ActionSelectIdleWorker
  if action.type not in (kinds.All, kinds.AddAll):
    tags = tags[:1]
  return _select(seat, tags, action.type in (kinds.Add, kinds.AddAll))


def _select_larva(game: Game, seat: ServerSeat, action: ui_pb.ActionSelectLarva) -> int:
  del action
  larvae = [unit.tag for unit in raw_units.make_units(make_view(game, seat))
            if unit.unit_type == catalogue.LARVA]
  return _select(seat, larvae, False)


def _select_warp_gates(game: Game, seat: ServerSeat, action: ui_pb.ActionSelectWarpGates) -> int:
  gates = np.flatnonzero(warp_gates(game.rules, game.state)[seat.player])
  return _select(seat, game.tags[seat.player, gates].tolist(), action.selection_add)


def _multi_panel(game: Game, seat: ServerSeat, action: ui_pb.ActionMultiPanel) -> int:
  index, kinds = action.unit_index, ui_pb.ActionMultiPanel
  if not 0 <= index < len(seat.selected):
    return _FAILED
  unit_types = {unit.tag: unit.unit_type for unit in raw_units.make_units(make_view(game, seat))}
  chosen = seat.selected[index]

  def same(tag):
    return unit_types.get(tag) == unit_types.get(chosen)

  keeps: Callable[[int], bool] = {
    kinds.SingleSelect: lambda tag: tag == chosen, kinds.DeselectUnit: lambda tag: tag != chosen,
    kinds.SelectAllOfType: same, kinds.DeselectAllOfType: lambda tag: not same(tag),
  }[action.type]
  seat.selected = [tag for tag in seat.selected if keeps(tag)]
  return SUCCESS


def _production_panel(game: Game, seat: ServerSeat,
                      action: ui_pb.ActionProductionPanelRemoveFromQueue) -> int:
  del action  # Skirmish removes the last product of a queue only
  return issue(game, seat.player, _CANCEL_LAST, seat.selected, Target())


def _cargo_panel(game: Game, seat: ServerSeat, action: ui_pb.ActionCargoPanelUnload) -> int:
  """Unloads a passenger of the selected transport."""
  if not game.rules.has_transports:
    return action_results.NOT_SUPPORTED
  slots = np.flatnonzero(np.isin(game.tags[seat.player], seat.selected))
  if len(seat.selected) != 1 or not slots.size:
    return _FAILED
  inside = raw_units.passengers(make_view(game, seat), int(slots[0])).tolist()
  if not 0 <= action.unit_index < len(inside):
    return action_results.NO_CARGO_TO_UNLOAD
  return unload_one(game, seat.player, seat.selected[0], inside[action.unit_index])


_UI_ACTIONS: dict[str, Callable[[Game, ServerSeat, Any], int]] = {
  "control_group": _control_group, "select_army": _select_army,
  "select_idle_worker": _select_idle_worker, "select_warp_gates": _select_warp_gates,
  "select_larva": _select_larva, "multi_panel": _multi_panel,
  "production_panel": _production_panel, "cargo_panel": _cargo_panel}
