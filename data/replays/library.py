"""The library of z of decoded replays."""

import collections
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.data.replays import tables
from starleague.data.replays.protocol import FIRST_LOTV
from starleague.data.z.statistics_library import PlayedGame, StatisticsLibrary

_EFFECTS = {v.FUNCTIONS.names[function]: place
            for place, function in enumerate(v.EFFECT_FUNCTIONS.tolist())}


def make(folder: str | os.PathLike) -> StatisticsLibrary:
  """Builds the library of z of both players of all games of a folder.

  Games before Legacy of the Void are left out, because they start with half the workers, and
  players without any entry of a build order, because that is the z of an unconditional game.

  Args:
    folder: with the tables.

  Raises:
    tables.TablesError: a table is missing or damaged.
  """
  games = tables.read(folder, "games", ["replay", "map", "map_digest", "build"]).to_pylist()
  titles = map_titles([(game["map_digest"], game["map"]) for game in games])
  maps = {game["replay"]: titles[game["map_digest"]] for game in games
          if game["build"] >= FIRST_LOTV}
  return StatisticsLibrary.from_games(_played(folder, maps))


def map_titles(found: Sequence[tuple[str, str]]) -> dict[str, str]:
  """Returns one title for each map, by digest: titles are in the language of each file.

  The most frequent title in ASCII, else the most frequent one.
  """
  counts = collections.Counter(found)
  best: dict[str, tuple[bool, int, str]] = {}
  for (digest, title), count in counts.items():
    best[digest] = max(best.get(digest, (False, 0, "")), (title.isascii(), count, title))
  return {digest: title for digest, (_, _, title) in best.items()}


def _played(folder: str | os.PathLike, maps: Mapping[str, str]) -> Iterator[PlayedGame]:
  orders: dict[tuple[str, int], list[dict[str, Any]]] = collections.defaultdict(list)
  columns = ["replay", "player", "order", "vocabulary_index", "column", "row"]
  builds = tables.read(folder, "builds", columns)
  ordered = builds.filter(np.asarray(builds["order"]) >= 0)
  for row in ordered.to_pylist():
    orders[row["replay"], row["player"]].append(row)
  columns = ["replay", "player", "race", "opponent", "side", "units", "upgrades", "effects"]
  for row in tables.read(folder, "players", columns).to_pylist():
    if row["replay"] in maps and (row["replay"], row["player"]) in orders:
      yield PlayedGame(
        map_name=maps[row["replay"]], home_race=types.RACES.index(row["race"]),
        away_race=types.RACES.index(row["opponent"]), side=row["side"],
        executed=_z(row, orders[row["replay"], row["player"]]))


def _z(player: Mapping[str, Any], order: Sequence[Mapping[str, Any]]) -> types.Statistics:
  found = types.zeros(types.statistics_spec())
  for row in order:
    found.build_order[row["order"]] = row["vocabulary_index"]
    found.build_order_xy[row["order"]] = row["column"], row["row"]
  found.units[[v.UNIT_TYPES.index(name) for name in player["units"]]] = True
  found.upgrades[[v.UPGRADES.index(name) for name in player["upgrades"]]] = True
  found.effects[[_EFFECTS[name] for name in player["effects"]]] = True
  return found
