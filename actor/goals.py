"""Goals of exploiters: a z for each game, drawn by the scores of games for similar z.

An exploiter with goals plays for the z of its games, as main agents do. It draws those z more often
with which it beats its opponents. Source of the idea: the goal-conditioned exploiters of ROA-Star
(Huang et al. 2023, "A robust and opponent-aware league training method for StarCraft II").
"""

import hashlib
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from starleague.actor import rollouts
from starleague.agent import types
from starleague.common import arrays, files
from starleague.data.z.conditioning import UNCONDITIONAL, Conditioning

FOLDER = "goals"  # in a player's folder: a file for each actor
INTERVAL_S = 20.0  # between two saves
TEMPERATURE = 0.1  # of scores: a z that scores 0.1 more is drawn e times as often
WIDTH = 3.0  # exchanged entries of the build order after which a game counts 1 / e
PRIOR = 2.0  # games with the player's mean score that each z begins with
_MOST_Z = 2 ** 24  # of a store
_FILE = {"digest": arrays.Spec(arrays.TEXT, ()), "games": arrays.Spec(np.int64, ("z",), low=0),
         "points": arrays.Spec(np.float64, ("z",), low=0.0)}


class Played(NamedTuple):
  """Games that a player played for each z of a store, [M]."""

  games: np.ndarray  # int64
  points: np.ndarray  # float64: wins plus half the draws


def nothing_played(count: int) -> Played:
  """Returns no games for a store of `count` z."""
  return Played(np.zeros(count, np.int64), np.zeros(count))


def similarity(counts: np.ndarray, row: int) -> np.ndarray:
  """Returns how much a game for a z counts for each z of the store, [M] in (0, 1].

  Args:
    counts: [M, types], entries of each type in the build orders.
    row: the z of the game.
  """
  exchanged = 0.5 * np.abs(counts - counts[row]).sum(axis=1)
  return np.exp(-exchanged / WIDTH)


def entries_of(build_order: np.ndarray) -> np.ndarray:
  """Returns the numbers of entries of each type, [M, types] int16, of build orders [M, 20]."""
  counts = np.zeros((len(build_order), 1 + int(build_order.max(initial=0))), np.int16)
  np.add.at(counts, (np.arange(len(build_order))[:, None], build_order.astype(np.int64)), 1)
  counts[:, 0] = 0  # empty entries
  return counts


def log_weights(counts: np.ndarray, played: Played) -> np.ndarray:
  """Computes the logarithms of the weights by which a player draws z, [M] float32.

  Args:
    counts: from `entries_of`.
    played: games of the player.
  """
  games = np.zeros(len(counts))
  points = np.zeros(len(counts))
  for row in np.flatnonzero(played.games):
    near = similarity(counts, row)
    games += near * played.games[row]
    points += near * played.points[row]
  mean = (played.points.sum() + 1.0) / (played.games.sum() + 2.0)
  return ((points + PRIOR * mean) / (games + PRIOR) / TEMPERATURE).astype(np.float32)


def _keys(z: types.Statistics) -> list[bytes]:
  """Returns the bytes of each z of [N, ...]."""
  parts = [np.ascontiguousarray(part) for part in z]
  return [b"".join(part[i].tobytes() for part in parts) for i in range(len(parts[0]))]


def _digest(keys: list[bytes], resets: int = 0) -> str:
  """Returns what tells the games of a policy, for a store of z, from others."""
  return hashlib.sha256(b"".join([*keys, *[b"reset"] * resets])).hexdigest()


class Goals:
  """The goals of a league's exploiters, in one actor.

  Attributes:
    weights: [1 + exploiters, M] float32, `Conditioning.goals`.
  """

  def __init__(self, conditioning: Conditioning, exploiters: Sequence[str],
               folder: Callable[[str], pathlib.Path], process: str, resets: Callable[[str], int],
               clock: Callable[[], float] = time.monotonic):
    """Continues with the games that the actor has saved since a player's last reset.

    Args:
      conditioning: has the z to draw from.
      exploiters: names of the players.
      folder: of a player's files.
      process: name of the actor among the run's.
      resets: returns the number of resets of a player.
      clock: in seconds.
    """
    self._keys = keys = _keys(conditioning.z)
    self._rows = {key: row for row, key in reversed(list(enumerate(keys)))}
    self._counts = entries_of(np.asarray(conditioning.z.build_order))
    self._exploiters = tuple(exploiters)
    self._paths = {name: folder(name) / FOLDER / f"{process}.npz" for name in exploiters}
    self._count_resets = resets
    self._resets = {name: resets(name) for name in exploiters}
    self._played = {name: load(path, _digest(keys, self._resets[name]), len(keys))
                    for name, path in self._paths.items()}
    self._clock, self._saved = clock, clock()
    self.weights = self._draw_by()

  def number(self, name: str) -> int:
    """Returns the row of `weights` of a player, `Conditioning.goal`; 0 for one without goals."""
    return 1 + self._exploiters.index(name) if name in self._exploiters else 0

  def add(self, names: Sequence[str | None], z: types.Statistics, reward: np.ndarray) -> None:
    """Counts finished games; saves them and changes the weights every `INTERVAL_S`.

    A reset player starts without games: those of the policy before say nothing about its own.

    Args:
      names: of the players of the games; others than exploiters are ignored.
      z: of the players, [N, ...].
      reward: [N], results of the games.
    """
    for name, key, value in zip(names, _keys(z), reward, strict=True):
      row = self._rows.get(key, UNCONDITIONAL)
      if name in self._played and row != UNCONDITIONAL:
        self._played[name].games[row] += 1
        self._played[name].points[row] += 0.5 + 0.5 * float(np.sign(value))
    now = self._clock()
    if now - self._saved < INTERVAL_S:
      return
    self._saved = now
    for name, path in self._paths.items():
      resets = self._count_resets(name)
      if resets != self._resets[name]:
        self._resets[name], self._played[name] = resets, nothing_played(len(self._keys))
      save(path, _digest(self._keys, resets), self._played[name])
    self.weights = self._draw_by()

  def _draw_by(self) -> np.ndarray:
    uniform = np.zeros(len(self._counts), np.float32)
    return np.stack([uniform, *(log_weights(self._counts, self._played[name])
                                for name in self._exploiters)])


def ended_games(results: rollouts.Results, learners: Sequence[str], learning: np.ndarray,
             ) -> tuple[list[str | None], types.Statistics, np.ndarray]:
  """Returns the arguments of `Goals.add` for the finished games of a call.

  Args:
    results: of the call, numpy arrays.
    learners: names of the learning players.
    learning: [N, 2] int, index of `learners` of both players of the N games that are over; below 0:
      none.
  """
  over = results.over
  names = [learners[index] if index >= 0 else None for index in learning.reshape(-1)]
  z = types.Statistics(*(np.asarray(part)[over].reshape(-1, *part.shape[3:]) for part in results.z))
  return names, z, np.asarray(results.reward)[over].reshape(-1)


def save(path: pathlib.Path, digest: str, played: Played) -> None:
  """Writes an actor's games of a player, atomically; `digest` is from `_digest`."""
  with files.replacing(path, "wb") as file:
    np.savez(file, digest=np.array(digest), games=played.games, points=played.points)


def load(path: pathlib.Path, digest: str, count: int) -> Played:
  """Returns an actor's games of a player; none if the file is missing or has another digest.

  Raises:
    ArraysError: the file is damaged or is no file of goals; names it.
  """
  if not path.exists():
    return nothing_played(count)
  found = arrays.read(path, _FILE, {"z": _MOST_Z})
  if str(found["digest"]) != digest:
    return nothing_played(count)
  return Played(found["games"], found["points"])


def learnt(conditioning: Conditioning, folder: pathlib.Path) -> np.ndarray:
  """Returns the weights by which a player without resets draws its goals, from all actors' games.

  Args:
    conditioning: of the run's games.
    folder: of the player's files.

  Returns:
    [M] float32, logarithms.
  """
  keys = _keys(conditioning.z)
  total = nothing_played(len(keys))
  for path in sorted((folder / FOLDER).glob("*.npz")):
    each = load(path, _digest(keys), len(keys))
    total = Played(total.games + each.games, total.points + each.points)
  return log_weights(entries_of(np.asarray(conditioning.z.build_order)), total)
