"""The games of a league's actor: matches of many players, by the coordinator's assignments."""

import pathlib
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import ml_collections
import numpy as np

from starleague import league
from starleague.actor import players, rollouts
from starleague.agent import types
from starleague.common import run_files
from starleague.data import checkpoints
from starleague.data.reverb.parameters import ParameterFetcher
from starleague.data.reverb.writer import TrajectoryWriter
from starleague.data.z.conditioning import Conditioning
from starleague.experiments.run.actors import compiled_loop, match_slots, openings
from starleague.experiments.run.parts import wiring, z_source
from starleague.league import players as league_players

REPORT_INTERVAL_S = 2.0


def load_snapshot(parts: wiring.Parts, run_dir: pathlib.Path, name: str) -> Any:
  """Returns the parameters of a historical player.

  Raises:
    FileNotFoundError, CheckpointDamagedError, CheckpointMismatchError: its snapshot is missing or
      cannot be used.
  """
  path = run_files.snapshot_path(run_dir, name)
  # The league begins with snapshots of the initial parameters, which are stored once.
  if league_players.is_first_snapshot(name) and not path.exists():
    path = run_dir / run_files.INITIAL
  return checkpoints.load_params(path, parts.config)


class Weights:
  """The parameters of the players at hand, stacked on the device."""

  def __init__(self, parts: wiring.Parts, run_dir: pathlib.Path, slots: int,
               fetchers: Mapping[str, ParameterFetcher]):
    """Starts with zeros in all slots.

    Args:
      parts: of the run.
      run_dir: the run's directory, which holds the snapshots.
      slots: number of slots.
      fetchers: of the learning players' newest parameters, by name.
    """
    shapes = jax.eval_shape(parts.policy.init, jax.random.key(0))
    self.stacked = jax.tree.map(lambda x: jax.numpy.zeros((slots, *x.shape), x.dtype), shapes)
    self._held: list[tuple[str, int] | None] = [None] * slots  # player and update of each slot
    self._parts, self._run_dir, self._fetchers = parts, run_dir, fetchers
    self._put = jax.jit(
      lambda stacked, slot, params: jax.tree.map(lambda x, y: x.at[slot].set(y), stacked, params))

  def update(self, names: Sequence[str | None]) -> Any:
    """Puts the newest parameters of players into their slots; returns all, [slots, ...].

    Raises:
      FileNotFoundError, CheckpointDamagedError, CheckpointMismatchError: a snapshot is missing or
        cannot be used.
    """
    for slot, name in enumerate(names):
      if name is None:
        continue
      # A learning player changes with each update, a frozen one never.
      fetched = self._fetchers[name]() if name in self._fetchers else None
      version = name, fetched.step if fetched else -1
      if version == self._held[slot]:
        continue
      params = (fetched.params if fetched
                else load_snapshot(self._parts, self._run_dir, name))
      self.stacked = self._put(self.stacked, slot, params)
      self._held[slot] = version
    return self.stacked


class Members:
  """The league's players by name."""

  def __init__(self, client: league.LeagueClient):
    """Asks for the players."""
    self._client = client
    self._players = self._ask()

  def _ask(self) -> dict[str, league.Player]:
    return {player.name: player for player in self._client.players()}

  @property
  def learners(self) -> list[str]:
    """Names of the players that learn."""
    return [name for name, player in self._players.items() if player.learns]

  def __call__(self, name: str) -> league.Player:
    """Returns a player; asks again for one that is not known, a new snapshot."""
    if name not in self._players:
      self._players = self._ask()
    return self._players[name]


def active(probabilities: np.ndarray, player: league.Player) -> np.ndarray:
  """Returns the probability [4] that each part of z is active for a player.

  Main agents and their snapshots play with z, exploiters without.

  Args:
    probabilities: [4], for a main agent.
    player: of the league.
  """
  return probabilities * (league_players.MAIN in (player.kind, player.parent_kind))


def tell(told: Conditioning, matches: match_slots.Table, members: Members,
         probabilities: np.ndarray) -> Conditioning:
  """Returns the conditions of the matches at hand: races; z for main agents and their snapshots.

  Args:
    told: conditions with the z to draw from.
    matches: at hand.
    members: the league's players.
    probabilities: [4], that each part of z is active for a main agent.
  """
  def race(name: str) -> int:
    found = members(name).race
    return types.RACES.index(found) if found in types.RACES else match_slots.NOBODY

  return told._replace(
    active=matches.active(lambda name: active(probabilities, members(name))),
    races=matches.races(race))


class Reports:
  """Reports games to the coordinator every few seconds, and renews the leases of the others."""

  def __init__(self, client: league.LeagueClient):
    """Takes the connection."""
    self._client = client
    self._ended: dict[league.Assignment, list[league.PlayedGame]] = {}
    self._reported = time.monotonic()

  def add(self, ended: Sequence[match_slots.Ended],
          held: Collection[league.Assignment]) -> list[league.Assignment]:
    """Takes games that ended, and the assignments at hand; returns those of them that are lost.

    An assignment is lost if another actor has it, or a player of it is paused.
    """
    for game in ended:
      if game.game < game.assignment.games:
        self._ended.setdefault(game.assignment, []).append(
          league.PlayedGame(game.game, int(np.sign(game.reward)), time.time()))
    now = time.monotonic()
    if now - self._reported < REPORT_INTERVAL_S:
      return []
    self._reported = now
    if self._ended:
      self._client.report_games(
        [league.GamesReport(assignment, games) for assignment, games in self._ended.items()])
      self._ended = {}
    kept = set(self._client.renew(held))
    return [each for each in held if each.id not in kept]


class Games:
  """Reports games to the coordinator, and asks it for others."""

  def __init__(self, client: league.LeagueClient, matches: match_slots.Table, games: int):
    """Takes the connection, the table to fill, and the number of games of an assignment."""
    self._client, self._table, self._games = client, matches, games
    self._reports = Reports(client)

  def fill(self) -> None:
    """Asks for assignments until every player has as many as it needs."""
    for name, count in self._table.wanted().items():
      found = self._client.matches(name, count, self._games) if count else []
      self._table.pause(name, count > 0 and not found)
      for assignment in found:
        if not self._table.add(assignment):
          self._client.release([assignment])

  def add(self, ended: Sequence[match_slots.Ended]) -> None:
    """Takes games that ended, and reports them every few seconds."""
    self._table.drop(self._reports.add(ended, self._table.assignments))


def connect(coordinator: str, index: int) -> league.LeagueClient:
  """Returns an actor's connection to the coordinator at host:port."""
  return league.LeagueClient(
    league.GrpcTransport(coordinator), f"actor-{index}-{uuid.uuid4().hex[:8]}")


class LeagueGames:
  """The games of a league's actor; see `compiled_loop.Games`."""

  def __init__(self, parts: wiring.Parts, config: ml_collections.ConfigDict,
               run_dir: pathlib.Path, address: str, client: league.LeagueClient, index: int,
               origin: float):
    """Connects to the data server.

    Args:
      parts: the agent, its environment and its scripted opponents.
      config: the run's config.
      run_dir: the run's directory.
      address: host:port of the data server.
      client: of the league's coordinator.
      index: of this actor among the run's.
      origin: start of the run, in Unix seconds.
    """
    self._members = Members(client)
    learners = self._members.learners
    sizes = wiring.player_sizes(parts, config, len(learners))
    self.program = wiring.make_player_rollouts(parts, config, sizes)
    self._batch = config.actor.games
    self._matches = match_slots.Table(sizes, self._batch, learners,
                                {name: number for number, name in enumerate(parts.opponents)})
    self._games = Games(client, self._matches, config.league.games)
    self._active = wiring.active_probabilities(config)
    self._told = z_source.of_games(parts, config, run_dir)
    self._weights = Weights(parts, run_dir, sizes.slots, {
      name: wiring.make_fetcher(parts, config, address, name) for name in learners})
    self._writer = TrajectoryWriter(address, learners, parts.config, config.unroll_length,
                                    2 * self._batch, deadline_s=config.data.timeout_s)
    self._counts = compiled_loop.Counts(run_dir, origin, str(index))
    self._openings = {name: openings.Openings(run_files.learner_dir(run_dir, name), origin)
                      for name in learners}

  def first(self) -> tuple[np.ndarray, Conditioning]:
    """Returns games of the first assignments; waits until there are any."""
    self._games.fill()
    while not self._matches.assignments:
      time.sleep(REPORT_INTERVAL_S)
      self._games.fill()
    self._told = tell(self._told, self._matches, self._members, self._active)
    opponents = np.resize(np.flatnonzero(self._matches.probabilities()), self._batch)
    self._matches.begin(opponents)
    return opponents, self._told

  def _call(self, weights: Any) -> compiled_loop.Call:
    at_hand = players.Players(weights, self._matches.pairs)
    self._told = tell(self._told, self._matches, self._members, self._active)
    probabilities = self._matches.probabilities()
    return compiled_loop.Call(self._matches.calls, at_hand, probabilities, self._told)

  def example(self) -> compiled_loop.Call:
    """Returns a call with zeros as weights: the learners may not have published any."""
    return self._call(self._weights.stacked)

  def next_call(self) -> compiled_loop.Call:
    """Asks for the assignments that are wanted, and returns a call with the newest weights."""
    self._games.fill()
    return self._call(self._weights.update(self._matches.slots))

  def handle(self, played: compiled_loop.Played) -> None:
    """Writes the trajectories of a call and reports its games."""
    over, opponent = np.asarray(played.results.over), np.asarray(played.results.opponent)
    row = np.asarray(played.records.row)
    self._writer.write(played.records, self._matches.recorded(opponent, row))
    self._add_openings(played.results)
    ended = self._matches.follow(over, opponent, np.asarray(played.results.reward),
                                 np.asarray(played.after))
    self._matches.retire(played.number)
    self._games.add(ended)
    self._counts.add(int((row >= 0).sum()), len(ended))

  def _add_openings(self, finished: rollouts.Results) -> None:
    """Counts the build orders of learning players in finished games."""
    over = np.asarray(finished.over)
    learners = self._matches.learning(np.asarray(finished.opponent)[over])
    orders = np.asarray(finished.executed.build_order)[over]
    for number, name in enumerate(self._matches.learners):
      self._openings[name].add(orders[learners == number])
