"""A tier with its tables: sizes for an agent, what each tier has, refused sizes."""

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.environments.skirmish.rules.tables import constants, tables


def rules(name):
  return tables.make_rules(*tables.GAME_CONFIGS[name])


def test_sizes_of_the_presets():
  assert tables.game_config("mini", agent_config.mini()) == tables.GAME_CONFIGS["mini"]
  small = tables.game_config("default", agent_config.small())
  assert small == tables.GAME_CONFIGS["default"]._replace(
    max_entities=96, map_size=32, max_selected=12, location_size=32)


@pytest.mark.parametrize("name", ["mini", "default"])
def test_half_is_half_of_the_map(name):
  assert rules(name).half == rules(name).tier.map_size / 2


@pytest.mark.parametrize("name, unit_types, functions, upgrades, races", [
  ("mini", 8, 18, 0, ("Terran",)), ("default", 53, 98, 52, constants.RACES),
  ("large", 68, 132, 54, constants.RACES)])
def test_content_of_the_tiers(name, unit_types, functions, upgrades, races):
  """98 functions: no_op, 12 commands, 12 abilities, 51 products without morphed tanks, 22 lines.

  `large` has six add-ons, made by two functions, the Lair, and four types, an upgrade and two
  abilities of cloaking. Warp gates add a type, an upgrade and functions for them and three units.
  The Sentry adds a type, two ways to make it and nine abilities, seven of them hallucinations.
  """
  found = rules(name)
  assert (len(found.types.names), len(found.functions.names), len(found.upgrades.names)) == (
    unit_types, functions, upgrades)
  assert tuple(constants.RACES[race] for race in found.races) == races


def test_mini_lacks_what_the_whole_game_has():
  """Arrays of what a tier lacks are left out of its programs."""
  names = ("has_gas", "has_upgrades", "has_shields", "has_energy", "has_flyers", "has_larvae")
  for name, present in (("mini", False), ("default", True)):
    found = rules(name)
    assert [getattr(found, each) for each in names] == [present] * len(names)
    assert found.has(constants.STIM) == found.has_verb(constants.PATROL) == present
    assert found.has_verb(constants.GATHER) and (found.terrain is None) != present


def test_races_of_the_agent():
  """none and random count as Terran, the first."""
  found = tables.race_index(np.arange(len(types.RACES)))
  assert [constants.RACES[index] for index in found] == [
    "Terran", "Terran", "Zerg", "Protoss", "Terran"]


@pytest.mark.parametrize("change, message", [
  ({"tier": "huge"}, "unknown tier 'huge': choose one of ['default', 'large', 'mini']"),
  ({"max_entities": 35}, "tier mini: max_entities is 35, expected 36 to 2048"),
  ({"map_size": 33}, "tier mini: map_size is 33, expected a multiple of 32")])
def test_sizes_that_do_not_fit_are_refused(change, message):
  with pytest.raises(ValueError) as error:
    tables.make_rules(*tables.DEFAULT_GAME_CONFIG._replace(**change))
  assert str(error.value) == message
