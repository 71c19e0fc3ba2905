"""How good a policy is: games against scripted players, each counted once."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.actor import rollouts
from starleague.agent.policy import Policy
from starleague.environments import base


class Score(NamedTuple):
  """Games of a policy against one opponent."""

  wins: int
  draws: int
  losses: int

  @property
  def games(self) -> int:
    return self.wins + self.draws + self.losses


class Evaluator(NamedTuple):
  """A compiled evaluation: `make_evaluator` makes it, `evaluate` runs it, for any parameters."""

  play: rollouts.Rollouts
  config: rollouts.RolloutConfig
  opponents: np.ndarray  # [games] int32: index of each game's scripted player


def make_evaluator(environment: base.Environment, policy: Policy,
                   scripted_player: rollouts.ScriptedPlayer, opponents: Sequence[int], games: int,
                   inference_batch: int = 128, races: tuple[int, ...] = (1,),
                   maps: int = 1) -> Evaluator:
  """Compiles nothing yet; the first `evaluate` does.

  Args:
    environment: pure functions of a game's state.
    policy: plays player 0, from both starting sides alternately.
    scripted_player: the opponents.
    opponents: indices of the scripted players to meet.
    games: against each; even, so that both sides are played equally often.
    inference_batch: rows inferred at once.
    races: indices of types.RACES that match-ups are drawn from.
    maps: how many of the environment's maps they are drawn from.

  Raises:
    ValueError: an odd number of games.
  """
  if games <= 0 or games % 2:
    raise ValueError(f"games must be even and above 0 (half from each side), found {games}.")
  each = np.repeat(np.asarray(opponents, np.int32), games)
  config = rollouts.RolloutConfig(
    games=len(each), inference_batch=min(inference_batch, 2 * len(each)), iterations=16,
    races=races, maps=maps, restart=False)
  return Evaluator(
    # Nobody learns from these games: steps stay on the device.
    play=rollouts.make_rollouts(
      environment, policy, config, scripted_player, pack_step=lambda step: step.weight),
    config=config, opponents=each)


def evaluate(evaluator: Evaluator, params: Any, key: jax.Array, max_calls: int = 10_000,
             on_games: Callable[[int], object] | None = None) -> dict[int, Score]:
  """Plays every game to its end.

  Args:
    evaluator: from `make_evaluator`.
    params: of the policy.
    key: a random key; the same key gives the same games.
    max_calls: bound on calls of the compiled program.
    on_games: called with the number of games finished so far, after each call of the program.

  Returns:
    Score by index of the scripted player.

  Raises:
    RuntimeError: games that do not end within `max_calls`.
  """
  targets = rollouts.no_targets()
  state = evaluator.play.init(key, evaluator.opponents + 1, targets)
  count = 1 + int(evaluator.opponents.max())
  probabilities = np.full((1 + count,), 1.0 / (1 + count), np.float32)
  tally = np.zeros((count, 3), int)
  for _ in range(max_calls):
    state, _, results = evaluator.play.run(params, state, probabilities, targets)
    over = np.asarray(results.over)
    opponent = np.asarray(results.opponent)[over] - 1
    outcome = 1 - np.sign(np.asarray(results.reward)[over][:, 0]).astype(int)
    np.add.at(tally, (opponent, outcome), 1)
    if on_games is not None:
      on_games(int(tally.sum()))
    if tally.sum() == len(evaluator.opponents):
      return {int(i): Score(*map(int, tally[i])) for i in np.unique(evaluator.opponents)}
  raise RuntimeError(f"{len(evaluator.opponents) - tally.sum()} of {len(evaluator.opponents)} "
                     f"games did not end within {max_calls} calls.")
