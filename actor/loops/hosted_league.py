"""The games of a league outside JAX: matches of many players, by the coordinator's assignments.

Learning players have fixed numbers, their indices. The other numbers belong to the frozen players
of the loaded games.
"""

import collections
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague import league
from starleague.actor.game_processes import Finished
from starleague.actor.games import GameRequest
from starleague.actor.loops import hosted_games, league_connection, openings
from starleague.actor.loops.counts import Counts
from starleague.actor.loops.league_connection import Ended, GameReports, Members, active
from starleague.actor.loops.options import ActorOptions, ActorProcess
from starleague.actor.loops.weights import Version, WeightSource
from starleague.actor.parts import Parts
from starleague.agent import types
from starleague.common import run_files
from starleague.data.z.conditioning import Conditioning


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


class LeagueMatches:
  """The games of a league's actor; see `hosted_loop.MatchSource` and `compiled_league`."""

  def __init__(self, parts: Parts, options: ActorOptions, process: ActorProcess,
               client: league.LeagueClient, weights: WeightSource, conditioning: Conditioning,
               rng: np.random.Generator):
    """Asks for the players.

    Args:
      parts: the agent and its games.
      options: of the actor.
      process: the actor.
      client: of the league's coordinator.
      weights: of the league's players.
      conditioning: with the z to draw from.
      rng: changed.
    """
    self._parts, self._rng, self._weights = parts, rng, weights
    self._client, self._members = client, Members(client)
    self.learners: Sequence[str] = self._members.learners
    self._versions: list[Version | None] = [None] * len(self.learners)  # held, of the learners
    self._frozen: dict[int, Any] = {}  # weights that the device does not have yet
    # Each process may have a game that has ended and is not yet handled, and the next one.
    self._numbers = Numbers(self.learners, 2 * options.games)
    self.conditioning = conditioning
    self._games = options.league_games
    self._waiting: dict[str, collections.deque[_Game]] = {
      name: collections.deque() for name in self.learners}
    self._playing: dict[GameRequest, _Game] = {}
    self._reports = GameReports(client)
    self._asked = 0.0  # the last time that the coordinator had no match
    self._counts = Counts(process.run_dir, process.origin, str(process.number))
    self._openings = {
      name: openings.Openings(
        run_files.learner_dir(process.run_dir, name), process.origin, str(process.number))
      for name in self.learners}

  def next_request(self) -> GameRequest | None:
    """Returns a game of the learning player with the fewest running ones.

    Raises the errors of `WeightSource.newer`.
    """
    running = collections.Counter(game.assignment.home for game in self._playing.values())
    for name in sorted(self.learners, key=lambda name: running[name]):
      game = self._next_game(name)
      if game is not None:
        request = self._request(game.assignment)
        self._playing[request] = game
        return request
    self._asked = time.monotonic()
    return None

  def _next_game(self, name: str) -> _Game | None:
    waiting = self._waiting[name]
    idle = time.monotonic() - self._asked < league_connection.REPORT_INTERVAL_S
    if not waiting and not idle:
      for assignment in self._client.matches(name, 1, self._games):
        if assignment in self._held():  # its lease had lapsed and is taken again
          continue
        waiting.extend(_Game(assignment, number) for number in range(assignment.games))
    return waiting.popleft() if waiting else None

  def _held(self) -> set[league.Assignment]:
    """Returns the assignments with games that run or wait."""
    waiting = (game for games in self._waiting.values() for game in games)
    return {game.assignment for game in (*self._playing.values(), *waiting)}

  def _request(self, assignment: league.Assignment) -> GameRequest:
    """Returns a game of an assignment; loads the weights of frozen players."""
    home, away = (self._members(name) for name in (assignment.home, assignment.away))
    bot = away.name if away.kind == league.SCRIPTED else ""
    races = [types.RACES.index(each.race) for each in (home, home if bot else away)]
    probabilities = np.asarray(self.conditioning.active)
    shown = [active(probabilities, each) for each in (home, away)]
    request = hosted_games.draw_request(
      self._parts, self._rng, bot, self.conditioning._replace(active=np.stack(shown)), races)
    busy = {number for each in self._playing for number in each.players}
    first = self._number(home.name, busy)
    second = first if bot else self._number(away.name, busy | {first})
    return request._replace(players=(first, second), recorded=(True, assignment.both_learn))

  def _number(self, name: str, busy: Collection[int]) -> int:
    number, new = self._numbers.take(name, busy)
    if new:
      self._frozen[number] = self._weights(name).params
    return number

  def newest(self) -> Mapping[int, Any]:
    """Returns weights that are new: of learning players, and of frozen ones in new games."""
    found, self._frozen = self._frozen, {}
    for number, name in enumerate(self.learners):
      newest = self._weights.newer(name, self._versions[number])
      if newest is not None:
        self._versions[number], found[number] = newest.version, newest.params
    return found

  def handle(self, finished: Sequence[Finished], steps: int) -> None:
    """Reports results and openings; a void match is played again."""
    ended = []
    for request, report in finished:
      game = self._playing.pop(request)
      if report.result is None:
        self._waiting[game.assignment.home].appendleft(game)
        continue
      ended.append(Ended(game.assignment, game.number, report.result,
                         tuple(league.Behaviour(*each) for each in report.behaviours)))
      names = (game.assignment.home, game.assignment.away)
      for name, recorded, built in zip(names, request.recorded, report.build_orders, strict=False):
        if recorded:
          self._openings[name].add(np.array([built]))
    lost = self._reports.add(ended, self._held())
    if lost:
      for name, games in self._waiting.items():
        self._waiting[name] = collections.deque(
          game for game in games if game.assignment not in lost)
    self._counts.add(steps, len(ended))

