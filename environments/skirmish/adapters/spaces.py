"""Gymnasium's spaces of Skirmish's observations and composite actions, and their values.

An observation is a dict of the fields of `types.Observation`, flags as int8. An action is a dict of
the arguments of `types.Action`. Gymnasium samples legal arguments by the action mask:

  env.action_space.sample(info["action_mask"])
"""

from typing import Any

import numpy as np
from gymnasium import spaces

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.games import dm_environment
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS, GameConfig


def game_config(tier: str) -> GameConfig:
  """Returns the sizes of a tier.

  Raises:
    ValueError: an unknown tier.
  """
  if tier not in GAME_CONFIGS:
    raise ValueError(f"tier {tier!r}: expected one of {', '.join(GAME_CONFIGS)}")
  return GAME_CONFIGS[tier]


def observation_space(game: GameConfig) -> spaces.Dict:
  """Returns the space of observations, z included."""
  return _space(types.observation_spec(game.max_entities, game.map_size))


def _space(spec: Any) -> Any:
  if hasattr(spec, "_fields"):
    return spaces.Dict({name: _space(value) for name, value in spec._asdict().items()})
  if spec.dtype == np.bool_:
    return spaces.MultiBinary(spec.shape)
  limits = np.iinfo(spec.dtype)
  return spaces.Box(limits.min, limits.max, spec.shape, spec.dtype)


def action_space(game: GameConfig) -> spaces.Dict:
  """Returns the space of actions; `units` are rows of `entities`, or E for none."""
  rows = game.max_entities
  return spaces.Dict({
    "function": spaces.Discrete(vocabulary.NUM_FUNCTIONS),
    "delay": spaces.Discrete(types.MAX_DELAY, start=1),
    "queued": spaces.Discrete(2),
    "repeat": spaces.Discrete(3),
    "units": spaces.MultiDiscrete([rows + 1] * game.max_selected),
    "target_unit": spaces.Discrete(rows),
    "location": spaces.Discrete(game.location_size ** 2)})


def observation_value(observation: Any) -> dict[str, Any]:
  """Returns an observation as a dict of new arrays, flags as int8."""
  return {name: observation_value(value) if hasattr(value, "_fields") else np.array(
    value, np.int8 if value.dtype == np.bool_ else value.dtype)
    for name, value in observation._asdict().items()}


def action_mask(observation: types.Observation, game: GameConfig) -> dict[str, Any]:
  """Returns masks of an action's arguments, as `action_space(game).sample` takes them.

  `function` allows exactly the functions that can have an effect now, `units` the player's own rows
  and E, `target_unit` the rows that show something. None allows every value. Masks of units do not
  depend on the function; `vocabulary.ARGUMENT_TABLE` and `vocabulary.EXECUTORS` do.
  """
  alliance = observation.entities[:, types.COLUMN["alliance"]]
  here = np.arange(game.max_entities) < observation.entity_count
  units = np.append(here & (alliance == types.ALLIANCE_SELF), True)
  return {
    "function": observation.available_actions.astype(np.int8), "delay": None, "queued": None,
    "repeat": None,
    "units": tuple(units.astype(np.int8) for _ in range(game.max_selected)),
    "target_unit": here.astype(np.int8), "location": None}


def action_from(value: Any, spec: types.Action) -> types.Action:
  """Returns the action of a dict of arguments, in the dtypes of `dm_environment.action_spec`.

  Raises:
    TypeError: it is no dict, or an argument is not of integers.
    ValueError: other keys than the arguments, or an argument of a wrong shape or out of its range.
  """
  if not isinstance(value, dict):
    raise TypeError(f"action: expected a dict of {', '.join(types.Action._fields)}, found "
                    f"{type(value).__name__}")
  if value.keys() != set(types.Action._fields):
    raise ValueError(f"action: expected the keys {', '.join(types.Action._fields)}, found "
                     f"{', '.join(map(str, value))}")
  return dm_environment.check_action(types.Action(**value), spec)
