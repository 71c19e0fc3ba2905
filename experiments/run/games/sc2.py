"""StarCraft II as the game of a run. Only runs that play it import pysc2."""

import functools
from collections.abc import Sequence

import ml_collections

from starleague import agent
from starleague.actor.games import Host
from starleague.actor.loops import engines
from starleague.actor.loops.hosted_arena import HostedArena
from starleague.actor.parts import HostedGames, Parts
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.experiments.run.config.errors import SettingsError, check_known
from starleague.experiments.run.config.ranges import SECONDS, SECONDS_OR_NONE
from starleague.experiments.run.games.entry import Game

_ANSWER_S = 60.0  # for the inference of a game, beside the wait for the learner
_IMITATION = "imitation"  # value of the config key `init`
# The config group `sc2`.
OPTIONS = {
  "maps": "Flat32",  # names that pysc2 knows, or paths below Maps; with commas between
  "races": "terran",  # of the agent, drawn for each game; with commas between
  "version": "",  # of the game; empty: the newest that is installed
  "camera": True,  # whether the virtual camera limits what is seen of enemies
  "deadline_s": 120.0,  # of a request to the game; a game that takes longer hangs
  "game_s": 7200.0,  # of a whole game; one that takes longer is void
  "wait_s": 0.02,  # longest time that an observation waits for others in the inference service
}
# Each game has processes of its own.
CHANGES = {
  "environment": {"opponents": "terran:veryeasy"},  # RACE:DIFFICULTY[:BUILD] of built-in bots
  "actor": {"games": 2, "inference_batch": 4, "pseudo_probability": 0.0, "demonstrators": ""},
  "data": {"min_size": 16, "tolerance": 64},
  "learner": {"batch_size": 16},
  "league": {"games": 1, "evaluation_games": 1},
  "evaluation": {"games": 4},
}


def make_host(config: AgentConfig, maps: tuple[str, ...], version: str, camera: bool,
              deadline_s: float) -> Host:
  """Returns the host of games; called in the process that plays them."""
  from starleague.environments.sc2.environment import GameHost
  return GameHost(config, maps, version=version, deadline_s=deadline_s, camera=camera)


def bot_race(bot: str) -> int:
  """Returns the race of a built-in bot, RACE:DIFFICULTY[:BUILD], an index of types.RACES."""
  from starleague.environments.sc2.client import setup_requests
  return setup_requests.parse_bot(bot).race


def _spellings(name: str) -> tuple[str, ...]:
  """Returns the names of a map in libraries of z; replays have those of the ladder."""
  from starleague.environments.sc2.client import setup_requests
  known = setup_requests.find_map(name)
  return name, known.name, known.battle_net


def make_parts(config: ml_collections.ConfigDict, preset: AgentConfig) -> Parts:
  """Returns the agent and its games."""
  sc2, preset = config.sc2, agent_config.on_map(preset, None)
  maps, opponents = tuple(sc2.maps.split(",")), tuple(config.environment.opponents.split(","))
  races = tuple(types.RACES.index(race) for race in _races(config)[1])
  met = {*races, *map(bot_race, opponents)} - {types.RACES.index("random")}
  return Parts(
    config=preset, policy=agent.make_policy(preset), opponents=opponents, races=races,
    opponent_races=tuple(sorted(met)), maps=tuple(map(_spellings, maps)),
    mmr=config.environment.mmr,
    hosted=HostedGames(
      functools.partial(make_host, preset, maps, sc2.version, sc2.camera, sc2.deadline_s),
      bot_race, config.actor.games, config.actor.inference_batch, sc2.wait_s, sc2.game_s,
      config.data.timeout_s + _ANSWER_S, ".SC2Replay"))


def check(config: ml_collections.ConfigDict, preset: AgentConfig) -> None:
  """Checks maps, races, bots, and what is not possible in StarCraft II.

  Raises:
    SettingsError: names the key, and the value found.
  """
  del preset
  from starleague.environments.sc2.client import setup_requests
  for key, parse in (("environment.opponents", setup_requests.parse_bot),
                     ("sc2.maps", setup_requests.find_map),
                     ("sc2.races", setup_requests.parse_race)):
    group, _, name = key.partition(".")
    texts = config[group][name].split(",")
    for text in texts:
      try:
        parse(text)
      except setup_requests.GameSetupError as error:
        raise SettingsError(f"config key {key!r}: {error}.") from error
    check_known(key, texts, texts)
  if config.league.replay_predictions:
    raise SettingsError("config key 'league.replay_predictions' must be False in StarCraft II: its "
                        "replays hold no predictions.")
  if config.environment.races:
    raise SettingsError("config key 'environment.races' must be empty in StarCraft II, which has "
                        "'sc2.races'.")
  if config.actor.demonstrators:
    raise SettingsError("config key 'actor.demonstrators' must be empty in StarCraft II.")
  if config.actor.pseudo_probability and not config.actor.library and config.init != _IMITATION:
    raise SettingsError("config key 'actor.library' must name a library of z in StarCraft II: none "
                        "comes from imitation.")
  if config.actor.pseudo_probability and "random" in _races(config)[1]:
    raise SettingsError("config key 'sc2.races' must not have 'random' with z: it is for a race.")
  if config.init == _IMITATION and not config.demonstrations.dataset:
    raise SettingsError("config key 'demonstrations.dataset' must name recorded games if 'init' is "
                        f"{_IMITATION!r} in StarCraft II: its bots cannot be recorded.")


def _races(config: ml_collections.ConfigDict) -> tuple[str, Sequence[str]]:
  return "sc2.races", config.sc2.races.lower().split(",")


GAME = Game(
  name="sc2", engine=engines.HOSTED, make_parts=make_parts, check=check, make_arena=HostedArena,
  races=_races, default_init="random", changes=CHANGES, options=OPTIONS,
  ranges={"sc2.deadline_s": SECONDS, "sc2.game_s": SECONDS, "sc2.wait_s": SECONDS_OR_NONE})
