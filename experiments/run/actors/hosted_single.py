"""The games of a run of one agent in StarCraft II: against built-in bots and itself."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import ml_collections
import numpy as np

from starleague.actor import rollouts
from starleague.actor.game_processes import Finished
from starleague.actor.games import Order
from starleague.common import run_files, stopping
from starleague.data.reverb.parameters import Fetched
from starleague.experiments.run.actors import compiled_single, hosted_games
from starleague.experiments.run.parts import wiring, z_source


class AgentDealer:
  """Deals the games of one agent; see `sc2_acting.Dealer` and `compiled_single.AgentGames`."""

  learners: Sequence[str] = (run_files.PLAYER,)

  def __init__(self, parts: wiring.Parts, config: ml_collections.ConfigDict,
               run_dir: pathlib.Path, parameters_address: str, origin: float,
               rng: np.random.Generator):
    """Connects to the data server.

    Args:
      parts: of a run in StarCraft II.
      config: the run's config.
      run_dir: the run's directory.
      parameters_address: host:port of the data server that has the newest parameters.
      origin: start of the run, in Unix seconds.
      rng: changed.
    """
    self._parts, self._actor, self._rng = parts, config.actor, rng
    self._fetch = wiring.make_fetcher(
      parts, config, parameters_address, run_files.PLAYER, stopping.stop_event())
    self.given = z_source.of_games(parts, config, run_dir)
    self._reporter = compiled_single.Reporter(run_dir, parts.opponents, origin)
    self._held: Fetched | None = None  # the newest weights

  def next_order(self) -> Order:
    """Returns a game against an opponent drawn by the agent's win rates."""
    probabilities = self._reporter.opponent_probabilities(self._actor).astype(np.float64)
    index = self._rng.choice(len(probabilities), p=probabilities / probabilities.sum())
    bot = "" if index == rollouts.SELF_PLAY else self._parts.opponents[index - 1]
    return hosted_games.draw_order(self._parts, self._rng, bot, self.given)

  def newest(self) -> Mapping[int, Any]:
    """Returns the agent's weights, if there are newer ones; waits for the first."""
    fetched = self._fetch()
    if fetched is self._held:
      return {}
    self._held = fetched
    return {0: fetched.params}

  def handle(self, finished: Sequence[Finished], steps: int) -> None:
    """Reports results and steps."""
    assert self._held is not None
    self._reporter.add(
      steps, hosted_games.results_of(self._parts, list(finished)), self._held.step)
