"""The coordinator against the loop over pairs that public leagues run for each match.

    python -m benchmarks.league.coordinator [--snapshots 900] [--rounds 20]

The plain league is the published pseudocode in its usual form: a dictionary of counters by (home,
away), and a list of win rates for each match. It has no leases, and loses everything when it stops.
Both leagues have the same players, scores and results; they take turns within each round. In each
turn 16 results are reported before 16 matches, because the coordinator prepares matches when it
counts results. A line shows medians of processor time over the rounds, all threads included, and
the ratio of the rates. The coordinator's results are on disk; the last two columns are of a plain
league that commits its results to a SQLite file too.
"""

import argparse
import functools
import itertools
import multiprocessing
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from starleague import league
from starleague.common.database import Database
from starleague.league import players
from starleague.league.client import GrpcTransport, LeagueClient
from starleague.league.leases import Assignment
from starleague.league.server import Server

CALLS = 1200  # results and matches of each league in a turn
BATCH = 16  # results of one report, and assignments of one request
RESULTS = 256  # results of a large report
CLIENTS, CLIENT_S = 4, 4.0
TABLE = "CREATE TABLE results (home TEXT, away TEXT, result INTEGER)"
Played = Sequence[tuple[str, str, int]]  # (home, away, result)


class Counters:
  """Decayed games of one player against another."""

  __slots__ = ("draws", "games", "losses", "wins")

  def __init__(self):
    self.games = self.wins = self.draws = self.losses = 0.0

  def add(self, result: int) -> None:
    """Counts a result."""
    self.games = self.games * 0.99 + 1
    self.wins = self.wins * 0.99 + (result > 0)
    self.draws = self.draws * 0.99 + (result == 0)
    self.losses = self.losses * 0.99 + (result < 0)


class PlainLeague:
  """The published pseudocode's payoff and matchmaking."""

  def __init__(self, members: list[league.Player], seed: int):
    self.players, self.rng = members, np.random.default_rng(seed)
    self.counters: dict[tuple[str, str], Counters] = {}

  def update(self, home: str, away: str, result: int) -> None:
    """Counts a result in both directions."""
    for key, value in (((home, away), result), ((away, home), -result)):
      if key not in self.counters:
        self.counters[key] = Counters()
      self.counters[key].add(value)

  def win_rate(self, home: str, away: str) -> float:
    """Returns a pair's score."""
    found = self.counters.get((home, away))
    return (found.wins + 0.5 * found.draws) / found.games if found else 0.5

  def win_rates(self, home: str, away: list[league.Player]) -> np.ndarray:
    """Returns the scores against several players."""
    return np.array([self.win_rate(home, other.name) for other in away])

  def choose(self, home: str, away: list[league.Player], weighting: str) -> str:
    """Returns an opponent drawn by PFSP."""
    probabilities = league.pfsp(self.win_rates(home, away), weighting)
    return away[self.rng.choice(len(away), p=probabilities)].name

  def match(self, home: league.Player) -> str:
    """Returns the opponent of a player's next match."""
    historical = [other for other in self.players if other.kind == players.HISTORICAL]
    if home.kind == players.LEAGUE_EXPLOITER:
      return self.choose(home.name, historical, "linear_capped")
    draw = self.rng.random()
    if home.kind == players.MAIN and draw < 0.5:
      return self.choose(home.name, historical, "squared")
    mains = [other for other in self.players if other.kind == players.MAIN]
    opponent = mains[self.rng.integers(len(mains))].name
    past = [other for other in historical if other.parent == opponent]
    if home.kind == players.MAIN and draw < 0.65:
      exploiters = [other for other in historical if other.parent_kind == players.MAIN_EXPLOITER]
      if self.win_rates(home.name, exploiters).min() < 0.3:
        return self.choose(home.name, exploiters, "squared")
      kept = league.remove_monotonic_suffix(self.win_rates(home.name, past))
      if kept.size and kept.min() < 0.7:
        return self.choose(home.name, past[:kept.size], "squared")
    if self.win_rate(home.name, opponent) > (0.3 if home.kind == players.MAIN else 0.1):
      return opponent
    return self.choose(home.name, past, "variance")


def make_members(snapshots: int) -> list[league.Player]:
  """Returns the published twelve learners and their snapshots."""
  learners = [player for player in players.initial_players() if player.learns]
  copies = [players.snapshot(learners[i % len(learners)], i // len(learners) + 1, i)
            for i in range(snapshots)]
  return [*learners, *copies]


def random_results(members: list[league.Player], number: int, seed: int) -> list[tuple]:
  """Returns (home, away, result) of learners against all others, `number` of them.

  A single player has no results.
  """
  if len(members) < 2:
    return []
  rng = np.random.default_rng(seed)
  homes = [player.name for player in members if player.learns]
  skill = dict(zip((player.name for player in members), rng.normal(size=len(members)), strict=True))
  found = []
  while len(found) < number:
    home, away = homes[rng.integers(len(homes))], members[rng.integers(len(members))].name
    if home != away:
      wins = rng.random() < 1 / (1 + np.exp(skill[away] - skill[home]))
      found.append((home, away, 1 if wins else -1))
  return found


def seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
  """Returns the seconds that a call takes."""
  start = clock()
  work()
  return clock() - start


def take_turn(played: Played, report: Callable[[Played], object],
              match: Callable[[int], object]) -> tuple[float, float]:
  """Reports results, BATCH at a time, and requests as many matches after each report.

  Returns:
    Processor seconds of a result and of a match, those of all threads.
  """
  reports = matches = 0.0
  for start in range(0, len(played), BATCH):
    part = played[start:start + BATCH]
    reports += seconds(functools.partial(report, part), time.process_time)
    matches += seconds(functools.partial(match, len(part)), time.process_time)
  return reports / len(played), matches / len(played)


def show(ours: list[tuple[float, float]], plain: list[tuple[float, float]],
         saved: list[float]) -> None:
  """Prints the medians of results and matches, and the ratios.

  Args:
    ours: seconds of a result and of a match, by turn.
    plain: the same of the plain league.
    saved: seconds in which the plain league commits a result, by turn.
  """
  stored = [(result + save, match) for (result, match), save in zip(plain, saved, strict=True)]
  for name, pick in (("match", lambda turn: turn[1]), ("result", lambda turn: turn[0]),
                     ("match + result", sum)):
    one, *others = (1e6 * statistics.median(map(pick, turns)) for turns in (ours, plain, stored))
    print(f"{name:16s} {one:9.1f} us" + "".join(
      f" {other:9.1f} us {other / one:7.2f}x" for other in others), flush=True)


def measure(served: league.Coordinator, plain: PlainLeague, database: Database,
            members: list[league.Player], rounds: int) -> None:
  """Runs both leagues in turns and prints the tables."""
  homes = itertools.cycle([player for player in members if player.learns])
  results = random_results(members, 2 * rounds * CALLS, 2)
  count = functools.partial(count_ours, served, itertools.count())
  single, batch, other, saved, rate = [], [], [], list[float](), list[float]()
  for i in range(rounds):
    first, second = (results[j * CALLS:(j + 1) * CALLS] for j in (2 * i, 2 * i + 1))
    single.append(take_turn(first, count, lambda number: [
      served.get_match(home.name) for home in itertools.islice(homes, number)]))
    other.append(take_turn(first, functools.partial(count_plain, plain), lambda number: [
      plain.match(home) for home in itertools.islice(homes, number)]))
    saved.append(take_turn(first, functools.partial(save, database), lambda number: None)[0])
    batch.append(take_turn(
      second, count, lambda number: served.matches(next(homes).name, number)))
    count_plain(plain, second)
    served.flush()
    rate.append(seconds(lambda i=i: report(served, i), time.perf_counter))
  print(f"{'median of':16s} {'coordinator':>12s} {'plain':>12s} {'ratio':>8s} "
        f"{'plain, saved':>12s} {'ratio':>8s}")
  show(single, other, saved)
  print(f"the same, matches in requests for {BATCH} and with leases:")
  show(batch, other, saved)
  pairs = [seconds(lambda: served.evaluation_matches(1, BATCH), time.thread_time)
           for _ in range(rounds + 1)]
  print(f"an evaluator's request: {1e3 * statistics.median(pairs[1:]):.2f} ms; the first one, "
        f"which computes all pairs, {1e3 * pairs[0]:.0f} ms")
  print(f"results on disk, {RESULTS} in a report: {RESULTS / statistics.median(rate):,.0f}/s")


def client(address: str, home: str, games: int, start_together: Any, answers: Any) -> None:
  """Requests a match and reports its games, again and again; answers with the seconds of each."""
  connected = LeagueClient(GrpcTransport(address))
  times: dict[str, list[float]] = {"match": [], "report": []}
  connected.players()
  start_together.wait(300)
  until = time.perf_counter() + CLIENT_S
  while (start := time.perf_counter()) < until:
    assignment, = connected.matches(home, 1, games)
    middle = time.perf_counter()
    played = [league.PlayedGame(game, 1, 0.0) for game in range(assignment.games)]
    connected.report_games([league.GamesReport(assignment, played)])
    times["match"].append(middle - start)
    times["report"].append(time.perf_counter() - middle)
  connected.close()
  answers.put(times)


def measure_service(served: league.Coordinator, members: list[league.Player],
                    games: int) -> None:
  """Prints the rates of client processes; each match has so many games, reported together."""
  context = multiprocessing.get_context("spawn")
  answers, serving = context.Queue(), Server(served)
  homes = [player.name for player in members if player.learns][:CLIENTS]
  barrier = context.Barrier(len(homes))
  processes = [context.Process(target=client,
                               args=(serving.address, home, games, barrier, answers))
               for home in homes]
  for process in processes:
    process.start()
  found = [answers.get(timeout=300) for _ in processes]
  for process in processes:
    process.join()
  serving.stop()
  total = sum(len(times["report"]) / (sum(times["report"]) + sum(times["match"]))
              for times in found)
  medians = {name: 1e3 * statistics.median(each for times in found for each in times[name])
             for name in ("match", "report")}
  print(f"{CLIENTS} client processes, {games} games a match: {total:,.0f} matches/s, "
        f"{total * games:,.0f} results/s; a match {medians['match']:.2f} ms, "
        f"a report on disk {medians['report']:.2f} ms")


def count_ours(served: league.Coordinator, ids: Iterator[int], played: Played) -> None:
  """Counts results; they are on disk on return."""
  served.report_many([league.GameResult(f"game-{next(ids)}", *each, 0.0) for each in played])


def count_plain(plain: PlainLeague, played: Played) -> None:
  """Counts results."""
  for each in played:
    plain.update(*each)


def save(database: Database, played: Played) -> None:
  """Commits results, as a plain league would that keeps them."""
  with database.transaction() as connection:
    connection.executemany("INSERT INTO results VALUES (?, ?, ?)", played)


def report(served: league.Coordinator, number: int) -> None:
  """Reports the games of one assignment."""
  home, away = served.players[0].name, served.players[-1].name
  games = [league.PlayedGame(game, 1, 0.0) for game in range(RESULTS)]
  assignment = Assignment(f"0-{number}", home, away, "pfsp", False, RESULTS)
  served.report_games([league.GamesReport(assignment, games)])


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--snapshots", type=int, default=900)
  parser.add_argument("--rounds", type=int, default=20)
  arguments = parser.parse_args()
  members = make_members(arguments.snapshots)
  with tempfile.TemporaryDirectory() as folder:
    served = league.Coordinator(pathlib.Path(folder) / "league.sqlite", members,
                                options=league.Options(lease_s=3600.0))  # none ends here
    plain = PlainLeague(members, 0)
    first = random_results(members, 20_000, 1)
    count_ours(served, itertools.count(-len(first)), first)
    count_plain(plain, first)
    database = Database(pathlib.Path(folder) / "plain.sqlite", "results", 1, [TABLE])
    print(f"{len(members)} players, {arguments.snapshots} of them snapshots; "
          f"{len(plain.counters) // 2:,} pairs with games")
    measure(served, plain, database, members, arguments.rounds)
    served.flush()
    for games in (1, BATCH):
      measure_service(served, members, games)
    served.close()


if __name__ == "__main__":
  main()
