"""Evaluation games in StarCraft II, against built-in bots."""

import collections
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from starleague.actor import evaluation, game_processes
from starleague.actor.games import Order
from starleague.data.z import conditioning
from starleague.experiments.run.actors import hosted_games
from starleague.experiments.run.parts import wiring


def make_evaluation(parts: wiring.Parts, opponents: Sequence[int], games: int,
                    seed: int) -> Callable[..., dict[str, evaluation.Counts]]:
  """Returns a function that plays an agent's games; see `evaluating.make_evaluation`.

  Void matches are played again.

  Args:
    parts: of a run in StarCraft II.
    opponents: indices of the built-in bots to meet.
    games: against each of them, half from each side.
    seed: of the games.
  """
  def play(params: Any, on_games: Callable[[int], object] | None = None,
           ) -> dict[str, evaluation.Counts]:
    rng = np.random.default_rng(seed)
    given = conditioning.unconditional(parts.maps, parts.mmr)
    waiting = collections.deque(
      hosted_games.draw_order(parts, rng, parts.opponents[opponent], given)._replace(
        swap_sides=bool(game % 2))
      for game in range(games) for opponent in opponents)
    total, found = len(waiting), list[game_processes.Finished]()

    def next_order() -> Order | None:
      return waiting.popleft() if waiting else None

    hosting = hosted_games.Hosting(parts, jax.random.key(seed), {0: params}, next_order, given)
    try:
      while len(found) < total:
        for ended in hosting.run_once():
          if ended.report.result is None:
            waiting.append(ended.order)
            hosting.processes.resume()
          else:
            found.append(ended)
        if on_games is not None:
          on_games(len(found))
    finally:
      hosting.close()
    counts = evaluation.count(hosted_games.results_of(parts, found))
    return {parts.opponents[i]: each for i, each in counts.items()}

  return play
