"""Scalars for Weights & Biases, an optional package."""

import pathlib
import uuid
from collections.abc import Mapping
from types import ModuleType

from starleague.common import files, run_files
from starleague.common.errors import FinalError

FOLDER = "wandb"  # of a run: the package's files, and the runs' ids


class WandbError(FinalError):
  """Weights & Biases is not installed, or cannot start a run."""


def load() -> ModuleType:
  """Returns the package, imported when first needed.

  Raises:
    WandbError: it is not installed.
  """
  try:
    import wandb
  except ImportError as error:
    raise WandbError("metrics for Weights & Biases: expected the package wandb, found: "
                     f"{error}; pip install 'starleague[wandb]'") from error
  return wandb


class WandbRun:
  """A run of Weights & Biases, which a restarted process resumes.

  The package's own variables choose the mode and the account: WANDB_MODE=offline writes below the
  run's directory only, and `wandb sync` uploads it later. Scalars are drawn over the update, not
  over the number of records: a resumed run repeats the updates since its checkpoint.

  Args:
    run_dir: the run's directory, or that of a league's learning player. The group has the run's
      name; names of players and phases follow it in the name.
    project: the project's name.
    phase: "" or a phase of the run with a slash, which has a run of its own.

  Raises:
    WandbError: the package is not installed, or it refuses to start the run.
  """

  def __init__(self, run_dir: pathlib.Path, project: str, phase: str = ""):
    wandb = load()
    run = run_files.run_of(run_dir)
    player = [] if run == run_dir else [run_dir.name]
    name = "-".join([run.name, *player, *phase.strip("/").split()])
    try:
      self._run = wandb.init(
        project=project, name=name, group=run.name, dir=str(run_dir), resume="allow",
        id=_stored_id(run_dir / FOLDER / f"{phase.strip('/') or 'training'}.id"),
        reinit="create_new",  # a league's learner has a run for each player
        settings=wandb.Settings(silent=True, console="off"))
    except wandb.Error as error:
      raise WandbError(f"Weights & Biases, project {project!r}: "
                       f"{' '.join(str(error).split())}; WANDB_MODE=offline needs no account"
                       ) from error
    self._run.define_metric("*", step_metric="update")

  def write(self, step: int, scalars: Mapping[str, float]) -> None:
    """Passes the scalars of an update to the package, which writes in a process of its own."""
    self._run.log({"update": step, **scalars})

  def close(self) -> None:
    """Ends the run: waits until everything is written, and uploaded unless offline."""
    self._run.finish()


def _stored_id(path: pathlib.Path) -> str:
  """Returns the id in a file, which is written with a new one if it does not exist."""
  if not path.exists():
    with files.replacing(path) as file:
      file.write(uuid.uuid4().hex)
  return path.read_text(encoding="utf-8")
