"""A run on this machine: its config, its processes, their supervision, its report."""

import contextlib
import os
import pathlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import jax
import ml_collections
import portpicker

from starleague.common import results
from starleague.experiments.run import display, monitor, processes, progress, settings, wiring
from starleague.viewers.report import page as report_page

TOTALS_INTERVAL_S = 10.0
POLL_S = 0.1
DISPLAY_INTERVAL_S = 1.0
# The longest time that a process may take to end: the learner saves a checkpoint.
DEADLINE_S = 60.0
# Keys that may change when a run is resumed.
_DURATIONS = (
  "seconds", "league.seconds", "learner.updates", "imitation.seconds", "imitation.epochs",
  "imitation.fine_tune_seconds", "imitation.fine_tune_epochs", "evaluation.games")
FAST_COMPILE = "--xla_cpu_use_fusion_emitters=false"
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"  # of an operation

_KNOWS_FLAGS = jax.__version_info__ < (0, 8)  # XLA aborts on a flag that it does not know


def run_dir_of(runs_dir: str, run: str) -> pathlib.Path:
  """Returns the directory of a run.

  Raises:
    SettingsError: the run's name is not that of a directory.
  """
  if not run.isprintable() or "/" in run or run.strip() in ("", ".", ".."):
    raise settings.SettingsError(f"--run must be a name without '/', found {run!r}.")
  return pathlib.Path(runs_dir) / run


def prepare(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
            league: bool = False) -> None:
  """Writes the config of a new run, or checks the config of a resumed one.

  Args:
    config: of the run.
    run_dir: the run's directory.
    league: whether it is a league.

  Raises:
    SettingsError: the run was started with another config, of which only durations may change, or
      it is a league and should not be, or the other way round.
  """
  if (run_dir / (wiring.CHECKPOINTS if league else wiring.LEARNERS)).exists():
    raise settings.SettingsError(
      f"run {str(run_dir)!r} {'trains one agent' if league else 'is a league'}: continue it with "
      f"{'train' if league else 'league'}, or choose another --run.")
  if not (run_dir / settings.CONFIG_FILE).exists():
    settings.save(config, run_dir)
    return
  stored = settings.load(run_dir)
  changed = settings.differences(stored, config, ignored=_DURATIONS)
  if changed:
    key, found, expected = changed[0]
    raise settings.SettingsError(
      f"run {str(run_dir)!r} was started with {key} = {found!r}, found {expected!r}; resume it "
      f"with the settings in {run_dir / settings.CONFIG_FILE}, or choose another --run.")
  settings.save(config, run_dir)


def module(name: str, *arguments: str) -> tuple[str, ...]:
  """Returns the command line of a launch file."""
  return (sys.executable, "-m", f"starleague.experiments.{name}", *arguments)


def environment(run_dir: pathlib.Path) -> dict[str, str]:
  """Returns the environment variables of a run's processes.

  A compilation cache of all programs, small ones too, lets a restarted process start without
  compiling; it lies beside the runs, unless JAX_COMPILATION_CACHE_DIR names another. Large arrays
  use huge pages where Linux and glibc (2.35) support them: XLA allocates the memory of each call
  again, and with small pages the kernel takes a third of a gradient's time to hand it out. XLA's
  MLIR fusion emitters for CPUs are off: they take 1.6 times the compile time of the LLVM ones
  (`docs/performance.md`).
  """
  beside = str((run_dir.parent / ".compiled").absolute())
  variables = {"JAX_COMPILATION_CACHE_DIR": os.environ.get("JAX_COMPILATION_CACHE_DIR") or beside,
               "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
               "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
               "TF_CPP_MIN_LOG_LEVEL": "3",
               "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")}
  if _KNOWS_FLAGS:
    variables["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FAST_COMPILE}".strip()
  return variables


def data_parallel(variables: Mapping[str, str], batch_size: int, accumulate: int,
                  cores: int) -> dict[str, str]:
  """Returns the environment variables of a learner that splits a batch over the cores of a CPU.

  Each core is a device of its own: an update is a fifth faster than with operations that are split
  over threads (`docs/performance.md`). Other platforms do not read these variables.

  Args:
    variables: of the other processes.
    batch_size: of an update.
    accumulate: parts of a device's share.
    cores: that may be used.
  """
  devices = max(count for count in range(1, cores + 1)
                if count == 1 or batch_size % (count * accumulate) == 0)
  changed = {"JAX_NUM_CPU_DEVICES": str(devices)}
  if _KNOWS_FLAGS:
    changed["XLA_FLAGS"] = f"{variables.get('XLA_FLAGS', '')} {ONE_THREAD}".strip()
  return {**variables, **changed}


def make_processes(config: ml_collections.ConfigDict, run_dir: pathlib.Path, port: int,
                   origin: float, league: Sequence[str] = ()) -> list[processes.Process]:
  """Returns the run's processes, each with a limit on its restarts.

  Args:
    config: the run's.
    run_dir: the run's directory.
    port: of the data server.
    origin: start of the run, in Unix seconds.
    league: further arguments of all of them, if the run is a league.
  """
  where = ("--run_dir", str(run_dir), *league)
  place = ("--address", f"localhost:{port}", "--origin", repr(origin))
  logs, env = run_dir / "logs", environment(run_dir)
  split = data_parallel(env, config.learner.batch_size, config.learner.accumulate, _cores())
  # XLA reads the size of its thread pool from NPROC.
  threads = {"NPROC": str(config.actor.threads)} if config.actor.threads else {}
  actors = [
    processes.Process(f"actor {i}", module("actor", *where, *place, "--index", str(i)),
                      env | threads, logs / f"actor_{i}.log", restarts=10)
    for i in range(config.actor.processes)]
  return [
    processes.Process("data_server", module("data_server", *where, "--port", str(port)), env,
                      logs / "data_server.log", restarts=3, ends_last=True),
    processes.Process("learner", module("learner", *where, *place), split, logs / "learner.log",
                      restarts=3),
    *actors]


class Watch:
  """Displays the run's state and records the totals of all actors."""

  def __init__(self, run_dir: pathlib.Path, origin: float, shown: display.Display):
    """Starts with the rows of the run's results file, if it is resumed.

    Args:
      run_dir: the run's directory.
      origin: start of the run, in Unix seconds.
      shown: the display, already open.
    """
    self._run_dir, self._origin, self._shown = run_dir, origin, shown
    self._rows = results.Follower(run_dir / results.FILE_NAME)
    self._monitor = monitor.Monitor(run_dir.name)
    self._written = self._updated = time.time()

  def __call__(self, states: Mapping[str, str]) -> None:
    """Updates the display, at most every `DISPLAY_INTERVAL_S`.

    Args:
      states: of the processes, by name.
    """
    now = time.time()
    if now - self._updated < DISPLAY_INTERVAL_S:
      return
    self._updated = now
    self._monitor.add(self._rows.read())
    if now - self._written >= TOTALS_INTERVAL_S:
      results.append(self._run_dir / results.FILE_NAME, self._monitor.totals(now - self._origin))
      self._written = now
    self._shown.update(self._monitor.snapshot(
      now - self._origin, progress.read(self._run_dir), states))


def run_processes(started: Sequence[processes.Process], until: str, watch: Watch) -> None:
  """Runs processes until the named one has finished, then ends the others.

  Raises:
    ProcessFailed: one died with no restart left.
    KeyboardInterrupt: Ctrl-C or SIGTERM, after all processes have ended.
  """
  with processes.Runner(started, backoff_seconds=0.25, deadline_seconds=DEADLINE_S) as runner:
    while (states := runner.poll())[until] is not processes.State.FINISHED:
      watch({name: str(state) for name, state in states.items()})
      time.sleep(POLL_S)


def _cores() -> int:
  """Returns the number of cores that this process may use."""
  return len(os.sched_getaffinity(0))


def make_imitator(config: ml_collections.ConfigDict, run_dir: pathlib.Path, dataset: pathlib.Path,
                  origin: float) -> processes.Process:
  """Returns the process that imitates the players of a dataset."""
  split = data_parallel(environment(run_dir), config.imitation.batch_size,
                        config.imitation.accumulate, _cores())
  return processes.Process(
    "imitator", module("imitate", "--run_dir", str(run_dir), "--dataset", str(dataset),
                       "--origin", repr(origin)),
    split, run_dir / "logs" / "imitator.log", restarts=3)


def make_demonstrator(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
                      dataset: pathlib.Path) -> processes.Process:
  """Returns the process that records the run's demonstrations."""
  return processes.Process(
    "demonstrator", module(
      "demonstrate", "--run_dir", str(run_dir), "--dataset", str(dataset),
      "--players", config.demonstrations.players, "--games", str(config.demonstrations.games),
      "--preset", config.preset, "--seed", str(config.seed)),
    environment(run_dir), run_dir / "logs" / "demonstrator.log", restarts=3)


def imitate(config: ml_collections.ConfigDict, run_dir: pathlib.Path, origin: float,
            watch: Watch) -> None:
  """Records demonstrations, where the run has no dataset of its own, and imitates them."""
  dataset = pathlib.Path(config.demonstrations.dataset or run_dir / "demonstrations")
  if not config.demonstrations.dataset:
    progress.write(run_dir, progress.Progress(progress.DEMONSTRATIONS, detail="compiling"))
    run_processes([make_demonstrator(config, run_dir, dataset)], "demonstrator", watch)
  progress.write(run_dir, progress.Progress(progress.IMITATION, detail="compiling"))
  run_processes([make_imitator(config, run_dir, dataset, origin)], "imitator", watch)


def supervise(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
              dataset: pathlib.Path) -> None:
  """Imitates a dataset's players and writes the report. Raises the errors of `run_processes`."""
  origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
  with _reported(run_dir), display.Display() as shown:
    run_processes([make_imitator(config, run_dir, dataset, origin)], "imitator",
                  Watch(run_dir, origin, shown))


@contextlib.contextmanager
def _reported(run_dir: pathlib.Path) -> Iterator[None]:
  """Reports the setup at the beginning of a block; writes the report at its end."""
  progress.write(run_dir, progress.Progress(progress.SETUP, detail="starting processes"))
  try:
    yield
  finally:
    if (run_dir / results.FILE_NAME).exists():
      progress.write(run_dir, progress.Progress(progress.REPORT))
      report_page.write_report(run_dir)


def train(config: ml_collections.ConfigDict, run_dir: pathlib.Path, evaluate: bool) -> None:
  """Trains, evaluates and writes the report. Raises the errors of `run_processes`."""
  origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
  started = make_processes(config, run_dir, portpicker.pick_unused_port(), origin)
  judge = processes.Process(
    "evaluation", module("evaluate", "--run_dir", str(run_dir), "--origin", repr(origin)),
    environment(run_dir), run_dir / "logs" / "evaluation.log")
  with _reported(run_dir), display.Display() as shown:
    watch = Watch(run_dir, origin, shown)
    # The learner copies the imitator's weights to INITIAL when it starts.
    if config.init == settings.IMITATION and not (run_dir / wiring.INITIAL).exists():
      imitate(config, run_dir, origin, watch)
    progress.write(run_dir, progress.Progress(progress.TRAINING, detail="starting processes"))
    run_processes(started, "learner", watch)
    if evaluate:
      progress.write(run_dir, progress.Progress(progress.EVALUATION, detail="compiling"))
      run_processes([judge], "evaluation", watch)
