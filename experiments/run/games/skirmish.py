"""Skirmish as the game of a run."""

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import ml_collections
import numpy as np

from starleague import agent, league
from starleague.actor import behaviour
from starleague.actor.loops import engines
from starleague.actor.loops.league_evaluator import ArenaGame, PlayMatch
from starleague.actor.parts import CompiledGames, Parts
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.environments.skirmish.bots import players as bots
from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.games import dm_environment, live, replays
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.tables import constants, tables, tiers
from starleague.environments.skirmish.rules.tables.tables import GameConfig, game_config
from starleague.experiments.run.config.errors import SettingsError, check_known, split
from starleague.experiments.run.games.entry import Game

# The tier at which the demonstrations of a preset are recorded.
RECORDED = {"mini": "mini", "small": "default"}


class Details(NamedTuple):
  """`Parts.details` of Skirmish."""

  game: GameConfig  # sizes
  predictions: bool  # whether the replays of evaluators hold the predictions of agents


def make_parts(config: ml_collections.ConfigDict, preset: AgentConfig) -> Parts:
  """Returns the agent and its games; `details` are a `Details`."""
  tier = config.environment.tier
  preset = agent_config.on_map(preset, tiers.TIERS[tier].map_size)
  game = game_config(tier, preset)
  opponents = tuple(config.environment.opponents.split(","))
  indices = scripts.indices_of(opponents, tier)
  every = bots.make_scripted(**game._asdict())

  def scripted(index, key, state, player):
    return every(jnp.asarray(indices)[index], key, state, player)

  races = tuple(types.RACES.index(race) for race in _races(config)[1])
  known = scripts.scripts_of(tier)
  return Parts(
    config=preset, policy=agent.make_policy(preset), opponents=opponents, races=races,
    opponent_races=races, maps=tuple((name,) for name in dm_environment.map_names(tier)),
    mmr=config.environment.mmr,
    compiled=CompiledGames(skirmish.make_skirmish(**game._asdict()), scripted,
                           types.POSITION_GRID / tiers.TIERS[tier].map_size,
                           tuple(known[index].skill.income for index in indices)),
    details=Details(game, config.league.replay_predictions))


def game_of(parts: Parts) -> GameConfig:
  """Returns the sizes of a run's game."""
  return _details(parts).game


def _details(parts: Parts) -> Details:
  assert isinstance(parts.details, Details), "these are not the parts of a run in Skirmish"
  return parts.details


def check(config: ml_collections.ConfigDict, preset: AgentConfig) -> None:
  """Checks the tier and the names of players and races.

  Raises:
    SettingsError: the tier does not exist, or lacks a player or a race; it does not fit the agent.
  """
  tier = config.environment.tier
  try:
    tables.make_rules(*game_config(tier, preset))
  except ValueError as error:
    raise SettingsError(f"config key 'environment.tier': {error}") from error
  # An opponent must not know more or earn more than an agent does.
  fair = [script.name for script in scripts.scripts_of(tier)
          if script.skill.income == 100 and not script.skill.vision]
  opponents = config.environment.opponents.split(",")
  for key, names, known in (
      ("environment.races", split(config.environment.races), dm_environment.playable(tier)),
      ("environment.opponents", opponents, fair),
      ("actor.demonstrators", split(config.actor.demonstrators), opponents),
      ("demonstrations.players", config.demonstrations.players.split(","),
       scripts.names_of(tier)),
      ("demonstrations.opponents", split(config.demonstrations.opponents),
       scripts.names_of(tier))):
    check_known(key, names, known)
  if config.demonstrations.labels:
    teachers = [script.name for script in scripts.scripts_of(tier) if not script.random]
    check_known("demonstrations.players", config.demonstrations.players.split(","), teachers)


class _Follower:
  """Follows the behaviour of both players of a live game, at every step."""

  def __init__(self) -> None:
    self._track = behaviour.start((2,))
    self._state: Any = None

  def follow(self, game: live.LiveGame) -> None:
    """Follows the game to its present state."""
    self._state = game.state
    self._track = behaviour.follow(self._track, *live.columns(game), game.state.loop)

  def behaviours(self) -> tuple[league.Behaviour, ...]:
    """Returns the behaviours of both players."""
    return () if self._state is None else behaviour.describe(
      np.asarray(self._state.executed.build_order), self._track)


class SkirmishArena:
  """Matches of a league's evaluator; see `league_evaluator.Arena`."""

  suffix = ".npz"
  final_errors: tuple[type[Exception], ...] = ()

  def __init__(self, parts: Parts, random: np.random.Generator):
    """Takes the parts of the run and the random numbers of the games."""
    self._parts, self._random = parts, random
    self._game, self._predictions = _details(parts)

  def _controller(self, player: league.Player, params: Any) -> replays.Controller:
    if params is None:
      return replays.scripted_player(player.name, self._game)
    return replays.policy_player(
      player.name, self._parts.policy, params, self._game, self._parts.mmr)

  def match(self, players: Sequence[league.Player], params: Sequence[Any]) -> PlayMatch:
    """Returns the match of two players."""
    first, second = (self._controller(*each) for each in zip(players, params, strict=True))
    def play(game: int, on_step: Callable[[], object]) -> ArenaGame:
      # A scripted player has none: it is drawn among those of the run.
      drawn = self._random.choice(self._parts.races, 2)
      races = [player.race or types.RACES[race]
               for player, race in zip(players, drawn, strict=True)]
      match_up = dm_environment.draw_match_up(
        self._random, self._game.tier, (races[0], races[1]), swap_sides=bool(game % 2))
      follower = _Follower()

      def follow(game: live.LiveGame) -> None:
        follower.follow(game)
        on_step()

      replay = replays.record(
        (first, second), int(self._random.integers(2**31)), game=self._game, match_up=match_up,
        predictions=self._predictions, on_step=follow)
      result = {0: league.WIN, 1: league.LOSS}.get(replay.winner, league.DRAW)

      def save(path: pathlib.Path) -> None:
        replays.save(path, replay)

      return ArenaGame(
        result, replay.steps * constants.LOOPS_PER_STEP, save, follower.behaviours())

    return play


def _scripted(config: ml_collections.ConfigDict) -> Sequence[str]:
  return scripts.names_of(config.environment.tier)


def _races(config: ml_collections.ConfigDict) -> tuple[str, Sequence[str]]:
  chosen = split(config.environment.races)
  if chosen:
    return "environment.races", chosen
  return "environment.tier", list(dm_environment.playable(config.environment.tier))


GAME = Game(
  name="skirmish", engine=engines.COMPILED, make_parts=make_parts, check=check,
  make_arena=SkirmishArena, races=_races, scripted=_scripted, recorded=RECORDED)
