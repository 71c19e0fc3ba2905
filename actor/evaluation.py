"""Evaluation of a policy against scripted players."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.actor import rollouts
from starleague.agent.policy import Policy
from starleague.data.conditioning import Conditioning
from starleague.environments import base


class Counts(NamedTuple):
  """Numbers of games of a policy against one opponent, by result."""

  wins: int
  draws: int
  losses: int

  @property
  def games(self) -> int:
    """Number of games."""
    return self.wins + self.draws + self.losses


class Evaluator(NamedTuple):
  """An evaluation program for any parameters: see `make_evaluator` and `evaluate`."""

  program: rollouts.Rollouts
  opponents: np.ndarray  # [games] int32: index of each game's scripted player


def make_evaluator(environment: base.Environment, policy: Policy,
                   scripted_player: rollouts.ScriptedPlayer, opponents: Sequence[int], games: int,
                   inference_batch: int = 128, races: tuple[int, ...] = (1,),
                   maps: int = 1) -> Evaluator:
  """Makes an evaluator. The first call of `evaluate` compiles it.

  Args:
    environment: pure functions of a game's state.
    policy: plays player 0, from alternating starting sides.
    scripted_player: plays player 1.
    opponents: indices of the scripted players to evaluate against.
    games: games against each opponent; even, half from each starting side.
    inference_batch: rows inferred at once.
    races: indices of types.RACES that match-ups are drawn from.
    maps: number of maps that match-ups are drawn from.

  Raises:
    ValueError: `games` is odd or not positive.
  """
  if games <= 0 or games % 2:
    raise ValueError(f"games must be even and above 0 (half from each side), found {games}.")
  each = np.repeat(np.asarray(opponents, np.int32), games)
  config = rollouts.RolloutConfig(
    games=len(each), inference_batch=min(inference_batch, 2 * len(each)), iterations=16,
    races=races, maps=maps, restart=False)
  return Evaluator(
    # Nothing learns from these games: one number per step leaves the device instead of the step.
    program=rollouts.make_rollouts(
      environment, policy, config, scripted_player, pack_step=lambda step: step.weight),
    opponents=each)


def evaluate(evaluator: Evaluator, params: Any, key: jax.Array, conditioning: Conditioning,
             max_calls: int = 10_000,
             on_games: Callable[[int], object] | None = None) -> dict[int, Counts]:
  """Plays every game to its end and counts each once.

  Args:
    evaluator: from `make_evaluator`.
    params: parameters of the policy.
    key: random key; equal keys give equal games.
    conditioning: what the policy is told; `conditioning.unconditional` for games without z.
    max_calls: most calls of the compiled program.
    on_games: called after each call of the program with the number of games finished so far.

  Returns:
    Counts by index of the scripted player.

  Raises:
    RuntimeError: games remain unfinished after `max_calls` calls.
  """
  state = evaluator.program.init(key, evaluator.opponents + 1, conditioning)
  players = 1 + int(evaluator.opponents.max())
  probabilities = np.full((1 + players,), 1.0 / (1 + players), np.float32)
  counts = np.zeros((players, 3), int)
  for _ in range(max_calls):
    state, _, results = evaluator.program.run(params, state, probabilities, conditioning)
    over = np.asarray(results.over)
    opponent = np.asarray(results.opponent)[over] - 1
    result = 1 - np.sign(np.asarray(results.reward)[over][:, 0]).astype(int)
    np.add.at(counts, (opponent, result), 1)
    if on_games is not None:
      on_games(int(counts.sum()))
    if counts.sum() == len(evaluator.opponents):
      return {int(i): Counts(*map(int, counts[i])) for i in np.unique(evaluator.opponents)}
  raise RuntimeError(f"{len(evaluator.opponents) - counts.sum()} of {len(evaluator.opponents)} "
                     f"games did not end within {max_calls} calls.")
