"""The weights of a run's agents."""

import pathlib
from typing import Any

from starleague.common.errors import UserError
from starleague.experiments.run import wiring
from starleague.league.players import MAIN
from starleague.learner import checkpoints

# The agents of a run, and where their weights lie.
IMITATOR, INITIAL, TRAINED = "imitation", "initial", "trained"
_FOLDERS = {IMITATOR: wiring.IMITATED, INITIAL: wiring.INITIAL, TRAINED: wiring.CHECKPOINTS}


def load(parts: wiring.Parts, run_dir: pathlib.Path, agent: str) -> tuple[Any, int]:
  """Returns the weights of an agent and the updates of reinforcement learning behind them.

  Args:
    parts: of the run.
    run_dir: the run's directory.
    agent: IMITATOR, INITIAL or TRAINED; that of a league is its first main agent.

  Raises:
    UserError: the run has no such weights.
    CheckpointDamagedError, CheckpointMismatchError: they cannot be used.
  """
  path = run_dir / _FOLDERS[agent]
  if agent == TRAINED and not path.exists():
    mains = sorted((run_dir / wiring.LEARNERS).glob(f"*-{MAIN}-0/{wiring.CHECKPOINTS}"))
    path = mains[0] if mains else path
  if not path.is_dir():
    raise UserError(f"{run_dir} has no weights {agent!r}: expected them in {path}")
  steps = checkpoints.Checkpoints(path, parts.config).steps() if agent == TRAINED else []
  return checkpoints.load_params(path, parts.config), steps[-1] if steps else 0
