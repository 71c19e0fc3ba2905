"""Launch files are thin: flags, wiring and one call; `experiments/run` has the rest."""

import importlib
import pathlib

import pytest

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[2] / "experiments"
LAUNCH_FILES = sorted(path.name for path in EXPERIMENTS.glob("[a-z]*.py"))
MAX_LINES = 100


def test_the_launch_files_are_found():
  assert {"train.py", "learner.py", "actor.py", "data_server.py", "evaluate.py"} < {*LAUNCH_FILES}


@pytest.mark.parametrize("name", LAUNCH_FILES)
def test_a_launch_file_is_thin(name):
  assert len((EXPERIMENTS / name).read_text().splitlines()) < MAX_LINES


def test_launch_files_share_their_flags():
  """A flag of two files is defined once: one process can import all of them."""
  for name in LAUNCH_FILES:
    importlib.import_module(f"starleague.experiments.{name.removesuffix('.py')}")
