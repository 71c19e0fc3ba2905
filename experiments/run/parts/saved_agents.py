"""The weights of a run's agents."""

import pathlib
import shutil
from typing import Any, NamedTuple

import jax
import ml_collections
import numpy as np

from starleague.actor.parts import Parts
from starleague.agent import pretrained, types
from starleague.agent.config import AgentConfig
from starleague.common import files, run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.data.checkpoints.checkpoint_manifest import MANIFEST
from starleague.experiments.run.config import compositions, settings
from starleague.experiments.run.config.flags import IMITATOR, INITIAL, TRAINED
from starleague.experiments.run.games import registry
from starleague.league.players import LEARNING_KINDS
from starleague.league.run_copy import RunCopy

# The agents of a run, and where their weights lie.
_FOLDERS = {IMITATOR: run_files.IMITATED, INITIAL: run_files.INITIAL,
            TRAINED: run_files.CHECKPOINTS}


def main_agent(run_dir: pathlib.Path) -> str | None:
  """Returns the name of the first main agent of a league; None for a run of one agent."""
  names = main_agents(run_dir)
  return names[0] if names else None


def main_agents(run_dir: pathlib.Path) -> list[str]:
  """Returns the names of a league's main agents of the first one's race; none of another run.

  Their order is that of the league's composition. Raises the errors of `settings.load`.
  """
  if not (run_dir / run_files.LEARNERS).is_dir():
    return []
  return [player.name for player in compositions.first_main_agents(settings.load(run_dir))]


def learners(run_dir: pathlib.Path) -> list[str]:
  """Returns the names of a league's learning players; none of a run of one agent."""
  return sorted(path.name for kind in LEARNING_KINDS
                for path in (run_dir / run_files.LEARNERS).glob(f"*-{kind}-*"))


def snapshots(run_dir: pathlib.Path) -> list[str]:
  """Returns the names of a league's frozen agents; none of a run of one agent.

  Raises the errors of `settings.load`.
  """
  if not (run_dir / run_files.LEARNERS).is_dir():
    return []
  composition = compositions.parse(settings.load(run_dir).league.composition.split(","))
  saved = (run_dir / run_files.PLAYERS).glob("*")
  return sorted({player.name for player in composition if not player.learns}
                | {path.name for path in saved})


def league_updates(config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> dict[str, int]:
  """Returns the updates behind the newest checkpoint of each player of a league that has any.

  Args:
    config: of the league.
    run_dir: the run's directory.
  """
  folders = (run_dir / run_files.LEARNERS).glob(f"*/{run_files.CHECKPOINTS}")
  return {folder.parent.name: newest_update(config, folder) for folder in folders}


def newest_update(config: ml_collections.ConfigDict, folder: pathlib.Path) -> int:
  """Returns the updates behind the newest checkpoint of a folder; 0 without any."""
  if not folder.is_dir():  # it would be made
    return 0
  return max(checkpoints.Checkpoints(folder, registry.agent_of(config)).steps(), default=0)


def race_of(name: str) -> int:
  """Returns the race of a player of a league, an index of types.RACES; its name begins with it."""
  return types.RACES.index(name.partition("-")[0])


class Saved(NamedTuple):
  """Weights of a run."""

  path: pathlib.Path
  race: int | None  # of a player of a league, an index of types.RACES; None: any


def find(parts: Parts, run_dir: pathlib.Path, agent: str) -> Saved:
  """Returns where the weights of an agent are.

  Args:
    parts: of the run.
    run_dir: the run's directory.
    agent: IMITATOR, INITIAL, TRAINED, or a learning player or a snapshot of a league. The trained
      agent of a league is its first main agent.

  Raises:
    UserError: the run has no such weights.
  """
  name = main_agent(run_dir) if agent == TRAINED else None if agent in _FOLDERS else agent
  path = run_dir / _FOLDERS.get(agent, run_files.CHECKPOINTS)
  if name is not None:
    path = run_files.learner_dir(run_dir, name) / run_files.CHECKPOINTS
    if not path.is_dir() and name in snapshots(run_dir):
      path = RunCopy(run_dir).snapshot(name)
  if not path.is_dir():
    raise UserError(f"{run_dir} has no weights {agent!r}: expected them in {path}")
  learnt = path.name == run_files.CHECKPOINTS
  steps = checkpoints.Checkpoints(path, parts.config).steps() if learnt else []
  if learnt and not steps and not (path / MANIFEST).exists():
    raise UserError(f"{run_dir} has no checkpoint yet: expected one in {path}")
  return Saved(path, None if name is None else race_of(name))


def read(parts: Parts, saved: Saved) -> tuple[Any, int]:
  """Returns weights, the newest intact ones, and the updates of reinforcement learning behind them.

  Raises CheckpointDamagedError or CheckpointMismatchError: they cannot be used.
  """
  params, step = checkpoints.load_params_and_step(saved.path, parts.config)
  return params, 0 if saved.path.name in (run_files.INITIAL, run_files.IMITATED) else step


def load(parts: Parts, run_dir: pathlib.Path, agent: str) -> tuple[Any, int]:
  """Returns the weights of an agent and the updates of reinforcement learning behind them.

  Args:
    parts: of the run.
    run_dir: the run's directory.
    agent: see `find`.

  Raises:
    UserError: the run has no such weights.
    CheckpointDamagedError, CheckpointMismatchError: they cannot be used.
  """
  return read(parts, find(parts, run_dir, agent))


def load_imitator(parts: Parts, config: ml_collections.ConfigDict) -> Any:
  """Returns the weights that imitation starts from: another run's, or the included ones.

  Args:
    parts: of the run that they are for.
    config: of that run. `demonstrations.imitator` is the directory of the other or PRETRAINED,
      `demonstrations.agent` the agent of the other.

  Raises:
    UserError: there are no such weights.
    CheckpointDamagedError, CheckpointMismatchError: they cannot be used.
  """
  source = config.demonstrations.imitator
  if source == settings.PRETRAINED:
    return pretrained.load_pretrained(config.preset).params
  return load(parts, pathlib.Path(source), config.demonstrations.agent)[0]


def initial_params(parts: Parts, config: ml_collections.ConfigDict) -> Any:
  """Returns the initial, random weights of a run, a function of its seed."""
  return parts.policy.init(jax.random.key(config.seed))


def require_imitator(source: pathlib.Path) -> None:
  """Checks that a run has what `copy_imitator` copies.

  Raises:
    SettingsError: it has no library of z, or no initial weights.
  """
  for name in (run_files.LIBRARY, run_files.INITIAL):
    if not (source / name).exists():
      raise settings.SettingsError(
        f"{source} has no {name!r}: expected a run that imitated games and began to train.")


def same_initial(config: AgentConfig, one: pathlib.Path, other: pathlib.Path) -> bool:
  """Returns whether two runs of an agent have equal initial weights.

  Raises:
    CheckpointDamagedError, CheckpointMismatchError: the weights of one cannot be used.
  """
  params = [checkpoints.load_params(run / run_files.INITIAL, config) for run in (one, other)]
  return jax.tree.all(jax.tree.map(np.array_equal, *params))


def copy_imitator(source: pathlib.Path, target: pathlib.Path,
                  weights: pathlib.Path | None = None) -> None:
  """Copies the initial weights and the library of z of a run to another, where they are missing.

  Args:
    source: directory of the run that has them.
    target: directory of the other.
    weights: a snapshot that takes the place of the initial weights; None: none.

  Raises:
    SettingsError: the source has none.
  """
  if (target / run_files.INITIAL).exists():
    return
  require_imitator(source)
  target.mkdir(parents=True, exist_ok=True)
  with files.replacing(target / run_files.LIBRARY, "wb") as file:
    file.write((source / run_files.LIBRARY).read_bytes())
  # The weights come last: with them the run counts as one that has imitated.
  copy_initial(source, target, weights)


def copy_initial(source: pathlib.Path, target: pathlib.Path,
                 weights: pathlib.Path | None = None) -> None:
  """Copies the initial weights of a run to another, where they are missing; see `copy_imitator`."""
  if (target / run_files.INITIAL).exists():
    return
  if not (source / run_files.INITIAL).exists():
    raise settings.SettingsError(
      f"{source} has no {run_files.INITIAL!r}: expected a run that began to train.")
  target.mkdir(parents=True, exist_ok=True)
  with files.replacing_folder(target / run_files.INITIAL) as folder:
    shutil.copytree(weights or source / run_files.INITIAL, folder, dirs_exist_ok=True)
