"""Who is good: Elo, ladder ratings, Nash equilibria and relative population performance."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize, special

ELO_SCALE = 400.0
# Two players' performances differ with twice the variance of one, and each rating is uncertain by
# a tenth of the scale (Vinyals et al. 2019, Methods): 568.5 points.
LADDER_SCALE = ELO_SCALE * math.sqrt(2 + 0.1 ** 2 + 0.1 ** 2)
_ROUNDING = 1e-9


def elo_expected_score(difference, base: float = math.e):
  """The share of points a player is expected to take, by its rating's lead over the opponent's.

  `1 / (1 + base^(-difference / 400))`. Vinyals et al. 2019 write it with e; the usual one has 10,
  and is not the same curve: ratings of one must not be compared with those of the other.

  Args:
    difference: [...] own rating minus the opponent's.
    base: e or 10.

  Returns:
    [...] in [0, 1].
  """
  return special.expit(np.asarray(difference, np.float64) * (math.log(base) / ELO_SCALE))[()]


def elo_update(rating: float, opponent_rating: float, score: float, k: float = 32.0,
               base: float = math.e) -> tuple[float, float]:
  """Both ratings after a game.

  Args:
    rating: of the player.
    opponent_rating: of its opponent.
    score: what the player got: 1 for a win, 0.5 for a draw, 0 for a loss.
    k: how far a surprise moves the ratings.
    base: see elo_expected_score.

  Returns:
    (rating, opponent_rating); their sum is kept.
  """
  if not 0 <= score <= 1:
    raise ValueError(f"score is {score}, expected a number in [0, 1].")
  change = k * (score - float(elo_expected_score(rating - opponent_rating, base)))
  return rating + change, opponent_rating - change


def elo_ratings(scores: np.ndarray, games: np.ndarray, anchor: int = 0, base: float = math.e,
                prior_games: float = 1.0, iterations: int = 100) -> np.ndarray:
  """The ratings under which the results of a whole league are the likeliest.

  Args:
    scores: [N, N] points of row against column: wins and half the draws.
    games: [N, N] games of row against column, symmetric; the diagonal does not count.
    anchor: whose rating is 0; the published ratings take the built-in elite bot.
    base: see elo_expected_score.
    prior_games: drawn games that each player is thought to have played against one of rating
      0 besides: without them, one who only wins has no finite rating.
    iterations: at most so many Newton steps.

  Returns:
    [N] float64.
  """
  scores, games = np.array(scores, np.float64), np.array(games, np.float64)
  number = len(games)
  if games.shape != (number, number) or scores.shape != games.shape:
    raise ValueError(f"scores {scores.shape} and games {games.shape} must both be [N, N].")
  np.fill_diagonal(games, 0.0)
  np.fill_diagonal(scores, 0.0)
  if not np.allclose(games, games.T) or not np.allclose(scores + scores.T, games):
    raise ValueError("games must be symmetric, and scores and their transpose must add up to "
                     "games: give both directions of each pair.")
  if prior_games <= 0:
    raise ValueError(f"prior_games is {prior_games}, expected a positive number.")

  def objective(strength):
    """Log-likelihood, its gradient and the negated Hessian."""
    lead = strength[:, None] - strength
    value = (scores * special.log_expit(lead)).sum() + prior_games * 0.5 * (
      special.log_expit(strength) + special.log_expit(-strength)).sum()
    expected, alone = special.expit(lead), special.expit(strength)
    gradient = (scores - games * expected).sum(1) + prior_games * (0.5 - alone)
    curvature = games * expected * (1 - expected)
    hessian = np.diag(curvature.sum(1) + prior_games * alone * (1 - alone)) - curvature
    return value, gradient, hessian

  strength = np.zeros(number)  # in units of 400 / log(base)
  value, gradient, hessian = objective(strength)
  for _ in range(iterations):
    step = np.linalg.solve(hessian, gradient)
    if np.abs(step).max() < _ROUNDING:
      break
    while True:  # concave, so a Newton step that is short enough never makes it worse
      candidate = objective(strength + step)
      if candidate[0] >= value - _ROUNDING * abs(value):
        break
      step /= 2
    strength = strength + step
    value, gradient, hessian = candidate
  return (strength - strength[anchor]) * ELO_SCALE / math.log(base)


def ladder_expected_score(difference, scale: float = LADDER_SCALE):
  """The ladder's win probability: Phi(difference / scale) (Vinyals et al. 2019, Methods).

  Args:
    difference: [...] own rating minus the opponent's.
    scale: the ladder's, 568.5; 400 gives what Elo in the paper's form is said to approximate.

  Returns:
    [...] in [0, 1].
  """
  return special.ndtr(np.asarray(difference, np.float64) / scale)[()]


def ladder_rating(opponent_ratings: Sequence[float], wins: Sequence[bool],
                  bounds: tuple[float, float] = (0.0, 10_000.0),
                  scale: float = LADDER_SCALE) -> float:
  """The rating under which these games are the likeliest, all alike likely before.

  Args:
    opponent_ratings: [N] of each game's opponent.
    wins: [N] whether it was won.
    bounds: of the rating; one who wins or loses every game gets the upper or lower.
    scale: see ladder_expected_score.
  """
  opponents = np.asarray(opponent_ratings, np.float64)
  signs = np.where(np.asarray(wins, bool), 1.0, -1.0)
  if opponents.shape != signs.shape or opponents.ndim != 1 or not opponents.size:
    raise ValueError(f"opponent_ratings {opponents.shape} and wins {signs.shape} must both be [N] "
                     "with N > 0.")

  def slope(rating):
    lead = signs * (rating - opponents) / scale
    # The derivative of log Phi, as a difference of logarithms: Phi itself underflows far away.
    return (signs * np.exp(-0.5 * lead * lead - special.log_ndtr(lead))).sum()

  low, high = bounds  # the logarithm of the likelihood is concave: its slope falls
  if slope(low) <= 0:
    return float(low)
  if slope(high) >= 0:
    return float(high)
  return float(optimize.brentq(slope, low, high, xtol=1e-9))


def nash(payoff_matrix: np.ndarray) -> np.ndarray:
  """A strategy that does best against its own best answer, in a zero-sum game.

  Where there are several, one of them; what they are worth is the same.

  Args:
    payoff_matrix: [N, M] what the row player gets (win rates do, as half of them is a constant).

  Returns:
    [N] float64 probabilities of the row player's choices.

  Raises:
    ValueError: for a matrix that is empty or not finite.
  """
  matrix = np.asarray(payoff_matrix, np.float64)
  if matrix.ndim != 2 or not matrix.size:
    raise ValueError(f"payoff_matrix has shape {matrix.shape}, expected [N, M], not empty.")
  if not np.isfinite(matrix).all():
    raise ValueError(f"payoff_matrix has {(~np.isfinite(matrix)).sum()} entries that are not "
                     "finite.")
  rows, columns = matrix.shape
  # Linear programming: the largest v such that every answer leaves the row player at least v.
  solution = optimize.linprog(
    c=np.concatenate([np.zeros(rows), [-1.0]]),
    A_ub=np.concatenate([-matrix.T, np.ones((columns, 1))], axis=1), b_ub=np.zeros(columns),
    A_eq=np.concatenate([np.ones(rows), [0.0]])[None], b_eq=[1.0],
    bounds=[(0, None)] * rows + [(None, None)], method="highs")
  if not solution.success:
    raise RuntimeError(f"The linear program of a {rows} x {columns} game found no equilibrium: "
                       f"{solution.message}")
  strategy = np.maximum(solution.x[:rows], 0.0)
  return strategy / strategy.sum()


def relative_population_performance(payoff_matrix: np.ndarray) -> float:
  """How well one population does against another when each plays its best mixture.

  Nash(P_AB)^T P_AB Nash(P_BA) (Balduzzi et al. 2019; Vinyals et al. 2019, Methods).

  Args:
    payoff_matrix: [N, M] win rates of the members of A against those of B.

  Returns:
    A's win rate; above 0.5 where A is the better population.
  """
  matrix = np.asarray(payoff_matrix, np.float64)
  return float(nash(matrix) @ matrix @ nash(-matrix.T))
