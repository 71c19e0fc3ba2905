"""The facts that the page of a league shows, as plain data."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from starleague.common import results
from starleague.common.results import Row
from starleague.league import players as kinds
from starleague.league.league_file import BranchCount, Progress, Replay
from starleague.league.players import Player
from starleague.league.ratings import Estimate
from starleague.league.ratings.archive import CellCount

KIND_NAMES = {
  kinds.MAIN: "main agent", kinds.MAIN_EXPLOITER: "main exploiter",
  kinds.LEAGUE_EXPLOITER: "league exploiter", kinds.HISTORICAL: "historical",
  kinds.SCRIPTED: "scripted"}
ACTOR = "actor/"  # prefix of the rows of an actor
LIVE_S = 60.0


class Facts(NamedTuple):
  """A league of N players at one time.

  Attributes:
    name: of the run.
    players: [N] in order of creation.
    progress: of each learning player.
    resets: names of the snapshots after which their parents were reset.
    paused: names of the players that get no games.
    playing: number of assignments that are not finished.
    games: [N, N] decayed games of row against column.
    points: [N, N] decayed wins plus half the draws of row against column.
    ratings: [N] Elo ratings, base e, with 95% intervals.
    anchor: index of the player with rating 0.
    branches: counts of matches by player and branch.
    replays: games whose replays are worth keeping, oldest first.
    curves: rows of results files by tag, in order of time: of the run as a whole by its name, and
      of its learners by theirs.
    behaviours: games of players by cell of the archive.
  """

  name: str
  players: tuple[Player, ...]
  progress: Mapping[str, Progress]
  resets: frozenset[str]
  paused: frozenset[str]
  playing: int
  games: np.ndarray
  points: np.ndarray
  ratings: Estimate[np.ndarray]
  anchor: int
  branches: Sequence[BranchCount]
  replays: Sequence[Replay]
  curves: Mapping[str, Mapping[str, Sequence[Row]]]
  behaviours: Sequence[CellCount] = ()

  @property
  def learners(self) -> list[Player]:
    """The learning players: main agents first, then main and league exploiters."""
    found = [player for player in self.players if player.learns]
    return sorted(found, key=lambda player: kinds.LEARNING_KINDS.index(player.kind))

  def live_actors(self) -> list[str]:
    """Returns the names of the actors that were at work in the last minute that was reported."""
    rows = [row for tags in self.curves.values() for found in tags.values() for row in found[-1:]]
    end = max((row.seconds for row in rows), default=0.0)
    return sorted(tag.removeprefix(ACTOR) for tag, found in self.curves.get(self.name, {}).items()
                  if tag.startswith(ACTOR) and found[-1].seconds >= end - LIVE_S)

  def deaths(self) -> dict[str, int]:
    """Returns the times that processes of the run have died and were started again, by name."""
    return results.deaths(self.curves.get(self.name, {}))

  def snapshots(self, learner: Player) -> list[int]:
    """Returns the indices of a learning player's snapshots, in order of creation."""
    return [i for i, player in enumerate(self.players) if player.parent == learner.name]

  def former(self) -> set[str]:
    """Returns the names of the snapshots whose parents have been reset since."""
    found: set[str] = set()
    for learner in self.learners:
      names = [self.players[i].name for i in self.snapshots(learner)]
      last = max((i for i, name in enumerate(names) if name in self.resets), default=-1)
      found.update(names[:last + 1])
    return found


def anchor_of(players: Sequence[Player]) -> int:
  """Returns the index of the player with rating 0.

  The first scripted player, as in the paper; else the first historical one, which is the
  supervised agent; else the first player.
  """
  for kind in (kinds.SCRIPTED, kinds.HISTORICAL):
    for i, player in enumerate(players):
      if player.kind == kind:
        return i
  return 0


def kind_name(player: Player) -> str:
  """Returns a player's kind in words; for a historical player, also its parent's."""
  if player.parent_kind is None:
    return KIND_NAMES[player.kind]
  return f"{KIND_NAMES[player.kind]} {KIND_NAMES[player.parent_kind]}"
