"""The predictions of a game's decisions, computed for many decisions at once.

A decision's record is kept while the game goes on. `BATCH` of them are completed by one program,
which costs a decision less than a tenth of completing it alone; a batch that is not full is
padded, so that the program compiles once.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from starleague.agent.predictions import Predictions
from starleague.environments.skirmish.games.replay_format import Predicted

BATCH = 64  # records of one call of `complete`

# [BATCH, N] uint8 -> Predictions [BATCH, ...]
Complete = Callable[[np.ndarray], Predictions]


class Recorded(NamedTuple):
  """A decision that has predictions."""

  record: np.ndarray  # [N] uint8, see `agent.predictions`
  complete: Complete  # one function for all decisions of a player in a game


class PredictionLog:
  """The predictions of both players in one game."""

  def __init__(self) -> None:
    """Starts without any."""
    self._waiting: dict[int, list[tuple[int, Recorded]]] = {0: [], 1: []}  # by player
    self._completed: list[Predicted] = []

  def add(self, action: int, player: int, recorded: Recorded) -> None:
    """Adds those of a decision.

    Args:
      action: its index among the actions of the game.
      player: that decided, 0 or 1.
      recorded: its record.
    """
    waiting = self._waiting[player]
    waiting.append((action, recorded))
    if len(waiting) == BATCH:  # bounds the memory of records, which hold logits
      self._completed.append(_complete(waiting))
      waiting.clear()

  def predicted(self) -> Predicted | None:
    """Returns the predictions so far, in the order of the actions; None if there are none."""
    parts = [*self._completed, *map(_complete, filter(None, self._waiting.values()))]
    if not parts:
      return None
    joined = jax.tree.map(lambda *values: np.concatenate(values), *parts)
    order = np.argsort(joined.action)
    return jax.tree.map(lambda values: values[order], joined)


def _complete(waiting: list[tuple[int, Recorded]]) -> Predicted:
  """Computes the predictions of at most BATCH decisions of a player."""
  actions, recorded = zip(*waiting, strict=True)
  records = np.zeros((BATCH, recorded[0].record.size), np.uint8)
  for row, each in zip(records, recorded, strict=False):
    row[:] = each.record
  made = jax.device_get(recorded[0].complete(records))
  return Predicted(np.array(actions, np.int32),
                   jax.tree.map(lambda values: values[:len(actions)], made))
