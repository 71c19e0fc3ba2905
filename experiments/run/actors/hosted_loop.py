"""The actor's loop in StarCraft II: games in processes of their own, trajectories, results."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import jax
import ml_collections
import numpy as np

from starleague.actor import sessions
from starleague.actor.game_processes import Finished
from starleague.actor.games import Order
from starleague.common import compiling, stopping
from starleague.data.records import Records
from starleague.data.reverb import transport
from starleague.data.reverb.writer import TrajectoryWriter
from starleague.data.z.conditioning import Conditioning
from starleague.experiments.run.actors import hosted_games
from starleague.experiments.run.parts import wiring


class Dealer(Protocol):
  """Deals the games of an actor: opponents, weights, and reports of the results.

  `agent_dealing` deals those of a run of one agent, `league_dealing` those of a league's matches.
  """

  learners: Sequence[str]  # names of the players that learn; their numbers come first
  given: Conditioning  # z that the orders name

  def next_order(self) -> Order | None:
    """Returns the next game; None: there is none at present."""

  def newest(self) -> Mapping[int, Any]:
    """Returns weights that are new, by the number of their player.

    Raises:
      StoppedError: the actor ends.
    """

  def handle(self, finished: Sequence[Finished], steps: int) -> None:
    """Reports games that have ended, void ones too, and the agent steps since the last call."""


def generator(config: ml_collections.ConfigDict, index: int) -> np.random.Generator:
  """Returns the random numbers of an actor.

  The time is part of the seed: a restarted actor must not repeat its games.
  """
  return np.random.default_rng([config.seed, index, time.time_ns()])


def play(dealer: Dealer, parts: wiring.Parts, config: ml_collections.ConfigDict, address: str,
         key: jax.Array) -> None:
  """Plays until a stop signal.

  The games' processes end by themselves when this one is killed.

  Args:
    dealer: of the games.
    parts: of a run in StarCraft II.
    config: the run's config.
    address: host:port of the data server that gets the trajectories.
    key: of the noise of all actions.

  Raises:
    GamesError: games cannot be played at all, or many in a row are void.
  """
  stop = stopping.stop_event()
  writer = TrajectoryWriter(
    address, dealer.learners, parts.config, config.unroll_length,
    hosted_games.SLOTS * config.actor.games, deadline_s=config.data.timeout_s, stop=stop)
  steps = 0

  def write(records: Records, players: np.ndarray) -> None:
    nonlocal steps
    steps += records.row.size
    writer.write(records, players)

  try:
    params = dealer.newest()
  except transport.StoppedError:
    return
  with compiling.without_collection():
    hosting = hosted_games.Hosting(parts, key, params, dealer.next_order, dealer.given, write)
  sessions.lower_priority(config.actor.niceness)
  try:
    while not stop.is_set():
      for player, newest in dealer.newest().items():
        hosting.model.set_params(player, newest)
      finished = hosting.run_once()
      dealer.handle(finished, steps)
      steps = 0
      hosting.processes.resume()
  except transport.StoppedError:
    pass
  finally:
    hosting.close()
