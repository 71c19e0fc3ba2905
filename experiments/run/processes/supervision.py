"""A run: its config, the supervision of its processes, its report."""

import contextlib
import pathlib
import time
from collections.abc import Iterator, Mapping, Sequence

import ml_collections

from starleague.common import disk, files, progress, results, run_files
from starleague.common.errors import UserError
from starleague.data import games
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options, saved_agents, z_source
from starleague.experiments.run.processes import graph, process_runner
from starleague.experiments.run.processes.programs import Place
from starleague.experiments.run.progress import display, monitor
from starleague.learner import wandb_run
from starleague.learner.loops import imitation_setup
from starleague.viewers.report import page as report_page

TOTALS_INTERVAL_S = 10.0
POLL_S = 0.1
DISPLAY_INTERVAL_S = 1.0
# The longest time that a process may take to end: the learner saves a checkpoint.
DEADLINE_S = 60.0
# Limits of the phases of imitation, by the phase's index.
_PHASES = {"imitation.seconds": 0, "imitation.epochs": 0, "imitation.fine_tune_seconds": 1,
           "imitation.fine_tune_epochs": 1}
# Keys that may change when a run is resumed, beside those of the group `cluster`.
_CHANGEABLE = (
  "seconds", "league.seconds", "league.main_updates", "learner.updates", *_PHASES,
  "evaluation.games", "evaluation.temperature", "learner.wandb", "offline.updates")


def run_dir_of(runs_dir: str, run: str, flag: str = "--run") -> pathlib.Path:
  """Returns the directory of a run.

  Args:
    runs_dir: the directory of runs.
    run: its name.
    flag: that names it.

  Raises:
    SettingsError: the run's name is not that of a directory, or there is no directory of runs.
  """
  if not runs_dir.strip():
    raise settings.SettingsError(f"--runs_dir must name a directory, found {runs_dir!r}.")
  if not run.isprintable() or "/" in run or run.strip() in ("", ".", ".."):
    raise settings.SettingsError(f"{flag} must be a name without '/', found {run!r}.")
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
      imitation have changed, and a later phase has begun.
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
  _check_limits(stored, config, run_dir, other)


def _check_limits(stored: ml_collections.ConfigDict, config: ml_collections.ConfigDict,
                  run_dir: pathlib.Path, other: str) -> None:
  """Raises SettingsError if limits of a phase of imitation have changed that cannot continue."""
  changed = [found for found in settings.differences(stored, config) if found[0] in _PHASES]
  position = imitation_setup.saved_position(run_dir) if changed else None
  if position is None:
    return
  trains = (run_dir / run_files.INITIAL).exists()  # reinforcement learning follows all phases
  for key, found, expected in changed:
    if trains or _PHASES[key] < position.phase:
      raise settings.SettingsError(
        f"run {str(run_dir)!r} was started with {key} = {found!r}, found {expected!r}, but this "
        f"phase of its imitation is over: keep {found!r}, or start another {other} from its "
        f"weights with --config.demonstrations.imitator={run_dir}.")


def imitates(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> bool:
  """Returns whether imitation is still to precede reinforcement learning."""
  return config.init == settings.IMITATION and not (run_dir / run_files.INITIAL).exists()


def check_imitation(config: ml_collections.ConfigDict, dataset: pathlib.Path,
                    run_dir: pathlib.Path) -> games.GamesDataset:
  """Checks the dataset, the phases and the initial weights of imitation.

  Args:
    config: of the run.
    dataset: its games.
    run_dir: its directory; a resumed run must have learnt from the same games.

  Returns:
    The dataset, open.

  Raises:
    GamesError: the folder is no dataset of the run's preset and its sizes, or is damaged.
    UserError: the games are of another tier, or others than the run has learnt from, a phase has
      no games, or the initial weights are missing.
    CheckpointDamagedError, CheckpointMismatchError: the initial weights cannot be used.
  """
  options = learner_options.imitation_options(config)
  data = imitation_setup.read_games(dataset, options)
  imitation_setup.make_phases(options, data)
  imitation_setup.check_dataset(run_dir / run_files.IMITATION, data)
  if config.demonstrations.imitator:
    saved_agents.load_imitator(registry.make_parts(config), config)
  return data


def check_z(config: ml_collections.ConfigDict, data: games.GamesDataset) -> None:
  """Checks that training games find z of each match-up after the imitation of a dataset.

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
  found = imitation_setup.make_library(options, data)
  try:
    z_source.from_games(parts, config, found)
  except KeyError as error:
    raise UserError(
      f"{data.path} lacks z for 'actor.pseudo_probability' = {config.actor.pseudo_probability}, "
      "which come from learnt games that were won at an MMR of at least "
      f"{options.fine_tune_mmr} ('imitation.fine_tune_mmr'): {error.args[0]}") from error


def check_recording(config: ml_collections.ConfigDict) -> None:
  """Checks that a run without a dataset of its own can record the games that it imitates.

  Raises:
    SettingsError: the games of its preset are recorded at another tier, or not at all.
  """
  game, name = registry.game_of(config), config.environment.name
  if not game.recorded:
    raise settings.SettingsError(
      f"config key 'demonstrations.dataset' must name recorded games if 'init' is "
      f"{settings.IMITATION!r} in {name}, whose games cannot be recorded; found ''.")
  for key, found, expected in (
      ("preset", config.preset, list(game.recorded)),
      ("environment.tier", config.environment.tier, [game.recorded.get(config.preset)])):
    if found not in expected:
      raise settings.SettingsError(
        f"config key {key!r}: expected {' or '.join(map(repr, expected))} to record the games that "
        f"a run of preset {config.preset!r} imitates, found {found!r}; give "
        f"'demonstrations.dataset', or another 'init' than {settings.IMITATION!r}.")


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

  Args:
    running: the processes.
    watch: called again and again.
    place: where they run; None: on this machine.

  Raises:
    ProcessFailed: one died with no restart left.
    KeyboardInterrupt: Ctrl-C or SIGTERM, after all processes have ended.
  """
  with process_runner.Runner(running.processes, place=place, backoff_seconds=0.25,
                             deadline_seconds=DEADLINE_S) as runner:
    states = runner.poll()
    while any(states[name] is not process_runner.State.FINISHED for name in running.until):
      watch({name: str(state) for name, state in states.items()})
      time.sleep(POLL_S)
      states = runner.poll()
      watch.report_deaths(runner.take_deaths())


def imitate(config: ml_collections.ConfigDict, run_dir: pathlib.Path, origin: float,
            watch: Watch, place: Place | None = None) -> None:
  """Records demonstrations, where the run has no dataset of its own, and imitates them.

  Raises the errors of `run_processes`, and of `check_z` after the recording.
  """
  dataset = pathlib.Path(config.demonstrations.dataset or run_dir / "demonstrations")
  if not config.demonstrations.dataset:
    progress.write(run_dir, progress.Progress(progress.DEMONSTRATIONS, detail="compiling"))
    run_processes(graph.demonstrating(config, run_dir, dataset), watch, place)
    # Other nodes may have the dataset, but not this one. It is read only where training shows z.
    if place is None and config.actor.pseudo_probability:
      check_z(config, imitation_setup.read_games(
        dataset, learner_options.imitation_options(config)))
  progress.write(run_dir, progress.Progress(progress.IMITATION, detail="compiling"))
  run_processes(graph.imitating(config, run_dir, dataset, origin), watch, place)


def supervise(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
              dataset: pathlib.Path) -> None:
  """Imitates a dataset's players and writes the report. Raises the errors of `run_processes`."""
  origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
  with _reported(run_dir), display.Display() as shown:
    run_processes(graph.imitating(config, run_dir, dataset, origin),
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
    if imitates(config, run_dir):
      imitate(config, run_dir, origin, watch, place)
    progress.write(run_dir, progress.Progress(progress.TRAINING, detail="starting processes"))
    run_processes(graph.training(config, run_dir, origin), watch, place)
    if evaluate:
      progress.write(run_dir, progress.Progress(progress.EVALUATION, detail="compiling"))
      run_processes(graph.evaluating(config, run_dir, origin), watch, place)
