"""The z of a run's training games, from a library."""

import pathlib
from collections.abc import Sequence

import ml_collections

from starleague.agent import types
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data.z import conditioning
from starleague.data.z.statistics_library import StatisticsLibrary
from starleague.environments.skirmish.games import dm_environment
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import wiring

PER_MATCH_UP = 256  # z drawn from the library for each map, match-up and side


def library_path(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> pathlib.Path | None:
  """Returns the path of the run's library; None: z comes from the games of the run."""
  if config.actor.library:
    return pathlib.Path(config.actor.library)
  return run_dir / run_files.LIBRARY if config.init == settings.IMITATION else None


def from_library(parts: wiring.Parts, config: ml_collections.ConfigDict,
                 path: pathlib.Path) -> conditioning.Conditioning:
  """Returns conditions with z from a library file.

  Raises:
    UserError: the file is no library, is damaged, or lacks a match-up of the run; names it.
  """
  try:
    library = StatisticsLibrary.load(path)
    if parts.sc2 is None:
      names, away = dm_environment.map_names(config.environment.tier), parts.races
    else:
      names, away = _sc2_names(parts.sc2.maps, library), _sc2_races(parts)
    return conditioning.from_library(
      library, names, parts.races, PER_MATCH_UP, wiring.active_probabilities(config), parts.mmr,
      config.seed, away)
  except KeyError as error:
    raise UserError(f"{path}: {error.args[0]}") from error
  except (FileNotFoundError, ValueError) as error:
    raise UserError(f"{error}") from error


def of_games(parts: wiring.Parts, config: ml_collections.ConfigDict,
             run_dir: pathlib.Path) -> conditioning.Conditioning:
  """Returns the conditions of training games: without z if the run has no library or uses none.

  Raises the errors of `from_library`.
  """
  path = library_path(config, run_dir)
  if path is None or not config.actor.pseudo_probability:
    return conditioning.unconditional(parts.maps, parts.mmr)
  return from_library(parts, config, path)


def _sc2_names(names: Sequence[str], library: StatisticsLibrary) -> tuple[str, ...]:
  """Returns the names of StarCraft II's maps in a library; replays have those of the ladder."""
  from starleague.environments.sc2 import matches  # only those who play it need pysc2
  found = []
  for name in names:
    known = matches.find_map(name)
    spelt = [name, known.name, known.battle_net]
    found.append(next((each for each in spelt if each in library.maps), name))
  return tuple(found)


def _sc2_races(parts: wiring.Parts) -> tuple[int, ...]:
  """Returns the races of all opponents but random ones, which get no z."""
  from starleague.environments.sc2 import matches
  races = {*parts.races, *(matches.parse_bot(bot).race for bot in parts.opponents)}
  return tuple(sorted(races - {types.RACES.index("random")}))
