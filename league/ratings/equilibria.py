"""Nash equilibria of payoff matrices, Nash averaging, relative population performance."""

from typing import NamedTuple

import numpy as np

_BARRIERS = 10.0 ** -np.arange(1, 13)  # weights of the logarithmic barrier, in turn
_NEWTON_STEPS = 60


def nash(payoff_matrix: np.ndarray) -> np.ndarray:
  """Computes the row player's Nash equilibrium strategy of a zero-sum game.

  If there are several equilibria, the result is one of them; all have the same value.

  Args:
    payoff_matrix: [N, M] payoff of the row player; win rates work, as the constant 1/2 that makes
      them zero-sum changes no strategy.

  Returns:
    [N] float64 probabilities of the row player's choices.

  Raises:
    ValueError: the matrix is empty or not finite.
  """
  return _solve(_checked(payoff_matrix))[0]


def _solve(matrix: np.ndarray) -> tuple[np.ndarray, float]:
  """Returns the row player's equilibrium strategy [N] and the value of a game [N, M]."""
  from scipy import optimize
  rows, columns = matrix.shape
  # Linear program: the largest v such that the row player gets at least v against every column.
  solution = optimize.linprog(
    c=np.concatenate([np.zeros(rows), [-1.0]]),
    A_ub=np.concatenate([-matrix.T, np.ones((columns, 1))], axis=1), b_ub=np.zeros(columns),
    A_eq=np.concatenate([np.ones(rows), [0.0]])[None], b_eq=[1.0],
    bounds=[(0, None)] * rows + [(None, None)], method="highs")
  if not solution.success:
    raise RuntimeError(f"The linear program of a {rows} x {columns} game found no equilibrium: "
                       f"{solution.message}")
  strategy = np.maximum(solution.x[:rows], 0.0)
  return strategy / strategy.sum(), float(-solution.fun)


def _checked(payoff_matrix: np.ndarray) -> np.ndarray:
  """Returns the matrix as float64; raises ValueError if it is empty or not finite."""
  matrix = np.asarray(payoff_matrix, np.float64)
  if matrix.ndim != 2 or not matrix.size:
    raise ValueError(f"payoff_matrix has shape {matrix.shape}, expected [N, M], not empty.")
  if not np.isfinite(matrix).all():
    raise ValueError(f"payoff_matrix has {(~np.isfinite(matrix)).sum()} entries that are not "
                     "finite.")
  return matrix


def relative_population_performance(payoff_matrix: np.ndarray) -> float:
  """Computes the value of the game between two populations, each at its Nash equilibrium.

  Nash(P_AB)^T P_AB Nash(P_BA) (Balduzzi et al. 2019; Vinyals et al. 2019, Methods). All equilibria
  have this value. `posterior_estimate` gives its interval.

  Args:
    payoff_matrix: [N, M] win rates of the members of A against those of B.

  Returns:
    The win rate of A; above 0.5 if A is the better population.
  """
  return _solve(_checked(payoff_matrix))[1]


class NashAverage(NamedTuple):
  """A Nash average.

  Attributes:
    strategy: [N] probabilities of the maximum-entropy Nash equilibrium.
    skills: [N] score of each player against that mixture, minus 1/2. 0 for players in the
      equilibrium; no player has more.
  """

  strategy: np.ndarray
  skills: np.ndarray


def nash_averaging(payoff_matrix: np.ndarray) -> NashAverage:
  """Computes the Nash average of a population (Balduzzi et al. 2018, "Re-evaluating evaluation").

  Of all Nash equilibria of the population against itself, the one of maximum entropy is unique.
  Copies of a player share its probability, and change no other player's skill. The payoffs are
  scores; the paper's logits of win rates would be infinite at scores of 0 and 1.
  `posterior_estimate` gives intervals.

  Args:
    payoff_matrix: [N, N] score of row against column; scores of both directions add up to 1.

  Raises:
    ValueError: the matrix is empty, not finite or not square, or scores do not add up to 1.
  """
  scores = _checked(payoff_matrix)
  if scores.shape[0] != scores.shape[1] or not np.allclose(scores + scores.T, 1, atol=1e-6):
    raise ValueError(f"payoff_matrix has shape {scores.shape}, expected [N, N] in which the scores "
                     "of both directions of each pair add up to 1.")
  advantage = (scores - scores.T) / 2
  interior, support = _interior_equilibrium(advantage)
  inside = interior[support] / interior[support].sum()
  # All equilibria: equal payoffs within the support, none above them outside of it.
  strategy = np.zeros(len(scores))
  strategy[support] = _maximum_entropy(
    inside, advantage[np.ix_(support, support)], advantage[np.ix_(~support, support)])
  return NashAverage(strategy, advantage @ strategy)


def _interior_equilibrium(advantage: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Computes a strictly complementary equilibrium, up to scale (Goldman and Tucker 1956).

  Args:
    advantage: [N, N] antisymmetric payoffs; the value of the game is 0.

  Returns:
    [N] the equilibrium, and [N] bool: the players with positive probability in any equilibrium.
    All others score less than 0 against this one.
  """
  from scipy import optimize
  number = len(advantage)
  eye = np.eye(number)
  # Multiples q of an equilibrium: q >= 0 and advantage @ q <= 0. For each player one of the two
  # may be strict: maximise the sum of min(1, q - advantage @ q).
  solution = optimize.linprog(
    c=np.concatenate([np.zeros(number), -np.ones(number)]),
    A_ub=np.block([[advantage, 0 * eye], [advantage - eye, eye]]), b_ub=np.zeros(2 * number),
    bounds=[(0, None)] * number + [(0, 1)] * number, method="highs")
  if not solution.success:
    raise RuntimeError(f"The linear program of a game of {number} players found no equilibrium: "
                       f"{solution.message}")
  multiple = solution.x[:number]
  return multiple, multiple > -advantage @ multiple


def _maximum_entropy(start: np.ndarray, equal: np.ndarray, below: np.ndarray) -> np.ndarray:
  """Maximises the entropy of a strategy p, subject to equal @ p = 0 and below @ p <= 0.

  Newton's method with a logarithmic barrier, within the null space of the equalities.

  Args:
    start: [S] strategy that meets the equalities, and the inequalities strictly.
    equal: [S, S].
    below: [R, S].
  """
  from scipy import linalg
  directions = linalg.null_space(np.vstack([equal, np.ones(len(start))]), rcond=1e-9)
  strategy = start
  if not directions.shape[1]:
    return strategy  # the only equilibrium
  for barrier in _BARRIERS if len(below) else (0.0,):
    for _ in range(_NEWTON_STEPS):
      slack = -below @ strategy
      gradient = directions.T @ (-np.log(strategy) - barrier * (1 / slack) @ below)
      scaled = (below / slack[:, None]) @ directions
      curvature = (directions.T / strategy) @ directions + barrier * scaled.T @ scaled
      step = directions @ np.linalg.solve(curvature, gradient)
      falls = np.concatenate([step / strategy, -below @ step / slack])  # relative
      strategy = strategy + step * min(1.0, 0.9 / max(-falls.min(), 1e-300))
      if np.abs(falls).max() < 1e-10:
        break
  return strategy / strategy.sum()
