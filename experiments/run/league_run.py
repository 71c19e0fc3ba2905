"""A league: imitation, then its processes and their supervision."""

import pathlib
import time

import ml_collections

from starleague.common import results
from starleague.experiments.run import display, graph, progress, settings, supervision, wiring
from starleague.experiments.run.programs import Place


def check(config: ml_collections.ConfigDict) -> None:
  """Checks that a config is one of a league.

  Raises:
    SettingsError: it does not start from imitation, or has a learner of several hosts.
  """
  if config.init != settings.IMITATION:
    raise settings.SettingsError(
      f"config key 'init' must be {settings.IMITATION!r} in a league, found {config.init!r}: its "
      "players start from an imitator.")
  if config.cluster.learner_hosts != 1:
    raise settings.SettingsError(
      "config key 'cluster.learner_hosts' must be 1 in a league, found "
      f"{config.cluster.learner_hosts}: each learning player is trained by one process.")


def train(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
          place: Place | None = None) -> None:
  """Imitates, then runs the league to the end of its time; raises errors of `run_processes`.

  Args:
    config: the run's.
    run_dir: the run's directory.
    place: where the processes run; None: on this machine.
  """
  origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
  progress.write(run_dir, progress.Progress(progress.SETUP, detail="starting processes"))
  with display.Display() as shown:
    watch = supervision.Watch(run_dir, origin, shown)
    if not (run_dir / wiring.INITIAL).exists():
      supervision.imitate(config, run_dir, origin, watch, place)
    progress.write(run_dir, progress.Progress(progress.TRAINING, detail="starting processes"))
    supervision.run_processes(graph.league(config, run_dir, origin), watch, place)
