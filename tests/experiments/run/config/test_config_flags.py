"""Config files, and the changes of a game."""

import pytest

from starleague.experiments.configs import mini
from starleague.experiments.run.config import config_flags, settings

FILE = """
import ml_collections

def get_config(init="imitation"):
  return ml_collections.ConfigDict({
    "init": init, "actor": {"games": 32}, "environment": {"mmr": 5000}})
"""


@pytest.fixture
def path(tmp_path):
  (tmp_path / "my.py").write_text(FILE)
  return tmp_path / "my.py"


def test_a_file_is_read_as_it_is(path):
  assert config_flags.load_file(path) == {
    "init": "imitation", "actor": {"games": 32}, "environment": {"mmr": 5000}}
  assert config_flags.load_file(mini.__file__) == mini.get_config().to_dict()


def test_the_initial_weights_reach_the_file(path):
  assert config_flags.load_file(path, "random")["init"] == "random"


def test_a_game_given_by_name_changes_the_files_values(path):
  found = config_flags.load_file(path, game="sc2")
  assert found["init"] == "random"  # the game's default
  assert found["actor"]["games"] == 2 and found["learner"] == {"batch_size": 16}
  assert found["environment"] == {"mmr": 5000, "opponents": "terran:veryeasy"}
  assert config_flags.load_file(path, "pretrained", "sc2")["init"] == "pretrained"


def test_a_file_that_names_its_game_is_not_changed(tmp_path):
  path = tmp_path / "my.py"
  path.write_text(FILE.replace('{"mmr": 5000}', '{"name": "sc2"}'))
  assert config_flags.load_file(path, game="sc2")["actor"] == {"games": 32}


def test_an_unknown_game_is_refused(path):
  with pytest.raises(settings.SettingsError, match="must be one of skirmish, sc2, found 'chess'"):
    config_flags.load_file(path, game="chess")
