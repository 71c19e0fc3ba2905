"""The progress of a run's phases: setup, demonstrations, imitation, training, evaluation, report.

The process that does a phase's work writes its progress into the run's directory; the parent reads
and displays it.
"""

import json
import os
import pathlib
from typing import NamedTuple

from starleague.common import files

FILE_NAME = "progress.json"
SETUP, DEMONSTRATIONS, IMITATION, TRAINING, EVALUATION, REPORT = PHASES = (
  "setup", "demonstrations", "imitation", "training", "evaluation", "report")


class Progress(NamedTuple):
  """The current phase and its progress."""

  phase: str  # one of PHASES
  done: float = 0.0
  total: float = 0.0  # 0: unknown
  unit: str = ""  # of done and total: "s", or a plural noun such as "games"
  detail: str = ""  # current activity, a few words


def write(run_dir: str | os.PathLike[str], progress: Progress) -> None:
  """Writes a run's progress, atomically."""
  with files.replacing(pathlib.Path(run_dir) / FILE_NAME) as file:
    json.dump(progress._asdict(), file)


def read(run_dir: str | os.PathLike[str]) -> Progress:
  """Returns a run's progress; the beginning of the setup where there is none."""
  path = pathlib.Path(run_dir) / FILE_NAME
  try:
    values = json.loads(path.read_text(encoding="utf-8"))
    return Progress(str(values["phase"]), float(values["done"]), float(values["total"]),
                    str(values["unit"]), str(values["detail"]))
  except (OSError, ValueError, KeyError, TypeError, RecursionError):
    return Progress(SETUP)  # the display must not end a run
