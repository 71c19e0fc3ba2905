"""The z of a run's training games, from a library."""

import pathlib

import ml_collections

from starleague.common.errors import UserError
from starleague.data import conditioning
from starleague.data.statistics import StatisticsLibrary
from starleague.environments.skirmish.games import dm_environment
from starleague.experiments.run import settings, wiring

PER_MATCH_UP = 256  # z drawn from the library for each map, match-up and side


def library_path(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> pathlib.Path | None:
  """Returns the path of the run's library; None: z comes from the games of the run."""
  if config.actor.library:
    return pathlib.Path(config.actor.library)
  return run_dir / wiring.LIBRARY if config.init == settings.IMITATION else None


def from_library(parts: wiring.Parts, config: ml_collections.ConfigDict,
                 path: pathlib.Path) -> conditioning.Conditioning:
  """Returns conditions with z from a library file.

  Raises:
    UserError: the file is no library, is damaged, or lacks a match-up of the run; names it.
  """
  try:
    library = StatisticsLibrary.load(path)
    return conditioning.from_library(
      library, dm_environment.map_names(config.environment.tier), parts.races, PER_MATCH_UP,
      wiring.active_probabilities(config), parts.mmr, config.seed)
  except KeyError as error:
    raise UserError(f"{path}: {error.args[0]}") from error
  except (FileNotFoundError, ValueError) as error:
    raise UserError(f"{error}") from error
