"""Personal objectives and matchmaking, by the text of config keys."""

import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.common.errors import UserError
from starleague.experiments.run.config import objectives, settings
from starleague.experiments.run.parts.actor_options import actor_options
from starleague.experiments.run.processes import league_run

NAMES = ["terran-main-0", "terran-main-1"]


def test_objectives_of_players():
  found = objectives.parse_objectives(
    "terran-main-1=built.Marine:0.02+lost.SCV:-1e-3,terran-main-0=built.SiegeTank:1", NAMES,
    "default")
  index = vocabulary.UNIT_TYPES.index
  expected = np.zeros((2, 256), np.float32)
  expected[0, index("Marine")], expected[1, index("SCV")] = 0.02, -1e-3
  np.testing.assert_array_equal(found["terran-main-1"], expected)
  assert found["terran-main-0"][0, index("SiegeTank")] == found["terran-main-0"].sum() == 1.0
  assert objectives.parse_objectives("", NAMES, "mini") == {}


@pytest.mark.parametrize("text, message", [
  ("terran-main-0", "expected one entry PLAYER=EVENT.TYPE:REWARD"),
  ("terran-main-0=", "expected one entry PLAYER=EVENT"),
  ("zerg-main-0=built.Marine:1", "there is no player 'zerg-main-0' that could have it, expected "
                                 "one of terran-main-0, terran-main-1"),
  ("terran-main-0=built.Marin:1", "objective of terran-main-0: found 'built.Marin:1', expected"),
  ("terran-main-0=killed.Marine:1", "an event of built, lost"),
  ("terran-main-0=built.SiegeTank:1", "expected a unit type of tier 'mini': SCV, Marine, Marauder, "
                                     "Hellion, CommandCenter, Barracks, Factory"),
  ("terran-main-0=built.Marine:nan", "found 'built.Marine:nan'"),
  ("terran-main-0=built.Marine", "found 'built.Marine'"),
  ("terran-main-0=built.Marine:1,terran-main-0=lost.SCV:1", "expected one entry"),
  ("terran-main-0=built.Marine:0+lost.Marine:1+built.Marine:0.02",
   "found 'built.Marine:0.02', expected one reward for built.Marine, not a second one"),
])
def test_invalid_objectives_are_refused(text, message):
  with pytest.raises(UserError, match=message):
    objectives.parse_objectives(text, NAMES, "mini")


def test_the_objective_of_one_agent():
  found = objectives.parse_objective("built.Forge:0.1+lost.SCV:-0.5", "default")
  assert found.shape == (2, vocabulary.NUM_UNIT_TYPES) and np.count_nonzero(found) == 2
  np.testing.assert_allclose(found[0, vocabulary.UNIT_TYPES.index("Forge")], 0.1)
  assert found[1, vocabulary.UNIT_TYPES.index("SCV")] == -0.5
  assert not objectives.parse_objective("", "mini").any()


@pytest.mark.parametrize("changes, message", [
  ({"actor.objective": "built.Marin:1"}, "'actor.objective': found 'built.Marin:1', expected"),
  ({"actor.objective": "built.Marine:1", "environment.name": "sc2",
    "environment.opponents": "terran:easy", "actor.demonstrators": ""},
   "'actor.objective' must be '' in sc2, whose games are played outside JAX"),
])
def test_an_invalid_objective_of_one_agent_is_refused(changes, message):
  with pytest.raises(UserError, match=message):
    settings.complete({}, changes)


def test_matchmaking_of_players():
  assert objectives.parse_matchmaking("terran-main-1=fsp", NAMES) == {"terran-main-1": "fsp"}
  with pytest.raises(UserError, match=(
      "terran-main-1 is 'all', expected one of pfsp, pfsp_alone, fsp, self")):
    objectives.parse_matchmaking("terran-main-1=all", NAMES)


@pytest.mark.parametrize("changed, message", [
  ({"league.objectives": "terran-main-1=built.Marine:1"},
   "config key 'league.objectives': there is no player 'terran-main-1'"),
  ({"league.own_matchmaking": "terran-league_exploiter-0=fsp"},
   "config key 'league.own_matchmaking': there is no player 'terran-league_exploiter-0' that "
   "could have it, expected one of terran-main-0"),
])
def test_a_league_with_invalid_keys_is_refused(changed, message):
  with pytest.raises(settings.SettingsError, match=message):
    league_run.check(settings.complete({}, changed))


@pytest.mark.parametrize("key, value, shown", [
  ("exploiter_minimax", 0.5, "0.0"), ("exploiter_goals", True, "False"),
  ("snapshots_z", True, "False"),
  ("objectives", "terran-main-0=built.Marine:1", "''")])
def test_games_outside_jax_have_no_personal_rewards(key, value, shown):
  with pytest.raises(settings.SettingsError, match=f"'league.{key}' must be {shown} in sc2, whose"):
    settings.complete({}, {"environment.name": "sc2", f"league.{key}": value})


@pytest.mark.parametrize("key", ["exploiter_goals", "snapshots_z"])
def test_goals_and_strategies_of_snapshots_need_z(key):
  with pytest.raises(settings.SettingsError, match=f"above 0 if 'league.{key}' is true"):
    settings.complete({}, {f"league.{key}": True, "actor.pseudo_probability": 0.0})


def test_actors_get_the_objectives():
  config = settings.complete({}, {"league.objectives": "terran-main-0=built.Marine:0.5"})
  assert list(actor_options(config).objectives) == ["terran-main-0"]
