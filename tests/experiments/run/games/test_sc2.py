"""StarCraft II as the game of a run."""

import pathlib

import pytest

from starleague.agent import types
from starleague.experiments.configs import mini
from starleague.experiments.run.config import config_flags, settings
from starleague.experiments.run.games import registry, sc2

TERRAN, ZERG, PROTOSS = map(types.RACES.index, ("terran", "zerg", "protoss"))


def test_races_and_maps_are_those_of_the_config():
  parts = registry.make_parts(settings.complete({}, {
    "environment.name": "sc2", "sc2.maps": "AbyssalReef,Flat32", "sc2.races": "terran",
    "environment.opponents": "zerg:easy,random:hard"}))
  assert parts.maps[0][0] == "AbyssalReef" and "Abyssal Reef LE" in parts.maps[0]
  assert (parts.races, parts.opponent_races) == ((TERRAN,), (TERRAN, ZERG))  # random has no z
  assert [parts.hosted.bot_race(bot) for bot in ("zerg:hard", "protoss:easy:rush")] == [
    ZERG, PROTOSS]


def test_one_flag_plays_starcraft_ii():
  config = settings.complete({}, {"environment.name": "sc2"})
  assert (config.init, config.actor.pseudo_probability, config.actor.demonstrators) == (
    "random", 0.0, "")
  assert config.to_dict() == settings.base(game=sc2.GAME)
  path = pathlib.Path(mini.__file__)
  loaded = settings.complete(config_flags.load_file(path, None, "sc2"),
                             {"environment.name": "sc2", "sc2.races": "Zerg,protoss"})
  parts = registry.make_parts(loaded)
  assert parts.opponents == ("terran:veryeasy",) and parts.races == (2, 3)
  hosted = parts.hosted
  assert hosted.make_host.args == (parts.config, ("Flat32",), "", True, 120.0)
  assert hosted[2:] == (2, 4, 0.02, 7200.0, 360.0, ".SC2Replay")
  assert settings.complete(loaded.to_dict()).to_dict() == loaded.to_dict()


@pytest.mark.parametrize("changed, message", [
  ({"environment.opponents": "zerg"}, "'environment.opponents': bot: expected RACE:DIFFICULTY"),
  ({"sc2.maps": "Nowhere"}, "'sc2.maps': map: expected a ladder map"),
  ({"sc2.races": "orc"}, "'sc2.races': race: expected one of terran, zerg"),
  ({"actor.pseudo_probability": 0.5}, "'actor.library' must name a library of z"),
  ({"actor.pseudo_probability": 0.5, "actor.library": "z.npz", "sc2.races": "zerg,random"},
   "'sc2.races' must not have 'random' with z"),
  ({"league.replay_predictions": True}, "'league.replay_predictions' must be False"),
  ({"environment.races": "zerg"}, "'environment.races' must be empty"),
  ({"actor.demonstrators": "rush"}, "'actor.demonstrators' must be empty"),
  ({"init": "imitation"}, "'demonstrations.dataset' must name recorded games"),
  ({"init": "pretrained", "preset": "full"},
   "'preset' must be one of mini, small if .*, found 'full'"),
  ({"sc2.deadline_s": 0.0}, r"'sc2.deadline_s' must be in \(0, 1e\+09\], found 0.0"),
  ({"league.matchmaking": "foo"}, "'league.matchmaking' must be one of pfsp"),
  ({"actor.pseudo_rewards": "foo"}, "'actor.pseudo_rewards' names 'foo'"),
  ({"environment.opponents": "zerg:hard,zerg:hard"},
   "'environment.opponents' names 'zerg:hard' more than once"),
])
def test_what_starcraft_ii_does_not_have_is_refused(changed, message):
  with pytest.raises(settings.SettingsError, match=message):
    settings.complete({}, {"environment.name": "sc2", **changed})
