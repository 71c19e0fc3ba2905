"""The players of a league, and which of them are paused, in memory and in the league's file."""

import os
from collections.abc import Iterable, Sequence

from starleague.common.database import Database
from starleague.league import league_file, players
from starleague.league.league_file import LeagueFile
from starleague.league.matchmaking import Roster
from starleague.league.players import LeagueError, Player, UnknownPlayerError


def check(path: str | os.PathLike, existing: Iterable[Player], initial: Sequence[Player]) -> None:
  """Checks the initial players of a league that may have begun.

  Args:
    path: the league's file, for the error.
    existing: the players that it has.
    initial: those of the start.

  Raises:
    LeagueError: two initial players have one name, or the league would have players and no main
      agent.
  """
  try:
    players.check_composition([*existing, *initial] if initial else (), initial)
  except LeagueError as error:
    raise LeagueError(f"{path}: {error}") from error


class Members:
  """The players of a league. Threads may share it.

  Attributes:
    roster: the players that have games: those that are not paused. Another object after a change.
  """

  def __init__(self, database: Database, initial: Sequence[Player]):
    """Reads the players of a league and adds the initial ones that it does not have.

    Args:
      database: the league's file.
      initial: players; existing ones stay unchanged.

    Raises:
      LeagueError: see `check`. Nothing is changed.
    """
    self._database, self._file = database, LeagueFile(database)
    self._by_name = {player.name: player for player in self._file.players()}
    check(database.path, self._by_name.values(), initial)
    with database.transaction() as connection:
      for player in initial:
        league_file.insert_player(connection, player)
    self.read()

  def read(self) -> None:
    """Reads the players from the file again, after a change."""
    with self._database.lock:
      self._paused = self._file.paused()
      self._by_name = {player.name: player for player in self._file.players()}
      self._references: dict[str, tuple[str, ...]] = {}  # by kind; after the players: see below
      self.roster = Roster(player for player in self._by_name.values()
                           if player.name not in self._paused)

  def all(self) -> list[Player]:
    """Returns all players, in order of creation."""
    return list(self._by_name.values())

  def reference_set(self, player: Player) -> tuple[str, ...]:
    """Returns the names of a player's `players.reference_set`, paused ones too.

    The same tuple until a player joins: a table of counts remembers its columns.
    """
    references = self._references  # first: another thread may read the players meanwhile
    if player.kind not in references:
      references[player.kind] = tuple(
        other.name for other in players.reference_set(player, self.all()))
    return references[player.kind]

  def get(self, name: str) -> Player:
    """Returns a player by name; raises UnknownPlayerError if the league does not have it."""
    player = self._by_name.get(name)
    if player is None:
      raise UnknownPlayerError(f"The league in {self._database.path} has no player {name!r} among "
                               f"its {len(self._by_name)}.")
    return player

  def learner(self, name: str) -> Player:
    """Returns a player that learns, by name; raises LeagueError for another one."""
    player = self.get(name)
    if not player.learns:
      raise LeagueError(f"Player {name} is {player.kind}: it does not learn, has no steps and "
                        f"makes no progress. Expected one of {players.LEARNING_KINDS}.")
    return player

  def add(self, player: Player) -> None:
    """Adds a player; raises LeagueError if its name is taken."""
    with self._database.transaction() as connection:
      if not league_file.insert_player(connection, player):
        raise LeagueError(f"The league in {self._database.path} already has a player "
                          f"{player.name!r}. Choose another name.")
    self.read()

  def pause(self, name: str, paused: bool) -> None:
    """Stores whether a player is paused; raises UnknownPlayerError if there is no such player."""
    self.get(name)
    with self._database.transaction() as connection:
      league_file.set_paused(connection, name, paused)
    self.read()

  @property
  def paused(self) -> frozenset[str]:
    """Names of the paused players."""
    return frozenset(self._paused)

  def have_games(self, *names: str) -> bool:
    """Returns whether none of some players is paused."""
    return self._paused.isdisjoint(names)

  def has_opponents(self) -> bool:
    """Returns whether a main agent has games, or the league has none at all."""
    return bool(self.roster.mains) or all(
      player.kind != players.MAIN for player in self._by_name.values())
