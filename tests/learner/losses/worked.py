"""Worked trajectories, and the comparison with worked values."""

import numpy as np

ILLEGAL = -1e9  # a masked logit
# v, bootstrap, rewards, discounts
A = ([.1, .2, .3], .9, [0, 0, 1], [1, 1, 0])
B = ([0, .5, -.5], .25, [0, 0, 0], [1, 1, 1])
C = ([.5, -.2, .4, 0], .3, [.1, -.5, .2, 0], [.9, .9, .9, .9])


def arrays(v, bootstrap, r, g):
  """Returns v_tm1, v_t, r_t, discount_t."""
  v = np.array([*v, bootstrap], np.float32)
  return v[:-1], v[1:], np.array(r, np.float32), np.array(g, np.float32)


def close(actual, expected, atol=2e-6):
  np.testing.assert_allclose(actual, np.array(expected, np.float64), rtol=0, atol=atol)
