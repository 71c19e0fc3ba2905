"""The runs of an ablation: each arm and seed is one of `train` or `league`, in a child process."""

import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import ml_collections

from starleague.common import manifests, progress, run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.data.checkpoints import checkpoint_manifest
from starleague.experiments.configs import mini
from starleague.experiments.configs.ablations import Ablation, Arm, Overrides
from starleague.experiments.run.config import compositions, settings
from starleague.experiments.run.config.errors import check_known
from starleague.experiments.run.evaluation import evaluating, robustness
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents
from starleague.experiments.run.processes import (
  graph,
  imitation_checks,
  league_run,
  process_runner,
  programs,
  supervision,
)

POLL_S = 0.5
SECONDS = 1e6  # of a run's training: the budget is its updates
# The longest time that `train` may take to end: its own limit, and some more.
DEADLINE_S = supervision.DEADLINE_S + 30.0
Report = Callable[[int, str], object]  # (updates of all runs, activity)


class Run(NamedTuple):
  """One arm with one seed."""

  arm: Arm
  seed: int
  config: ml_collections.ConfigDict
  path: pathlib.Path
  league: bool = False
  target: "Run | None" = None  # the run whose frozen agent is exploited
  from_past: bool = False  # whether exploiters start from the target's past, not its imitator

  @property
  def all_updates(self) -> int:
    """Updates behind the newest checkpoint; of a league, of all players together."""
    return sum(self._newest().values())

  @property
  def updates(self) -> int:
    """Those of the updates that the budget counts."""
    newest = self._newest()
    if not self.config.league.main_updates:
      return sum(newest.values())
    return min(newest.get(name, 0) for name in compositions.main_agents(self.config))

  @property
  def budget(self) -> int:
    """The updates of the ablation."""
    return self.config.league.main_updates or self.config.learner.updates

  @property
  def finished(self) -> bool:
    """Whether it has the updates of the ablation."""
    return self.updates >= self.budget

  @property
  def weights(self) -> list[str]:
    """SHA-256 of the manifest of each newest checkpoint."""
    players = self.path / run_files.LEARNERS
    return [manifests.file_digest(
      (players / name if self.league else self.path) / run_files.CHECKPOINTS / f"{update:012d}"
      / checkpoint_manifest.MANIFEST) for name, update in sorted(self._newest().items()) if update]

  def _newest(self) -> dict[str, int]:
    """Returns the updates behind the newest checkpoint of each player, or of the agent."""
    if self.league:
      return saved_agents.league_updates(self.config, self.path)
    return {run_files.PLAYER: saved_agents.newest_update(
      self.config, self.path / run_files.CHECKPOINTS)}


def make_runs(ablation: Ablation, load: Callable[[str | None], Mapping[str, Any]],
              chosen: Overrides, folder: pathlib.Path) -> list[Run]:
  """Returns the runs of an ablation, all arms of the first seed first.

  Args:
    ablation: its arms and seeds.
    load: returns the values of a config file for initial weights, the config key `init`.
    chosen: values of the command line. They precede those of the ablation, not those of its arms.
    folder: of the runs.

  Raises:
    SettingsError: an unknown key or an invalid value, in any run, an opponent of the evaluation
      that its games do not have, games outside JAX, main agents of several races where all of
      them count, or a config that no league can have.
  """
  def make(arm: Arm, seed: int) -> Run:
    values = {"seconds": SECONDS, "league.seconds": SECONDS, **ablation.overrides, **chosen,
              **arm.overrides, "seed": seed,
              "learner.updates": 0 if ablation.of_main else ablation.updates,
              "league.main_updates": ablation.updates if ablation.of_main else 0}
    config = settings.complete(load(values.get("init")), values)
    evaluating.require_matches(config)
    check_known("--opponents", ablation.opponents, config.environment.opponents.split(","))
    races = {saved_agents.race_of(name) for name in compositions.main_agents(config)}
    if ablation.varied and len(races) > 1:
      raise settings.SettingsError(
        f"config key 'league.composition' = {config.league.composition!r}: all main agents of this "
        "ablation must have one race, because exploiters meet all of them.")
    if ablation.league:
      league_run.check(config)
    return Run(arm, seed, config, folder / f"{arm.name}_{seed}", ablation.league)

  return [make(arm, seed) for seed in ablation.seeds for arm in ablation.arms]


def make_exploits(ablation: Ablation, runs: Sequence[Run]) -> list[Run]:
  """Returns the leagues that exploit the agents of runs; none if the ablation has no exploiters.

  There are two for each run: exploiters start from the agent's imitator, and from the middle one of
  its snapshots; without any, from the imitator again. Agents that are trained further are exploited
  again.

  Raises:
    SettingsError: an agent does not start from imitation, as exploiters do.
  """
  if not ablation.exploiters:
    return []
  parts = registry.make_parts(runs[0].config)
  return [run._replace(
    config=robustness.exploiting(
      run.config, parts, run.league, ablation.exploiters, ablation.exploiter_updates,
      mixture=ablation.varied),
    path=run.path.with_name(f"{run.path.name}_exploited_{ablation.updates}{suffix}"), league=True,
    target=run, from_past=from_past)
    for run in runs for from_past, suffix in ((False, ""), (True, "_from_past"))]


def imitator_of(run: Run, runs: Sequence[Run],
                imitator: pathlib.Path | None) -> pathlib.Path | None:
  """Returns the run whose imitator a run starts from; None if it trains its own or needs none.

  Each seed's first imitation run trains the imitator of that seed.

  Args:
    run: one of `runs`.
    runs: of an ablation.
    imitator: a run whose imitator all of them start from; None: each seed has its own.
  """
  if run.config.init != settings.IMITATION:
    return None
  if imitator is not None:
    return imitator
  first = next(other for other in runs
               if other.seed == run.seed and other.config.init == settings.IMITATION)
  return None if first is run else first.path


def command(run: Run) -> tuple[programs.Word, ...]:
  """Returns the command line that trains a run, without its evaluation."""
  init = run.config.init
  changed = settings.differences(settings.complete(mini.get_config(init).to_dict()), run.config)
  return graph.module(
    *(["league"] if run.league else ["train", "--noevaluate"]),
    "--run", run.path.name, "--runs_dir", str(run.path.parent), f"--config.init={init}",
    *(f"--config.{key}={value}" for key, _, value in changed))


def check_imitator(runs: Sequence[Run], imitator: pathlib.Path) -> None:
  """Checks the imitator that all runs of an ablation start from, while one of them needs it.

  Raises:
    SettingsError: it has no library of z, or no initial weights.
    CheckpointDamagedError, CheckpointMismatchError: its weights cannot be used, or are those of
      another agent.
  """
  agents = {registry.agent_of(run.config) for run in runs
            if run.target is None and imitation_checks.imitates(run.config, run.path)}
  for agent in agents:
    saved_agents.require_imitator(imitator)
    checkpoints.load_params(imitator / run_files.INITIAL, agent)


def check_begun(runs: Sequence[Run], imitator: pathlib.Path | None) -> None:
  """Checks that runs which have begun, also finished ones, are those of the ablation.

  Args:
    runs: from `make_runs` and `make_exploits`.
    imitator: a run whose imitator all of them start from; None: each seed has its own.

  Raises:
    SettingsError: a run has another config or more updates, or started from another imitator.
    CheckpointDamagedError, CheckpointMismatchError: initial weights cannot be used.
  """
  for run in runs:
    supervision.check_resumed(run.config, run.path, run.league, "--runs_dir")
    key = "--updates" if run.target is None else "--exploiter_updates"
    # The others would stop at the budget.
    supervision.check_updates(run.path, run.updates, run.budget, key, "--runs_dir")
    begun = run.config.init == settings.IMITATION and (run.path / run_files.INITIAL).exists()
    if run.target is not None or not begun:  # of exploiters, `robustness.freeze` compares the agent
      continue
    # A run of the seed that --arms leaves out may have made the imitator.
    made = [path.parent for path in run.path.parent.glob(f"*_{run.seed}/{run_files.IMITATED}")]
    sources = [source for source in (made if imitator is None else [imitator])
               if (source / run_files.INITIAL).exists()]
    config = registry.agent_of(run.config)
    if not any(saved_agents.same_initial(config, source, run.path) for source in sources):
      raise settings.SettingsError(
        f"run {str(run.path)!r} was started from another imitator than "
        f"{'its own' if imitator is None else imitator}; give --imitator as before, or choose "
        "another --runs_dir.")


def _begin(run: Run, runs: Sequence[Run], imitator: pathlib.Path | None) -> None:
  """Copies the weights that a run starts from and does not make itself."""
  if run.target is not None:
    start = robustness.middle_self(run.target.path) if run.from_past else None
    robustness.freeze(registry.make_parts(run.config), run.target.path, run.config, run.path, start)
    return
  source = imitator_of(run, runs, imitator)
  if source is not None:
    saved_agents.copy_imitator(source, run.path)


def train(runs: Sequence[Run], imitator: pathlib.Path | None, report: Report) -> None:
  """Trains all runs one after the other; skips finished ones and resumes a killed one.

  Args:
    runs: from `make_runs`.
    imitator: a run whose imitator all of them start from; None: each seed has its own.
    report: called about twice a second.

  Raises:
    ProcessFailed: a run died; its log tells why.
    KeyboardInterrupt: Ctrl-C or SIGTERM, after the run has saved a checkpoint.
    UserError: a run ended before its last update.
    SettingsError, CheckpointDamagedError, CheckpointMismatchError: see `check_begun` and
      `check_imitator`.
  """
  check_begun(runs, imitator)
  if imitator is not None:
    check_imitator(runs, imitator)
  before = 0
  for run in runs:
    if run.target is not None or not run.finished:  # finished exploiters must have met this agent
      _begin(run, runs, imitator)
    if not run.finished:
      child = programs.Process(
        run.path.name, command(run), {}, run.path / "logs" / "train.log")
      process_runner.run_to_end(
        child, functools.partial(_show, run, before, report), DEADLINE_S, POLL_S)
      if not run.finished:
        raise UserError(
          f"{run.path} ended after {run.updates} updates, expected "
          f"{run.budget}; raise config key 'seconds', or see its logs")
    before += run.budget
    report(before, run.path.name)


def _show(run: Run, before: int, report: Report) -> None:
  """Reports the updates and the activity of a run, after those of the runs before it."""
  now = progress.read(run.path)
  report(before + run.updates, f"{run.path.name} {now.phase} {now.detail}".rstrip())
