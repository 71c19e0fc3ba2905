"""Matches of a league's evaluator, and those in Skirmish."""

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import ml_collections
import numpy as np

from starleague import league
from starleague.environments.skirmish.games import dm_environment, replays
from starleague.environments.skirmish.rules.tables import constants
from starleague.experiments.run.parts import wiring


class Played(NamedTuple):
  """A game that has ended."""

  result: int  # WIN, DRAW or LOSS of the first player
  loops: int  # game loops
  save: Callable[[pathlib.Path], object]  # writes its replay


# Plays a game of a match, by its number; the second argument is called at every step.
Match = Callable[[int, Callable[[], object]], Played]


class Arena(Protocol):
  """Plays the matches of an evaluator."""

  suffix: str  # of replays
  final_errors: tuple[type[Exception], ...]  # after these, no other game can be played either

  def match(self, players: Sequence[league.Player], params: Sequence[Any]) -> Match:
    """Returns the match of two players; `params` of scripted ones are None.

    The sides alternate.
    """


class SkirmishArena:
  """Matches in Skirmish; see `Arena`."""

  suffix = ".npz"
  final_errors: tuple[type[Exception], ...] = ()

  def __init__(self, parts: wiring.Parts, config: ml_collections.ConfigDict,
               random: np.random.Generator):
    """Takes the parts of the run, its config and the random numbers of the games."""
    self._parts, self._tier, self._random = parts, config.environment.tier, random

  def _controller(self, player: league.Player, params: Any) -> replays.Controller:
    if params is None:
      return replays.scripted_player(player.name, self._parts.game)
    return replays.policy_player(
      player.name, self._parts.policy, params, self._parts.game, self._parts.mmr)

  def match(self, players: Sequence[league.Player], params: Sequence[Any]) -> Match:
    """Returns the match of two players."""
    first, second = (self._controller(*each) for each in zip(players, params, strict=True))
    races = [player.race or dm_environment.RANDOM for player in players]

    def play(game: int, on_step: Callable[[], object]) -> Played:
      match_up = dm_environment.draw_match_up(
        self._random, self._tier, (races[0], races[1]), swap_sides=bool(game % 2))
      replay = replays.record(
        (first, second), int(self._random.integers(2**31)), game=self._parts.game,
        match_up=match_up, on_step=on_step)
      result = {0: league.WIN, 1: league.LOSS}.get(replay.winner, league.DRAW)
      return Played(result, replay.steps * constants.LOOPS_PER_STEP,
                    functools.partial(replays.save, replay=replay))

    return play
