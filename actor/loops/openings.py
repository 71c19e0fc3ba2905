"""Openings of a league's players: the first entries of the build orders of their latest games."""

import collections
import pathlib
import time
from collections.abc import Callable

import numpy as np

from starleague.agent import vocabulary
from starleague.common import results

GAMES = 100  # latest games that shares count
ENTRIES = 3  # of a build order that make an opening
NAMED = 6  # most frequent openings; the rest are OTHERS
OTHERS, NOTHING = "others", "nothing built"
INTERVAL_S = 30.0


def name_of(build_order: np.ndarray) -> str:
  """Returns the name of an opening, as "Barracks Marine Marine".

  Args:
    build_order: [20] indices of unit types, 0 where there is none.
  """
  first = build_order[build_order != 0][:ENTRIES]
  return " ".join(vocabulary.UNIT_TYPES.names[index] for index in first) or NOTHING


class Openings:
  """Adds the shares of a player's openings to its results file, at most every `INTERVAL_S`.

  The rows of one report have the same time. An opening that the newest report lacks has vanished.
  """

  def __init__(self, folder: pathlib.Path, origin: float, actor: str,
               clock: Callable[[], float] = time.time):
    """Starts without games.

    Args:
      folder: of the player.
      origin: start of the run, in Unix seconds.
      actor: name of the actor, which is part of the tags.
      clock: in Unix seconds.
    """
    self._folder, self._origin, self._clock = folder, origin, clock
    self._tag = f"opening/{actor}/"
    self._latest: collections.deque[str] = collections.deque(maxlen=GAMES)
    self._written: set[str] = set()
    self._since = clock()

  def add(self, build_orders: np.ndarray) -> None:
    """Counts finished games by their build orders, [N, 20]."""
    self._latest.extend(map(name_of, build_orders))
    now = self._clock()
    if not self._latest or now - self._since < INTERVAL_S:
      return
    self._since = now
    shares = self.shares()
    self._written |= shares.keys()
    self._folder.mkdir(parents=True, exist_ok=True)
    # Curves of openings that have vanished fall to 0.
    results.append(self._folder / results.FILE_NAME, [
      results.Row(now - self._origin, 0, self._tag + name, shares.get(name, 0.0))
      for name in sorted(self._written)])

  def shares(self) -> dict[str, float]:
    """Returns the share of each opening among the latest games."""
    counts = collections.Counter(self._latest)
    named = dict(counts.most_common(NAMED))
    others = len(self._latest) - sum(named.values())
    return {name: count / len(self._latest)
            for name, count in {**named, **({OTHERS: others} if others else {})}.items()}
