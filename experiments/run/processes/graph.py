"""The process graphs of runs: which programs, with which addresses, places and environments.

The same graph runs on this machine and on a cluster: `process_runner.Runner` starts its processes
at a `programs.Place`.
"""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import ml_collections

from starleague.common import run_files
from starleague.experiments.run.config import compositions, errors, resources, settings
from starleague.experiments.run.processes.programs import Address, Placeholder, Process, Word
from starleague.learner.loops.imitation_setup import Recorded

DATA, COORDINATOR, LEARNER = "data_server", "coordinator", "learner"  # names of processes
RESTARTS = 10  # limit of those that lose little
FAST_COMPILE = "--xla_cpu_use_fusion_emitters=false"
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"  # of an operation

_KNOWS_FLAGS = jax.__version_info__ < (0, 8)  # XLA aborts on a flag that it does not know


class Graph(NamedTuple):
  """Processes that run at the same time."""

  processes: tuple[Process, ...]  # started in this order, ended in the opposite one
  until: tuple[str, ...]  # names of those whose end is the end of all


def module(name: str, *arguments: Word) -> tuple[Word, ...]:
  """Returns the command line of a launch file."""
  return (Placeholder.PYTHON, "-m", f"starleague.experiments.{name}", *arguments)


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


def _cores() -> int:
  """Returns the number of cores that this process may use."""
  return len(os.sched_getaffinity(0))


def _needs(config: ml_collections.ConfigDict, role: str) -> dict[str, float]:
  """Returns the resources that a process of a role needs of its node."""
  cluster = config.cluster
  return resources.parse({
    DATA: cluster.data_server, COORDINATOR: cluster.coordinator, LEARNER: cluster.learner,
    "actor": cluster.actor, "evaluator": cluster.evaluator}[role])


class _Maker:
  """Makes the processes of one run."""

  def __init__(self, config: ml_collections.ConfigDict, run_dir: pathlib.Path, origin: float):
    self.config, self._run_dir, self._origin = config, run_dir, origin
    self._env, self._where = environment(run_dir), ("--run_dir", str(run_dir))

  def make(self, name: str, role: str, *arguments: Word,
           restarts: int = RESTARTS, **changes: Any) -> Process:
    """Makes a process that runs the launch file of its role."""
    return Process(
      name, module(role, *arguments),
      changes.pop("env", self._env), self._run_dir / "logs" / f"{name.replace(' ', '_')}.log",
      restarts, needs=_needs(self.config, role), **changes)

  def data_server(self, name: str, *joined: Word) -> Process:
    """Makes a data server."""
    return self.make(name, DATA, *self._where, *joined, "--port", Placeholder.PORT, restarts=3,
                     listens=True, ends_last=True)

  def learner(self, name: str, data: str, *arguments: Word,
              hosts: int = 1, **changes: Any) -> Process:
    """Makes a learner, or one host of it."""
    learner = self.config.learner
    split = data_parallel(self._env, learner.batch_size // hosts, learner.accumulate, _cores())
    return self.make(
      name, LEARNER, *self._where, "--address", Address(data), "--origin", repr(self._origin),
      *arguments, restarts=3, env=split, **changes)

  def actors(self, data: Sequence[str], *joined: Word) -> list[Process]:
    """Makes the actors; they share the data servers, of which the first has the parameters."""
    # XLA reads the size of its thread pool from NPROC.
    threads = {"NPROC": str(self.config.actor.threads)} if self.config.actor.threads else {}
    parameters = ("--parameters", Address(data[0])) if len(data) > 1 else ()
    return [
      self.make(f"actor {i}", "actor", *self._where, "--address", Address(data[i % len(data)]),
                *parameters, *joined, "--origin", repr(self._origin), "--index", str(i),
                env=self._env | threads)
      for i in range(self.config.actor.processes)]

  def coordinator(self) -> Process:
    """Makes the coordinator of a league."""
    league = self.config.league
    return self.make(
      COORDINATOR, COORDINATOR, "--league_file", str(self._run_dir / run_files.LEAGUE),
      "--listen", Placeholder.HOST, "--port", Placeholder.PORT, "--seed", str(self.config.seed),
      "--composition", league.composition, "--matchmaking", league.matchmaking,
      "--own_matchmaking", league.own_matchmaking, "--scripted", league.scripted,
      "--snapshot_steps", repr(league.snapshot_steps),
      "--timeout_steps", repr(league.timeout_steps), "--lease_s", repr(league.lease_s),
      listens=True, ends_last=True)

  def evaluators(self, *joined: Word) -> list[Process]:
    """Makes the evaluators of a league."""
    env = self._env | {"NPROC": "1"}
    return [self.make(f"evaluator {i}", "evaluator", *self._where, "--address", Address(DATA),
                      *joined, env=env)
            for i in range(self.config.league.evaluators)]


def training(config: ml_collections.ConfigDict, run_dir: pathlib.Path, origin: float) -> Graph:
  """Returns the graph of a run that trains one agent.

  The hosts of a learner are a gang: a JAX process group ends with any of its members. Each host has
  a data server of its own, and the actors are shared out among these.

  Args:
    config: the run's.
    run_dir: the run's directory.
    origin: start of the run, in Unix seconds.
  """
  maker, hosts = _Maker(config, run_dir, origin), config.cluster.learner_hosts
  if hosts == 1:
    return Graph((maker.data_server(DATA), maker.learner(LEARNER, DATA), *maker.actors([DATA])),
                 (LEARNER,))
  data = [f"{DATA} {i}" for i in range(hosts)]
  first = f"{LEARNER} 0"
  learners = [
    maker.learner(f"{LEARNER} {i}", data[i], "--hosts", str(hosts), "--host", str(i),
                  "--coordinator", Address(first) if i else Placeholder.ADDRESS, hosts=hosts,
                  gang=LEARNER, listens=not i)
    for i in range(hosts)]
  return Graph((*map(maker.data_server, data), *learners, *maker.actors(data)),
               tuple(learner.name for learner in learners))


def league(config: ml_collections.ConfigDict, run_dir: pathlib.Path, origin: float) -> Graph:
  """Returns the graph of a league; see `training`."""
  maker, joined = _Maker(config, run_dir, origin), ("--league", Address(COORDINATOR))
  names = compositions.learners(config) if config.cluster.learners == settings.EACH else []
  learners = [maker.learner(f"{LEARNER} {name}", DATA, *joined, "--league_players", name)
              for name in names] or [maker.learner(LEARNER, DATA, *joined)]
  return Graph(
    (maker.coordinator(), maker.data_server(DATA, *joined), *learners,
     *maker.actors([DATA], *joined), *maker.evaluators(*joined)),
    tuple(learner.name for learner in learners))


def demonstrating(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
                  dataset: pathlib.Path) -> Graph:
  """Returns the process that records the run's demonstrations.

  Games have all races of the tier; those of a run of one race are mirror matches.
  """
  return _recording(config, run_dir, "demonstrator", dataset, config.demonstrations.games)


def labelling(config: ml_collections.ConfigDict, run_dir: pathlib.Path,
              dataset: pathlib.Path) -> Graph:
  """Returns the process that records games of the run's imitator, which the demonstrators label.

  The imitator observes z of their plans if it has learnt to.
  """
  z = config.imitation.keep_build_order or config.imitation.keep_cumulative
  return _recording(
    config, run_dir, "labeller", dataset, config.demonstrations.labels, "--student", str(run_dir),
    "--teacher_share", repr(config.demonstrations.labels_share),
    "--student_z" if z else "--nostudent_z")


def _recording(config: ml_collections.ConfigDict, run_dir: pathlib.Path, name: str,
               dataset: pathlib.Path, games: int, *more: Word) -> Graph:
  races = errors.split(config.environment.races)
  mirror = ("--races", f"{races[0]},{races[0]}") if len(races) == 1 else ()
  opponents = config.demonstrations.opponents
  others = ("--opponents", opponents) if opponents else ()
  return _alone(config, run_dir, "actor", name, module(
    "demonstrate", "--run_dir", str(run_dir), "--dataset", str(dataset),
    "--players", config.demonstrations.players, "--games", str(games),
    "--preset", config.preset, "--seed", str(config.seed), *mirror, *others, *more),
    environment(run_dir))


def imitating(config: ml_collections.ConfigDict, run_dir: pathlib.Path, recorded: Recorded,
              origin: float) -> Graph:
  """Returns the process that imitates the players of recorded games."""
  split = data_parallel(environment(run_dir), config.imitation.batch_size,
                        config.imitation.accumulate, _cores())
  more = ("--labelled", str(recorded.labels)) if recorded.labels else (
    ("--first_phase",) if recorded.first_alone else ())
  return _alone(config, run_dir, LEARNER, "imitator", module(
    "imitate", "--run_dir", str(run_dir), "--dataset", str(recorded.dataset),
    "--origin", repr(origin), *more), split)


def evaluating(config: ml_collections.ConfigDict, run_dir: pathlib.Path, origin: float) -> Graph:
  """Returns the process that evaluates a trained agent."""
  return _alone(config, run_dir, "evaluator", "evaluation", module(
    "evaluate", "--run_dir", str(run_dir), "--origin", repr(origin)), environment(run_dir),
    restarts=0)


def _alone(config: ml_collections.ConfigDict, run_dir: pathlib.Path, role: str, name: str,
           argv: Sequence[Word], env: Mapping[str, str], restarts: int = 3) -> Graph:
  """Returns the graph of one process, placed as one of a role."""
  return Graph((Process(name, argv, env, run_dir / "logs" / f"{name}.log", restarts,
                        needs=_needs(config, role)),), (name,))
