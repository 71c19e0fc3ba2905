"""Results of one agent's games: opponents and match-ups by their scores, scores in training."""

import pathlib
import time
import uuid
from collections.abc import Sequence

import numpy as np

from starleague import league
from starleague.actor import rollouts
from starleague.actor.loops import counts
from starleague.actor.loops.options import ActorOptions
from starleague.actor.parts import Parts
from starleague.common import results, run_files
from starleague.league import payoff

MATCH_UP_DECAY = 0.99  # of the counts of a match-up and an opponent, at each of their games
WINDOW_S = 60.0  # window of the win rates shown while training


def _shares(scores: np.ndarray, weighting: str, uniform: float) -> np.ndarray:
  """Returns the weighted shares of [...] scores, of which `uniform` is split evenly: [...]."""
  weighted = league.pfsp(scores.ravel(), weighting).reshape(scores.shape)
  return uniform / scores.size + (1.0 - uniform) * weighted


def opponent_probabilities(win_rates: np.ndarray, self_play: float, weighting: str,
                           uniform: float) -> np.ndarray:
  """Returns the probability of each opponent of the next game.

  Args:
    win_rates: [scripted players], of the agent against each.
    self_play: share of games against the current agent.
    weighting: of prioritised fictitious self-play (`starleague.league.pfsp`).
    uniform: share of the other games that is split evenly between the scripted players.

  Returns:
    [1 + scripted players] float32: self-play, then each scripted player.
  """
  scripted = _shares(win_rates, weighting, uniform)
  return np.concatenate([[self_play], (1.0 - self_play) * scripted]).astype(np.float32)


def game_results(batch: rollouts.Results, names: Sequence[str],
                 now: float) -> list[payoff.GameResult]:
  """Returns the payoff results of finished games against scripted players, without self-play."""
  over = np.asarray(batch.over)
  opponents = np.asarray(batch.opponent)[over]
  outcomes = np.sign(np.asarray(batch.reward)[over][:, 0]).astype(int)
  return [
    payoff.GameResult(id=uuid.uuid4().hex, home=run_files.PLAYER, away=names[opponent - 1],
                  result=int(outcome), time=now)
    for opponent, outcome in zip(opponents, outcomes, strict=True)
    if opponent != rollouts.SELF_PLAY]


class MatchUpScores:
  """Scores of a match-up against a scripted player, over about the last hundred of its games.

  An actor keeps them to itself: a restarted one begins with equal scores.
  """

  def __init__(self, races: tuple[int, ...], opponents: int):
    """Starts without games.

    Args:
      races: of both players, indices of types.RACES.
      opponents: number of scripted players.
    """
    self._races = np.asarray(races)
    self._games = np.zeros((opponents, len(races), len(races)))
    self._won = np.zeros((opponents, len(races), len(races)))  # a draw is half a win

  def add(self, batch: rollouts.Results) -> None:
    """Counts finished games against scripted players; those in self-play are left out."""
    scripted = np.asarray(batch.over) & (np.asarray(batch.opponent) > rollouts.SELF_PLAY)
    pairs = np.asarray(batch.race)[scripted]
    scores = (1 + np.sign(np.asarray(batch.reward)[scripted][:, 0])) / 2
    for opponent, pair, score in zip(
        np.asarray(batch.opponent)[scripted] - 1, pairs, scores, strict=True):
      cell = opponent, *(int(np.flatnonzero(self._races == race)[0]) for race in pair)
      self._games[cell] = MATCH_UP_DECAY * self._games[cell] + 1
      self._won[cell] = MATCH_UP_DECAY * self._won[cell] + score

  @property
  def scores(self) -> np.ndarray:
    """[opponents, R, R] float64 in (0, 1), agent's race first; the prior is a win and a loss."""
    return (self._won + 1) / (self._games + 2)

  def probabilities(self, weighting: str, uniform: float) -> np.ndarray:
    """Returns the probability of each match-up, by the agent's opponent.

    Args:
      weighting: of a match-up by its score; see `starleague.league.pfsp`.
      uniform: share that is split evenly between the match-ups.

    Returns:
      [1 + opponents, R, R] float32, agent's race first; row 0 is self-play, with equal
      probabilities.
    """
    equal = np.full(self._games.shape[1:], 1 / len(self._races)**2)
    return np.stack([equal, *(
      _shares(scores, weighting, uniform) for scores in self.scores)]).astype(np.float32)


class Reporter:
  """Reports game results to the league, and speed to the run's results file."""

  def __init__(self, run_dir: pathlib.Path, parts: Parts, origin: float):
    """Opens the league's file.

    Args:
      run_dir: the run's directory.
      parts: the agent and its games.
      origin: start of the run, in Unix seconds.
    """
    self._payoff = league.Payoff(run_dir / run_files.LEAGUE)
    self._path, self._origin = run_dir / results.FILE_NAME, origin
    self._opponents = parts.opponents
    self._counts = counts.Counts(run_dir, origin)
    self._match_ups = MatchUpScores(parts.races, len(parts.opponents))
    self._results: list[payoff.GameResult] = []

  def opponent_probabilities(self, options: ActorOptions) -> np.ndarray:
    """Returns the probability of each opponent of the next game, by the league's payoff.

    Args:
      options: of the actor.
    """
    return opponent_probabilities(self._payoff.scores(run_files.PLAYER, self._opponents),
                                  options.self_play, options.matchmaking, options.uniform)

  def match_up_probabilities(self, options: ActorOptions) -> np.ndarray:
    """Returns the probability of each match-up by the agent's opponent.

    Args:
      options: of the actor.

    Returns:
      [1 + scripted players, R, R] float32; see `MatchUpScores.probabilities`.
    """
    return self._match_ups.probabilities(options.race_matchmaking, options.uniform)

  def add(self, steps: int, batch: rollouts.Results, update: int) -> None:
    """Counts the steps and games of one rollout call; reports every few seconds."""
    self._match_ups.add(batch)
    self._results += game_results(batch, self._opponents, time.time())
    reported = self._counts.add(steps, int(np.asarray(batch.over).sum()), update)
    if reported is not None:
      self._report(reported, update)

  def _report(self, now: float, update: int) -> None:
    self._payoff.record_many(self._results)
    seconds, rows = now - self._origin, []
    for opponent in self._opponents:
      found = self._payoff.interval(run_files.PLAYER, opponent, since=now - WINDOW_S)
      if found.games:
        rows += [results.Row(seconds, update, f"score/train/{opponent}", found.score,
                             found.low, found.high),
                 results.Row(seconds, update, f"games/{opponent}", found.games)]
    results.append(self._path, rows)
    self._results = []
