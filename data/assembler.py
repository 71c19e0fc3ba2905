"""Cuts the steps of interleaved games into overlapping trajectories.

The assembler uses numpy only. It keeps the last T + 1 steps of each row (one player of a game) in a
ring, already packed: a due trajectory is exactly the content of the ring. Trajectories of a game
start every T steps: consecutive ones share the bootstrap step, and each transition is trained on.
The last trajectory is moved back to end with the game.

Rows may also be continuous: games follow each other in a row, and trajectories cross their ends.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from starleague.data import wire
from starleague.data.records import Records


class Cut(NamedTuple):
  """A complete trajectory of a row."""

  row: int
  at: int  # flat index of the record that completed it
  packed: wire.Packed


class Assembler:
  """Cuts trajectories out of interleaved games."""

  def __init__(self, config: wire.Form, unroll_length: int, num_rows: int, *,
               period: int | None = None, continuous: bool = False):
    """Allocates the rings.

    Args:
      config: form of the steps.
      unroll_length: T.
      num_rows: rows are 0 to num_rows - 1.
      period: steps between the starts of consecutive trajectories of a row; None: T. Trajectories
        with a shorter period overlap (R2D2, Kapturowski et al. 2019).
      continuous: rows do not end. A step that begins a game follows the last action of the game
        before it, and has that action's reward and discount, which is 0.

    Raises:
      ValueError: `period` is not in 1 to T; the steps of a system other than AlphaStar's agent are
        not continuous.
    """
    if period is not None and not 1 <= period <= unroll_length:
      raise ValueError(f"period: expected 1 to {unroll_length}, the unroll length, found {period}.")
    if not continuous and isinstance(config, wire.StepFormat):
      raise ValueError("steps of a StepFormat have no terminal step: make the rows continuous.")
    spec = wire.packed_spec(config, unroll_length)
    size = unroll_length + 1
    self._unroll_length, self._config = unroll_length, config
    self._period, self._continuous = period or unroll_length, continuous
    self._ring = wire.Columns(*[
      np.zeros((num_rows, size, x.shape[-1]), x.dtype) for x in spec[:-1]])
    self._state = np.zeros((num_rows, size, *spec.state.shape), spec.state.dtype)
    # Steps of the row's game so far; -1: no game.
    self._length = np.full((num_rows,), 0 if continuous else -1)
    self._fields = wire.layout(config).fields

  def add(self, records: Records, record: np.ndarray | None = None) -> list[Cut]:
    """Adds steps and returns the trajectories that they complete, in order for each row.

    Steps of a row before its first `first` are skipped. If a row's game is abandoned (another
    begins without a last step), its steps since the last trajectory are lost. In continuous rows
    `first` and `last` are ignored.

    Args:
      records: numpy or JAX arrays.
      record: [N, C] bool: which steps to add; None: all that have a row.

    Returns:
      Trajectories. Rewards and discounts are moved to the step whose action earned them. The last
      step of a trajectory inside a game has reward 0 and discount 1. A terminal step has no
      action, reward 0, discount 0 and weight 0, and pads a game shorter than T.

    Raises:
      ValueError: a leaf of the steps does not fit the AgentConfig; names it.
    """
    row = np.asarray(records.row)
    taken = row >= 0 if record is None else (row >= 0) & np.asarray(record)
    step = records.step
    if not isinstance(step, wire.Columns):
      step = jax.tree.map(np.asarray, step)
      wire.check_steps(step, self._config)
      step = wire.pack_steps(step)
    flat = wire.Columns(*[flat_rows(x) for x in step])
    state = flat_rows(wire.pack_state(jax.tree.map(np.asarray, records.core_state), row.ndim))
    row = row.reshape(-1)
    first, last = np.zeros((2, *row.shape), bool) if self._continuous else (
      np.asarray(records.first).reshape(-1), np.asarray(records.last).reshape(-1))
    cuts: list[Cut] = []
    for chosen in _rounds(row, np.flatnonzero(taken.reshape(-1))):
      self._length[row[chosen[first[chosen]]]] = 0
      chosen = chosen[self._length[row[chosen]] >= 0]
      self._put(flat, state, row[chosen], chosen, last[chosen])
      cuts += self._cut(row[chosen], chosen, last[chosen])
    return cuts

  def restart(self, rows: Sequence[int]) -> None:
    """Drops the steps of continuous rows since their last trajectory; the next one begins a row."""
    assert self._continuous, "the rows of games restart with `first`"
    self._length[list(rows)] = 0

  def _put(self, flat: wire.Columns, state: np.ndarray, rows: np.ndarray, chosen: np.ndarray,
           last: np.ndarray) -> None:
    """Writes one step of each of several distinct rows into their rings."""
    size = self._unroll_length + 1
    reward, discount = self._fields["reward"].slice, self._fields["discount"].slice
    length = self._length[rows]
    floats = self._ring.float32
    # Reward and discount of a step belong to the action before it. A game that a time limit ends
    # is over too.
    later = length > 0
    before, earlier_rows = (length[later] - 1) % size, rows[later]
    floats[earlier_rows, before, reward] = flat.float32[chosen[later], reward]
    floats[earlier_rows, before, discount] = np.where(
      last[later, None], 0, flat.float32[chosen[later], discount])

    at = length % size
    for ring, column in zip(self._ring, flat, strict=True):
      ring[rows, at] = column[chosen]
    self._state[rows, at] = state[chosen]
    floats[rows, at, reward] = 0
    floats[rows, at, discount] = 1
    if not isinstance(self._config, wire.StepFormat) and last.any():
      wire.make_terminal(self._ring, (rows[last], at[last]), self._config)
    self._length[rows] = length + 1

  def _cut(self, rows: np.ndarray, chosen: np.ndarray, last: np.ndarray) -> list[Cut]:
    """Returns the trajectories that are complete with the newest steps of these rows."""
    newest = self._length[rows] - 1
    complete = newest - self._unroll_length
    due = (newest > 0) & ((complete >= 0) & (complete % self._period == 0) | last)
    cuts = [Cut(int(row), int(at), self._read(row))
            for row, at in zip(rows[due], chosen[due], strict=True)]
    self._length[rows[last]] = -1
    return cuts

  def _read(self, row: int) -> wire.Packed:
    """Returns a ring from its oldest step, padded with the last step of a shorter game."""
    size, length = self._unroll_length + 1, self._length[row]
    oldest = max(0, length - size)
    order = np.minimum(np.arange(oldest, oldest + size), length - 1) % size
    return wire.seal(wire.Columns(*[ring[row, order] for ring in self._ring]),
                     self._state[row, oldest % size].copy())


def flat_rows(x: jax.Array | np.ndarray) -> np.ndarray:
  """Returns records [N, C, width] as rows [N * C, width]."""
  x = np.asarray(x)
  return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _rounds(row: np.ndarray, index: np.ndarray) -> list[np.ndarray]:
  """Splits `index` into rounds without repeated rows, in order for each row."""
  if not index.size:
    return []
  order = index[np.argsort(row[index], kind="stable")]
  sorted_rows = row[order]
  starts = np.flatnonzero(np.r_[True, sorted_rows[1:] != sorted_rows[:-1]])
  lengths = np.diff(np.r_[starts, order.size])
  rank = np.arange(order.size) - np.repeat(starts, lengths)
  by_rank = order[np.argsort(rank, kind="stable")]
  return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])
