"""A recorded game of mini, its states and its page."""

import pytest

from starleague.environments.skirmish.games import replays
from starleague.viewers.watch import frames as watch_frames
from starleague.viewers.watch import page as watch_page
from tests.viewers import games
from tests.viewers.games import RULES
from tests.viewers.pages import data_of, unpack


@pytest.fixture(scope="session")
def replay():
  return games.record()


@pytest.fixture(scope="session")
def states(replay):
  return replays.resimulate(replay)


@pytest.fixture(scope="session")
def derived(states):
  return watch_frames.derive(RULES, states)


@pytest.fixture(scope="session")
def page(replay, states):
  return watch_page.render_page(replay, states)


@pytest.fixture(scope="session")
def frames(page):
  """The arrays as packed in the page."""
  arrays = data_of(page, "game")["arrays"]
  return watch_frames.Frames(**{name: unpack(packed) for name, packed in arrays.items()})
