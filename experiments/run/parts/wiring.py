"""The parts of a run that several of its processes share, built from its config."""

import threading
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np

from starleague import agent
from starleague.actor import players, rollouts
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.agent.policy import Policy
from starleague.data import wire
from starleague.data.reverb.parameters import ParameterFetcher
from starleague.environments.skirmish.bots import players as bots
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.games import dm_environment
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.tables import tiers
from starleague.environments.skirmish.rules.tables.config import game_config

_ANSWER_S = 60.0  # for the inference of a game in StarCraft II, beside the wait for the learner


class Sc2(NamedTuple):
  """Games in StarCraft II; see `configs/mini.py`."""

  maps: tuple[str, ...]
  version: str
  camera: bool
  deadline_s: float
  game_s: float
  wait_s: float
  processes: int  # that play games, one each at a time
  inference_batch: int
  pseudo_scale: float  # pseudo-reward per unit of distance to z
  answer_s: float  # of a wait for the inference service, which may wait for the learner


class Parts(NamedTuple):
  """The agent, the environment and the opponents of a run."""

  config: agent_config.AgentConfig
  policy: Policy
  # The next two and `scripted` are Skirmish's, which is played under jit; None in StarCraft II.
  game: Any  # GameConfig, the environment's arguments
  environment: Any  # base.Environment
  opponents: tuple[str, ...]  # names of the scripted players, or of built-in bots
  scripted: Any  # rollouts.ScriptedPlayer, takes an index of `opponents`
  races: tuple[int, ...]  # indices of types.RACES
  maps: int
  mmr: int  # of the agent, as its observations show it
  sc2: Sc2 | None = None  # of a run in StarCraft II


def make_parts(config: ml_collections.ConfigDict) -> Parts:
  """Builds the parts of a run from its config."""
  if config.environment.name == "sc2":
    return _make_sc2_parts(config)
  preset, tier = agent_config.preset(config.preset), config.environment.tier
  game = game_config(tier, preset)
  opponents = tuple(config.environment.opponents.split(","))
  indices = scripts.indices_of(opponents, tier)
  every = bots.make_scripted(**game._asdict())

  def scripted(index, key, state, player):
    return every(jnp.asarray(indices)[index], key, state, player)

  return Parts(
    config=preset, policy=agent.make_policy(preset),
    game=game, environment=skirmish.make_skirmish(**game._asdict()), opponents=opponents,
    scripted=scripted,
    races=tuple(types.RACES.index(race) for race in dm_environment.playable(tier)),
    maps=len(dm_environment.map_names(tier)), mmr=config.environment.mmr)


def _make_sc2_parts(config: ml_collections.ConfigDict) -> Parts:
  preset, sc2 = agent_config.preset(config.preset), config.sc2
  maps = tuple(sc2.maps.split(","))
  return Parts(
    config=preset, policy=agent.make_policy(preset), game=None, environment=None, scripted=None,
    opponents=tuple(config.environment.opponents.split(",")),
    races=tuple(types.RACES.index(race) for race in sc2.races.lower().split(",")),
    maps=len(maps),
    mmr=config.environment.mmr,
    sc2=Sc2(maps, sc2.version, sc2.camera, sc2.deadline_s, sc2.game_s, sc2.wait_s,
            config.actor.games, config.actor.inference_batch, config.actor.pseudo_scale,
            config.data.timeout_s + _ANSWER_S))


def _rollout_config(parts: Parts, config: ml_collections.ConfigDict) -> rollouts.RolloutConfig:
  """Returns the sizes of the rollout program of an actor process."""
  return rollouts.RolloutConfig(
    games=config.actor.games, inference_batch=config.actor.inference_batch,
    iterations=config.actor.iterations, races=parts.races, maps=parts.maps,
    pseudo_scale=config.actor.pseudo_scale,
    grid_per_unit=types.POSITION_GRID / tiers.TIERS[config.environment.tier].map_size)


def make_rollouts(parts: Parts, config: ml_collections.ConfigDict) -> rollouts.Rollouts:
  """Returns the rollout program of an actor process."""
  return rollouts.make_rollouts(
    parts.environment, parts.policy, _rollout_config(parts, config), parts.scripted,
    pack_step=wire.pack_steps)


def make_player_rollouts(parts: Parts, config: ml_collections.ConfigDict,
                         sizes: players.Sizes) -> rollouts.Rollouts:
  """Returns the rollout program of an actor process in a league."""
  return players.make_rollouts(
    parts.environment, parts.policy, _rollout_config(parts, config), sizes, parts.scripted,
    pack_step=wire.pack_steps)


def player_sizes(parts: Parts, config: ml_collections.ConfigDict, learners: int) -> players.Sizes:
  """Returns the sizes of an actor's program for a league with so many learning players."""
  matches = max(1, config.league.places * learners)
  return players.Sizes(slots=learners + matches, matches=matches, scripts=len(parts.opponents),
                       chunk=config.league.chunk)


def make_fetcher(parts: Parts, config: ml_collections.ConfigDict, address: str, player: str,
                 stop: threading.Event | None = None) -> ParameterFetcher:
  """Connects to the data server at host:port for a player's newest parameters; see the fetcher."""
  template = jax.eval_shape(parts.policy.init, jax.random.key(0))
  return ParameterFetcher(
    address, player, template, interval_s=config.actor.parameter_interval_s,
    deadline_s=config.data.timeout_s, stop=stop)


def active_probabilities(config: ml_collections.ConfigDict) -> np.ndarray:
  """Returns the probability that each pseudo-reward is active in a training game, [4] float32."""
  names = config.actor.pseudo_rewards.split(",")
  return np.array([config.actor.pseudo_probability * (name in names)
                   for name in types.PSEUDO_REWARDS], np.float32)


def initial_params(parts: Parts, config: ml_collections.ConfigDict) -> Any:
  """Returns the initial, random weights of a run, a function of its seed."""
  return parts.policy.init(jax.random.key(config.seed))
