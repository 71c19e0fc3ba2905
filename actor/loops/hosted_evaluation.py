"""Evaluation games outside JAX, against the game's bots."""

import collections
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from starleague.actor import game_processes, rollouts
from starleague.actor.games import GameRequest
from starleague.actor.loops import hosted_games
from starleague.actor.loops.compiled_evaluation import DRAWN, Evaluation
from starleague.actor.parts import Parts
from starleague.data.z.conditioning import unconditional


def make_evaluation(parts: Parts, opponents: Sequence[int], games: int, seed: int,
                    races: tuple[int, int] = DRAWN) -> Evaluation:
  """Returns a function that plays an agent's games; see `compiled_evaluation`.

  Void matches are played again.

  Args:
    parts: the agent and its games.
    opponents: indices of the bots to meet.
    games: against each of them, half from each side.
    seed: of the games.
    races: of the agent, and any number: bots have the races of their names.
  """
  own = None if races == DRAWN else races

  def play(params: Any, on_games: Callable[[int], object] | None = None) -> rollouts.Results:
    rng = np.random.default_rng(seed)
    conditioning = unconditional(len(parts.maps), parts.mmr)
    waiting = collections.deque(
      hosted_games.draw_request(parts, rng, parts.opponents[opponent], conditioning,
                                own)._replace(swap_sides=bool(game % 2))
      for game in range(games) for opponent in opponents)
    total, found = len(waiting), list[game_processes.Finished]()

    def next_request() -> GameRequest | None:
      return waiting.popleft() if waiting else None

    hosting = hosted_games.Hosting(
      parts, jax.random.key(seed), {0: params}, next_request, conditioning)
    try:
      while len(found) < total:
        for ended in hosting.run_once():
          if ended.report.result is None:
            waiting.append(ended.request)
            hosting.processes.resume()
          else:
            found.append(ended)
        if on_games is not None:
          on_games(len(found))
    finally:
      hosting.close()
    played = jax.tree.map(lambda x: x[0], hosted_games.results_of(parts, found))
    bot_race = hosted_games.hosted_games(parts).bot_race  # instead of the drawn race
    played.race[:, 1] = [bot_race(ended.request.opponent) for ended in found]
    return played

  return play
