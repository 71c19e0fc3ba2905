"""The calls of a run of one agent: against scripted players and itself, by its win rates.

It is a league of one: opponents are drawn here, without a coordinator, and all weights are those of
one player.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from starleague.actor import rollouts
from starleague.actor.loops import agent_results, compiled_loop, programs
from starleague.actor.loops.options import ActorOptions, ActorProcess
from starleague.actor.loops.weights import WeightSource
from starleague.actor.parts import Parts
from starleague.common import run_files
from starleague.data.reverb.writer import TrajectoryWriter
from starleague.data.z.conditioning import Conditioning, Recent

MOST_Z = 32  # z kept for each race and starting side


def add_demonstrations(recent: Recent, batch: rollouts.Results,
                       demonstrators: Sequence[int]) -> bool:
  """Adds the z of games that a demonstrator won; returns whether there were any.

  Args:
    recent: the z kept, changed in place.
    batch: results of one call of the rollout program.
    demonstrators: indices of scripted players.
  """
  shown = 1 + np.asarray(demonstrators, int)
  won = np.asarray(batch.over) & (np.asarray(batch.reward)[..., 1] > 0)
  won &= np.isin(np.asarray(batch.opponent), shown)
  for index in zip(*np.nonzero(won), strict=True):
    scripted = (*index, 1)
    recent.add(int(batch.race[scripted]), int(batch.side[scripted]),
               jax.tree.map(lambda x, i=scripted: np.asarray(x)[i], batch.executed))
  return bool(won.any())


def with_objective(conditioning: Conditioning, objective: np.ndarray,
                   opponents: int) -> Conditioning:
  """Returns conditioning with the agent's rewards for units; those of all zeros change nothing.

  Args:
    conditioning: of the games.
    objective: [2, types], see `ActorOptions.objective`.
    opponents: number of opponent indices; against 0, itself, both players are the agent.
  """
  if not objective.any():
    return conditioning
  own = np.zeros((opponents, 2), np.int32)
  own[:, 0] = own[0, 1] = 1
  return conditioning._replace(
    objectives=np.stack([np.zeros_like(objective), objective]), objective=own)


class SingleCalls:
  """The calls of one agent; see `compiled_loop.CallSource`."""

  def __init__(self, parts: Parts, options: ActorOptions, process: ActorProcess,
               weights: WeightSource, conditioning: Conditioning | None):
    """Connects to the data server that gets the trajectories.

    Args:
      parts: the agent and its games.
      options: of the actor.
      process: the actor.
      weights: of the agent, `run_files.PLAYER`.
      conditioning: of the games; None: z comes from the games that demonstrators win.
    """
    self.program = programs.make_single(parts, options)
    self._parts, self._options, self._weights = parts, options, weights
    self._template = jax.eval_shape(parts.policy.init, jax.random.key(0))
    self._writer = TrajectoryWriter(
      process.address, run_files.PLAYER, parts.config, options.unroll_length, 2 * options.games,
      deadline_s=options.timeout_s)
    self._reporter = agent_results.Reporter(process.run_dir, parts, process.origin)
    self._update = 0  # of the newest weights
    self._recent = Recent(MOST_Z, len(parts.maps), options.active, parts.mmr)
    self._finds_z = conditioning is None
    self._condition(self._recent.conditioning() if conditioning is None else conditioning)

  def _condition(self, conditioning: Conditioning) -> None:
    self._conditioning = with_objective(
      conditioning, self._options.objective, 1 + len(self._parts.opponents))

  def first(self) -> tuple[np.ndarray, Conditioning]:
    """Returns games against all opponents and itself in equal shares."""
    opponents = np.arange(self._options.games) % (1 + len(self._parts.opponents))
    return opponents, self._conditioning

  def _call(self, params: Any) -> compiled_loop.Call:
    return compiled_loop.Call(
      0, params, self._reporter.opponent_probabilities(self._options),
      self._conditioning._replace(
        match_up_probabilities=self._reporter.match_up_probabilities(self._options)))

  def example(self) -> compiled_loop.Call:
    """Returns a call without weights: the learner may not have published any."""
    return self._call(self._template)

  def next_call(self) -> compiled_loop.Call:
    """Returns a call with the newest weights; waits for the first ones."""
    newest = self._weights(run_files.PLAYER)
    self._update = newest.version.step
    return self._call(newest.params)

  def handle(self, played: compiled_loop.Played) -> None:
    """Writes trajectories, reports results and steps, and collects z of demonstrators."""
    self._writer.write(played.records)
    if self._finds_z and add_demonstrations(
        self._recent, played.results, self._options.demonstrators):
      self._condition(self._recent.conditioning())
    steps = int((np.asarray(played.records.row) >= 0).sum())
    self._reporter.add(steps, played.results, self._update)
