"""The games of a league in StarCraft II: matches of many players, by the coordinator's assignments.

Learning players have fixed numbers, their indices. The other numbers belong to the frozen players
of the games at hand.
"""

import collections
import pathlib
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import ml_collections
import numpy as np

from starleague import league
from starleague.actor.game_processes import Finished
from starleague.actor.games import Order
from starleague.agent import types
from starleague.common import run_files, stopping
from starleague.experiments.run.actors import (
  compiled_league,
  compiled_loop,
  hosted_games,
  match_slots,
  openings,
)
from starleague.experiments.run.parts import wiring, z_source


class Numbers:
  """The numbers of the players whose weights are on the device."""

  def __init__(self, learners: Sequence[str], games: int):
    """Starts with the learning players.

    Args:
      learners: their names; they have the first numbers.
      games: largest number of unhandled games; each needs at most one frozen player.
    """
    self._names: list[str | None] = [*learners, *[None] * games]
    self._learners = len(learners)
    self._used = [0] * len(self._names)  # the last time that a number was taken
    self._clock = 0

  def take(self, name: str, busy: Collection[int]) -> tuple[int, bool]:
    """Returns the number of a player, and whether it is new and has no weights yet.

    A new player gets the least recently used number that no game needs.

    Args:
      name: of the player.
      busy: numbers in running games.
    """
    self._clock += 1
    new = name not in self._names
    number = (min((i for i in range(self._learners, len(self._names)) if i not in busy),
                  key=lambda i: self._used[i])
              if new else self._names.index(name))
    self._names[number], self._used[number] = name, self._clock
    return number, new


class _Game(NamedTuple):
  """A game of an assignment."""

  assignment: league.Assignment
  number: int  # within the assignment


class LeagueDealer:
  """Deals the games of a league's actor; see `sc2_acting.Dealer` and `compiled_league`."""

  def __init__(self, parts: wiring.Parts, config: ml_collections.ConfigDict,
               run_dir: pathlib.Path, address: str, client: league.LeagueClient, index: int,
               origin: float, rng: np.random.Generator):
    """Asks for the players and connects to the data server.

    Args:
      parts: of a run in StarCraft II.
      config: the run's config.
      run_dir: the run's directory.
      address: host:port of the data server.
      client: of the league's coordinator.
      index: of this actor among the run's.
      origin: start of the run, in Unix seconds.
      rng: changed.
    """
    self._parts, self._run_dir, self._rng = parts, run_dir, rng
    self._client, self._members = client, compiled_league.Members(client)
    self.learners: Sequence[str] = self._members.learners
    self._fetchers = [
      wiring.make_fetcher(parts, config, address, name, stopping.stop_event())
      for name in self.learners]
    self._held: list[Any] = [None] * len(self.learners)
    self._frozen: dict[int, Any] = {}  # weights that the device does not have yet
    # Each process may have a game that has ended and is not yet handled, and the next one.
    self._numbers = Numbers(self.learners, 2 * config.actor.games)
    self.given = z_source.of_games(parts, config, run_dir)
    self._games = config.league.games
    self._waiting: dict[str, collections.deque[_Game]] = {
      name: collections.deque() for name in self.learners}
    self._playing: dict[Order, _Game] = {}
    self._reports = compiled_league.Reports(client)
    self._asked = 0.0  # the last time that the coordinator had no match
    self._counts = compiled_loop.Counts(run_dir, origin, str(index))
    self._openings = {name: openings.Openings(run_files.learner_dir(run_dir, name), origin)
                      for name in self.learners}

  def next_order(self) -> Order | None:
    """Returns a game of the learning player with the fewest running ones.

    Raises:
      FileNotFoundError, CheckpointDamagedError, CheckpointMismatchError: a snapshot is missing or
        cannot be used.
    """
    running = collections.Counter(game.assignment.home for game in self._playing.values())
    for name in sorted(self.learners, key=lambda name: running[name]):
      game = self._next_game(name)
      if game is not None:
        order = self._order(game.assignment)
        self._playing[order] = game
        return order
    self._asked = time.monotonic()
    return None

  def _next_game(self, name: str) -> _Game | None:
    waiting = self._waiting[name]
    idle = time.monotonic() - self._asked < compiled_league.REPORT_INTERVAL_S
    if not waiting and not idle:
      for assignment in self._client.matches(name, 1, self._games):
        waiting.extend(_Game(assignment, number) for number in range(assignment.games))
    return waiting.popleft() if waiting else None

  def _order(self, assignment: league.Assignment) -> Order:
    """Returns a game of an assignment; loads the weights of frozen players."""
    home, away = (self._members(name) for name in (assignment.home, assignment.away))
    bot = away.name if away.kind == league.SCRIPTED else ""
    races = [types.RACES.index(each.race) for each in (home, home if bot else away)]
    active = [compiled_league.active(np.asarray(self.given.active), each) for each in (home, away)]
    order = hosted_games.draw_order(
      self._parts, self._rng, bot, self.given._replace(active=np.stack(active)), races)
    busy = {number for each in self._playing for number in each.players}
    first = self._number(home.name, busy)
    second = first if bot else self._number(away.name, busy | {first})
    return order._replace(players=(first, second), recorded=(True, assignment.both_learn))

  def _number(self, name: str, busy: Collection[int]) -> int:
    number, new = self._numbers.take(name, busy)
    if new:
      self._frozen[number] = compiled_league.load_snapshot(self._parts, self._run_dir, name)
    return number

  def newest(self) -> Mapping[int, Any]:
    """Returns weights that are new: of learning players, and of frozen ones in new games."""
    found, self._frozen = self._frozen, {}
    for number, fetch in enumerate(self._fetchers):
      fetched = fetch()
      if fetched is not self._held[number]:
        self._held[number] = fetched
        found[number] = fetched.params
    return found

  def handle(self, finished: Sequence[Finished], steps: int) -> None:
    """Reports results and openings; a void match is played again."""
    ended = []
    for order, report in finished:
      game = self._playing.pop(order)
      if report.result is None:
        self._waiting[game.assignment.home].appendleft(game)
        continue
      ended.append(match_slots.Ended(game.assignment, game.number, report.result))
      names = (game.assignment.home, game.assignment.away)
      for name, recorded, built in zip(names, order.recorded, report.build_orders, strict=False):
        if recorded:
          self._openings[name].add(np.array([built]))
    at_hand = [*self._playing.values(), *(each for games in self._waiting.values()
                                          for each in games)]
    lost = self._reports.add(ended, {game.assignment for game in at_hand})
    if lost:
      for name, games in self._waiting.items():
        self._waiting[name] = collections.deque(
          game for game in games if game.assignment not in lost)
    self._counts.add(steps, len(ended))

