"""The version that the server states is one that pysc2 knows."""

import pytest

pytest.importorskip("pysc2")

from starleague.environments.sc2 import protocol
from starleague.environments.sc2.server.game.version import BUILD, DATA_VERSION, VERSION

assert protocol  # makes pysc2 importable


def test_build_and_data_are_those_of_the_games_version():
  from pysc2.run_configs import lib
  known = lib.VERSIONS["4.10.0"]
  assert (known.build_version, known.data_version) == (BUILD, DATA_VERSION)
  assert f"{known.game_version}.{known.build_version}" == VERSION == "4.10.0.75689"
