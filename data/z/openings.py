"""Variety of openings: the first entries of build orders."""

from collections import Counter

import numpy as np


def opening_entropy(build_orders: np.ndarray, length: int) -> float:
  """Computes the Shannon entropy of openings, in bits: 0 to log2(N).

  The estimate is that of the observed frequencies. It grows with N: compare equal numbers of games.

  Args:
    build_orders: [N, 20] unit types, 0 past the end.
    length: entries of an opening.
  """
  openings = Counter(tuple(order[:length]) for order in build_orders.tolist())
  share = np.array(list(openings.values())) / len(build_orders)
  return abs(float((share * np.log2(share)).sum()))
