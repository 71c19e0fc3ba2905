"""Wilson intervals of arrays of scores."""

import numpy as np

from starleague.league import intervals


def test_wilson_bounds():
  """Newcombe 1998: 81 of 263 gives 0.2553 to 0.3662; 0 of 20 and 1 of 29; none without games."""
  low, high = intervals.wilson_bounds(np.array([81, 0, 1, 0.]), np.array([263, 20, 29, 0.]))
  np.testing.assert_allclose(low, [.2553, 0, .0061, 0], atol=5e-5)
  np.testing.assert_allclose(high, [.3662, .1611, .1718, 1], atol=5e-5)


def test_mirrored_scores_have_mirrored_bounds():
  points = np.linspace(0, 7, 15)
  low, high = intervals.wilson_bounds(points, np.full(15, 7.))
  np.testing.assert_allclose(low, 1 - high[::-1], atol=1e-15)
  assert (low <= points / 7).all() and (points / 7 <= high).all()
