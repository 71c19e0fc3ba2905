"""Conversion of StarCraft II's observations into the agent's.

  parsed = read(response)                                  # once per observation
  memory = memories.watch(memory, parsed.response, parsed.units, setting)
  converted = convert(parsed, opponent_parsed, setting, memory, opponent_memory)
  request = actions.encode(action, converted.tags, setting)
  memory = memories.note(memory, action, converted.tags, loop, setting)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter import camera as cameras
from starleague.environments.sc2.converter import enemy_upgrades, planes
from starleague.environments.sc2.converter.entities import make_entities, own_units, unit_types
from starleague.environments.sc2.converter.memory import Memory, upgrades
from starleague.environments.sc2.converter.setting import Setting
from starleague.environments.sc2.converter.units import Effects, Units, read_effects, read_units
from starleague.environments.sc2.protocol import error_pb, sc_pb

_MOST_COUNTED = 255
_LOWEST, _HIGHEST = -2**31, 2**31 - 1  # of int32
_CAMERA_FUNCTION = v.FUNCTION_TYPES.index("raw_move_camera")


class ParsedObservation(NamedTuple):
  """A player's observation, with its units read."""

  response: sc_pb.ResponseObservation
  units: Units
  effects: Effects


class Converted(NamedTuple):
  """The agent's observation, with its privileged part and the game's tags."""

  observation: types.Observation
  privileged: types.Privileged
  tags: np.ndarray  # [entity_count] uint64: the game's tags of the entities, 0 for effects


def read(response: sc_pb.ResponseObservation) -> ParsedObservation:
  """Reads the units of an observation. Absent parts count as empty."""
  raw = response.observation.raw_data
  return ParsedObservation(response, read_units(raw), read_effects(raw))


def carry_errors(unseen: Sequence[sc_pb.ActionError], response: sc_pb.ResponseObservation,
                 due: bool) -> list[sc_pb.ActionError]:
  """Returns the action errors that a player has not observed yet, after a response.

  The game reports each error once, also to an observation on which the player does not decide.

  Args:
    unseen: those before.
    response: if the player is due, it gets them all, in place, and none remain.
    due: whether the player decides on it.
  """
  found = [*unseen, *response.action_errors]
  if not due:
    return found
  del response.action_errors[:]
  response.action_errors.extend(found)
  return []


def convert(parsed: ParsedObservation, opponent: ParsedObservation | None, setting: Setting,
            memory: Memory, opponent_memory: Memory | None = None) -> Converted:
  """Converts an observation.

  Args:
    parsed: the player's observation.
    opponent: the opponent's newest one, for value functions; their inputs are zero without it.
    setting: the player's.
    memory: the player's, after `watch` of this observation.
    opponent_memory: the opponent's.

  Returns:
    Unbatched numpy arrays of `types.observation_spec` and `types.privileged_spec`.
  """
  config, observation = setting.config, parsed.response.observation
  entities = make_entities(
    parsed.units, parsed.effects, config.max_entities, setting.map_width, setting.map_height,
    memory.camera, memory.selected, memory.targeted)
  counts = unit_counts(parsed.units)
  loop = min(observation.game_loop, _HIGHEST)
  found = types.Observation(
    entities=entities.rows, entity_count=np.int16(len(entities.tags)),
    minimap=planes.minimap(observation.feature_layer_data.minimap_renders, config.map_size),
    camera=cameras.WHOLE_MAP if memory.camera is None else cameras.rectangle(
      memory.camera, setting.map_width, setting.map_height),
    player=player(parsed.response), home_race=np.uint8(setting.home_race),
    away_race=np.uint8(memory.away_race), upgrades=upgrades(observation.raw_data),
    enemy_upgrades=enemy_upgrades.shown(entities.rows[:len(entities.tags)]),
    game_loop=np.int32(loop), available_actions=available(counts, memory.camera is not None),
    unit_counts=counts, mmr=np.int16(setting.mmr),
    last_delay=np.int16(min(max(loop - memory.last_loop, 0), types.MAX_DELAY)),
    last_function=np.int16(memory.last_function), last_queued=np.uint8(memory.last_queued),
    last_repeat=np.uint8(memory.last_repeat), statistics=setting.z,
    action_result=np.uint8(action_result(parsed.response)))
  return Converted(found, _privileged(parsed, opponent, setting, memory, opponent_memory),
                   entities.tags)


def _privileged(parsed: ParsedObservation, opponent: ParsedObservation | None, setting: Setting,
                memory: Memory, opponent_memory: Memory | None) -> types.Privileged:
  return types.Privileged(
    score(parsed.response), memory.executed,
    *(_NO_OPPONENT if opponent is None else _of_opponent(opponent)), setting.opponent_z,
    _UNCONDITIONAL if opponent_memory is None else opponent_memory.executed)


def _of_opponent(
    parsed: ParsedObservation) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
  """Returns `opponent_player` to `opponent_cumulative_score` of Privileged."""
  return (player(parsed.response), upgrades(parsed.response.observation.raw_data),
          unit_counts(parsed.units), score(parsed.response))


def player(response: sc_pb.ResponseObservation) -> np.ndarray:
  """Returns `types.PLAYER_COLUMNS`: [10] int32."""
  common = response.observation.player_common
  return _int32([getattr(common, name) for name in types.PLAYER_COLUMNS])


def score(response: sc_pb.ResponseObservation) -> np.ndarray:
  """Returns `types.SCORE_COLUMNS`: [13] int32, fractions cut off as in pysc2."""
  found = response.observation.score
  details = [getattr(found.score_details, name) for name in types.SCORE_COLUMNS[1:]]
  return _int32([found.score, *details])


def _int32(values: list) -> np.ndarray:
  return np.clip(np.array(values, np.float64), _LOWEST, _HIGHEST).astype(np.int32)


def unit_counts(units: Units) -> np.ndarray:
  """Returns how many units of each type the player has, unfinished ones too: [N] uint8.

  Structures that are only ordered do not count.
  """
  counts = np.bincount(unit_types(units)[own_units(units)], minlength=v.NUM_UNIT_TYPES)
  counts[0] = 0
  return np.minimum(counts, _MOST_COUNTED).astype(np.uint8)


def available(counts: np.ndarray, camera: bool) -> np.ndarray:
  """Returns the functions that own unit types could execute, costs and requirements aside.

  Args:
    counts: [N], own units of each type.
    camera: whether the player can move its camera.

  Returns:
    [A] bool; no_op always is.
  """
  found = v.EXECUTORS[:, counts.nonzero()[0]].any(axis=1)
  found[0], found[_CAMERA_FUNCTION] = True, camera
  return found


def action_result(response: sc_pb.ResponseObservation) -> int:
  """Returns the game's first error of the last action, 0 if it had none."""
  return next((error.result for error in response.action_errors
               if error.result != error_pb.Success), 0)


_NO_OPPONENT = _of_opponent(read(sc_pb.ResponseObservation()))
_UNCONDITIONAL = types.zeros(types.statistics_spec())
