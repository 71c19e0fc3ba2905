"""Directories with the checkpoints of two steps."""

import shutil

import pytest

from starleague.data.checkpoints.store import Checkpoints
from tests.data.checkpoints.states import MINI, make_state


@pytest.fixture(scope="module")
def two(tmp_path_factory):
  """A run's directory with steps 1 and 2; tests that change it copy it."""
  directory = tmp_path_factory.mktemp("two")
  saver = Checkpoints(directory, MINI)
  for step in (1, 2):
    saver.save(step, make_state(step), {"frames": 64 * step, "names": ["a", None]})
  return directory


@pytest.fixture
def copied(two, tmp_path):
  return shutil.copytree(two, tmp_path / "run")
