"""The coordinator of a league: serves matches, counts results, orders snapshots and resets.

Source: Vinyals et al. 2019, Methods and pseudocode. Its whole state is one SQLite file: a killed
coordinator resumes from it. It knows players by name only: learners store, copy and reset the
parameters on its orders.
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
_MATCH, _RESET = 0, 1  # streams of random numbers


class Order(NamedTuple):
  """An order to a learner; it stays open until it is completed, also over restarts.

  Attributes:
    id: for `Coordinator.complete`.
    player: name of the learner's player.
    snapshot: name under which the learner saves a snapshot of its parameters, first of all.
    steps: agent steps at the time of the order.
    reset: whether the learner then resets to the supervised parameters, with a new optimizer
      state.
  """

  id: int
  player: str
  snapshot: str
  steps: int
  reset: bool


class Progress(NamedTuple):
  """The progress of a learning player.

  Attributes:
    steps: agent steps learnt from in all.
    snapshot_steps: `steps` at its last snapshot.
    snapshots: number of its snapshots.
  """

  steps: int
  snapshot_steps: int
  snapshots: int


class Coordinator:
  """A league: players, payoff and rules. A plain object without a server of its own."""

  def __init__(self, path: str | os.PathLike, initial: Iterable[Player] = (), *,
               snapshot_rules: SnapshotRules | None = None,
               match_rules: MatchRules = matchmaking.DEFAULT_RULES,
               clear_on_reset: bool = True, seed: int = 0, decay: float = DECAY):
    """Opens a league, or starts a new one.

    Args:
      path: its SQLite file.
      initial: its players at the start; existing ones stay unchanged.
      snapshot_rules: of snapshots and resets; the pseudocode's by default.
      match_rules: shares and thresholds of matchmaking.
      clear_on_reset: whether a reset also deletes the player's scores. The pseudocode keeps them,
        though they belong to the former policy.
      seed: of matches and resets. The same seed and events give the same league, independent of
        restarts.
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
    """All players, in order of creation."""
    return list(self._players.values())

  def player(self, name: str) -> Player:
    """Returns a player by name; raises KeyError if the league does not have it."""
    if name not in self._players:
      raise KeyError(f"The league in {self._database.path} has no player {name!r} among its "
                     f"{len(self._players)}.")
    return self._players[name]

  def add_player(self, player: Player) -> None:
    """Adds a player; raises ValueError if its name is taken."""
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
      # Snapshot 0 of a main agent is the supervised agent; its own snapshots count from 1.
      connection.execute("INSERT INTO progress VALUES (?, 0, 0, 0)", (player.name,))

  def progress(self, name: str) -> Progress:
    """Returns the progress of a learning player; raises ValueError for other players."""
    if not self.player(name).learns:
      raise ValueError(f"Player {name} is {self.player(name).kind} and makes no progress.")
    return Progress(*self._database.rows(
      "SELECT steps, snapshot_steps, snapshots FROM progress WHERE name = ?", (name,))[0])

  def _generator(self, purpose: int, number: int) -> np.random.Generator:
    return np.random.default_rng((self._seed, purpose, number))

  def get_match(self, name: str) -> Match:
    """Returns the next match of a learning player; see `matchmaking.match`."""
    home = self.player(name)
    with self._database.transaction() as connection:
      number = connection.execute(
        "INSERT INTO counters VALUES ('matches', 1) "
        "ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value").fetchone()[0]
    return matchmaking.match(home, self.players, self.payoff, self._generator(_MATCH, number),
                             self._match_rules)

  def get_evaluation_match(self, rng: np.random.Generator,
                           among: Sequence[str] | None = None) -> Match:
    """Returns a match of a pair with the fewest games, for evaluators.

    Args:
      rng: chooses among pairs with equally many games.
      among: names of the candidates; all players by default.

    Raises:
      ValueError: there are fewer than two candidates.
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
    """Counts a result, and orders a snapshot of the home player if its rule requires one.

    Args:
      result: of a game; a repeated one counts once.
      steps: agent steps that the home player's learner has learnt from, if known.

    Returns:
      The new order, or None; the learner reads it from `orders`.

    Raises:
      KeyError: the league does not have a player. Nothing is counted.
      ValueError: the result or the steps are invalid. Nothing is counted.
    """
    orders = self.report_many([result], {} if steps is None else {result.home: steps})
    return orders[0] if orders else None

  def report_many(self, results: Iterable[GameResult],
                  steps: dict[str, int] | None = None) -> list[Order]:
    """Counts several results; see `report`. `steps` holds those of each home player's learner."""
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
      raise ValueError(f"Player {name} is {self.player(name).kind}: it has no steps.")
    if steps < 0 or not math.isfinite(steps):
      raise ValueError(f"Player {name}: steps is {steps}, expected a count.")

  def set_steps(self, name: str, steps: int) -> None:
    """Stores the agent steps that a player has learnt from; a smaller number has no effect."""
    self._check_steps(name, steps)
    with self._database.transaction() as connection:
      connection.execute("UPDATE progress SET steps = MAX(steps, ?) WHERE name = ?",
                         (int(steps), name))

  def _order_if_due(self, name: str) -> Order | None:
    player, rule = self.player(name), self._snapshot_rules.of(self.player(name))
    progress = self.progress(name)
    since = progress.steps - progress.snapshot_steps
    if since < rule.minimum_steps or self.orders(name):
      return None  # checked first: scores against all players are expensive
    reference = [other.name for other in players.reference_set(player, self.players)]
    if not players.snapshot_due(rule, since, self.payoff.scores(name, reference)):
      return None
    number = progress.snapshots + 1
    copy = players.snapshot(player, number, progress.steps)
    with self._database.transaction() as connection:
      if connection.execute("SELECT 1 FROM orders WHERE player = ? AND (NOT done OR snapshot = ?)",
                            (name, copy.name)).fetchone():
        return None  # another thread ordered it
      identifier = connection.execute(
        "INSERT INTO orders (player, snapshot, steps, reset, done) VALUES (?, ?, ?, 0, 0) "
        "RETURNING id", (name, copy.name, progress.steps)).fetchone()[0]
      reset = players.resets(rule, self._generator(_RESET, identifier).random())
      connection.execute("UPDATE orders SET reset = ? WHERE id = ?", (reset, identifier))
      # Steps towards the next snapshot count from here, not from when this one is saved.
      connection.execute(
        "UPDATE progress SET snapshot_steps = steps, snapshots = ? WHERE name = ?", (number, name))
    return Order(identifier, name, copy.name, progress.steps, reset)

  def orders(self, name: str | None = None) -> list[Order]:
    """Returns the open orders, oldest first: of one player, or of all."""
    rows = self._database.rows(
      "SELECT id, player, snapshot, steps, reset FROM orders WHERE NOT done AND "
      "(player = ?1 OR ?1 IS NULL) ORDER BY id", (name,))
    return [Order(identifier, player, snapshot, steps, bool(reset))
            for identifier, player, snapshot, steps, reset in rows]

  def complete(self, order_id: int) -> Player:
    """Completes an order: the snapshot is saved and joins the league. Idempotent.

    Returns:
      The snapshot as a historical player.

    Raises:
      KeyError: there is no such order.
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
          # In the same transaction: after a crash, no reset policy has its former scores.
          payoff.clear(connection, name)
    self._read_players()
    return copy

  def close(self) -> None:
    """Closes the file."""
    self.payoff.close()
    self._database.close()
