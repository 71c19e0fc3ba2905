"""A simulated league, in the size of a real one, for tests, benchmarks and pictures of the page.

The skills follow a model: learners improve with the logarithm of their steps, exploiters start
again at each reset and catch up, and styles beat each other in cycles.
"""

import dataclasses
import math
import os
import pathlib
from typing import NamedTuple

import numpy as np

from starleague import league
from starleague.common import results
from starleague.common.results import Row
from starleague.common.run_files import LEAGUE, LEARNERS
from starleague.league import league_file
from starleague.league import players as kinds
from starleague.league.league_file import BranchCount, Order, Progress, Replay
from starleague.league.players import Player
from starleague.league.ratings import archive
from starleague.viewers.league.facts import Facts, anchor_of

STEPS = 190e9  # of each learner, as in 44 days at 50,000 a second
SECONDS = 44 * 86400.0
_GAIN, _SCALE, _CYCLE = 900.0, 400.0, 0.7
_OPENINGS = ("barracks first", "gateway expand", "pool", "proxy", "fast expand", "worker rush")
_BRANCHES = {
  kinds.MAIN: {"pfsp": .5, "self_play": .3, "self_play_past": .05, "verification_exploiters": .1,
               "verification_forgotten": .05},
  kinds.MAIN_EXPLOITER: {"exploit": .8, "exploit_past": .2}, kinds.LEAGUE_EXPLOITER: {"pfsp": 1.}}


class _Policy(NamedTuple):
  """A policy's strength in Elo points and its style on a circle of which each beats the next."""

  skill: float
  style: float


def _policy(player: Player, since_reset: float, rng: np.random.Generator) -> _Policy:
  """Returns the policy of a learner, or of its snapshot, at its steps."""
  main = _GAIN * math.log1p(6 * player.steps / STEPS) / math.log(7)
  if (player.parent_kind or player.kind) == kinds.MAIN:
    skill = main
  else:  # exploiters nearly reach the main agents' level within a hundredth of a run
    skill = (main + 60) * (1 - math.exp(-since_reset / (0.01 * STEPS)))
  return _Policy(skill + rng.normal(0, 40), rng.uniform(0, 2 * math.pi))


def simulate(snapshots: int, seed: int = 0, known: float = 0.7, name: str = "simulated") -> Facts:
  """Returns a league of the published twelve learners.

  Args:
    snapshots: number of snapshots, beside those of the three supervised agents.
    seed: of the league.
    known: fraction of the pairs that have met.
    name: of the run.
  """
  rng = np.random.default_rng(seed)
  initial = league.initial_players()
  learners = [player for player in initial if player.learns]
  players = list(initial)
  policies = [_policy(player, 0.0, rng) for player in initial]
  resets: set[str] = set()
  taken, since = dict.fromkeys(learners, 0), dict.fromkeys(learners, 0.0)
  for i in range(snapshots):
    learner = learners[i % len(learners)]
    taken[learner] += 1
    steps = STEPS * (i + rng.random()) / max(snapshots, 1)
    copy = kinds.snapshot(learner, taken[learner], int(steps))
    policies.append(_policy(copy, steps - since[learner], rng))
    players.append(copy)
    chance = {kinds.MAIN: 0.0, kinds.MAIN_EXPLOITER: 1.0}.get(learner.kind, 0.25)
    if rng.random() < chance:
      resets.add(copy.name)
      since[learner] = steps
  for i, player in enumerate(initial):
    if player.learns:  # the live player is where its learner stands at the end
      live = dataclasses.replace(player, steps=int(STEPS))
      policies[i] = _policy(live, STEPS - since[player], rng)
  games, points = _play(policies, known, rng)
  anchor = anchor_of(players)
  progress = {player.name: Progress(int(STEPS), int(since[player]), taken[player])
              for player in learners}
  return Facts(
    name, tuple(players), progress, frozenset(resets), frozenset(), 0, games, points,
    league.elo_estimate(points, games, anchor), anchor, _branches(learners),
    _replays(players, rng), {player.name: _rows(player, rng) for player in learners},
    _behaviours(players, len(learners), rng))


def _play(policies: list[_Policy], known: float,
          rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
  """Returns games and points [N, N] of a league; a pair has at most 100 games."""
  skill, style = (np.array(part) for part in zip(*policies, strict=True))
  lead = (skill[:, None] - skill) / _SCALE + _CYCLE * np.sin(style[:, None] - style)
  met = rng.random(lead.shape) < known
  games = np.triu(np.where(met, rng.integers(1, 101, lead.shape), 0), 1)
  points = rng.binomial(games, 1 / (1 + np.exp(-lead))).astype(float)
  return (games + games.T).astype(float), points + np.tril(games.T - points.T, -1)


def _branches(learners: list[Player]) -> list[BranchCount]:
  return [BranchCount(learner.name, branch, int(share * 2000), int(share * 250_000))
          for learner in learners for branch, share in _BRANCHES[learner.kind].items()]


def _replays(players: list[Player], rng: np.random.Generator) -> list[Replay]:
  """Returns games worth keeping; their files do not exist."""
  reasons = ("upset", "longest", "first_win_against_main")
  found = []
  for i in range(min(6, len(players))):
    home, away = rng.choice(len(players), 2, replace=False)
    found.append(Replay(f"game-{i}", players[home].name, players[away].name, 1, 1000.0 * i,
                        9000 + i, (reasons[i % 3],), f"replays/game-{i}.npz"))
  return found


def _behaviours(players: list[Player], learners: int,
                rng: np.random.Generator) -> list[archive.CellCount]:
  """Returns the games of snapshots by cell; those of later steps attack earlier."""
  found = {}
  for player in players:
    if player.parent is None:
      continue
    share = player.steps / STEPS
    for _ in range(6):
      where = archive.cell(archive.Behaviour(
        float(rng.beta(2, 5)), float(rng.gamma(4, 0.4)),
        archive.NEVER if rng.random() < 0.1 else int(rng.gamma(4, 1200 * (1.3 - share)))))
      found[player.name, where] = archive.CellCount(
        player.name, 0, where, int(rng.integers(1, 40)), learners * player.steps)
  return [found[key] for key in sorted(found)]


def _rows(player: Player, rng: np.random.Generator, number: int = 300) -> dict[str, list[Row]]:
  """Returns the results rows of a learner by tag."""
  share = (1 + np.arange(number)) / number
  noise = rng.normal(0, 0.02, (3, number)).cumsum(1)
  values = {
    "loss/total": 2 * np.exp(-3 * share) + noise[0], "kl/function": 0.3 * share + abs(noise[1]),
    "entropy/function": 0.7 - 0.3 * share + noise[2], "total/steps_learnt": STEPS * share,
    "speed/actor": rng.normal(25_000, 800, number),
    "speed/learner": rng.normal(50_000, 900, number)}
  shares = rng.dirichlet(np.ones(len(_OPENINGS)))
  found = {tag: [Row(SECONDS * s, int(5.8e6 * s), tag, float(value))
                 for s, value in zip(share, line, strict=True)] for tag, line in values.items()}
  return found | {f"opening/0/{opening}": [Row(SECONDS, 5_800_000, f"opening/0/{opening}", part)]
                  for opening, part in zip(_OPENINGS, shares.tolist(), strict=True)}


def write(run_dir: str | os.PathLike[str], facts: Facts) -> None:
  """Writes a simulated league as the files of a run; points become wins."""
  folder = pathlib.Path(run_dir)
  payoff = league.Payoff(folder / LEAGUE)
  payoff.database.add(league_file.COMPONENT, league_file.VERSION, league_file.TABLES)
  payoff.database.add(*league_file.BEHAVIOURS)
  with payoff.database.transaction() as connection:
    for number, player in enumerate(facts.players, 1):
      if player.steps:  # a snapshot of a learner; others are there at the start
        order = Order(number, player.parent or "", player.name, player.steps,
                      player.name in facts.resets)
        league_file.insert_order(connection, order)
        league_file.complete_order(connection, order, player)
      else:
        league_file.insert_player(connection, player)
    for name, progress in facts.progress.items():
      league_file.raise_steps(connection, name, progress.steps)
    league_file.count_branches(connection, facts.branches)
    for replay in facts.replays:
      league_file.insert_replay(connection, replay)
    connection.executemany("INSERT INTO behaviours VALUES (?, ?, ?, ?, ?, ?, ?)", [
      (each.player, each.snapshots, *each.cell, each.games, each.steps)
      for each in facts.behaviours])
    payoff.write(connection, _pairs(facts))
  payoff.close()
  for name, tags in facts.curves.items():
    (folder / LEARNERS / name).mkdir(parents=True, exist_ok=True)
    results.append(folder / LEARNERS / name / results.FILE_NAME,
                   [row for rows in tags.values() for row in rows])


def _pairs(facts: Facts) -> dict[tuple[str, str], league.Counts]:
  """Returns the counts of the pairs that have met, by names in alphabetical order."""
  names = [player.name for player in facts.players]
  found = {}
  for i, j in np.argwhere(np.triu(facts.games, 1)).tolist():
    first, second = (i, j) if names[i] < names[j] else (j, i)
    games, points = float(facts.games[first, second]), float(facts.points[first, second])
    found[names[first], names[second]] = league.Counts(games, points, 0.0, games - points)
  return found
