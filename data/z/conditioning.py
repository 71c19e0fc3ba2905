"""The conditioning of games: a strategy statistic z by match-up, and the MMR.

Build order positions depend on the map and on the starting side, and a strategy on both races. All
arrays have fixed shapes, so that one compiled program plays under any conditioning.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from starleague.agent import types
from starleague.data.z.statistics_library import StatisticsLibrary, filter_build_order

UNCONDITIONAL = 0  # row of the unconditional z, all zeros


class Conditioning(NamedTuple):
  """A store of M z, the ones to draw from in each match-up, and the MMR."""

  z: types.Statistics  # [M, ...]; row 0 is unconditional
  # [maps, home races, away races, sides, K] int32, rows of `z`. Races are indices of
  # types.RACES, home is the player that gets the z, and side is where it starts.
  rows: types.Array
  # [4] float32: probability that a part of z is active, PSEUDO_REWARDS; [2, 4]: of each player;
  # [M, 2, 4]: of each player by opponent index, as in `starleague.actor.rollouts`.
  active: types.Array
  mmr: types.Array  # [] int16, of both players; [2]: of each
  # [M, 2] int32: race of each player by opponent index, of types.RACES; -1, None: drawn.
  races: types.Array | None = None
  # [M, R, R] float32: probability of the match-up of each race of the program against each, by
  # opponent index, where `races` leaves them open; None: equal ones.
  match_up_probabilities: types.Array | None = None
  # [M, 2] int32: percent of its loads that each player is paid, by opponent index; None: 100.
  income: types.Array | None = None
  # [M, 2] float32: factor of the reward for a fall of the opponent's win-loss value, of each player
  # by opponent index; None: no such reward.
  minimax: types.Array | None = None
  # [G, M] float32: logarithms of the weights by which z are drawn; None: uniformly. [opponents, 2]
  # int32: the row of `goals` of each player by opponent index.
  goals: types.Array | None = None
  goal: types.Array | None = None
  # [O, 2, types] float32: rewards for each unit that a player built, and that its opponent lost;
  # None: none. [opponents, 2] int32: the row of `objectives` of each player by opponent index.
  objectives: types.Array | None = None
  objective: types.Array | None = None


def unconditional(maps: int, mmr: int) -> Conditioning:
  """Returns the conditioning of games without z.

  Args:
    maps: number of maps.
    mmr: of the policy.
  """
  z = jax.tree.map(lambda x: np.zeros((1, *x.shape), x.dtype), types.statistics_spec())
  races = len(types.RACES)
  rows = np.full((maps, races, races, 2, 1), UNCONDITIONAL, np.int32)
  active = np.zeros((len(types.PSEUDO_REWARDS),), np.float32)
  return Conditioning(z, rows, active, np.asarray(mmr, np.int16))


def with_races(conditioning: Conditioning, races: Sequence[int],
               opponents: int = 1) -> Conditioning:
  """Returns the conditioning of games between two races.

  Args:
    conditioning: of the games.
    races: of both players, indices of types.RACES; -1: drawn for each game.
    opponents: M, number of opponent indices.
  """
  return conditioning._replace(races=np.tile(np.array(races, np.int32), (opponents, 1)))


def from_library(library: StatisticsLibrary, maps: Sequence[str], races: Sequence[int], size: int,
                 active: np.ndarray, mmr: int, seed: int,
                 away_races: Sequence[int] | None = None) -> Conditioning:
  """Returns conditioning with z from a library, drawn once for each match-up.

  Args:
    library: z of recorded games.
    maps: names of the environment's maps, in its order.
    races: indices of types.RACES that the policy plays.
    size: K, z of each match-up. Fewer in the library repeat; of more, K are drawn.
    active: [4], probability that each part of z is active in a game.
    mmr: of the policy.
    seed: of the draw.
    away_races: of its opponents; None: `races`.

  Raises:
    KeyError: the library has no game of a match-up; names it.
  """
  random = np.random.default_rng(seed)
  every = len(types.RACES)
  found = np.full((len(maps), every, every, 2, size), -1, np.int64)
  opponents = races if away_races is None else away_races
  for map_index, name in enumerate(maps):
    for home, away, side in itertools.product(races, opponents, range(2)):
      fitting = random.permutation(library.rows(name, home, away, side))
      found[map_index, home, away, side] = fitting[np.arange(size) % len(fitting)]
  used, rows = np.unique(found, return_inverse=True)  # -1, no row, comes first
  if used[0] != -1:
    used, rows = np.concatenate([[-1], used]), rows + 1
  z = jax.tree.map(lambda x: np.concatenate([np.zeros_like(x[:1]), x[used[1:]]]), library.z)
  return Conditioning(z, rows.reshape(found.shape).astype(np.int32),
                      np.asarray(active, np.float32), np.asarray(mmr, np.int16))


class Recent:
  """The newest z by race and starting side, on any map and against any race.

  Without any z of a race and side, their games are unconditional. While there are fewer than
  `size`, they repeat: the arrays keep their shape.
  """

  def __init__(self, size: int, maps: int, active: np.ndarray, mmr: int):
    """Creates an empty store.

    Args:
      size: number of z kept for each race and side.
      maps: number of maps.
      active: [4], probability that each part of z is active in a game.
      mmr: of the policy.
    """
    self._size, self._maps = size, maps
    self._active, self._mmr = np.asarray(active, np.float32), np.asarray(mmr, np.int16)
    self._found: list[list[list[types.Statistics]]] = [[[], []] for _ in types.RACES]

  def add(self, race: int, side: int, executed: types.Statistics) -> None:
    """Adds the z of a player's game.

    Args:
      race: of the player, an index of types.RACES.
      side: 0 or 1, its starting side.
      executed: unbatched numpy arrays.
    """
    order, places = filter_build_order(executed.build_order, executed.build_order_xy)
    copied = types.Statistics(*(np.array(x) for x in executed))
    found = self._found[race][side]
    found.append(copied._replace(build_order=order, build_order_xy=places))
    del found[:-self._size]

  def conditioning(self) -> Conditioning:
    """Returns conditioning with M = 1 + races * 2 * size and K = size."""
    races, size = len(types.RACES), self._size
    empty = types.zeros(types.statistics_spec())
    held = [empty]
    rows = np.full((races, 2, size), UNCONDITIONAL, np.int32)
    for race, sides in enumerate(self._found):
      for side, found in enumerate(sides):
        if found:
          rows[race, side] = len(held) + np.arange(size) % len(found)
        held += [*found, *[empty] * (size - len(found))]
    every = (self._maps, races, races, 2, size)
    return Conditioning(
      jax.tree.map(lambda *x: np.stack(x), *held),
      np.array(np.broadcast_to(rows[None, :, None], every)), self._active, self._mmr)
