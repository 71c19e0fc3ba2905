"""Orders to learners: snapshots and resets, when a player's rule requires them."""

import math

import numpy as np

from starleague.league import league_file, payoff, players
from starleague.league.assigning import Assigner
from starleague.league.league_file import LeagueFile, Order, Progress
from starleague.league.members import Members
from starleague.league.payoff import Payoff
from starleague.league.players import (
  LeagueError,
  Player,
  SnapshotRule,
  SnapshotRules,
  UnknownPlayerError,
)

_RESET = 1  # stream of random numbers; 0 is that of matches
_TRAINING_SECONDS = "training_seconds"  # counter
_MOST_SECONDS = 2.0 ** 53  # all whole seconds below are exact


class Orders:
  """The progress of the learning players, and their open orders. Threads may share it."""

  def __init__(self, scores: Payoff, members: Members, assigner: Assigner, rules: SnapshotRules,
               seed: int, clear_on_reset: bool):
    """Reads progress and orders from the league's file.

    Args:
      scores: the payoff; its file is the league's.
      members: the players.
      assigner: of the assignments that a reset makes former ones.
      rules: of snapshots and resets.
      seed: of resets.
      clear_on_reset: whether a reset deletes the player's scores.
    """
    self._payoff, self._members, self._assigner = scores, members, assigner
    self._rules, self._seed, self._clear_on_reset = rules, seed, clear_on_reset
    self._database = scores.database
    self._file = LeagueFile(self._database)
    self._progress = self._file.progress()
    self._open = {order.id: order for order in self._file.orders()}
    self._seconds = float(self._file.counter(_TRAINING_SECONDS))

  def progress(self, name: str) -> Progress:
    """Returns the progress of a learning player; raises LeagueError for other players."""
    name = self._members.learner(name).name
    if name not in self._progress:  # added since
      self._progress[name] = self._file.progress()[name]
    return self._progress[name]

  def raise_steps(self, name: str, steps: int) -> None:
    """Shows the steps of a player, after their transaction."""
    with self._database.lock:
      progress = self.progress(name)
      self._progress[name] = progress._replace(steps=max(progress.steps, steps))

  def training_time(self, seconds: float) -> float:
    """Returns the league's training time; see `Coordinator.training_time`."""
    if not 0.0 <= seconds < _MOST_SECONDS:  # NaN too
      raise LeagueError(f"The training time is {seconds} s, expected a time from 0 to "
                        f"{_MOST_SECONDS:.0e}.")
    with self._database.lock:
      before, self._seconds = self._seconds, max(self._seconds, float(seconds))
      if math.floor(self._seconds) > math.floor(before):
        with self._database.transaction() as connection:
          league_file.set_counter(connection, _TRAINING_SECONDS, math.floor(self._seconds))
      return self._seconds

  def open(self, name: str | None = None) -> list[Order]:
    """Returns the open orders, oldest first: of one player, or of all."""
    return [order for order in list(self._open.values()) if name in (None, order.player)]

  def order_if_due(self, name: str) -> Order | None:
    """Orders a snapshot of a learning player if its rule requires one and none is open."""
    player, progress = self._members.learner(name), self.progress(name)
    rule = self._rules.of(player)
    since = progress.steps - progress.snapshot_steps
    if since < rule.minimum_steps or self.open(name):
      return None  # checked first: scores against all players are expensive
    reference = self._members.reference_set(player)
    if not players.snapshot_due(rule, since, self._payoff.scores(name, reference)):
      return None
    with self._database.lock:
      if self.open(name) or self.progress(name).snapshots != progress.snapshots:
        return None  # another thread ordered it
      return self._order(player, rule, self.progress(name))

  def _order(self, player: Player, rule: SnapshotRule, progress: Progress) -> Order:
    copy = players.snapshot(player, progress.snapshots + 1, progress.steps)
    with self._database.transaction() as connection:
      identifier = connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM orders").fetchone()[0]
      uniform = np.random.default_rng((self._seed, _RESET, identifier)).random()
      order = Order(identifier, player.name, copy.name, progress.steps,
                    players.resets(rule, uniform))
      league_file.insert_order(connection, order)
    # Steps towards the next snapshot count from here, not from when this one is saved.
    self._progress[player.name] = progress._replace(
      snapshot_steps=progress.steps, snapshots=progress.snapshots + 1)
    self._open[order.id] = order
    return order

  def complete(self, identifier: int) -> Player:
    """Completes an order; see `Coordinator.complete`."""
    with self._database.lock:
      order = self._open.get(identifier)
      if order is None:
        return self._completed(identifier)
      parent = self._members.get(order.player)
      copy = Player(order.snapshot, players.HISTORICAL, parent.race, parent.name, parent.kind,
                    order.steps)
      clears, last = order.reset and self._clear_on_reset, self._assigner.last
      with self._database.transaction() as connection:
        league_file.complete_order(connection, order, copy)
        if clears:
          # In the same transaction: after a crash, no reset policy has its former scores.
          payoff.clear(connection, parent.name)
          league_file.set_reset(connection, parent.name, last)
      if clears:
        self._payoff.apply_clear(parent.name)
        self._assigner.apply_reset(parent.name, last)
      progress = self.progress(parent.name)
      self._progress[parent.name] = progress._replace(resets=progress.resets + order.reset)
      del self._open[identifier]
      self._members.read()
      return copy

  def _completed(self, identifier: int) -> Player:
    for order in self._file.orders(done=True):
      if order.id == identifier:
        return self._members.get(order.snapshot)
    raise UnknownPlayerError(f"The league in {self._database.path} gave no order {identifier}.")
