"""A run: its config, the supervision of its processes, its report."""

import contextlib
import pathlib
import time
from collections.abc import Iterator, Mapping, Sequence

import ml_collections

from starleague.common import disk, files, progress, results, run_files
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import learner_options
from starleague.experiments.run.processes import graph, imitation_checks, process_runner
from starleague.experiments.run.processes.programs import Place
from starleague.experiments.run.progress import display, monitor
from starleague.learner import wandb_run
from starleague.learner.loops import imitation_setup
from starleague.learner.loops.imitation_setup import Recorded
from starleague.viewers.report import page as report_page

TOTALS_INTERVAL_S = 10.0
POLL_S = 0.1
DISPLAY_INTERVAL_S = 1.0
# The longest time that a process may take to end: the learner saves a checkpoint.
DEADLINE_S = 60.0
_STAGE_LIMITS = ("seconds", "learner.updates")  # which the stages divide
# Keys that may change when a run is resumed, beside those of the group `cluster`.
_CHANGEABLE = (
  *_STAGE_LIMITS, "league.seconds", "league.main_updates", *imitation_checks.LIMITS,
  "evaluation.games", "evaluation.temperature", "learner.wandb", "offline.updates")


def run_dir_of(runs_dir: str, run: str, flag: str = "--run") -> pathlib.Path:
  """Returns the directory of a run.

  Args:
    runs_dir: the directory of runs.
    run: its name.
    flag: that names it.

  Raises:
    SettingsError: the run's name is not that of a directory, there is no directory of runs, or one
      of them has a comma.
  """
  # Commas separate folders of games: those of the run could not be read.
  if not runs_dir.strip() or "," in runs_dir:
    raise settings.SettingsError(
      f"--runs_dir must name a directory without ',', found {runs_dir!r}.")
  if not run.isprintable() or {"/", ","} & set(run) or run.strip() in ("", ".", ".."):
    raise settings.SettingsError(f"{flag} must be a name without '/' and ',', found {run!r}.")
  return pathlib.Path(runs_dir) / run


@contextlib.contextmanager
def only_one(run_dir: pathlib.Path, other: str = "--run") -> Iterator[None]:
  """Keeps other programs from the same run during a block; also a crash ends it.

  Args:
    run_dir: the run's directory.
    other: the flag that chooses another directory.

  Raises:
    SettingsError: another program runs it.
  """
  run_dir.mkdir(parents=True, exist_ok=True)
  with files.locked(run_dir / run_files.LOCK, settings.SettingsError(
      f"run {str(run_dir)!r} is running already: stop the other program, or choose another "
      f"{other}.")):
    yield


def prepare(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
            league: bool = False) -> None:
  """Writes the config of a new run, or checks the config of a resumed one.

  Args:
    config: of the run.
    run_dir: the run's directory.
    league: whether it is a league.

  Raises:
    SettingsError, CheckpointMismatchError: see `check_resumed`.
    WandbError: the config names a project of Weights & Biases, whose package is not installed.
  """
  if config.learner.wandb:
    wandb_run.load()
  check_resumed(config, run_dir, league)
  settings.save(config, run_dir)


def check_resumed(config: ml_collections.ConfigDict, run_dir: pathlib.Path, league: bool = False,
                  other: str = "--run") -> None:
  """Checks the config of a run that may have begun.

  Args:
    config: of the run.
    run_dir: the run's directory.
    league: whether it is a league.
    other: the flag that chooses another directory.

  Raises:
    SettingsError: the run was started with another config, of which only durations and places may
      change, or it is a league and should not be, or the other way round. Limits of a phase of
      imitation have changed, and a later phase has begun; or the limits of stages of reinforcement
      learning, of which the first is over.
    CheckpointMismatchError: the checkpoints of imitation have another schema.
  """
  if (run_dir / (run_files.CHECKPOINTS if league else run_files.LEARNERS)).exists():
    raise settings.SettingsError(
      f"run {str(run_dir)!r} {'trains one agent' if league else 'is a league'}: continue it with "
      f"{'train' if league else 'league'}, or choose another {other}.")
  if not (run_dir / run_files.CONFIG).exists():
    return
  stored = settings.load(run_dir)
  places = [f"cluster.{key}" for key in config.cluster]
  changed = settings.differences(stored, config, ignored=[*_CHANGEABLE, *places])
  if changed:
    key, found, expected = changed[0]
    raise settings.SettingsError(
      f"run {str(run_dir)!r} was started with {key} = {found!r}, found {expected!r}; resume it "
      f"with the settings in {run_dir / run_files.CONFIG}, or choose another {other}.")
  imitation_checks.check_limits(stored, config, run_dir, other)
  if (run_dir / run_files.STAGES).exists():  # the stages would begin and end at other updates
    for key, found, expected in settings.differences(stored, config):
      if key in _STAGE_LIMITS:
        raise settings.SettingsError(
          f"run {str(run_dir)!r} was started with {key} = {found!r}, found {expected!r}, but the "
          f"first of its {stored.learner.stages} stages is over: keep {found!r}, or choose another "
          f"{other}.")


def check_updates(run_dir: pathlib.Path, found: int, most: int, flag: str,
                  other: str = "--run") -> None:
  """Checks that a run has no more updates than it should get, as it would keep them.

  Args:
    run_dir: the run's directory.
    found: updates behind its newest checkpoints.
    most: updates that it should get.
    flag: that sets them.
    other: the flag that chooses another directory.

  Raises:
    SettingsError: it has more.
  """
  if found > most:
    raise settings.SettingsError(
      f"run {str(run_dir)!r} has {found} updates, expected at most {most}; raise {flag}, or choose "
      f"another {other}.")


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
    earlier = self._rows.read()
    self._monitor.add(earlier)
    self._deaths = results.deaths(results.by_tag(earlier))
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

  def report_deaths(self, deaths: Sequence[process_runner.Death]) -> None:
    """Prints the deaths of processes, which are started again, and counts them in the results.

    Args:
      deaths: since the last call.
    """
    for name, cause in deaths:
      word = "_".join(name.split())
      self._deaths[word] = self._deaths.get(word, 0) + 1
      self._shown.print(f"process={word} {cause}; it is started again "
                        f"(deaths so far: {self._deaths[word]})")
    results.append(self._run_dir / results.FILE_NAME, [
      results.Row(time.time() - self._origin, 0, f"{results.DEATHS}{word}", self._deaths[word])
      for word in {"_".join(death.name.split()) for death in deaths}])


def run_processes(running: graph.Graph, watch: Watch, place: Place | None) -> None:
  """Runs processes until those that end a graph have finished, then ends the others.

  The others are restarted also after status 0, with which some end at SIGTERM.

  Args:
    running: the processes.
    watch: called again and again.
    place: where they run; None: on this machine.

  Raises:
    ProcessFailed: one died with no restart left.
    KeyboardInterrupt: Ctrl-C or SIGTERM, after all processes have ended.
  """
  with process_runner.Runner(running.processes, place=place, until=running.until,
                             backoff_seconds=0.25, deadline_seconds=DEADLINE_S) as runner:
    states = runner.poll()
    while any(states[name] is not process_runner.State.FINISHED for name in running.until):
      watch({name: str(state) for name, state in states.items()})
      time.sleep(POLL_S)
      states = runner.poll()
      watch.report_deaths(runner.take_deaths())


def imitate(config: ml_collections.ConfigDict, run_dir: pathlib.Path, origin: float,
            watch: Watch, place: Place | None = None) -> None:
  """Records demonstrations, where the run has no dataset of its own, and imitates them.

  With labels the imitator then plays games, the demonstrators label them, and imitation goes on
  with all games. Raises the errors of `run_processes`, and of `check_z` after the recording.
  """
  recorded = imitation_checks.recorded_games(config, run_dir)
  dataset, labels = recorded.dataset, run_dir / run_files.LABELS

  def record(running: graph.Graph) -> None:
    progress.write(run_dir, progress.Progress(progress.DEMONSTRATIONS, detail="compiling"))
    run_processes(running, watch, place)

  def learn(from_games: Recorded) -> None:
    progress.write(run_dir, progress.Progress(progress.IMITATION, detail="compiling"))
    run_processes(graph.imitating(config, run_dir, from_games, origin), watch, place)

  if not config.demonstrations.dataset:
    record(graph.demonstrating(config, run_dir, dataset))
    # Other nodes may have the dataset, but not this one. It is read only where training shows z.
    if place is None and config.actor.pseudo_probability:
      imitation_checks.check_z(config, imitation_setup.read_games(
        dataset, learner_options.imitation_options(config)))
  learn(recorded)
  if recorded.first_alone:
    record(graph.labelling(config, run_dir, labels))
    learn(Recorded(dataset, labels))


def supervise(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
              dataset: pathlib.Path) -> None:
  """Imitates a dataset's players and writes the report. Raises the errors of `run_processes`."""
  origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
  with _reported(run_dir), display.Display() as shown:
    run_processes(graph.imitating(config, run_dir, Recorded(dataset), origin),
                  Watch(run_dir, origin, shown), None)


@contextlib.contextmanager
def _reported(run_dir: pathlib.Path) -> Iterator[None]:
  """Reports the setup at the beginning of a block; writes the report at its end."""
  progress.write(run_dir, progress.Progress(progress.SETUP, detail="starting processes"))
  try:
    yield
  except BaseException:
    with contextlib.suppress(disk.DiskFullError):  # the error says so already
      _report(run_dir)
    raise
  _report(run_dir)


def _report(run_dir: pathlib.Path) -> None:
  if (run_dir / results.FILE_NAME).exists():
    progress.write(run_dir, progress.Progress(progress.REPORT))
    report_page.write_report(run_dir)


def train(config: ml_collections.ConfigDict, run_dir: pathlib.Path, evaluate: bool,
          place: Place | None = None) -> None:
  """Trains, evaluates and writes the report. Raises the errors of `run_processes`.

  Args:
    config: the run's.
    run_dir: the run's directory.
    evaluate: whether to play the evaluation games at the end.
    place: where the processes run; None: on this machine.
  """
  origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
  with _reported(run_dir), display.Display() as shown:
    watch = Watch(run_dir, origin, shown)
    # The learner copies the imitator's weights to INITIAL when it starts.
    if imitation_checks.imitates(config, run_dir):
      imitate(config, run_dir, origin, watch, place)
    progress.write(run_dir, progress.Progress(progress.TRAINING, detail="starting processes"))
    run_processes(graph.training(config, run_dir, origin), watch, place)
    if evaluate:
      progress.write(run_dir, progress.Progress(progress.EVALUATION, detail="compiling"))
      run_processes(graph.evaluating(config, run_dir, origin), watch, place)
