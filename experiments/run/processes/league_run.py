"""A league: imitation, then its processes and their supervision."""

import pathlib
import time

import ml_collections

from starleague.actor.loops import engines
from starleague.common import progress, results, run_files
from starleague.common.errors import UserError
from starleague.experiments.run.config import compositions, objectives, populations, settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents
from starleague.experiments.run.processes import graph, imitation_checks, supervision
from starleague.experiments.run.processes.programs import Place
from starleague.experiments.run.progress import display
from starleague.league import league_file, players


def check(config: ml_collections.ConfigDict) -> None:
  """Checks that a config is one of a league.

  Raises:
    SettingsError: the initial weights are random, z has no library, a learner has several hosts,
      several learners share a number of updates, or chunks do not divide the actors' batches. The
      composition is invalid, has no player that learns, no main agent whose updates end the
      league, or races that the games lack. A scripted player is no opponent of the run, or is named
      twice. An objective or a matchmaking of a player's own, or the population, is invalid.
  """
  if config.init not in (settings.IMITATION, settings.PRETRAINED):
    raise settings.SettingsError(
      f"config key 'init' must be {settings.IMITATION!r} or {settings.PRETRAINED!r} in a league, "
      f"found {config.init!r}: its players start from trained weights.")
  if (config.init == settings.PRETRAINED and config.actor.pseudo_probability
      and not config.actor.library):
    raise settings.SettingsError(
      "config key 'actor.library' must name a library of z in a league that starts from "
      "pretrained weights, or 'actor.pseudo_probability' must be 0.")
  _check_composition(config)
  _check_scripted(config)
  if (registry.game_of(config).engine is engines.COMPILED
      and config.actor.inference_batch % config.league.chunk):
    raise settings.SettingsError(
      "config key 'league.chunk' must divide 'actor.inference_batch' "
      f"({config.actor.inference_batch}), found {config.league.chunk}.")
  if config.learner.updates and config.cluster.learners != settings.ONE:
    raise settings.SettingsError(
      f"config key 'cluster.learners' must be {settings.ONE!r} in a league if 'learner.updates' is "
      f"above 0, found {config.cluster.learners!r}: one process counts the updates of all players.")
  if config.cluster.learner_hosts != 1:
    raise settings.SettingsError(
      "config key 'cluster.learner_hosts' must be 1 in a league, found "
      f"{config.cluster.learner_hosts}: each learning player is trained by one process.")
  if config.learner.stages != 1:
    raise settings.SettingsError(
      f"config key 'learner.stages' must be 1 in a league, found {config.learner.stages}: all "
      "players keep the imitator as their teacher.")


def _check_composition(config: ml_collections.ConfigDict) -> None:
  """Checks the players that the league starts with."""
  try:
    found = compositions.parse(config.league.composition.split(","))
    players.check_composition(found, found)
  except UserError as error:
    raise settings.SettingsError(f"config key 'league.composition': {error}") from error
  try:
    objectives.check(config, found)
    populations.check(config)
  except UserError as error:
    raise settings.SettingsError(str(error)) from error
  if not any(player.learns for player in found):
    raise settings.SettingsError(
      f"config key 'league.composition' has no player that learns, found "
      f"{config.league.composition!r}.")
  if config.league.main_updates and not any(
      player.learns and player.kind == players.MAIN for player in found):
    raise settings.SettingsError(
      "config key 'league.composition' must have a main agent that learns if "
      f"'league.main_updates' is above 0, found {config.league.composition!r}.")
  key, races = registry.game_of(config).races(config)
  missing = sorted({player.race for player in found} - set(races))
  if missing:
    raise settings.SettingsError(
      f"config key 'league.composition' has {', '.join(missing)}; expected some of "
      f"{', '.join(races)}, the races of {key!r}.")


def _check_scripted(config: ml_collections.ConfigDict) -> None:
  """Checks that actors can play the scripted players of the league."""
  names, opponents = compositions.scripted(config), config.environment.opponents.split(",")
  if not set(names) <= set(opponents) or len(set(names)) < len(names):
    raise settings.SettingsError(
      "config key 'league.scripted' must name some of 'environment.opponents' "
      f"({', '.join(opponents)}), each once; found {config.league.scripted!r}.")


def has_updates(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> bool:
  """Returns whether all players together, or each main agent, have the updates that end a league.

  Args:
    config: the run's.
    run_dir: the run's directory.
  """
  found = saved_agents.league_updates(config, run_dir)
  mains = [found.get(name, 0) for name in compositions.main_agents(config)]
  return (0 < config.learner.updates <= sum(found.values())
          or 0 < config.league.main_updates <= min(mains, default=0))


def train(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
          place: Place | None = None) -> None:
  """Imitates, then runs the league to the end of its time; starts nothing if it has its updates.

  Raises LeagueError for an existing run without its league file, and errors of `run_processes`.

  Args:
    config: the run's.
    run_dir: the run's directory.
    place: where the processes run; None: on this machine.
  """
  league_file.check_kept(run_dir / run_files.LEAGUE)
  if has_updates(config, run_dir):
    return
  origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
  progress.write(run_dir, progress.Progress(progress.SETUP, detail="starting processes"))
  with display.Display() as shown:
    watch = supervision.Watch(run_dir, origin, shown)
    if imitation_checks.imitates(config, run_dir):
      supervision.imitate(config, run_dir, origin, watch, place)
    progress.write(run_dir, progress.Progress(progress.TRAINING, detail="starting processes"))
    supervision.run_processes(graph.league(config, run_dir, origin), watch, place)
