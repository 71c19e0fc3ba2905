"""The archive of a league: a grid of behaviours with the best player seen to show each.

Source: MAP-Elites (Mouret and Clune 2015, *Illuminating search spaces by mapping elites*); the QD
score is that of Pugh et al. 2015. Players are trained by the league, not by the archive: it
measures how many behaviours they have between them, and how well they play them.

An archive never forgets: one more game lowers neither coverage nor QD score, at no step so far, as
long as the qualities of the players stay the same.
"""

import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

NEVER = -1  # in place of the game loop of an attack
FEWEST_GAMES = 3  # of a player in a cell before it holds it: a single odd game does not count
NOBODY = -1


class Behaviour(NamedTuple):
  """The behaviour of a player in a game.

  Attributes:
    opening: share of structures among the first entries of its build order, 0 without any.
    army: supply of its largest army over the number of that army's units; 0 without an army.
    attack: game loop of its first kill, NEVER without one.
  """

  opening: float
  army: float
  attack: int


class Cell(NamedTuple):
  """The place of a behaviour in the grid, an index of each axis."""

  opening: int
  army: int
  attack: int


class Axis(NamedTuple):
  """An axis of the grid: a value is in the first bin whose upper edge it does not exceed."""

  title: str
  edges: tuple[float, ...]
  labels: tuple[str, ...]  # of the bins, the last one without an upper edge; then "never"


OPENING = Axis("structures in the opening", (0.1, 0.2, 0.3, 0.5),
               ("to 10%", "to 20%", "to 30%", "to 50%", "more"))
ARMY = Axis("supply of an army unit", (0.0, 1.0, 1.5, 2.0),
            ("no army", "to 1", "to 1.5", "to 2", "more"))
# Edges in game loops, labels in seconds: 22.4 loops each.
ATTACK = Axis("seconds to the first kill", (1008, 1344, 2016, 2688, 4032, 6720),
              ("to 45", "to 60", "to 90", "to 120", "to 180", "to 300", "later", "never"))
AXES = OPENING, ARMY, ATTACK  # in the order of `Cell`
SHAPE = tuple(len(axis.labels) for axis in AXES)


class CellCount(NamedTuple):
  """The games of a player in a cell.

  Attributes:
    player: its name.
    snapshots: number of its snapshots that had been ordered; 0 of a frozen player.
    cell: of the behaviour.
    games: their number.
    steps: agent steps of all learners when there were FEWEST_GAMES, or at the latest game before.
      Those of a snapshot include the games of its parent as the same policy.
  """

  player: str
  snapshots: int
  cell: Cell
  games: int
  steps: int


class Archive(NamedTuple):
  """The best player of each cell; no field is changed in place."""

  quality: np.ndarray  # SHAPE float64, NaN in empty cells
  holder: np.ndarray  # SHAPE int64: index of the player, NOBODY in empty cells


class Point(NamedTuple):
  """Measures of an archive at one time."""

  steps: int  # agent steps of all learners
  coverage: float
  qd_score: float


EMPTY = Archive(np.full(SHAPE, np.nan), np.full(SHAPE, NOBODY))


def is_valid(behaviour: Behaviour) -> bool:
  """Returns whether the values of a behaviour from outside are possible."""
  return (0 <= behaviour.opening <= 1 and 0 <= behaviour.army < np.inf
          and NEVER <= behaviour.attack < 2 ** 31)


def cell(behaviour: Behaviour) -> Cell:
  """Returns the cell of a behaviour."""
  never = behaviour.attack == NEVER
  return Cell(
    bisect.bisect_left(OPENING.edges, behaviour.opening),
    bisect.bisect_left(ARMY.edges, behaviour.army),
    len(ATTACK.labels) - 1 if never else bisect.bisect_left(ATTACK.edges, behaviour.attack))


def add(archive: Archive, where: Cell, quality: float, player: int) -> Archive:
  """Returns the archive with a player in a cell, if the cell is empty or held by a worse one.

  Args:
    archive: before.
    where: the cell.
    quality: at least 0.
    player: its index.

  Raises:
    ValueError: the quality is negative or not finite: the QD score could fall.
  """
  if not 0 <= quality < np.inf:
    raise ValueError(f"The quality of player {player} is {quality}, expected a number from 0.")
  if quality <= archive.quality[where]:  # False in an empty cell
    return archive
  found = Archive(archive.quality.copy(), archive.holder.copy())
  found.quality[where], found.holder[where] = quality, player
  return found


def coverage(archive: Archive) -> float:
  """Returns the share of cells that are held."""
  return float(np.isfinite(archive.quality).mean())


def qd_score(archive: Archive) -> float:
  """Returns the sum of the qualities of the players that hold cells."""
  return float(np.nansum(archive.quality))


def policy(count: CellCount, names: Mapping[str, int]) -> int | None:
  """Returns the index of the player that stands for the policy which played games.

  A learning player changes: its games before a snapshot are those of the snapshot, the later ones
  its own.

  Args:
    count: of games.
    names: index of each player by name.
  """
  following = names.get(f"{count.player}-{count.snapshots + 1:04d}")
  return names.get(count.player) if following is None else following


def fill(counts: Iterable[CellCount], names: Sequence[str], qualities: Sequence[float],
         former: Collection[str] = ()) -> tuple[Archive, list[Point]]:
  """Returns the archive of a league, and its measures after each change.

  Args:
    counts: games by player and cell.
    names: [N] of the players.
    qualities: [N] at least 0; NaN: unknown. Then a snapshot has the quality of its parent, which it
      copies; another player holds no cell.
    former: names of the snapshots whose parents have been reset since, and have other weights.
      Without a quality of their own they hold no cell either.
  """
  index = {name: i for i, name in enumerate(names)}
  archive = EMPTY
  points: dict[int, Point] = {}  # the last one of its steps stands
  for steps, player, where, parents in sorted(_of_policies(counts, index)):
    # A new snapshot has not been rated yet.
    copied = () if names[player] in former else parents
    rated = (float(qualities[i]) for i in (player, *copied))
    quality = next((value for value in rated if not np.isnan(value)), None)
    if quality is None:
      continue
    after = add(archive, where, quality, player)
    if after is not archive:
      archive = after
      points[steps] = Point(steps, coverage(archive), qd_score(archive))
  return archive, list(points.values())


def _of_policies(counts: Iterable[CellCount], index: Mapping[str, int]
                 ) -> Iterator[tuple[int, int, Cell, tuple[int, ...]]]:
  """Yields each policy with FEWEST_GAMES in a cell: steps, its index, the cell, its parent's index.

  A snapshot has two counts, because its parent played as the same policy before it. While a
  snapshot is ordered and not saved, its parent's counts are of two policies.
  """
  found: dict[tuple[int, int, Cell], list[CellCount]] = {}
  for count in counts:
    player = policy(count, index)
    if player is not None:
      own = count.snapshots if index.get(count.player) == player else 0
      found.setdefault((player, own, count.cell), []).append(count)
  for (player, _, where), each in found.items():
    if sum(count.games for count in each) >= FEWEST_GAMES:
      alone = [count.steps for count in each if count.games >= FEWEST_GAMES]
      parents = {index[count.player] for count in each if count.player in index} - {player}
      yield min(alone) if alone else max(count.steps for count in each), player, where, (*parents,)
