"""A player's memory between observations: camera, last action, executed z.

`watch` updates it by an observation, `note` by an action; both return a new memory.
"""

from typing import NamedTuple

import numpy as np

from starleague.agent import build_order, coordinates, types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter import actions
from starleague.environments.sc2.converter.camera import Camera
from starleague.environments.sc2.converter.entities import own_units, unit_types
from starleague.environments.sc2.converter.setting import Setting
from starleague.environments.sc2.converter.units import Units
from starleague.environments.sc2.protocol import error_pb, raw_pb, sc_pb

# Add-ons change their type when another structure lands beside them; that builds nothing.
_ADDONS = np.array([i for i, name in enumerate(v.UNIT_TYPES.names)
                    if name.endswith(("TechLab", "Reactor"))], np.uint64)
_CAMERA_FUNCTION = v.FUNCTION_TYPES.index("raw_move_camera")
_RACES = np.zeros(v.NUM_UNIT_TYPES, np.uint8)  # of unit types, indices of types.RACES, 0 for none
_RACES[:len(v.UNIT_RACES)] = [
  types.RACES.index(race.lower()) if race.lower() in types.RACES else 0 for race in v.UNIT_RACES]


class FirstUse(NamedTuple):
  """An effect that the player's last command was the first to use. The game may still refuse it."""

  function: int
  commands: int  # equal ones that were sent


class Memory(NamedTuple):
  """A player's memory."""

  camera: Camera | None  # None before the first observation, or without a virtual camera
  # [k] uint64, sorted: a key (`_keys`) for each own unit so far and each type it has had
  known: np.ndarray
  executed: types.Statistics  # so far
  away_race: int  # index of types.RACES, 0 while unknown
  last_loop: int  # game loop of the last action
  last_function: int
  last_queued: int
  last_repeat: int
  selected: np.ndarray  # [m] uint64: tags of the units that the last command was given to
  targeted: int  # the tag of its target, 0 without one
  first_use: FirstUse | None  # by that command


def initial(setting: Setting) -> Memory:
  """Returns a player's memory before its first observation."""
  none = np.zeros(0, np.uint64)
  return Memory(
    camera=None, known=none, executed=types.zeros(types.statistics_spec()),
    away_race=setting.away_race, last_loop=0,
    last_function=0, last_queued=0, last_repeat=0, selected=none, targeted=0,
    first_use=None)


def watch(memory: Memory, response: sc_pb.ResponseObservation, units: Units,
          setting: Setting) -> Memory:
  """Returns the memory after an observation: the opponent's race, new units, upgrades, refusals.

  The virtual camera starts where the game's own is.
  """
  raw = response.observation.raw_data
  camera = memory.camera
  if camera is None and setting.camera:
    camera = Camera(raw.player.camera.x, raw.player.camera.y)
  kinds, away_race = unit_types(units), memory.away_race
  if not away_race:
    seen = _RACES[kinds[units.number("alliance") == types.ALLIANCE_ENEMY]]
    away_race = int(seen[seen > 0][0]) if seen.any() else 0
  memory = memory._replace(camera=camera, away_race=away_race)
  # Hallucinations do not count as built, as in replays.
  own = (own_units(units) & (units.number("is_hallucination") == 0)).nonzero()[0]
  tags = units.number("tag")[own].view(np.uint64)
  keys = _keys(tags, kinds[own])
  new = ~_among(keys, memory.known)
  if new.any():
    built = _built(
      memory, tags[new], kinds[own][new], units.x[own][new], units.y[own][new], setting)
    memory = memory._replace(known=np.union1d(memory.known, keys[new]), executed=built)
  if len(raw.player.upgrade_ids):
    memory = memory._replace(executed=memory.executed._replace(upgrades=upgrades(raw)))
  return _without_refused(memory, response)


def _keys(tags: np.ndarray, kinds: np.ndarray) -> np.ndarray:
  """Returns a number for each unit with its type: [n] uint64."""
  return (tags << np.uint64(8)) | kinds.astype(np.uint64)


def _among(keys: np.ndarray, known: np.ndarray) -> np.ndarray:
  """Returns which keys are known: [n] bool."""
  if not len(known):
    return np.zeros(len(keys), bool)
  return known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys


def _built(memory: Memory, tags: np.ndarray, kinds: np.ndarray, x: np.ndarray, y: np.ndarray,
           setting: Setting) -> types.Statistics:
  """Returns the executed z with new units, and with new types of known units."""
  executed = memory.executed
  if not len(memory.known):
    return executed  # the units of the start
  known = memory.known
  addons = known[np.isin(known & np.uint64(255), _ADDONS)] >> np.uint64(8)
  moved = np.isin(kinds, _ADDONS) & np.isin(tags << np.uint64(8) >> np.uint64(8), addons)
  kept = build_order.BUILT[kinds] & ~moved
  if not kept.any():
    return executed
  kinds, x, y = kinds[kept], x[kept], y[kept]
  units = executed.units.copy()
  units[kinds] = True
  listed = build_order.IN_BUILD_ORDER[kinds]
  length = int(np.count_nonzero(executed.build_order))
  places = np.stack(coordinates.to_grid(
    x[listed], y[listed], setting.map_width, setting.map_height), axis=-1)
  order, order_xy = executed.build_order.copy(), executed.build_order_xy.copy()
  end = min(length + len(places), types.BUILD_ORDER_LENGTH)
  order[length:end] = kinds[listed][:end - length]
  order_xy[length:end] = places[:end - length]
  return executed._replace(units=units, build_order=order, build_order_xy=order_xy)


def _without_refused(memory: Memory, response: sc_pb.ResponseObservation) -> Memory:
  """Returns the memory without the effect of the last command, if the game refused its first use.

  The game names the ability of each refused command, and accepts some of several equal ones.
  """
  first = memory.first_use
  if first is None or response.observation.game_loop <= memory.last_loop:
    return memory  # errors of an observation before the command are those of earlier commands
  ability = v.FUNCTION_ABILITIES[first.function]
  refused = sum(actions.general_ability(error.ability_id) == ability
                for error in response.action_errors if error.result != error_pb.Success)
  if refused < first.commands:
    return memory
  effects = memory.executed.effects & (first.function != v.EFFECT_FUNCTIONS)
  return memory._replace(executed=memory.executed._replace(effects=effects), first_use=None)


def upgrades(raw: raw_pb.ObservationRaw) -> np.ndarray:
  """Returns the player's upgrades: [U] bool."""
  found = np.zeros(v.NUM_UPGRADES, bool)
  found[[v.UPGRADES.from_id(game_id) for game_id in raw.player.upgrade_ids]] = True
  found[0] = False  # unknown ones
  return found


def note(memory: Memory, action: types.Action, tags: np.ndarray, loop: int,
         setting: Setting) -> Memory:
  """Returns the memory after an action of the player.

  Only commands to units change which entities count as selected and targeted (pysc2's converter).
  Effects of commands that are not sent (`actions.encode`) are not executed.

  Args:
    memory: before the action.
    action: unbatched.
    tags: [count] uint64, of the entity rows that the action refers to.
    loop: the game loop of the action.
    setting: the player's.
  """
  function = int(action.function)
  uses = v.Arguments(*v.ARGUMENT_TABLE[function])
  if function == _CAMERA_FUNCTION and memory.camera is not None:
    size = setting.config.location_size
    row, column = np.divmod(action.location, size)
    x, y = coordinates.to_game(column, row, setting.map_width, setting.map_height, size)
    memory = memory._replace(camera=Camera(float(x), float(y)))
  if uses.units:
    rows = np.asarray(action.units)
    target = int(action.target_unit)
    memory = memory._replace(
      selected=tags[rows[(rows >= 0) & (rows < len(tags))]],
      targeted=int(tags[target]) if uses.target_unit and 0 <= target < len(tags) else 0,
      first_use=None)
    if function in v.EFFECT_FUNCTIONS:
      memory = _use(memory, function, len(actions.encode(action, tags, setting).actions))
  return memory._replace(
    last_loop=loop, last_function=function, last_queued=int(action.queued) * int(uses.queued),
    last_repeat=int(action.repeat) * int(uses.repeat))


def _use(memory: Memory, function: int, commands: int) -> Memory:
  """Returns the memory after commands of a function that z records as an effect."""
  executed, used = memory.executed, function == v.EFFECT_FUNCTIONS
  if not commands or (executed.effects & used).any():
    return memory
  return memory._replace(executed=executed._replace(effects=executed.effects | used),
                         first_use=FirstUse(function, commands))
