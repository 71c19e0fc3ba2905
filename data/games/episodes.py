"""Collects the steps of interleaved games into whole episodes, two a game.

Steps of a game in progress are kept compressed, as differences: memory stays small while many long
games run.
"""

import functools
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.data import wire
from starleague.data.assembler import flat_rows
from starleague.data.games import files
from starleague.data.records import Records

_INTEGERS = tuple(name for name in wire.Columns._fields if name != "float32")


class FinishedGame(NamedTuple):
  """The steps of a finished game."""

  number: int  # games are numbered from 0 in the order in which they began
  iteration: int  # that of its last record, an index of the records' first axis
  game: int  # index in the batch of games
  steps: tuple[wire.Columns, wire.Columns]  # of each player, [decisions + 1, width], differences


class _Episode:
  """The steps of one player so far."""

  def __init__(self, config: AgentConfig, labelled: bool):
    self._config, self._labelled = config, labelled
    self._fields = wire.layout(config).fields
    self._chunks: dict[str, list[tuple[Any, int]]] = {name: [] for name in _INTEGERS}
    self._floats: list[np.ndarray] = []
    self._newest: wire.Columns | None = None  # [1, width]: its delay is known with the next step
    self._before = {name: np.zeros(1, np.uint8) for name in _INTEGERS}  # row before the newest

  def add(self, steps: wire.Columns, over: bool) -> None:
    """Adds steps [n, width], which it may change; `over`: the last one is terminal."""
    delay = self._fields["action.delay"].slice
    labels = steps.int16[:, delay].copy()  # each of the decision before
    if over:
      wire.make_terminal(steps, (-1,), self._config)
    if self._newest is not None:
      steps = wire.Columns(*(np.concatenate(rows) for rows in zip(
        self._newest, steps, strict=True)))
    if self._labelled:
      until = len(steps.int16) - 1
      steps.int16[:until, delay] = labels[len(labels) - until:]
    else:
      loops = steps.int32[:, self._fields["observation.game_loop"].slice]
      until = len(loops) - 1 - over  # the delay of the last decision stays: no decision follows it
      steps.int16[:until, delay] = np.clip(
        np.diff(loops[:until + 1], axis=0), 1, types.MAX_DELAY)
    self._keep(steps if over else wire.Columns(*(column[:-1] for column in steps)))
    self._newest = wire.Columns(*(column[-1:] for column in steps))

  def _keep(self, steps: wire.Columns) -> None:
    """Keeps rows [n, width] for good."""
    if not len(steps.float32):
      return
    self._floats.append(steps.float32)
    for name in _INTEGERS:
      column = getattr(steps, name)
      rows = wire.difference(column)
      rows[0] -= self._before[name].astype(rows.dtype)
      self._before[name] = column[-1].copy()
      self._chunks[name].append((_codec().compress(rows), rows.nbytes))

  def finish(self) -> wire.Columns:
    """Returns the columns of the episode, with rewards at the steps that earned them."""
    floats = np.concatenate(self._floats)
    reward, discount = self._fields["reward"].slice, self._fields["discount"].slice
    floats[:-1, reward], floats[-1, reward] = floats[1:, reward], 0
    floats[:-2, discount], floats[-2:, discount] = 1, 0
    columns = {}
    for name, chunks in self._chunks.items():
      data = b"".join(_codec().decompress(chunk, size, asbytes=True) for chunk, size in chunks)
      columns[name] = np.frombuffer(data, self._before[name].dtype).reshape(len(floats), -1).copy()
    return wire.Columns(**columns, float32=floats)


@functools.cache
def _codec() -> Any:
  """Returns a codec; of chunks of a few steps, it takes a third of zstd's time."""
  import pyarrow
  return pyarrow.Codec("lz4_raw")


class EpisodeAssembler:
  """Collects records of both players of many games into finished games."""

  def __init__(self, config: AgentConfig, num_games: int, most_games: int,
               labelled: tuple[bool, bool] = (False, False)):
    """Creates it.

    Args:
      config: the AgentConfig of the steps.
      num_games: games in the batch; rows are 2 * game + player.
      most_games: only the games that begin first, as many, are collected. To take those that end
        first would prefer short games.
      labelled: of players 0 and 1: each record holds the delay of the decision before, of a label
        or of a replay.
    """
    self._config, self._most_games, self._begun = config, most_games, 0
    self._labelled = labelled
    self._firsts = np.zeros(2 * num_games, int)  # games that each row has begun
    # Of games in progress or finished in this call: their numbers, and the episodes of each row,
    # None where they are not collected.
    self._numbers: list[deque[int]] = [deque() for _ in range(num_games)]
    self._episodes: list[deque[_Episode | None]] = [deque() for _ in range(2 * num_games)]

  def add(self, records: Records, over: types.Array) -> list[FinishedGame]:
    """Adds steps and returns the games that they finish, in the order of their ends.

    The delay of a decision becomes the number of game loops until the next one, clipped to 1..127;
    that of the last decision stays the one that was chosen. Delays of labels and replays are kept.

    Args:
      records: with packed steps (`wire.Columns`), of consecutive calls of one program.
      over: [N, games] bool: games whose last record is of this iteration.
    """
    row, first, last = (
      np.asarray(x).reshape(-1) for x in (records.row, records.first, records.last))
    self._count(row[first & (row >= 0)])
    steps = wire.Columns(*map(flat_rows, records.step))
    order = np.argsort(row, kind="stable")
    order = order[row[order] >= 0]
    begins = np.flatnonzero((np.diff(row[order], prepend=-1) != 0) | first[order])
    for part in np.split(order, begins[1:]) if len(order) else []:
      self._add(int(row[part[0]]), steps, part, bool(first[part[0]]), bool(last[part[-1]]))
    return [found for iteration, game in zip(*np.nonzero(over), strict=True)
            if (found := self._finish(int(iteration), int(game))) is not None]

  def _count(self, rows: np.ndarray) -> None:
    """Numbers the games that begin with the first steps of these rows."""
    for row in rows:
      self._firsts[row] += 1
      if self._firsts[row] > self._firsts[row ^ 1]:
        self._numbers[row // 2].append(self._begun)
        self._begun += 1

  def _add(self, row: int, steps: wire.Columns, chosen: np.ndarray, first: bool,
           last: bool) -> None:
    """Adds the chosen steps, consecutive ones of one game, to a row's newest episode."""
    episodes = self._episodes[row]
    if first:
      number = self._numbers[row // 2][len(episodes)]
      episodes.append(_Episode(self._config, self._labelled[row % 2])
                      if number < self._most_games else None)
    newest = episodes[-1]
    if newest is not None:
      newest.add(wire.Columns(*(column[chosen] for column in steps)), last)

  def _finish(self, iteration: int, game: int) -> FinishedGame | None:
    number = self._numbers[game].popleft()
    one, other = (self._episodes[2 * game + player].popleft() for player in (0, 1))
    if one is None or other is None:
      return None
    return FinishedGame(number, iteration, game, (one.finish(), other.finish()))


def add_z(steps: wire.Columns, own: types.Statistics, opponent: types.Statistics,
          config: AgentConfig) -> None:
  """Gives all steps of an episode their z, in place.

  Args:
    steps: [n, width], integers as differences; their z must be zero.
    own: z of the player, unbatched numpy arrays.
    opponent: z of its opponent, for value functions.
    config: the AgentConfig of the steps.
  """
  # z is constant: all differences after the first step are zero.
  where = wire.layout(config)
  bits = np.zeros(where.num_bits, bool)
  for path, z in (("observation.statistics", own), ("privileged.opponent_statistics", opponent)):
    for name, value in z._asdict().items():
      field = where.fields[f"{path}.{name}"]
      if field.column == "bits":
        bits[field.slice] = value
      else:
        getattr(steps, field.column)[0, field.slice] += value.reshape(-1)
  steps.bits[0] += np.packbits(bits)


class Side(NamedTuple):
  """One player of a finished game; the fields are those of `files.Episode`."""

  name: str
  race: int
  side: int
  mmr: int
  result: int
  z: types.Statistics  # executed at the end of the game
  steps: wire.Columns  # their z must be zero


def make_episodes(game: int, map_index: int, sides: tuple[Side, Side],
                  config: AgentConfig) -> list[files.Episode]:
  """Returns the episodes of both players of a game, and gives their steps z, in place.

  Args:
    game: number of the game in the dataset.
    map_index: of its map in the dataset.
    sides: of players 0 and 1.
    config: the AgentConfig of the steps.
  """
  found = []
  for player, (own, other) in enumerate((sides, sides[::-1])):
    add_z(own.steps, own.z, other.z, config)
    found.append(files.Episode(
      game=game, player=player, map_index=map_index, away_race=other.race, **own._asdict()))
  return found
