"""Evaluation games inside the compiled program, against scripted players."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from starleague.actor import evaluation, rollouts
from starleague.actor.loops.programs import compiled_games
from starleague.actor.parts import Parts
from starleague.data.z.conditioning import unconditional, with_races

DRAWN = (-1, -1)  # races of both players, drawn for each game


class Evaluation(Protocol):
  """Plays the games of an agent."""

  def __call__(self, params: Any, on_games: Callable[[int], object] | None = None,
               ) -> rollouts.Results:
    """Returns the results of N games [N, ...]; `on_games` is called with the finished games."""


def make_evaluator(parts: Parts, opponents: Sequence[int], games: int) -> evaluation.Evaluator:
  """Returns the program of an agent's games against scripted players, `games` against each."""
  made = compiled_games(parts)
  return evaluation.make_evaluator(
    made.environment, parts.policy, made.scripted, opponents, games, races=parts.races,
    maps=len(parts.maps))


def make_match(parts: Parts, games: int) -> evaluation.Evaluator:
  """Returns the program of games between two sets of weights."""
  return evaluation.make_match(
    compiled_games(parts).environment, parts.policy, games, races=parts.races,
    maps=len(parts.maps))


def make_evaluation(parts: Parts, opponents: Sequence[int], games: int, seed: int,
                    races: tuple[int, int] = DRAWN) -> Evaluation:
  """Returns a function that plays an agent's games without z; its first call compiles.

  Args:
    parts: the agent and its games.
    opponents: indices of the scripted players to meet.
    games: against each of them, even.
    seed: of the games.
    races: of the agent and of its opponents, indices of types.RACES; -1: drawn for each game.
  """
  evaluator = make_evaluator(parts, opponents, games)
  conditioning = unconditional(len(parts.maps), parts.mmr)
  incomes = compiled_games(parts).incomes
  if incomes:
    paid = [(100, 100), *((100, income) for income in incomes)]  # the first is of self-play
    conditioning = conditioning._replace(income=np.array(paid, np.int32))
  if races != DRAWN:
    conditioning = with_races(conditioning, races, 1 + len(parts.opponents))

  def play(params: Any, on_games: Callable[[int], object] | None = None) -> rollouts.Results:
    return evaluation.play(evaluator, params, jax.random.key(seed), conditioning, on_games=on_games)

  return play
