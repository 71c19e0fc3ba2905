"""The actor's loop in a league: games of many players, their trajectories and results."""

import pathlib
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import jax
import ml_collections
import numpy as np

from starleague import league
from starleague.actor import players, rollouts
from starleague.agent import types
from starleague.data.conditioning import Conditioning
from starleague.data.parameters import ParameterFetcher
from starleague.data.records import Records
from starleague.data.writer import TrajectoryWriter
from starleague.experiments.run import acting, compiling, conditions, stopping, table, wiring
from starleague.league import players as league_players
from starleague.learner import checkpoints

REPORT_INTERVAL_S = 2.0


def load_snapshot(parts: wiring.Parts, run_dir: pathlib.Path, name: str) -> Any:
  """Returns the parameters of a historical player.

  Raises:
    FileNotFoundError, CheckpointDamagedError, CheckpointMismatchError: its snapshot is missing or
      cannot be used.
  """
  path = wiring.snapshot_path(run_dir, name)
  # The league begins with snapshots of the initial parameters, which are stored once.
  return checkpoints.load_params(
    path if path.exists() else run_dir / wiring.INITIAL, parts.config)


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


def tell(told: Conditioning, matches: table.Table, members: Members,
         active: np.ndarray) -> Conditioning:
  """Returns the conditions of the matches at hand: races; z for main agents and their snapshots.

  Args:
    told: conditions with the z to draw from.
    matches: at hand.
    members: the league's players.
    active: [4], probability that each part of z is active for a main agent.
  """
  def shown(name: str) -> np.ndarray:
    player = members(name)
    return active * (league_players.MAIN in (player.kind, player.parent_kind))

  def race(name: str) -> int:
    found = members(name).race
    return types.RACES.index(found) if found in types.RACES else table.NOBODY

  return told._replace(active=matches.active(shown), races=matches.races(race))


class Games:
  """Reports games to the coordinator, and asks it for others."""

  def __init__(self, client: league.LeagueClient, matches: table.Table, games: int):
    """Takes the connection, the table to fill, and the number of games of an assignment."""
    self._client, self._table, self._games = client, matches, games
    self._ended: dict[league.Assignment, list[league.PlayedGame]] = {}
    self._reported = self._renewed = time.monotonic()

  def fill(self) -> None:
    """Asks for assignments until every player has as many as it needs."""
    for name, count in self._table.wanted().items():
      for assignment in self._client.matches(name, count, self._games) if count else ():
        if not self._table.add(assignment):
          self._client.release([assignment])

  def add(self, ended: Sequence[table.Ended]) -> None:
    """Takes games that ended, and reports them every few seconds."""
    for game in ended:
      if game.game < game.assignment.games:
        self._ended.setdefault(game.assignment, []).append(
          league.PlayedGame(game.game, int(np.sign(game.reward)), time.time()))
    now = time.monotonic()
    if now - self._reported < REPORT_INTERVAL_S:
      return
    self._reported = now
    if self._ended:
      self._client.report_games(
        [league.GamesReport(assignment, games) for assignment, games in self._ended.items()])
      self._ended = {}
    self._client.renew(self._table.assignments)


class Played(NamedTuple):
  """Outputs of one call of the program, and who its steps are recorded for."""

  call: int
  records: Records
  results: rollouts.Results
  after: jax.Array  # [games]: opponent indices after the call


def play(parts: wiring.Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path,
         address: str, coordinator: str, index: int, origin: float) -> NoReturn:
  """Plays until SIGTERM or SIGINT, which end the process at once.

  The host handles the outputs of a call while the next one runs.

  Args:
    parts: the agent, its environment and its scripted opponents.
    config: the run's config.
    run_dir: the run's directory.
    address: host:port of the data server.
    coordinator: host:port of the league's coordinator.
    index: of this actor among the run's.
    origin: start of the run, in Unix seconds.
  """
  stopping.end_at_once()  # only unfinished games are lost: their leases end
  client = league.LeagueClient(
    league.GrpcTransport(coordinator), f"actor-{index}-{uuid.uuid4().hex[:8]}")
  members = Members(client)
  learners = members.learners
  sizes = wiring.player_sizes(parts, config, len(learners))
  program = wiring.make_player_rollouts(parts, config, sizes)
  matches = table.Table(sizes, config.actor.games, learners,
                        {name: number for number, name in enumerate(parts.opponents)})
  games = Games(client, matches, config.league.games)
  while not matches.assignments:
    games.fill()
    time.sleep(REPORT_INTERVAL_S * (not matches.assignments))
  active = wiring.active_probabilities(config)
  told = conditions.from_library(parts, config, run_dir / wiring.LIBRARY)
  told = tell(told, matches, members, active)
  places = np.flatnonzero(matches.probabilities())
  opponents = np.resize(places, config.actor.games)
  key = jax.random.fold_in(jax.random.key(config.seed), time.time_ns() % 2**31 + index)
  with compiling.without_collection():
    state = program.init(key, opponents, told)
  matches.begin(opponents)
  template = jax.eval_shape(parts.policy.init, jax.random.key(0))
  weights = Weights(parts, run_dir, sizes.slots, {
    name: ParameterFetcher(address, name, template, deadline_s=config.data.timeout_s,
                           interval_s=config.actor.parameter_interval_s) for name in learners})
  with compiling.without_collection():
    run = program.run.lower(players.Players(weights.stacked, matches.pairs), state,
                            matches.probabilities(), told).compile()
  writer = TrajectoryWriter(address, learners, parts.config, config.unroll_length,
                            2 * config.actor.games, deadline_s=config.data.timeout_s)
  counts = acting.Counts(run_dir, origin)
  acting.lower_priority(config.actor.niceness)
  previous: Played | None = None
  while True:
    games.fill()
    at_hand = players.Players(weights.update(matches.slots), matches.pairs)
    told = tell(told, matches, members, active)
    probabilities = matches.probabilities()
    state, records, finished = run(at_hand, state, probabilities, told)
    played = Played(matches.calls, records, finished, state.opponent + 0)  # `state` is donated
    if previous is not None:
      _handle(previous, matches, writer, games, counts)
    previous = played


def _handle(played: Played, matches: table.Table, writer: TrajectoryWriter, games: Games,
            counts: acting.Counts) -> None:
  """Writes the trajectories of a call and reports its games."""
  over, opponent = np.asarray(played.results.over), np.asarray(played.results.opponent)
  row = np.asarray(played.records.row)
  writer.write(played.records, matches.recorded(opponent, row))
  ended = matches.follow(over, opponent, np.asarray(played.results.reward),
                         np.asarray(played.after))
  matches.retire(played.call)
  games.add(ended)
  counts.add(int((row >= 0).sum()), len(ended))


