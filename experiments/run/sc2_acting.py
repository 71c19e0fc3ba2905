"""The actor's loop in StarCraft II: games in processes of their own, trajectories, results."""

import pathlib
import time

import jax
import ml_collections
import numpy as np

from starleague.data import conditioning, transport
from starleague.data.parameters import ParameterFetcher
from starleague.data.records import Records
from starleague.data.writer import TrajectoryWriter
from starleague.experiments.run import (
  acting,
  agent_acting,
  compiling,
  conditions,
  sc2_games,
  stopping,
  wiring,
)


def play(parts: wiring.Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path,
         address: str, parameters_address: str, index: int, origin: float) -> None:
  """Plays until a stop signal; see `agent_acting.AgentGames`.

  The games' processes end by themselves when this one is killed.

  Raises:
    GamesError: games cannot be played at all, or many in a row are void.
  """
  stop = stopping.stop_event()
  template = jax.eval_shape(parts.policy.init, jax.random.key(0))
  fetch = ParameterFetcher(
    parameters_address, wiring.PLAYER, template,
    interval_s=config.actor.parameter_interval_s, deadline_s=config.data.timeout_s, stop=stop)
  writer = TrajectoryWriter(
    address, wiring.PLAYER, parts.config, config.unroll_length,
    sc2_games.SLOTS * config.actor.games, deadline_s=config.data.timeout_s, stop=stop)
  library = conditions.library_path(config, run_dir)
  given = (conditions.from_library(parts, config, library)
           if library is not None and config.actor.pseudo_probability
           else conditioning.unconditional(parts.maps, parts.mmr))
  reporter = agent_acting.Reporter(run_dir, parts.opponents, origin)
  # The time is part of the seed: a restarted actor must not repeat its games.
  rng = np.random.default_rng([config.seed, index, time.time_ns()])
  steps = 0

  def next_order():
    probabilities = reporter.opponent_probabilities(config.actor).astype(np.float64)
    opponent = rng.choice(len(probabilities), p=probabilities / probabilities.sum())
    return sc2_games.draw_order(parts, rng, int(opponent), given)

  def write(records: Records) -> None:
    nonlocal steps
    steps += records.row.size
    writer.write(records)

  try:
    fetched = fetch()
  except transport.StoppedError:
    return
  with compiling.without_collection():
    hosting = sc2_games.Hosting(
      parts, jax.random.key(int(rng.integers(2**31))), fetched.params, next_order, given, write)
  acting.lower_priority(config.actor.niceness)
  try:
    while not stop.is_set():
      finished = hosting.run_once()
      newest = fetch()
      if newest is not fetched:
        hosting.model.set_params(0, newest.params)
        fetched = newest
      reporter.add(steps, sc2_games.results_of(parts, finished), fetched.step)
      steps = 0
  except transport.StoppedError:
    pass
  finally:
    hosting.close()
