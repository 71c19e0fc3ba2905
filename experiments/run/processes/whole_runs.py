"""A whole run, of one agent or of a league: its config, its processes, its page."""

import pathlib
import sys

import ml_collections

from starleague.common import run_files
from starleague.data import packages
from starleague.experiments.run.processes import (
  imitation_checks,
  league_run,
  process_runner,
  supervision,
)
from starleague.experiments.run.processes.programs import Place
from starleague.viewers.league import page as league_page
from starleague.viewers.report import page as report_page


def execute(config: ml_collections.ConfigDict, run_dir: pathlib.Path, *,
            league: bool = False, evaluate: bool = True, place: Place | None = None) -> bool:
  """Starts or resumes a run and prints where its page is. Ctrl-C stops the run cleanly.

  A process that dies with no restart left ends the program with one line.

  Args:
    config: the run's.
    run_dir: the run's directory.
    league: whether it is a league.
    evaluate: whether an agent plays the evaluation games at the end.
    place: where the processes run; None: on this machine.

  Returns:
    Whether the run came to its end.

  Raises:
    MissingPackageError: Reverb or pyarrow is not installed.
    SettingsError: the config is not that of the run in `run_dir`, or not one of a league; the games
      to imitate cannot be recorded; another program runs it.
    GamesError, UserError: see `imitation_checks.check_imitation` and `check_z`.
  """
  ended = False
  packages.require("reverb", "pyarrow")  # the processes would fail one after the other, and late
  try:
    if league:
      league_run.check(config)
    if imitation_checks.imitates(config, run_dir):
      imitation_checks.check_recording(config)
      # Other nodes may have the dataset, but not this one.
      if config.demonstrations.dataset and place is None:
        imitation_checks.check_z(config, *imitation_checks.check_imitation(
          config, imitation_checks.recorded_games(config, run_dir), run_dir))
    with supervision.only_one(run_dir):
      supervision.prepare(config, run_dir, league=league)
      if league:
        league_run.train(config, run_dir, place)
      else:
        supervision.train(config, run_dir, evaluate, place)
    ended = True
  except process_runner.ProcessFailed as error:
    sys.exit(f"error: {error}\n{_resuming(run_dir)}")
  except KeyboardInterrupt:
    print(f"stopped; {_resuming(run_dir)}")
  if league and (run_dir / run_files.LEAGUE).exists():
    print(f"page: {league_page.write(run_dir)}")
  if (report := run_dir / report_page.FILE_NAME).exists():
    print(f"report: {report}")
  return ended


def _resuming(run_dir: pathlib.Path) -> str:
  """Returns what the same command does with a run that has ended early."""
  saved = [*run_dir.glob(f"{run_files.CHECKPOINTS}/[0-9]*"),
           *run_dir.glob(f"{run_files.LEARNERS}/*/{run_files.CHECKPOINTS}/[0-9]*")]
  return ("the same command " + ("resumes from the last checkpoint in" if saved else
          "begins the training, of which there is no checkpoint yet, in") + f" {run_dir}")
