"""Trains an agent on Skirmish on this machine: data server, actors, learner, progress, report.

  python -m starleague.experiments.train --run mini
  python -m starleague.experiments.train --run fast --config.seconds=120 --config.seed=1

Everything is written to RUNS_DIR/RUN: config.json, checkpoints, tensorboard, results.csv,
league.sqlite, logs and report.html. Ctrl-C ends it cleanly; the same command goes on from there.
"""

import os
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence

import ml_collections
import portpicker
from absl import flags

from starleague.common import results
from starleague.experiments.run import display, entry, monitor, processes, settings
from starleague.viewers.report import page as report_page

_CONFIG = entry.define_config(pathlib.Path(__file__).parent / "configs" / "mini.py")
flags.declare_key_flag("config")
_RUN = flags.DEFINE_string("run", "mini", "Name of the run: its folder in --runs_dir.")
_RUNS_DIR = flags.DEFINE_string("runs_dir", "runs", "Where runs are kept.")
_EVALUATE = flags.DEFINE_bool("evaluate", True, "Play the evaluation games at the end.")

TOTALS_INTERVAL_S = 10.0
POLL_S = 1.0


def prepare(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> None:
  """Writes the settings of a new run; holds those of one that goes on against its own.

  Raises:
    SettingsError: the run has been begun with other settings. How long it trains may change.
  """
  if not (run_dir / settings.CONFIG_FILE).exists():
    settings.save(config, run_dir)
    return
  stored = settings.load(run_dir)
  changed = settings.differences(stored, config, ignored=("seconds", "evaluation.games"))
  if changed:
    key, found, expected = changed[0]
    raise settings.SettingsError(
      f"run {str(run_dir)!r} was begun with {key} = {found!r}, found {expected!r}; go on with the "
      f"settings in {run_dir / settings.CONFIG_FILE}, or choose another --run.")
  settings.save(config, run_dir)


def module(name: str, *arguments: str) -> tuple[str, ...]:
  """The command line of a launch file."""
  return (sys.executable, "-m", f"starleague.experiments.{name}", *arguments)


def environment(run_dir: pathlib.Path) -> dict[str, str]:
  """What processes find in their environment: a process that starts again need not compile again.

  Large arrays lie on large pages, where Linux and glibc (2.35) can: XLA takes the memory of a call
  anew each time, and the kernel a third of a gradient's time to hand it out in small ones.
  """
  return {"JAX_COMPILATION_CACHE_DIR": str((run_dir.parent / ".compiled").absolute()),
          "TF_CPP_MIN_LOG_LEVEL": "3",
          "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")}


def make_processes(config: ml_collections.ConfigDict, run_dir: pathlib.Path, port: int,
                   origin: float) -> list[processes.Process]:
  """The run's processes: each may die and is started again, up to a bound."""
  where = ("--run_dir", str(run_dir))
  place = ("--address", f"localhost:{port}", "--origin", repr(origin))
  logs, env = run_dir / "logs", environment(run_dir)
  actors = [
    processes.Process(f"actor {i}", module("actor", *where, *place, "--index", str(i)), env,
                      logs / f"actor_{i}.log", restarts=10)
    for i in range(config.actor.processes)]
  return [
    processes.Process("data_server", module("data_server", *where, "--port", str(port)), env,
                      logs / "data_server.log", restarts=3),
    processes.Process("learner", module("learner", *where, *place), env, logs / "learner.log",
                      restarts=3),
    *actors]


class Watch:
  """Shows how the run stands, and writes what all actors together have done."""

  def __init__(self, config: ml_collections.ConfigDict, run_dir: pathlib.Path, origin: float,
               shown: display.Display):
    self._config, self._run_dir, self._origin, self._shown = config, run_dir, origin, shown
    self._written = time.time()

  def __call__(self, states: Mapping[str, str]) -> None:
    path = self._run_dir / results.FILE_NAME
    rows = results.read(path) if path.exists() else []
    now = time.time()
    if now - self._written >= TOTALS_INTERVAL_S:
      results.append(path, monitor.totals(rows, now - self._origin))
      self._written = now
    self._shown.update(monitor.snapshot(
      rows, self._run_dir.name, now - self._origin, None, states))


def run_processes(started: Sequence[processes.Process], until: str, watch: Watch) -> None:
  """Runs processes until one of them, named, has finished; then ends the others.

  Raises:
    ProcessFailed: one died for good.
    KeyboardInterrupt: Ctrl-C or SIGTERM; the others have been ended by then.
  """
  with processes.Runner(started, deadline_seconds=60.0) as runner:
    while (states := runner.poll())[until] is not processes.State.FINISHED:
      watch({name: str(state) for name, state in states.items()})
      time.sleep(POLL_S)


def train(config: ml_collections.ConfigDict, run_dir: pathlib.Path, evaluate: bool) -> None:
  """Trains, evaluates and writes the report; the errors are those of `run_processes`."""
  origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
  started = make_processes(config, run_dir, portpicker.pick_unused_port(), origin)
  judge = processes.Process(
    "evaluation", module("evaluate", "--run_dir", str(run_dir), "--origin", repr(origin)),
    environment(run_dir), run_dir / "logs" / "evaluation.log")
  try:
    with display.Display() as shown:
      watch = Watch(config, run_dir, origin, shown)
      run_processes(started, "learner", watch)
      if evaluate:
        run_processes([judge], "evaluation", watch)
  finally:
    if (run_dir / results.FILE_NAME).exists():
      report_page.write_report(run_dir)


def chosen_settings() -> ml_collections.ConfigDict:
  """The settings that the flags ask for.

  Raises:
    SettingsError: the file cannot be read, or what it holds cannot be.
  """
  try:
    values = _CONFIG.value.to_dict()
  except OSError as error:
    raise settings.SettingsError(f"--config: {' '.join(str(error).split())}") from error
  return settings.complete(values)


def main() -> None:
  processes.interrupt_on_sigterm()
  run_dir = pathlib.Path(_RUNS_DIR.value) / _RUN.value
  try:
    config = chosen_settings()
    prepare(config, run_dir)
    train(config, run_dir, _EVALUATE.value)
  except processes.ProcessFailed as error:
    sys.exit(f"error: {error}")
  except KeyboardInterrupt:
    print(f"stopped; the same command goes on from the last checkpoint in {run_dir}")
    return
  print(f"report: {run_dir / 'report.html'}")


if __name__ == "__main__":
  entry.run(main)
