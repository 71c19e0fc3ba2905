"""What the entries of games change in a config exists, and has the right type."""

import pytest

from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry


@pytest.mark.parametrize("name", ["skirmish", "sc2"])
def test_changes_options_and_ranges_name_config_keys(name):
  game = registry.find(name)
  known = settings.flat(settings.complete({}).to_dict())
  changes = settings.flat(game.changes)
  assert {key: type(known[key]) for key in changes} == {
    key: type(value) for key, value in changes.items()}
  options = {f"{name}.{key}": value for key, value in game.options.items()}
  assert {key: known[key] for key in options} == options
  numbers = {key for key, value in options.items()
             if isinstance(value, int | float) and not isinstance(value, bool)}
  assert numbers == game.ranges.keys()
  assert all(known[key] in valid for key, valid in game.ranges.items())
