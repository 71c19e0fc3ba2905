"""Evaluation games: of a policy against scripted players, and of two policies."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.actor import players, rollouts
from starleague.agent.policy import Policy
from starleague.data.z.conditioning import Conditioning
from starleague.environments import base

_ITERATIONS = 16  # of a call of the compiled program


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
  """An evaluation program for any parameters: see `make_evaluator`, `make_match` and `play`."""

  program: rollouts.Rollouts
  opponents: np.ndarray  # [games] int32: opponent index of each game, as in `rollouts`


def make_evaluator(environment: base.Environment, policy: Policy,
                   scripted_player: rollouts.ScriptedPlayer, opponents: Sequence[int], games: int,
                   inference_batch: int = 128, races: tuple[int, ...] = (1,),
                   maps: int = 1) -> Evaluator:
  """Makes an evaluator against scripted players. The first call of `play` compiles it.

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
  _require_even(games)
  each = 1 + np.repeat(np.asarray(opponents, np.int32), games)
  config = _sizes(len(each), min(inference_batch, 2 * len(each)), races, maps)
  return Evaluator(
    # Nothing learns from these games: one number per step leaves the device instead of the step.
    program=rollouts.make_rollouts(
      environment, policy, config, scripted_player, pack_step=lambda step: step.weight),
    opponents=each)


def make_match(environment: base.Environment, policy: Policy, games: int,
               inference_batch: int = 128, races: tuple[int, ...] = (1,),
               maps: int = 1) -> Evaluator:
  """Makes an evaluator of two policies against each other.

  Its parameters are those of player 0 and of player 1: see `pair`.

  Args:
    environment, policy, races, maps: as for `make_evaluator`.
    inference_batch: even.
    games: even, half from each starting side.

  Raises:
    ValueError: `games` is odd or not positive.
  """
  _require_even(games)
  config = _sizes(games, min(inference_batch, 2 * games), races, maps)
  sizes = players.Sizes(slots=2, matches=1, scripts=0, chunk=config.inference_batch // 2)
  return Evaluator(
    program=players.make_rollouts(
      environment, policy, config, sizes, None, pack_step=lambda step: step.weight),
    opponents=np.zeros(games, np.int32))


def pair(home: Any, away: Any) -> players.Players:
  """Returns the two players of a match from their parameters."""
  return players.stack([home, away], np.array([[0, 1]]))


def _require_even(games: int) -> None:
  if games <= 0 or games % 2:
    raise ValueError(f"games must be even and above 0 (half from each side), found {games}.")


def _sizes(games: int, inference_batch: int, races: tuple[int, ...],
           maps: int) -> rollouts.RolloutConfig:
  return rollouts.RolloutConfig(games=games, inference_batch=inference_batch,
                                iterations=_ITERATIONS, races=races, maps=maps, restart=False)


def play(evaluator: Evaluator, params: Any, key: jax.Array, conditioning: Conditioning,
         max_calls: int = 10_000,
         on_games: Callable[[int], object] | None = None) -> rollouts.Results:
  """Plays every game to its end.

  Args:
    evaluator: from `make_evaluator` or `make_match`.
    params: parameters of the policy, or of both.
    key: random key; equal keys give equal games.
    conditioning: of the policies; `conditioning.unconditional` for games without z.
    max_calls: most calls of the compiled program.
    on_games: called after each call of the program with the number of games finished so far.

  Returns:
    Results of N games as numpy arrays [N, ...], in the order in which they ended.

  Raises:
    RuntimeError: games remain unfinished after `max_calls` calls.
  """
  state = evaluator.program.init(key, evaluator.opponents, conditioning)
  indices = 1 + int(evaluator.opponents.max())
  probabilities = np.full(indices, 1.0 / indices, np.float32)  # not used: no game is replaced
  total, ended = len(evaluator.opponents), 0
  finished: list[rollouts.Results] = []
  for _ in range(max_calls):
    state, _, results = evaluator.program.run(params, state, probabilities, conditioning)
    over = np.asarray(results.over)
    if over.any():
      finished.append(jax.tree.map(lambda x, over=over: np.asarray(x)[over], results))
    ended += int(over.sum())
    if on_games is not None:
      on_games(ended)
    if ended == total:
      return jax.tree.map(lambda *x: np.concatenate(x), *finished)
  raise RuntimeError(f"{total - ended} of {total} games did not end within {max_calls} calls.")


def count(results: rollouts.Results) -> dict[int, Counts]:
  """Returns the results of player 0 by index of the scripted player.

  Args:
    results: of games [N], as from `play`.
  """
  found = {}
  for opponent in np.unique(results.opponent):
    signs = np.sign(results.reward[results.opponent == opponent, 0])
    found[int(opponent) - 1] = Counts(*(int((signs == sign).sum()) for sign in (1, 0, -1)))
  return found


def count_by_name(results: rollouts.Results, opponents: Sequence[str]) -> dict[str, Counts]:
  """Returns the results of player 0 by name of the scripted player; see `count`."""
  return {opponents[index]: counts for index, counts in count(results).items()}


def match_ups(results: rollouts.Results) -> dict[tuple[int, int], rollouts.Results]:
  """Returns the games of each match-up: races of player 0 and player 1, indices of types.RACES.

  Args:
    results: of games [N], as from `play`.
  """
  found = {}
  for home, away in np.unique(results.race, axis=0):
    chosen = np.flatnonzero((results.race == (home, away)).all(axis=1))
    found[int(home), int(away)] = jax.tree.map(lambda x, chosen=chosen: x[chosen], results)
  return found
