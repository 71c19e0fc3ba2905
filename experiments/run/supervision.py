"""A run on this machine: its settings, its processes, their supervision, its report."""

import os
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence

import ml_collections
import portpicker

from starleague.common import results
from starleague.experiments.run import display, monitor, processes, settings
from starleague.viewers.report import page as report_page

TOTALS_INTERVAL_S = 10.0
POLL_S = 1.0


def prepare(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> None:
  """Writes the config of a new run, or checks the config of a resumed one.

  Raises:
    SettingsError: the run was started with another config. Only its duration may change.
  """
  if not (run_dir / settings.CONFIG_FILE).exists():
    settings.save(config, run_dir)
    return
  stored = settings.load(run_dir)
  changed = settings.differences(stored, config, ignored=("seconds", "evaluation.games"))
  if changed:
    key, found, expected = changed[0]
    raise settings.SettingsError(
      f"run {str(run_dir)!r} was started with {key} = {found!r}, found {expected!r}; resume it with the "
      f"settings in {run_dir / settings.CONFIG_FILE}, or choose another --run.")
  settings.save(config, run_dir)


def module(name: str, *arguments: str) -> tuple[str, ...]:
  """Returns the command line of a launch file."""
  return (sys.executable, "-m", f"starleague.experiments.{name}", *arguments)


def environment(run_dir: pathlib.Path) -> dict[str, str]:
  """Returns the environment variables of a run's processes.

  A compilation cache lets a restarted process start without compiling. Large arrays use huge pages
  where Linux and glibc (2.35) support them: XLA allocates the memory of each call again, and with
  small pages the kernel takes a third of a gradient's time to hand it out.
  """
  return {"JAX_COMPILATION_CACHE_DIR": str((run_dir.parent / ".compiled").absolute()),
          "TF_CPP_MIN_LOG_LEVEL": "3",
          "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")}


def make_processes(config: ml_collections.ConfigDict, run_dir: pathlib.Path, port: int,
                   origin: float) -> list[processes.Process]:
  """Returns the run's processes, each with a limit on its restarts."""
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
  """Displays the run's state and records the totals of all actors."""

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
  """Runs processes until the named one has finished, then ends the others.

  Raises:
    ProcessFailed: one died and has no restart left.
    KeyboardInterrupt: Ctrl-C or SIGTERM, after all processes have ended.
  """
  with processes.Runner(started, deadline_seconds=60.0) as runner:
    while (states := runner.poll())[until] is not processes.State.FINISHED:
      watch({name: str(state) for name, state in states.items()})
      time.sleep(POLL_S)


def train(config: ml_collections.ConfigDict, run_dir: pathlib.Path, evaluate: bool) -> None:
  """Trains, evaluates and writes the report. Raises the errors of `run_processes`."""
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
