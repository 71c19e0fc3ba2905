"""Matches of a league's evaluator."""

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from starleague import league


class PlayedGame(NamedTuple):
  """A game that has ended."""

  result: int  # WIN, DRAW or LOSS of the first player
  loops: int  # game loops
  save: Callable[[pathlib.Path], object]  # writes its replay


# Plays a game of a match, by its number; the second argument is called at every step.
PlayMatch = Callable[[int, Callable[[], object]], PlayedGame]


class Arena(Protocol):
  """Plays the matches of an evaluator."""

  suffix: str  # of replays
  final_errors: tuple[type[Exception], ...]  # after these, no other game can be played either

  def match(self, players: Sequence[league.Player], params: Sequence[Any]) -> PlayMatch:
    """Returns the match of two players; `params` of scripted ones are None.

    The sides alternate.
    """
