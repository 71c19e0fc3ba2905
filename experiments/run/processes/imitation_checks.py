"""Checks of the imitation of a run, before any of its processes start."""

import pathlib

import ml_collections

from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import games
from starleague.data.games import files as games_files
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options, saved_agents, z_source
from starleague.learner.loops import imitation_setup
from starleague.learner.loops.imitation_setup import Recorded

# Limits of the phases of imitation, by the start of their names.
_PHASES = {"": ("seconds", "epochs"), "labels": ("labels_seconds", "labels_epochs"),
           "fine_tune": ("fine_tune_seconds", "fine_tune_epochs")}
LIMITS = tuple(f"imitation.{key}" for keys in _PHASES.values() for key in keys)


def _phase_of(config: ml_collections.ConfigDict, limit: str) -> int:
  """Returns the index of the phase that a limit ends; -1: the run does not have it."""
  phases = [name for name in _PHASES if name != "labels" or config.demonstrations.labels]
  name = next(name for name, keys in _PHASES.items() if limit.partition(".")[2] in keys)
  return phases.index(name) if name in phases else -1


def check_limits(stored: ml_collections.ConfigDict, config: ml_collections.ConfigDict,
                 run_dir: pathlib.Path, other: str) -> None:
  """Checks that only limits of a phase that is not over have changed.

  The first phase is over once its labels are recorded: they are those of its imitator.

  Args:
    stored: the run's config.
    config: that it is resumed with.
    run_dir: its directory.
    other: the flag that chooses another directory.

  Raises:
    SettingsError: labels are recorded, a later phase has begun, or reinforcement learning.
    CheckpointMismatchError: the newest checkpoint has another schema.
  """
  changed = [found for found in settings.differences(stored, config) if found[0] in LIMITS]
  position = imitation_setup.saved_position(run_dir) if changed else None
  if position is None:
    return
  trains = (run_dir / run_files.INITIAL).exists()  # reinforcement learning follows all phases
  labelled = config.demonstrations.labels > 0 and (
    run_dir / run_files.LABELS / games_files.MANIFEST).exists()
  phase = max(position.phase, int(labelled))
  for key, found, expected in changed:
    if trains or 0 <= _phase_of(config, key) < phase:
      raise settings.SettingsError(
        f"run {str(run_dir)!r} was started with {key} = {found!r}, found {expected!r}, but this "
        f"phase of its imitation is over: keep {found!r}, or start another {other} from its "
        f"weights with --config.demonstrations.imitator={run_dir}.")


def imitates(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> bool:
  """Returns whether imitation is still to precede reinforcement learning."""
  return config.init == settings.IMITATION and not (run_dir / run_files.INITIAL).exists()


def recorded_games(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> Recorded:
  """Returns the games that a run imitates now: without labels before their phase has begun.

  Raises:
    CheckpointMismatchError: the newest checkpoint has another schema.
  """
  dataset = pathlib.Path(config.demonstrations.dataset or run_dir / run_files.DEMONSTRATIONS)
  position = imitation_setup.saved_position(run_dir) or imitation_setup.Position()
  if config.demonstrations.labels and position.phase > 0:
    return Recorded(dataset, run_dir / run_files.LABELS)
  return Recorded(dataset, first_alone=config.demonstrations.labels > 0)


def check_imitation(config: ml_collections.ConfigDict, recorded: Recorded,
                    run_dir: pathlib.Path) -> tuple[games.GamesDataset, int | None]:
  """Checks the games, the phases and the initial weights of imitation.

  Args:
    config: of the run.
    recorded: its games.
    run_dir: its directory; a resumed run must have learnt from the same games.

  Returns:
    See `imitation_setup.read_recorded`.

  Raises:
    GamesError: a folder is no dataset of the run's preset and its sizes, or is damaged.
    UserError: the games are of another tier, or others than the run has learnt from, a phase has
      no games, or the initial weights are missing.
    CheckpointDamagedError, CheckpointMismatchError: the initial weights cannot be used.
  """
  options = learner_options.imitation_options(config)
  data, labelled = imitation_setup.read_recorded(recorded, options, run_dir)
  imitation_setup.make_phases(options, data, labelled)
  if config.demonstrations.imitator:
    saved_agents.load_imitator(registry.make_parts(config), config)
  return data, labelled


def check_z(config: ml_collections.ConfigDict, data: games.GamesDataset,
            labelled: int | None = None) -> None:
  """Checks that training games find z of each match-up after the imitation of a dataset.

  Args:
    config: of the run.
    data: the dataset.
    labelled: number of its first game with labels; None: there is none.

  Raises:
    GamesError: the games are damaged.
    UserError: a match-up has no z.
  """
  if not config.actor.pseudo_probability:
    return
  parts = registry.make_parts(config)
  if config.actor.library:
    z_source.from_library(parts, config, pathlib.Path(config.actor.library))
    return
  options = learner_options.imitation_options(config)
  found = imitation_setup.make_library(options, data, labelled)
  try:
    z_source.from_games(parts, config, found)
  except KeyError as error:
    players = f" by players of 'imitation.names' = {options.names!r}" if options.names else ""
    raise UserError(
      f"{data.path} lacks z for 'actor.pseudo_probability' = {config.actor.pseudo_probability}, "
      f"which come from learnt games that were won{players} at an MMR of at least "
      f"{options.fine_tune_mmr} ('imitation.fine_tune_mmr'): {error.args[0]}") from error


def check_recording(config: ml_collections.ConfigDict) -> None:
  """Checks that a run can record the games that it imitates: demonstrations, or labels, or both.

  Raises:
    SettingsError: the games of its preset are recorded at another tier, or not at all.
  """
  if config.demonstrations.dataset and not config.demonstrations.labels:
    return
  game, name = registry.game_of(config), config.environment.name
  if config.demonstrations.dataset:
    key, expected, other = "labels", "must be 0", "'demonstrations.labels' = 0"
  else:
    key, expected = "dataset", f"must name recorded games if 'init' is {settings.IMITATION!r}"
    other = f"'demonstrations.dataset', or another 'init' than {settings.IMITATION!r}"
  if not game.recorded:
    raise settings.SettingsError(
      f"config key 'demonstrations.{key}' {expected} in {name}, whose games cannot be recorded; "
      f"found {config.demonstrations[key]!r}.")
  for key, found, valid in (
      ("preset", config.preset, list(game.recorded)),
      ("environment.tier", config.environment.tier, [game.recorded.get(config.preset)])):
    if found not in valid:
      raise settings.SettingsError(
        f"config key {key!r}: expected {' or '.join(map(repr, valid))} to record the games that "
        f"a run of preset {config.preset!r} imitates, found {found!r}; give {other}.")
