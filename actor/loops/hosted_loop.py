"""The loop of an actor whose games run in processes of their own, outside JAX."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from starleague.actor import sessions
from starleague.actor.game_processes import Finished
from starleague.actor.games import GameRequest
from starleague.actor.loops import hosted_games
from starleague.actor.loops.options import ActorOptions, ActorProcess
from starleague.actor.parts import Parts
from starleague.common import compiling, stopping
from starleague.data.records import Records
from starleague.data.reverb import transport
from starleague.data.reverb.writer import TrajectoryWriter
from starleague.data.z.conditioning import Conditioning


class MatchSource(Protocol):
  """The games of an actor: opponents, weights, and reports of the results.

  `hosted_single` has those of a run of one agent, `hosted_league` those of a league's matches.
  """

  learners: Sequence[str]  # names of the players that learn; their numbers come first
  conditioning: Conditioning  # z that the requests name

  def next_request(self) -> GameRequest | None:
    """Returns the next game; None: there is none at present."""

  def newest(self) -> Mapping[int, Any]:
    """Returns weights that are new, by the number of their player.

    Raises:
      StoppedError: the actor ends.
    """

  def handle(self, finished: Sequence[Finished], steps: int) -> None:
    """Reports games that have ended, void ones too, and the agent steps since the last call."""


def generator(options: ActorOptions, index: int) -> np.random.Generator:
  """Returns the random numbers of an actor.

  The time is part of the seed: a restarted actor must not repeat its games.
  """
  return np.random.default_rng([options.seed, index, time.time_ns()])


def play(source: MatchSource, parts: Parts, options: ActorOptions, process: ActorProcess,
         key: jax.Array) -> None:
  """Plays until a stop signal.

  The games' processes end by themselves when this one is killed.

  Args:
    source: of the games.
    parts: the agent and its games.
    options: of the actor.
    process: the actor.
    key: of the noise of all actions.

  Raises:
    GamesError: games cannot be played at all, or many in a row are void.
  """
  stop = stopping.stop_event()
  writer = TrajectoryWriter(
    process.address, source.learners, parts.config, options.unroll_length,
    hosted_games.SLOTS * options.games, deadline_s=options.timeout_s, stop=stop)
  steps = 0

  def write(records: Records, players: np.ndarray) -> None:
    nonlocal steps
    steps += records.row.size
    writer.write(records, players)

  try:
    params = source.newest()
  except transport.StoppedError:
    return
  sessions.lower_priority(options.niceness)  # first: the games' processes start with it
  with compiling.without_collection():
    hosting = hosted_games.Hosting(
      parts, key, params, source.next_request, source.conditioning, options.pseudo_scale,
      options.draw_reward, write)
  try:
    while not stop.is_set():
      for player, newest in source.newest().items():
        hosting.model.set_params(player, newest)
      finished = hosting.run_once()
      source.handle(finished, steps)
      steps = 0
      hosting.processes.resume()
  except transport.StoppedError:
    pass
  finally:
    hosting.close()
