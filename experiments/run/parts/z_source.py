"""The z of a run's training games, from a library."""

import pathlib

import ml_collections

from starleague.actor.parts import Parts
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data.z import conditioning
from starleague.data.z.statistics_library import StatisticsLibrary
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts.actor_options import active_probabilities

PER_MATCH_UP = 256  # z drawn from the library for each map, match-up and side


def library_path(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> pathlib.Path | None:
  """Returns the path of the run's library; None: z comes from the games of the run."""
  if config.actor.library:
    return pathlib.Path(config.actor.library)
  return run_dir / run_files.LIBRARY if config.init == settings.IMITATION else None


def from_games(parts: Parts, config: ml_collections.ConfigDict,
               library: StatisticsLibrary) -> conditioning.Conditioning:
  """Returns conditioning with z from a library.

  Raises:
    KeyError: the library lacks a match-up of the run; names it.
  """
  names = [next((name for name in spellings if name in library.maps), spellings[0])
           for spellings in parts.maps]
  return conditioning.from_library(
    library, names, parts.races, PER_MATCH_UP, active_probabilities(config), parts.mmr,
    config.seed, parts.opponent_races)


def from_library(parts: Parts, config: ml_collections.ConfigDict,
                 path: pathlib.Path) -> conditioning.Conditioning:
  """Returns conditioning with z from a library file.

  Raises:
    UserError: the file is no library, is damaged, or lacks a match-up of the run; names it.
  """
  try:
    return from_games(parts, config, StatisticsLibrary.load(path))
  except KeyError as error:
    raise UserError(f"{path}: {error.args[0]}") from error
  except (FileNotFoundError, ValueError) as error:
    raise UserError(f"{error}") from error


def of_games(parts: Parts, config: ml_collections.ConfigDict,
             run_dir: pathlib.Path) -> conditioning.Conditioning | None:
  """Returns the conditioning of training games: without z if the run uses none.

  None: z comes from the games that demonstrators win. Raises the errors of `from_library`.
  """
  if not config.actor.pseudo_probability:
    return conditioning.unconditional(len(parts.maps), parts.mmr)
  path = library_path(config, run_dir)
  return None if path is None else from_library(parts, config, path)
