"""Conversion of the agent's actions into requests to the game, and back.

Functions are general: the game accepts general abilities. Places are on the location grid.
Arithmetic is in float32, as in pysc2's converter.
"""

from collections.abc import Sequence

import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter.setting import Setting
from starleague.environments.sc2.protocol import common_pb, raw_pb, sc_pb

NO_OP = v.FUNCTION_TYPES.index("raw_no_op")
MOVE_CAMERA = v.FUNCTION_TYPES.index("raw_move_camera")
MOST_REPEATS = 2
_LOWEST_Y = 0.5  # game units: no place is below the map's last row of cells
_BY_ABILITY = {(int(ability), function_type): i for i, (ability, function_type) in enumerate(
  zip(v.FUNCTION_ABILITIES, v.FUNCTION_TYPES, strict=True))}


def encode(action: types.Action, tags: np.ndarray, setting: Setting) -> sc_pb.RequestAction:
  """Encodes an action.

  A command without any existing unit, or at a target that does not exist, gives an empty request,
  as no_op does. Only functions without a target are repeated.

  Args:
    action: unbatched; the delay is the caller's.
    tags: [count] uint64, the game's tags of the entity rows that it refers to.
    setting: the player's.

  Returns:
    A request of zero to three equal actions.
  """
  request, function = sc_pb.RequestAction(), int(action.function)
  kind = v.FUNCTION_TYPES[function]
  found = sc_pb.Action()
  if function == MOVE_CAMERA:
    x, y = _place(int(action.location), setting)
    found.action_raw.camera_move.center_world_space.x = x
    found.action_raw.camera_move.center_world_space.y = y
  elif function != NO_OP:
    selected = [tag for row in np.asarray(action.units).tolist() if (tag := _tag(tags, row))]
    target = _tag(tags, int(action.target_unit)) if kind == "raw_cmd_unit" else 1
    if not selected or not target:
      return request
    if kind == "raw_autocast":
      autocast = found.action_raw.toggle_autocast
      autocast.ability_id = v.FUNCTION_ABILITIES[function]
      autocast.unit_tags.extend(selected)
    else:
      command = found.action_raw.unit_command
      command.ability_id = v.FUNCTION_ABILITIES[function]
      command.unit_tags.extend(selected)
      command.queue_command = bool(action.queued)
      if kind == "raw_cmd_pt":
        x, y = _place(int(action.location), setting)
        command.target_world_space_pos.x, command.target_world_space_pos.y = x, y
      elif kind == "raw_cmd_unit":
        command.target_unit_tag = target
  if function != NO_OP:
    repeats = min(int(action.repeat), MOST_REPEATS) if kind == "raw_cmd" else 0
    request.actions.extend([found] * (1 + repeats))
  return request


def _tag(tags: np.ndarray, row: int) -> int:
  """Returns the tag of an entity row, 0 if there is none."""
  return int(tags[row]) if 0 <= row < len(tags) else 0


def _scale(setting: Setting) -> np.float32:
  return np.float32(setting.config.location_size) / np.float32(
    max(setting.map_width, setting.map_height))


def _place(location: int, setting: Setting) -> tuple[float, float]:
  """Returns the game coordinates of a location's centre."""
  row, column = divmod(location, setting.config.location_size)
  half, scale = np.float32(0.5), _scale(setting)
  x = (np.float32(column) + half) / scale
  y = np.float32(setting.map_height) - (np.float32(row) + half) / scale
  return float(x), float(y)


def _location(place: common_pb.Point2D | common_pb.Point, setting: Setting) -> int:
  """Returns the location of a place, the nearest one on the grid if it is off the map."""
  size, scale = setting.config.location_size, _scale(setting)
  below_top = np.float32(setting.map_height) - np.float32(max(_LOWEST_Y, place.y))
  column, row = (int(np.clip(np.nan_to_num(scale * distance), 0, size - 1))
                 for distance in (np.float32(place.x), below_top))
  return row * size + column


def decode(actions: Sequence[sc_pb.Action], tags: np.ndarray, setting: Setting,
           delay: int = 1) -> types.Action:
  """Decodes the first action that the agent could have taken, no_op if there is none.

  It skips actions that are not raw, that have unknown abilities, that select no entity, and whose
  target is no entity. Equal abilities in one game loop count as repeats.

  Args:
    actions: of one player in one game loop.
    tags: [count] uint64, the game's tags of the entity rows.
    setting: the player's.
    delay: game loops until the next observation, clipped to 1..127.

  Returns:
    Unbatched numpy arrays of `types.action_spec`. Units are in the order of their rows; those past
    the most that an action selects are dropped.
  """
  for action in actions:
    if not action.HasField("action_raw"):
      continue
    raw = action.action_raw
    if raw.HasField("camera_move"):
      location = _location(raw.camera_move.center_world_space, setting)
      return _action(setting, MOVE_CAMERA, delay, location=location)
    found = _command(raw, tags, setting, delay)
    if found is not None:
      equal = sum(other.action_raw.unit_command.ability_id == raw.unit_command.ability_id
                  for other in actions) if raw.HasField("unit_command") else 1
      repeats = v.ARGUMENT_TABLE[found.function, v.Arguments._fields.index("repeat")]
      return found._replace(repeat=np.uint8(min(equal - 1, MOST_REPEATS) * repeats))
  return _action(setting, NO_OP, delay)


def _command(raw: raw_pb.ActionRaw, tags: np.ndarray, setting: Setting,
             delay: int) -> types.Action | None:
  """Returns a command to units, or None if the agent could not have given it."""
  if raw.HasField("toggle_autocast"):
    command, kind = raw.toggle_autocast, "raw_autocast"
  else:
    command, kind = raw.unit_command, "raw_cmd"
    if command.HasField("target_unit_tag"):
      kind = "raw_cmd_unit"
    elif command.HasField("target_world_space_pos"):
      kind = "raw_cmd_pt"
  function = _function(command.ability_id, kind)
  wanted = np.array(list(command.unit_tags), np.uint64)
  units = np.isin(tags, wanted[wanted > 0]).nonzero()[0]
  if not function or not len(units):
    return None
  target = location = 0
  if kind == "raw_cmd_unit":
    rows = (tags == np.uint64(command.target_unit_tag)).nonzero()[0]
    if not command.target_unit_tag or not len(rows):
      return None
    target = int(rows[0])
  if kind == "raw_cmd_pt":
    location = _location(command.target_world_space_pos, setting)
  queued = kind != "raw_autocast" and command.queue_command
  return _action(setting, function, delay, bool(queued), units, target, location)


def general_ability(ability: int) -> int:
  """Returns the game id of an ability's general one, 0 if no function has it."""
  if not 0 <= ability < len(v.ABILITY_FUNCTIONS):
    return 0
  return int(v.FUNCTION_ABILITIES[v.ABILITY_FUNCTIONS[ability]])


def _function(ability: int, kind: str) -> int:
  """Returns the general function of an ability with this kind of target, 0 if there is none."""
  return _BY_ABILITY.get((general_ability(ability), kind), 0)


def _action(setting: Setting, function: int, delay: int, queued: bool = False,
            units: np.ndarray | None = None, target: int = 0, location: int = 0) -> types.Action:
  config = setting.config
  picked = np.full(config.max_selected, config.max_entities, np.int16)
  if units is not None:
    few = units[:config.max_selected]
    picked[:len(few)] = few
  return types.Action(
    function=np.int16(function), delay=np.int16(np.clip(delay, 1, types.MAX_DELAY)),
    queued=np.uint8(queued), repeat=np.uint8(0), units=picked, target_unit=np.int16(target),
    location=np.int32(location))
