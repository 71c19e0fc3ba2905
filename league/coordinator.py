"""The league's one keeper: it serves matches, takes results, and orders snapshots and resets.

Everything it knows is in one SQLite file, so that one that is killed is simply started again
(Vinyals et al. 2019, Methods and pseudocode). It knows players by their names only: parameters are
kept, copied and replaced by the learners, on its orders.
"""

import math
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from starleague.common.database import Database
from starleague.league import matchmaking, payoff, players
from starleague.league.matchmaking import Match, MatchRules
from starleague.league.payoff import DECAY, GameResult, Payoff, validated
from starleague.league.players import Player, SnapshotRules

_TABLES = (
  "CREATE TABLE IF NOT EXISTS players (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL,"
  " kind TEXT NOT NULL, race TEXT NOT NULL, parent TEXT, parent_kind TEXT, steps INTEGER NOT NULL)",
  "CREATE TABLE IF NOT EXISTS progress (name TEXT PRIMARY KEY, steps INTEGER NOT NULL,"
  " snapshot_steps INTEGER NOT NULL, snapshots INTEGER NOT NULL) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, player TEXT NOT NULL,"
  " snapshot TEXT NOT NULL, steps INTEGER NOT NULL, reset INTEGER NOT NULL,"
  " done INTEGER NOT NULL)",
  "CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
)
_VERSION = 1
_MATCH, _RESET = 0, 1  # what a stream of random numbers is for


class Order(NamedTuple):
  """What a learner is to do. It is given until it is carried out, over restarts too.

  Attributes:
    id: for Coordinator.complete.
    player: whose learner.
    snapshot: the name under which a copy of the parameters is to be saved, first of all.
    steps: agent steps at which it was ordered.
    reset: whether the learner then starts anew from the supervised parameters, with a new optimiser.
  """

  id: int
  player: str
  snapshot: str
  steps: int
  reset: bool


class Progress(NamedTuple):
  """How far a learning player is.

  Attributes:
    steps: agent steps learnt from, ever.
    snapshot_steps: of them, those before its last copy.
    snapshots: copies it has left.
  """

  steps: int
  snapshot_steps: int
  snapshots: int


class Coordinator:
  """A league: its players, its payoff, and its rules. A plain object, to be served by its owner."""

  def __init__(self, path: str | os.PathLike, initial: Iterable[Player] = (), *,
               snapshot_rules: SnapshotRules | None = None,
               match_rules: MatchRules = matchmaking.DEFAULT_RULES,
               clear_on_reset: bool = True, seed: int = 0, decay: float = DECAY):
    """Opens a league, or starts one.

    Args:
      path: of its SQLite file.
      initial: its players at the start; those it already has are left as they are.
      snapshot_rules: when players are copied and reset; the pseudocode's by default.
      match_rules: shares and thresholds of matchmaking.
      clear_on_reset: whether a player that starts anew also starts with no win rates. The
        pseudocode keeps them, though they are another policy's.
      seed: of matches and resets. The same seed and events give the same league, however often it
        is restarted.
      decay: of the payoff.
    """
    self.payoff = Payoff(path, decay)
    self._database = Database(path, "coordinator", _VERSION, _TABLES)
    self._snapshot_rules = snapshot_rules or players.pseudocode_rules()
    self._match_rules = match_rules
    self._clear_on_reset = clear_on_reset
    self._seed = seed
    self._players: dict[str, Player] = {}
    self._read_players()
    for player in initial:
      if player.name not in self._players:
        self.add_player(player)

  def _read_players(self) -> None:
    rows = self._database.rows(
      "SELECT name, kind, race, parent, parent_kind, steps FROM players ORDER BY number")
    self._players = {row[0]: Player(*row) for row in rows}

  @property
  def players(self) -> list[Player]:
    """Everybody, in order of creation."""
    return list(self._players.values())

  def player(self, name: str) -> Player:
    """A player by its name; KeyError naming it where the league has none such."""
    if name not in self._players:
      raise KeyError(f"The league in {self._database.path} has no player {name!r} among its "
                     f"{len(self._players)}.")
    return self._players[name]

  def add_player(self, player: Player) -> None:
    """Adds a player; ValueError where its name is taken."""
    with self._database.transaction() as connection:
      self._insert(connection, player)
    self._read_players()

  def _insert(self, connection, player: Player) -> None:
    row = player.name, player.kind, player.race, player.parent, player.parent_kind, player.steps
    added = connection.execute(
      "INSERT OR IGNORE INTO players (name, kind, race, parent, parent_kind, steps) "
      "VALUES (?, ?, ?, ?, ?, ?)", row)
    if not added.rowcount:
      raise ValueError(f"The league in {self._database.path} already has a player "
                       f"{player.name!r}. Choose another name.")
    if player.learns:
      # A main agent's first copy is the supervised agent's, number 0; later ones count from 1.
      connection.execute("INSERT INTO progress VALUES (?, 0, 0, 0)", (player.name,))

  def progress(self, name: str) -> Progress:
    """How far a learning player is; ValueError for one that does not learn."""
    if not self.player(name).learns:
      raise ValueError(f"Player {name} is {self.player(name).kind} and makes no progress.")
    return Progress(*self._database.rows(
      "SELECT steps, snapshot_steps, snapshots FROM progress WHERE name = ?", (name,))[0])

  def _generator(self, purpose: int, number: int) -> np.random.Generator:
    return np.random.default_rng((self._seed, purpose, number))

  def get_match(self, name: str) -> Match:
    """The next match of a learning player; see matchmaking.match."""
    home = self.player(name)
    with self._database.transaction() as connection:
      number = connection.execute(
        "INSERT INTO counters VALUES ('matches', 1) "
        "ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value").fetchone()[0]
    return matchmaking.match(home, self.players, self.payoff, self._generator(_MATCH, number),
                             self._match_rules)

  def get_evaluation_match(self, rng: np.random.Generator,
                           among: Sequence[str] | None = None) -> Match:
    """A pair that the payoff knows least about, for evaluators that play to fill it.

    Args:
      rng: chooses among pairs that are known alike.
      among: names of the players in question, all by default.
    """
    names = [self.player(name).name for name in among] if among else list(self._players)
    if len(names) < 2:
      raise ValueError(f"A match needs two players, found {names}.")
    games = np.floor(self.payoff.games(names, names))
    np.fill_diagonal(games, np.inf)
    least = np.argwhere(games == games.min())
    home, away = least[rng.integers(len(least))]
    return Match(names[home], names[away], False, "evaluation")

  def report(self, result: GameResult, steps: int | None = None) -> Order | None:
    """Counts a result, and orders a snapshot of the home player where its rule says so.

    Args:
      result: of a game; one that comes twice counts once.
      steps: agent steps that the home player's learner has learnt from, where it is known.

    Returns:
      The order that this result caused, if any; the learner gets it by `orders`.

    Raises:
      KeyError: for a player the league does not have. ValueError: for a result or steps that make
        no sense. Nothing is counted then.
    """
    orders = self.report_many([result], {} if steps is None else {result.home: steps})
    return orders[0] if orders else None

  def report_many(self, results: Iterable[GameResult],
                  steps: dict[str, int] | None = None) -> list[Order]:
    """Counts results at once; see report. `steps` are those of each home player's learner."""
    checked = [validated(result) for result in results]
    for result in checked:
      self.player(result.home)
      self.player(result.away)
    for name, value in (steps or {}).items():
      self._check_steps(name, value)
    self.payoff.record_many(checked)
    for name, value in (steps or {}).items():
      self.set_steps(name, value)
    homes = dict.fromkeys(result.home for result in checked)
    orders = [self._order_if_due(name) for name in homes if self.player(name).learns]
    return [order for order in orders if order]

  def _check_steps(self, name: str, steps: int) -> None:
    if not self.player(name).learns:
      raise ValueError(f"Player {name} is {self.player(name).kind}: it has no steps to report.")
    if steps < 0 or not math.isfinite(steps):
      raise ValueError(f"Player {name}: steps is {steps}, expected a count.")

  def set_steps(self, name: str, steps: int) -> None:
    """Notes how many agent steps a player has learnt from; late, smaller reports change nothing."""
    self._check_steps(name, steps)
    with self._database.transaction() as connection:
      connection.execute("UPDATE progress SET steps = MAX(steps, ?) WHERE name = ?",
                         (int(steps), name))

  def _order_if_due(self, name: str) -> Order | None:
    player, rule = self.player(name), self._snapshot_rules.of(self.player(name))
    progress = self.progress(name)
    since = progress.steps - progress.snapshot_steps
    if since < rule.minimum_steps or self.orders(name):
      return None  # asked first, as win rates against everybody are the dear part
    reference = [other.name for other in players.reference_set(player, self.players)]
    if not players.snapshot_due(rule, since, self.payoff.win_rates(name, reference)):
      return None
    number = progress.snapshots + 1
    copy = players.snapshot(player, number, progress.steps)
    with self._database.transaction() as connection:
      if connection.execute("SELECT 1 FROM orders WHERE player = ? AND (NOT done OR snapshot = ?)",
                            (name, copy.name)).fetchone():
        return None  # another thread was first
      identifier = connection.execute(
        "INSERT INTO orders (player, snapshot, steps, reset, done) VALUES (?, ?, ?, 0, 0) "
        "RETURNING id", (name, copy.name, progress.steps)).fetchone()[0]
      reset = players.resets(rule, self._generator(_RESET, identifier).random())
      connection.execute("UPDATE orders SET reset = ? WHERE id = ?", (reset, identifier))
      # From here on the next snapshot's steps count, however long this one takes to be saved.
      connection.execute(
        "UPDATE progress SET snapshot_steps = steps, snapshots = ? WHERE name = ?", (number, name))
    return Order(identifier, name, copy.name, progress.steps, reset)

  def orders(self, name: str | None = None) -> list[Order]:
    """Orders not carried out yet, oldest first: a player's, or everybody's."""
    rows = self._database.rows(
      "SELECT id, player, snapshot, steps, reset FROM orders WHERE NOT done AND "
      "(player = ?1 OR ?1 IS NULL) ORDER BY id", (name,))
    return [Order(identifier, player, snapshot, steps, bool(reset))
            for identifier, player, snapshot, steps, reset in rows]

  def complete(self, order_id: int) -> Player:
    """Notes that an order is carried out: the copy is saved, so that it may be played.

    Called twice, it changes nothing the second time.

    Returns:
      The historical player that the copy is from now on.
    """
    with self._database.transaction() as connection:
      row = connection.execute("SELECT player, snapshot, steps, reset, done FROM orders "
                               "WHERE id = ?", (order_id,)).fetchone()
      if not row:
        raise KeyError(f"The league in {self._database.path} gave no order {order_id}.")
      name, copy_name, steps, reset, done = row
      parent = self.player(name)
      copy = Player(copy_name, players.HISTORICAL, parent.race, name, parent.kind, steps)
      if not done:
        self._insert(connection, copy)
        connection.execute("UPDATE orders SET done = 1 WHERE id = ?", (order_id,))
        if reset and self._clear_on_reset:
          # The same file and transaction: no crash leaves the new policy the old one's rates.
          payoff.clear(connection, name)
    self._read_players()
    return copy

  def close(self) -> None:
    """Closes the file."""
    self.payoff.close()
    self._database.close()
