"""A simulated league."""

import pytest

from tests.viewers.league import simulated_league


@pytest.fixture(scope="session")
def facts():
  """12 learners and 30 snapshots."""
  return simulated_league.simulate(30)
