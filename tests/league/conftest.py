"""A league of one race, its server, and a client that needs no network."""

import pytest

from starleague.league import server
from starleague.league.client import LeagueClient
from starleague.league.service import Service
from tests.league.leagues import start


@pytest.fixture
def league(tmp_path):
  opened = start(tmp_path / "league.sqlite")
  yield opened
  opened.close()


@pytest.fixture
def serving(league):
  started = server.Server(league)
  yield started
  started.stop()


@pytest.fixture
def client(league):
  """A client whose transport is the service itself, as a Ray actor's would be."""
  return LeagueClient(Service(league), "actor")
