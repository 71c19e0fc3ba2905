"""A league on this machine: its processes and their supervision."""

import pathlib
import time

import ml_collections
import portpicker

from starleague.common import results
from starleague.experiments.run import display, processes, progress, settings, supervision, wiring
from starleague.viewers.league import reading


def make_processes(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
                   origin: float) -> list[processes.Process]:
  """Returns the league's processes, each with a limit on its restarts."""
  port, league_port = portpicker.pick_unused_port(), portpicker.pick_unused_port()
  joined = ("--league", f"localhost:{league_port}")
  started = supervision.make_processes(config, run_dir, port, origin, joined)
  coordinator = processes.Process(
    "coordinator", supervision.module(
      "coordinator", "--league_file", str(run_dir / reading.LEAGUE_NAME),
      "--port", str(league_port), "--seed", str(config.seed),
      "--composition", config.league.composition,
      "--snapshot_steps", repr(config.league.snapshot_steps),
      "--timeout_steps", repr(config.league.timeout_steps),
      "--lease_s", repr(config.league.lease_s)),
    supervision.environment(run_dir), run_dir / "logs" / "coordinator.log", restarts=10,
    ends_last=True)
  evaluators = [
    processes.Process(
      f"evaluator {i}", supervision.module(
        "evaluator", "--run_dir", str(run_dir), "--address", f"localhost:{port}", *joined),
      supervision.environment(run_dir) | {"NPROC": "1"},
      run_dir / "logs" / f"evaluator_{i}.log", restarts=10)
    for i in range(config.league.evaluators)]
  return [coordinator, *started, *evaluators]


def train(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> None:
  """Imitates, then runs the league to the end of its time; raises errors of `run_processes`.

  Raises:
    SettingsError: the config does not start from imitation.
  """
  if config.init != settings.IMITATION:
    raise settings.SettingsError(
      f"config key 'init' must be {settings.IMITATION!r} in a league, found {config.init!r}: its "
      "players start from an imitator.")
  origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
  progress.write(run_dir, progress.Progress(progress.SETUP, detail="starting processes"))
  with display.Display() as shown:
    watch = supervision.Watch(run_dir, origin, shown)
    if not (run_dir / wiring.INITIAL).exists():
      supervision.imitate(config, run_dir, origin, watch)
    progress.write(run_dir, progress.Progress(progress.TRAINING, detail="starting processes"))
    supervision.run_processes(make_processes(config, run_dir, origin), "learner", watch)
