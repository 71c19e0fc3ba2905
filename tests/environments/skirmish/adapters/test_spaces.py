"""Spaces hold what the game gives and takes; masks are the game's own."""

import re

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.adapters import spaces
from starleague.environments.skirmish.games import dm_environment
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS

MINI = GAME_CONFIGS["mini"]
SPEC = dm_environment.action_spec(MINI)


@pytest.fixture(scope="module")
def observation():
  return dm_environment.SkirmishEnvironment("passive", game=MINI).reset().observation


@pytest.mark.parametrize("tier", sorted(GAME_CONFIGS))
def test_spaces_have_the_sizes_of_the_tier(tier):
  game = GAME_CONFIGS[tier]
  seen, actions = spaces.observation_space(game), spaces.action_space(game)
  assert set(seen) == set(types.Observation._fields)
  assert set(actions) == set(types.Action._fields)
  assert seen["entities"].shape == (game.max_entities, 48)
  assert seen["minimap"].shape == (7, game.map_size, game.map_size)
  assert actions["function"].n == 327 and actions["location"].n == game.location_size ** 2
  assert (actions["delay"].start, actions["delay"].n) == (1, 127)
  assert actions["units"].nvec.tolist() == [game.max_entities + 1] * game.max_selected


def test_an_observation_is_in_its_space_and_new(observation):
  value = spaces.observation_value(observation)
  assert value in spaces.observation_space(MINI)
  for name in ("entities", "player", "available_actions"):
    np.testing.assert_array_equal(value[name], getattr(observation, name))
    assert not np.shares_memory(value[name], getattr(observation, name))
  np.testing.assert_array_equal(value["statistics"]["units"], observation.statistics.units)


def test_masks_are_what_the_rules_allow(observation):
  mask = spaces.action_mask(observation, MINI)
  np.testing.assert_array_equal(mask["function"], observation.available_actions)
  own = np.flatnonzero(observation.entities[:, types.COLUMN["alliance"]] == types.ALLIANCE_SELF)
  assert len(own) == 5  # a Command Center and four SCVs
  for units in mask["units"]:
    assert np.flatnonzero(units).tolist() == [*own, MINI.max_entities]
  assert mask["target_unit"].sum() == observation.entity_count


def test_sampling_by_the_mask_gives_legal_functions(observation):
  space, mask = spaces.action_space(MINI), spaces.action_mask(observation, MINI)
  space.seed(1)
  drawn = [spaces.action_from(space.sample(mask), SPEC) for _ in range(60)]
  found = {int(action.function) for action in drawn}
  assert len(found) > 5 and all(observation.available_actions[function] for function in found)
  assert max(int(action.delay) for action in drawn) > 100


def no_op(**arguments):
  return dm_environment.types.Action(
    0, 1, 0, 0, np.full(8, 64), 0, 0)._replace(**arguments)._asdict()


def test_an_action_becomes_the_games_own():
  function = vocabulary.FUNCTIONS.index("Attack_pt")
  action = spaces.action_from(no_op(function=function, location=np.int64(1023)), SPEC)
  assert (action.function, action.location) == (function, 1023)
  assert [value.dtype for value in action] == [spec.dtype for spec in SPEC]


@pytest.mark.parametrize("value, error, message", [
  (3, TypeError, "action: expected a dict of function, delay, queued, repeat, units, target_unit, "
   "location, found int"),
  ({"function": 1}, ValueError, "action: expected the keys function, delay, queued, repeat, units, "
   "target_unit, location, found function"),
  (no_op(function=327), ValueError, "action.function: expected 0 to 326, found 327"),
  (no_op(delay=0), ValueError, "action.delay: expected 1 to 127, found 0"),
  (no_op(units=np.zeros(7, int)), ValueError, "action.units: expected shape (8,), found (7,)"),
  (no_op(location=1.5), TypeError, "action.location: expected integers (int32), found float64")])
def test_values_outside_the_space_are_refused(value, error, message):
  with pytest.raises(error, match=f"^{re.escape(message)}$"):
    spaces.action_from(value, SPEC)


def test_an_unknown_tier_is_refused():
  with pytest.raises(ValueError, match="^tier 'huge': expected one of mini, default, large$"):
    spaces.game_config("huge")
