"""The calls of a league's actor: matches of many players, by the coordinator's assignments."""

import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague import league
from starleague.actor import behaviour, players, rollouts
from starleague.actor.goals import Goals, ended_games
from starleague.actor.loops import compiled_loop, league_connection, match_slots, openings, programs
from starleague.actor.loops.counts import Counts
from starleague.actor.loops.league_connection import Ended, GameReports, Members, active
from starleague.actor.loops.options import ActorOptions, ActorProcess
from starleague.actor.loops.weights import Version, WeightSource
from starleague.actor.parts import Parts
from starleague.agent import types
from starleague.common import run_files
from starleague.data.reverb.writer import TrajectoryWriter
from starleague.data.z.conditioning import Conditioning
from starleague.league import players as league_players


class StackedWeights:
  """The weights of the loaded players, stacked on the device."""

  def __init__(self, parts: Parts, slots: int, source: WeightSource):
    """Starts with zeros in all slots.

    Args:
      parts: of the run.
      slots: number of slots.
      source: of the players' weights.
    """
    shapes = jax.eval_shape(parts.policy.init, jax.random.key(0))
    self.stacked = jax.tree.map(lambda x: jax.numpy.zeros((slots, *x.shape), x.dtype), shapes)
    self._held: list[tuple[str, Version] | None] = [None] * slots  # player and version
    self._source = source
    self._put = jax.jit(
      lambda stacked, slot, params: jax.tree.map(lambda x, y: x.at[slot].set(y), stacked, params))

  def update(self, names: Sequence[str | None]) -> Any:
    """Puts the newest weights of players into their slots; returns all, [slots, ...].

    Raises the errors of `WeightSource.newer`.
    """
    for slot, name in enumerate(names):
      if name is None:
        continue
      held = self._held[slot]
      newest = self._source.newer(name, held[1] if held and held[0] == name else None)
      if newest is not None:
        self.stacked = self._put(self.stacked, slot, newest.params)
        self._held[slot] = name, newest.version
    return self.stacked


class Personal(NamedTuple):
  """What games are like for some players only.

  Attributes:
    active: [4], probability that each part of z is active for a main agent or its snapshot.
    minimax: factor of exploiters' reward for a fall of the opponent's value; 0: none.
    goals: of exploiters, whose games show all parts of z in use; None: they have no z.
    objectives: rewards for units by player, [2, types]; see `Conditioning.objectives`.
    snapshots_z: whether snapshots of main agents always play with z.
  """

  active: np.ndarray
  minimax: float = 0.0
  goals: Goals | None = None
  objectives: Mapping[str, np.ndarray] = {}
  snapshots_z: bool = False


def condition(conditioning: Conditioning, matches: match_slots.MatchSlots, members: Members,
              personal: Personal) -> Conditioning:
  """Conditions games on their matches: races, z, and rewards of their players.

  Args:
    conditioning: with the z to draw from.
    matches: loaded.
    members: the league's players.
    personal: what differs between players.
  """
  def race(name: str) -> int:
    found = members(name).race
    return types.RACES.index(found) if found in types.RACES else match_slots.NOBODY

  def reward(name: str) -> float:
    return personal.minimax * (members(name).kind in league_players.EXPLOITERS)

  def shown(name: str) -> np.ndarray:
    if personal.goals is not None and personal.goals.number(name):
      return np.sign(personal.active)
    found = active(personal.active, members(name))
    return np.sign(found) if personal.snapshots_z and not members(name).learns else found

  if personal.goals is not None:
    conditioning = conditioning._replace(
      goals=personal.goals.weights,
      goal=matches.by_player(personal.goals.number, np.int32(0)))
  if personal.objectives:
    names, tables = list(personal.objectives), list(personal.objectives.values())
    conditioning = conditioning._replace(
      objectives=np.stack([np.zeros_like(tables[0]), *tables]),
      objective=matches.by_player(
        lambda name: 1 + names.index(name) if name in names else 0, np.int32(0)))
  return conditioning._replace(
    active=matches.by_player(shown, np.zeros(len(personal.active), np.float32)),
    races=matches.by_player(race, np.int32(match_slots.NOBODY)),
    minimax=matches.by_player(reward, np.float32(0.0)) if personal.minimax else None)


class Assignments:
  """Reports games to the coordinator, and asks it for others."""

  def __init__(self, client: league.LeagueClient, matches: match_slots.MatchSlots, games: int):
    """Takes the connection, the slots to fill, and the number of games of an assignment."""
    self._client, self._slots, self._games = client, matches, games
    self._reports = GameReports(client)

  def fill(self) -> None:
    """Asks for assignments until every player has as many as it needs."""
    for name, count in self._slots.wanted().items():
      found = self._client.matches(name, count, self._games) if count else []
      self._slots.pause(name, count > 0 and not found)
      for assignment in found:
        if not self._slots.add(assignment):
          self._client.release([assignment])

  def add(self, ended: Sequence[Ended]) -> None:
    """Takes games that ended, and reports them every few seconds."""
    self._slots.drop(self._reports.add(ended, self._slots.assignments))


class LeagueCalls:
  """The calls of a league's actor; see `compiled_loop.CallSource`."""

  def __init__(self, parts: Parts, options: ActorOptions, process: ActorProcess,
               client: league.LeagueClient, weights: WeightSource, conditioning: Conditioning):
    """Connects to the data server.

    Args:
      parts: the agent and its games.
      options: of the actor.
      process: the actor.
      client: of the league's coordinator.
      weights: of the league's players.
      conditioning: with the z to draw from.
    """
    self._members = Members(client)
    learners = self._members.learners
    sizes = programs.league_sizes(parts, options, len(learners))
    self.program = programs.make_league(parts, options, sizes)
    self._batch = options.games
    self._slots = match_slots.MatchSlots(
      sizes, self._batch, learners, {name: number for number, name in enumerate(parts.opponents)})
    self._assignments = Assignments(client, self._slots, options.league_games)
    self._conditioning = conditioning
    exploiters = [
      name for name in learners if self._members(name).kind in league_players.EXPLOITERS]
    self._personal = Personal(options.active, options.exploiter_minimax, Goals(
      conditioning, exploiters, functools.partial(run_files.learner_dir, process.run_dir),
      str(process.number), lambda name: client.progress(name).resets)
      if options.exploiter_goals else None, options.objectives, options.snapshots_z)
    self._weights = StackedWeights(parts, sizes.slots, weights)
    self._writer = TrajectoryWriter(
      process.address, learners, parts.config, options.unroll_length, 2 * self._batch,
      deadline_s=options.timeout_s)
    self._counts = Counts(process.run_dir, process.origin, str(process.number))
    self._openings = {
      name: openings.Openings(
        run_files.learner_dir(process.run_dir, name), process.origin, str(process.number))
      for name in learners}

  def first(self) -> tuple[np.ndarray, Conditioning]:
    """Returns games of the first assignments; waits until there are any."""
    self._assignments.fill()
    while not self._slots.assignments:
      time.sleep(league_connection.REPORT_INTERVAL_S)
      self._assignments.fill()
    self._condition()
    opponents = np.resize(np.flatnonzero(self._slots.probabilities()), self._batch)
    self._slots.begin(opponents)
    return opponents, self._conditioning

  def _condition(self) -> None:
    self._conditioning = condition(
      self._conditioning, self._slots, self._members, self._personal)

  def _call(self, weights: Any) -> compiled_loop.Call:
    loaded = players.Players(weights, self._slots.pairs)
    self._condition()
    probabilities = self._slots.probabilities()
    return compiled_loop.Call(self._slots.calls, loaded, probabilities, self._conditioning)

  def example(self) -> compiled_loop.Call:
    """Returns a call with zeros as weights: the learners may not have published any."""
    return self._call(self._weights.stacked)

  def next_call(self) -> compiled_loop.Call:
    """Asks for the assignments that are wanted, and returns a call with the newest weights."""
    self._assignments.fill()
    return self._call(self._weights.update(self._slots.slots))

  def handle(self, played: compiled_loop.Played) -> None:
    """Writes the trajectories of a call and reports its games."""
    over, opponent = np.asarray(played.results.over), np.asarray(played.results.opponent)
    row = np.asarray(played.records.row)
    self._writer.write(played.records, self._slots.recorded(opponent, row))
    self._add_openings(played.results)
    if self._personal.goals is not None:
      self._personal.goals.add(*ended_games(
        played.results, self._slots.learners, self._slots.learning(opponent[over])))
    ended = self._slots.follow(over, opponent, np.asarray(played.results.reward),
                               np.asarray(played.after))
    self._slots.retire(played.number)
    behaviours = behaviour.of_results(played.results)
    self._assignments.add([game._replace(behaviours=tuple(found))
                           for game, found in zip(ended, behaviours, strict=True)])
    self._counts.add(int((row >= 0).sum()), len(ended))

  def _add_openings(self, finished: rollouts.Results) -> None:
    """Counts the build orders of learning players in finished games."""
    over = np.asarray(finished.over)
    learners = self._slots.learning(np.asarray(finished.opponent)[over])
    orders = np.asarray(finished.executed.build_order)[over]
    for number, name in enumerate(self._slots.learners):
      self._openings[name].add(orders[learners == number])
