"""Confidence intervals of scores, for arrays of scores."""

import numpy as np


def wilson_bounds(points: np.ndarray, games: np.ndarray,
                  z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
  """Computes Wilson intervals of rates (Wilson 1927): 95% for the default z.

  Args:
    points: [...] wins; for scores, draws count half.
    games: [...] games, at least `points`.
    z: quantile of the normal distribution.

  Returns:
    (low, high), [...] each within [0, 1]; 0 and 1 without games.
  """
  played = games > 0
  total = np.where(played, games, 1.0)
  rate = points / total
  centre = rate + z * z / (2 * total)
  spread = z * np.sqrt((rate * (1 - rate) + z * z / (4 * total)) / total)
  scale = 1 + z * z / total
  # Rounding must not exclude the rate itself if all or no games are won.
  low = np.clip((centre - spread) / scale, 0.0, rate)
  high = np.clip((centre + spread) / scale, rate, 1.0)
  return np.where(played, low, 0.0), np.where(played, high, 1.0)
