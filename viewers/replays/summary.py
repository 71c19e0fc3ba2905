"""What the page of replays shows, computed from the tables. Pure functions of rows."""

import collections
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from starleague.agent import types
from starleague.data.replays import tables

LOOPS_PER_MINUTE = 60 * types.GAME_LOOPS_PER_SECOND
OPENING = 6  # entries of a build order that make an opening
_LEAST_SHARE = 0.002  # of a tree: rarer branches are drawn as one


class Opening(NamedTuple):
  """A player's opening."""

  race: str
  opponent: str
  won: bool | None  # None for ties and unknown results
  units: tuple[str, ...]  # the first entries of the build order
  seconds: tuple[float, ...]


class Node(NamedTuple):
  """A node of a tree of openings; the first node is the root."""

  parent: int  # index of the parent, -1 for the root
  label: str
  players: int
  wins: int
  decided: int  # players with a win or a loss
  seconds: float  # median time of the last entry; 0 for races and match-ups


class Inputs(NamedTuple):
  """The rows that the page needs."""

  games: list[dict]
  players: list[dict]
  builds: list[dict]  # entries of build orders only
  refused: list[dict]


def load(folder) -> Inputs:
  """Reads what the page needs from the tables of a folder.

  Raises:
    tables.TablesError: a table is missing or damaged.
  """
  import numpy as np
  builds = tables.read(folder, "builds", ["replay", "player", "loop", "name", "order"])
  builds = builds.filter(np.asarray(builds["order"]) >= 0)
  return Inputs(
    tables.read(folder, "games").to_pylist(),
    tables.read(folder, "players", [
      "replay", "player", "name", "race", "opponent", "computer", "mmr", "result", "actions",
      "actions_by_minute", "commands", "resolved"]).to_pylist(),
    builds.to_pylist(), tables.read(folder, "refused").to_pylist())


def openings(players: Iterable[Mapping], builds: Iterable[Mapping]) -> list[Opening]:
  """Returns the openings of all players."""
  found: dict[tuple[str, int], list[Mapping]] = collections.defaultdict(list)
  for row in builds:
    found[row["replay"], row["player"]].append(row)
  result = []
  for player in players:
    entries = sorted(found[player["replay"], player["player"]], key=lambda row: row["order"])
    result.append(Opening(
      player["race"], player["opponent"], {"win": True, "loss": False}.get(player["result"]),
      tuple(row["name"] for row in entries),
      tuple(row["loop"] / types.GAME_LOOPS_PER_SECOND for row in entries)))
  return result


def tree(found: Sequence[Opening], depth: int = OPENING) -> list[Node]:
  """Returns the tree of openings: race, match-up, then the first entries of build orders."""
  members: dict[tuple[str, ...], list[tuple[Opening, int]]] = collections.defaultdict(list)
  for opening in found:
    path = (opening.race, matchup(opening.race, opening.opponent), *opening.units[:depth])
    for length in range(len(path) + 1):
      members[path[:length]].append((opening, length - 3))
  least = _LEAST_SHARE * len(found)
  index: dict[tuple[str, ...], int] = {}
  nodes: list[Node] = []
  ordered = sorted(members.items(), key=lambda item: (len(item[0]), -len(item[1]), item[0]))
  for path, group in ordered:
    if path and path[:-1] not in index or len(group) < least:
      continue
    index[path] = len(nodes)
    decided = [opening for opening, _ in group if opening.won is not None]
    times = [opening.seconds[entry] for opening, entry in group if entry >= 0]
    nodes.append(Node(
      index[path[:-1]] if path else -1, path[-1] if path else "players", len(group),
      sum(bool(opening.won) for opening in decided), len(decided),
      statistics.median(times) if times else 0.0))
  return nodes


class Timeline(NamedTuple):
  """When a race's players start a type for the first time, as quantiles over players."""

  unit: str
  players: int
  seconds: tuple[float, float, float]  # quartiles


def timelines(found: Sequence[Opening], race: str, most: int = 16) -> list[Timeline]:
  """Returns the timelines of a race's most frequent types, the earliest first."""
  times: dict[str, list[float]] = collections.defaultdict(list)
  for opening in found:
    if opening.race == race:
      first: dict[str, float] = {}
      for unit, seconds in zip(opening.units, opening.seconds, strict=True):
        first.setdefault(unit, seconds)
      for unit, seconds in first.items():
        times[unit].append(seconds)
  frequent = sorted(times.items(), key=lambda item: (-len(item[1]), item[0]))[:most]
  rows = [Timeline(unit, len(values), quartiles(values)) for unit, values in frequent]
  return sorted(rows, key=lambda row: row.seconds[1])


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
  """Returns the quartiles of one value or more, interpolated between the nearest two."""
  if len(values) == 1:
    return (values[0],) * 3
  low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
  return low, middle, high


class Rate(NamedTuple):
  """Actions per minute at a minute of the game, over players who were in the game."""

  minute: int
  players: int
  actions: tuple[float, float, float]  # quartiles


def action_rates(players: Iterable[Mapping], loops: Mapping[str, int], race: str) -> list[Rate]:
  """Returns the action rates of a race's human players, minute by minute.

  The last, unfinished minute of a game is left out.

  Args:
    players: rows of the table of players.
    loops: length of each game.
    race: one of types.RACES.
  """
  rates: dict[int, list[float]] = collections.defaultdict(list)
  for player in players:
    if player["race"] == race and not player["computer"]:
      whole = int(loops[player["replay"]] / LOOPS_PER_MINUTE)
      for minute, count in enumerate(player["actions_by_minute"][:whole]):
        rates[minute].append(float(count))
  return [Rate(minute, len(values), quartiles(values)) for minute, values in sorted(rates.items())]


def matchup(race: str, opponent: str) -> str:
  """Returns the name of a match-up: a zerg player's against terran is ZvT."""
  return f"{race[0].upper()}v{opponent[0].upper()}"


def lengths(games: Iterable[Mapping]) -> dict[str, list[float]]:
  """Returns the lengths of games in minutes, by match-up, in either order of players."""
  found: dict[str, list[float]] = collections.defaultdict(list)
  for game in games:
    name = "v".join(sorted(game["matchup"].split("v")))
    found[name].append(game["loops"] / LOOPS_PER_MINUTE)
  return dict(sorted(found.items()))
