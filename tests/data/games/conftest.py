"""A dataset of short games, shared by the tests of this folder."""

import pytest

from tests.data.games import recorded_games


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  return recorded_games.write(
    tmp_path_factory.mktemp("data") / "games", recorded_games.MINI, recorded_games.LENGTHS)
