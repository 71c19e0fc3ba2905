"""Entries of games: those of this package, and what other packages may register."""

import dataclasses
import types as modules
from importlib import metadata

import jax
import numpy as np
import pytest

from starleague.agent import types
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry, sc2, skirmish


@pytest.fixture
def register(monkeypatch):
  """Returns a function that registers an entry point of another package."""
  def install(name, load):
    point = modules.SimpleNamespace(name=name, value="pieces:GAME", load=load)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [point])
    registry.games.cache_clear()

  yield install
  monkeypatch.undo()
  registry.games.cache_clear()


def test_the_games_of_this_package_are_found():
  assert registry.find("skirmish") is skirmish.GAME and registry.find("sc2") is sc2.GAME
  assert registry.make_parts(settings.complete({})).opponents[0] == "passive"


@pytest.mark.parametrize("make", [registry.make_parts, registry.make_playing_parts])
def test_values_observe_what_they_observed_in_training(make):
  """Actors reward by values, and replays show them. Another opponent may change them."""
  policies = [make(settings.complete({}, {"learner.opponent_values": seen})).policy
              for seen in (True, False)]
  params = jax.jit(policies[0].init)(jax.random.key(0))
  observation, one = (jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), spec) for spec in (
    types.observation_spec(96, 1), types.privileged_spec()))
  other = one._replace(opponent_unit_counts=one.opponent_unit_counts + np.uint8(3))
  own = one._replace(cumulative_score=one.cumulative_score + 500)
  with_opponent, without = ([np.asarray(policy.values(
    params, policy.initial_state(), observation, privileged)) for privileged in (one, other, own)]
    for policy in policies)
  assert np.abs(with_opponent[1] - with_opponent[0]).min() > 1e-4
  np.testing.assert_array_equal(without[1], without[0])
  for mine in (0, 2):  # equal inputs
    np.testing.assert_array_equal(without[mine], with_opponent[mine])
  assert np.abs(without[2] - without[0]).min() > 1e-4


def test_a_trained_agent_is_measured_at_a_temperature_of_its_own():
  config = settings.complete({}, {"evaluation.temperature": 0.25})
  training, playing = registry.make_parts(config), registry.make_playing_parts(config)
  assert (training.config.temperature, training.config.delay_temperature) == (0.8, 1.0)
  assert (playing.config.temperature, playing.config.delay_temperature) == (0.2, 0.25)
  assert training.config == dataclasses.replace(
    playing.config, temperature=0.8, delay_temperature=1.0)


def test_places_of_structures_are_masked_on_skirmishs_maps_only():
  values = {"preset": "small", "actor.demonstrators": "", "init": "random"}
  for changes, mask, units in (
      ({"environment.tier": "default", "environment.opponents": "L5"}, "free", 48.0),
      ({"environment.name": "sc2", "environment.opponents": "terran:easy"}, "none", 48.0)):
    found = registry.make_parts(settings.complete({}, values | changes)).config
    assert (found.location_mask, found.map_units) == (mask, units)


def test_an_evaluation_may_meet_any_scripted_player_of_the_tier():
  config = settings.complete({}, {"environment.tier": "default", "environment.opponents": "L5,L6",
                                  "preset": "small", "actor.demonstrators": ""})
  parts = registry.make_playing_parts(config, ["L6", "L10", "L9"])
  assert parts.opponents == ("L6", "L10", "L9") and parts.compiled.incomes == (100, 150, 150)
  assert registry.make_playing_parts(config).opponents == ("L5", "L6")
  assert config.environment.opponents == "L5,L6"
  with pytest.raises(settings.SettingsError, match="^--opponents names 'L11'; expected.*L9, L10,"):
    registry.make_playing_parts(config, ["L11"])


def test_without_a_list_an_evaluation_meets_the_runs_opponents(register):
  register("chess", lambda: skirmish.GAME._replace(name="chess", scripted=None))
  config = settings.complete({}, {"environment.name": "chess", "environment.opponents": "builder",
                                  "actor.demonstrators": ""})
  assert registry.make_playing_parts(config, ["builder"]).opponents == ("builder",)
  with pytest.raises(settings.SettingsError, match="names 'rusher'; expected some of builder,"):
    registry.make_playing_parts(config, ["rusher"])


def test_a_registered_game_brings_its_config_group(register):
  register("chess", lambda: skirmish.GAME._replace(
    name="chess", changes={"evaluation": {"games": 8}}, options={"clock_s": 3.0}))
  config = settings.complete({}, {"environment.name": "chess", "chess.clock_s": 4.0})
  assert (config.chess.clock_s, config.evaluation.games, config.sc2.maps) == (4.0, 8, "Flat32")
  assert settings.complete({}).evaluation.games == 200


def fail():
  raise ImportError("no such piece")


@pytest.mark.parametrize("name, load, message", [
  ("chess", fail, "game 'chess': its entry pieces:GAME cannot be loaded: ImportError: no such"),
  ("chess", lambda: 3, "expected pieces:GAME to be an entry of that name.*found int"),
  ("chess", lambda: skirmish.GAME, "which no other game has; found Game 'skirmish'"),
  ("sc2", lambda: sc2.GAME, "which no other game has; found Game 'sc2'")])
def test_a_registered_game_that_cannot_be_used_is_refused(register, name, load, message):
  register(name, load)
  with pytest.raises(settings.SettingsError, match=message):
    settings.complete({})
