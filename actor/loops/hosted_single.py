"""The games of a run of one agent outside JAX: against the game's bots and itself."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from starleague.actor import rollouts
from starleague.actor.game_processes import Finished
from starleague.actor.games import GameRequest
from starleague.actor.loops import agent_results, hosted_games
from starleague.actor.loops.options import ActorOptions, ActorProcess
from starleague.actor.loops.weights import Version, WeightSource
from starleague.actor.parts import Parts
from starleague.common import run_files
from starleague.data.z.conditioning import Conditioning


class SingleMatches:
  """The games of one agent; see `hosted_loop.MatchSource` and `compiled_single.SingleCalls`."""

  learners: Sequence[str] = (run_files.PLAYER,)

  def __init__(self, parts: Parts, options: ActorOptions, process: ActorProcess,
               weights: WeightSource, conditioning: Conditioning, rng: np.random.Generator):
    """Starts without games.

    Args:
      parts: the agent and its games.
      options: of the actor.
      process: the actor.
      weights: of the agent, `run_files.PLAYER`.
      conditioning: of the games.
      rng: changed.
    """
    self._parts, self._options, self._rng = parts, options, rng
    self._weights, self.conditioning = weights, conditioning
    self._reporter = agent_results.Reporter(process.run_dir, parts, process.origin)
    self._version: Version | None = None  # of the newest weights

  def next_request(self) -> GameRequest:
    """Returns a game against an opponent drawn by the agent's win rates."""
    probabilities = self._reporter.opponent_probabilities(self._options).astype(np.float64)
    index = self._rng.choice(len(probabilities), p=probabilities / probabilities.sum())
    bot = "" if index == rollouts.SELF_PLAY else self._parts.opponents[index - 1]
    weights = self._reporter.match_up_probabilities(self._options)[index].astype(np.float64)
    pair = self._rng.choice(weights.size, p=weights.ravel() / weights.sum())
    # A bot has the race of its name instead of the drawn one.
    races = [self._parts.races[i] for i in divmod(pair, len(self._parts.races))]
    return hosted_games.draw_request(self._parts, self._rng, bot, self.conditioning, races)

  def newest(self) -> Mapping[int, Any]:
    """Returns the agent's weights, if there are newer ones; waits for the first."""
    found = self._weights.newer(run_files.PLAYER, self._version)
    if found is None:
      return {}
    self._version = found.version
    return {0: found.params}

  def handle(self, finished: Sequence[Finished], steps: int) -> None:
    """Reports results and steps."""
    assert self._version is not None
    self._reporter.add(
      steps, hosted_games.results_of(self._parts, list(finished)), self._version.step)
