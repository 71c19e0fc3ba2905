"""Finds the entries of games: those of this package, and those that other packages register.

Another package registers a game as an entry point of the group `starleague.games`, which names an
`entry.Game`. In its pyproject.toml:

    [project.entry-points."starleague.games"]
    chess = "my_package.chess:GAME"
"""

import functools
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import jax
import ml_collections

from starleague.actor.parts import Parts
from starleague.agent import baselines, types
from starleague.agent import config as agent_config
from starleague.experiments.run.config.errors import SettingsError, check_known
from starleague.experiments.run.games import sc2, skirmish
from starleague.experiments.run.games.entry import Game

GROUP = "starleague.games"
DEFAULT = skirmish.GAME.name


@functools.cache
def games() -> dict[str, Game]:
  """Returns all entries by name.

  Raises:
    SettingsError: a registered entry cannot be loaded, or its name is taken.
  """
  found = {game.name: game for game in (skirmish.GAME, sc2.GAME)}
  for point in metadata.entry_points(group=GROUP):
    try:
      game = point.load()
    except Exception as error:  # of a package that is not ours
      raise SettingsError(f"game {point.name!r}: its entry {point.value} cannot be loaded: "
                          f"{type(error).__name__}: {error}.") from error
    if not isinstance(game, Game) or game.name != point.name or game.name in found:
      raise SettingsError(
        f"game {point.name!r}: expected {point.value} to be an entry of that name, which no other "
        f"game has; found {type(game).__name__} {getattr(game, 'name', '')!r}.")
    found[game.name] = game
  return found


def find(name: str) -> Game:
  """Returns the entry of a game.

  Raises:
    SettingsError: there is none of that name.
  """
  if name not in games():
    raise SettingsError(f"config key 'environment.name' must be one of {', '.join(games())}, "
                        f"found {name!r}.")
  return games()[name]


def game_of(config: ml_collections.ConfigDict) -> Game:
  """Returns the entry of a run's game."""
  return find(config.environment.name)


def agent_of(config: ml_collections.ConfigDict) -> agent_config.AgentConfig:
  """Returns the agent of a run: its preset, with the changes of the config key `agent`.

  Raises:
    SettingsError: the preset does not exist, or a change is impossible.
  """
  try:
    preset = agent_config.preset(config.preset)
  except ValueError as error:
    raise SettingsError(f"config key 'preset': {error}") from error
  try:
    found = agent_config.changed(preset, config.agent)
  except ValueError as error:
    raise SettingsError(f"config key 'agent': {error}") from error
  for field in sorted(agent_config.GAME_FIELDS):
    if getattr(found, field) != getattr(preset, field):
      raise SettingsError(
        f"config key 'agent': {field}: expected {getattr(preset, field)}, that of the preset "
        f"{config.preset}, as recorded games have it; found {getattr(found, field)}.")
  return found


def make_parts(config: ml_collections.ConfigDict) -> Parts:
  """Returns the agent of a run and the games that it plays."""
  return _make_parts(config, agent_of(config))


def make_playing_parts(config: ml_collections.ConfigDict, opponents: Sequence[str] = (),
                       ) -> Parts:
  """Returns the parts of evaluation and play, with temperatures times `evaluation.temperature`.

  Args:
    config: of the run.
    opponents: scripted players of the game; none: the run's.

  Raises:
    SettingsError: the game has no scripted player of a name.
  """
  game = game_of(config)
  if opponents:
    known = config.environment.opponents.split(",") if game.scripted is None else (
      game.scripted(config))
    check_known("--opponents", opponents, known)
    config = config.copy_and_resolve_references()
    config.environment.opponents = ",".join(opponents)
  return _make_parts(config, agent_config.tempered(
    agent_of(config), config.evaluation.temperature))


def _make_parts(config: ml_collections.ConfigDict, agent: agent_config.AgentConfig) -> Parts:
  """Returns the parts of an agent, whose values observe what they observed in training."""
  parts = game_of(config).make_parts(config, agent)
  if config.learner.opponent_values:
    return parts
  values = parts.policy.values

  def own_values(params: Any, state: types.CoreState, observation: types.Observation,
                 privileged: types.Privileged) -> jax.Array:
    return values(params, state, observation, baselines.hide_opponent(privileged))

  return parts._replace(policy=parts.policy._replace(values=own_values))
