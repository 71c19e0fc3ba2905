"""Population-based training: members train apart, copy better ones, and vary what they copied.

Jaderberg et al. 2017, "Population Based Training of Neural Networks", algorithm 1. A worker trains
one member and reports evaluations of it; every so many steps it is ready, and then goes on or is
overwritten: weights and hyperparameters of a better member (exploit), the hyperparameters changed
at random (explore). Over time the population finds a schedule of hyperparameters, not one setting.

How a better member is found and what is varied are functions of `evolution`. `Population` is what
workers share: a SQLite file, in which every change is one transaction on disk when it returns. Nobody waits for anybody
else's training: a worker may start, end or be killed at any time. SQLite's write-ahead log needs
shared memory, so that all workers of a population run on one machine.
"""

import contextlib
import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from starleague.learner.evolution import (
  Explore,
  Range,
  Select,
  check_range,
  checked,
  perturb,
  sample,
  t_selection,
)

_VERSION = 1
_BUSY_SECONDS = 60.0
_RETRY_SECONDS = 0.02
# The table `population` has one row. `decided` is the step of a member's latest decision and
# `reported` the number of the population's reports when its latest came.
_TABLES = (
  "CREATE TABLE population (name TEXT NOT NULL, version INTEGER NOT NULL, ranges TEXT NOT NULL,"
  " reports INTEGER NOT NULL)",
  "CREATE TABLE members (name TEXT PRIMARY KEY, incarnation INTEGER NOT NULL,"
  " step INTEGER NOT NULL, decided INTEGER NOT NULL, reported INTEGER NOT NULL,"
  " hyperparameters TEXT NOT NULL, evaluations TEXT NOT NULL, checkpoint TEXT) WITHOUT ROWID",
  "CREATE TABLE changes (number INTEGER PRIMARY KEY, member TEXT NOT NULL, step INTEGER NOT NULL,"
  " source TEXT, hyperparameters TEXT NOT NULL)",
)


class Member(NamedTuple):
  """A member as the population knows it.

  Attributes:
    name: of the member.
    step: of its latest report, counted by its worker; 0 before the first.
    hyperparameters: name -> value, to train with.
    evaluations: the most recent, oldest first, of its present weights; higher is better.
    checkpoint: the latest it reported, to go on from after a restart; None before the first.
  """

  name: str
  step: int
  hyperparameters: dict[str, float]
  evaluations: tuple[float, ...]
  checkpoint: Path | None


class Exploit(NamedTuple):
  """A decision that a member be overwritten.

  Attributes:
    source: the better member.
    checkpoint: of `source`, to load.
    hyperparameters: those of `source`, explored already, to train with.
  """

  source: str
  checkpoint: Path
  hyperparameters: dict[str, float]


class Change(NamedTuple):
  """When a member came to train with which hyperparameters; `source` is None as it joins."""

  member: str
  step: int
  source: str | None
  hyperparameters: dict[str, float]


class Population:
  """The members of one population. Threads and processes of one machine may share its file."""

  def __init__(self, path: str | os.PathLike, name: str, ranges: Mapping[str, Range],
               interval: int, select: Select = t_selection, explore: Explore = perturb,
               window: int = 10, patience: int = 10):
    """Opens or makes the file; every worker opens it with the same arguments.

    Args:
      path: of the file; its folder is made.
      name: of the population; a file holds one.
      ranges: of every hyperparameter.
      interval: steps from one decision of a member to its next (1e6 to 1e7 agent steps in the
        paper's section 4.1).
      select: t_selection or truncation_selection, or a partial of them.
      explore: perturb or resample, or a partial of them.
      window: evaluations of a member that count, the most recent.
      patience: a member is passed over once others have reported this many times as often as
        there are members since it did. Else workers that died early would hold the bottom ranks
        for ever, and nobody below the top would be overwritten.

    Raises:
      ValueError: an argument is not possible, or the file holds something else.
    """
    for argument, value in (("interval", interval), ("window", window), ("patience", patience)):
      if value < 1:
        raise ValueError(f"{argument}: expected at least 1, found {value}")
    if not ranges:
      raise ValueError("ranges: expected at least one hyperparameter, found none")
    for hyperparameter, range_ in ranges.items():
      check_range(hyperparameter, range_)
    self.path = Path(path).absolute()
    self.name, self.ranges = name, {key: Range(*ranges[key]) for key in sorted(ranges)}
    self._interval, self._select, self._explore = interval, select, explore
    self._window, self._patience = window, patience
    self._incarnations: dict[str, int] = {}  # of the members that are this object's
    self._lock, self._process = threading.RLock(), -1
    self.path.parent.mkdir(parents=True, exist_ok=True)
    try:
      with self._transaction() as connection:
        self._open(connection)
    except sqlite3.OperationalError:
      raise  # a disk that is full, a lock that is held: says so itself
    except sqlite3.DatabaseError as error:
      raise ValueError(f"{self.path} is not a SQLite database, or is damaged: {error}. Move it "
                       "away or restore it") from error

  def join(self, rng: np.random.Generator, member: str) -> Member:
    """Makes this object the worker of a member: a new one, or one whose worker died.

    Whoever was its worker before is refused from now on.

    Args:
      rng: for the first hyperparameters of a new member.
      member: its name.
    """
    if not isinstance(member, str) or not member:
      raise ValueError(f"member: expected a text that is not empty, found {member!r}")
    with self._transaction() as connection:
      if not connection.execute("SELECT 1 FROM members WHERE name = ?", (member,)).fetchone():
        drawn = json.dumps(sample(rng, self.ranges))
        connection.execute("INSERT INTO members VALUES (?, 0, 0, 0, 0, ?, '[]', NULL)",
                           (member, drawn))
        connection.execute("INSERT INTO changes VALUES (NULL, ?, 0, NULL, ?)", (member, drawn))
      connection.execute("UPDATE members SET incarnation = incarnation + 1 WHERE name = ?",
                         (member,))
      self._incarnations[member] = connection.execute(
        "SELECT incarnation FROM members WHERE name = ?", (member,)).fetchone()[0]
      return self._members(connection)[member]

  def report(self, member: str, step: int, values: Sequence[float],
             checkpoint: str | os.PathLike) -> None:
    """Takes evaluations of a member, and the checkpoint that holds what was evaluated.

    A report that comes again, as after a restart, replaces what it said before.

    Args:
      member: one that this object joined.
      step: of its worker, which counts on when the member is overwritten.
      values: [N] evaluations since its last report, oldest first; higher is better.
      checkpoint: the member's own, complete and on disk: others may load it from now on.

    Raises:
      ValueError: `member` is unknown, or not this object's; `step` is before its last; `values`
        are none, or one is not finite. Nothing is changed.
      FileNotFoundError: there is no such checkpoint. Nothing is changed.
    """
    numbers = [float(value) for value in values]
    if not numbers or not all(map(math.isfinite, numbers)):
      raise ValueError(f"member {member!r} at step {step}: expected one or more finite "
                       f"evaluations, found {numbers}. For one that diverged report the lowest "
                       "score there is, and it will be overwritten")
    path = _existing(member, checkpoint)
    with self._transaction() as connection:
      last, _ = self._own(connection, member)
      if step < last:
        raise ValueError(f"member {member!r}: expected a report of step {last} or later, found "
                         f"{step}. A worker that starts again goes on from what `join` gives")
      found = connection.execute("SELECT evaluations FROM members WHERE name = ?", (member,))
      kept = [pair for pair in json.loads(found.fetchone()[0]) if pair[0] < step]
      evaluations = [*kept, *([int(step), number] for number in numbers)][-self._window:]
      connection.execute("UPDATE population SET reports = reports + 1")
      connection.execute(
        "UPDATE members SET step = ?, evaluations = ?, checkpoint = ?,"
        " reported = (SELECT reports FROM population) WHERE name = ?",
        (int(step), json.dumps(evaluations), str(path), member))

  def decide(self, rng: np.random.Generator, member: str) -> Exploit | None:
    """Decides whether a member that is ready be overwritten.

    A worker that is told to loads the checkpoint, saves it as one of its own, and calls `adopt`.
    It may be that the other has removed the checkpoint meanwhile: then it just goes on.

    Args:
      rng: for selection and exploration. One made of a seed, the member's number and its step
        draws the same after a restart.
      member: one that this object joined.

    Returns:
      Whom to copy; None to go on, as until `interval` steps after the last decision.

    Raises:
      ValueError: `member` is unknown, or not this object's.
    """
    with self._transaction() as connection:
      step, decided = self._own(connection, member)
      if step - decided < self._interval:
        return None
      connection.execute("UPDATE members SET decided = step WHERE name = ?", (member,))
      members = self._members(connection)
      recent = {row[0] for row in connection.execute(
        "SELECT name FROM members WHERE (SELECT reports FROM population) - reported <= ?",
        (self._patience * len(members),))}
      checkpoints = {name: other.checkpoint for name, other in members.items()
                     if name in recent and other.checkpoint and other.checkpoint.exists()}
      evaluations = {name: members[name].evaluations for name in sorted({*checkpoints, member})}
      source = self._select(rng, member, evaluations)
      if source is None:
        return None
      explored = self._explore(rng, members[source].hyperparameters, self.ranges)
      return Exploit(source, checkpoints[source], checked(explored, self.ranges))

  def adopt(self, member: str, exploit: Exploit, checkpoint: str | os.PathLike) -> Member:
    """Overwrites a member, after its worker has loaded and saved what it copies.

    A worker that is killed before goes on as it was, one that is killed after as what it copied.
    Evaluations of the member's former weights are forgotten.

    Args:
      member: one that this object joined.
      exploit: what `decide` gave.
      checkpoint: the member's own, complete and on disk, of the weights that it copied.

    Raises:
      ValueError: `member` is unknown, or not this object's; a hyperparameter is outside its range.
      FileNotFoundError: there is no such checkpoint. Nothing is changed.
    """
    path = _existing(member, checkpoint)
    text = json.dumps(checked(exploit.hyperparameters, self.ranges), sort_keys=True)
    with self._transaction() as connection:
      step, _ = self._own(connection, member)
      connection.execute("UPDATE members SET hyperparameters = ?, evaluations = '[]',"
                         " checkpoint = ? WHERE name = ?", (text, str(path), member))
      connection.execute("INSERT INTO changes VALUES (NULL, ?, ?, ?, ?)",
                         (member, step, exploit.source, text))
      return self._members(connection)[member]

  def members(self) -> list[Member]:
    """All members, by name."""
    with self._transaction() as connection:
      return list(self._members(connection).values())

  def history(self) -> list[Change]:
    """Every change of hyperparameters, oldest first: the schedules found, and who copied whom."""
    with self._transaction() as connection:
      rows = connection.execute(
        "SELECT member, step, source, hyperparameters FROM changes ORDER BY number").fetchall()
    return [Change(member, step, source, json.loads(text)) for member, step, source, text in rows]

  def close(self) -> None:
    """Closes the file; it is opened again when needed."""
    with self._lock:
      if self._process == os.getpid():
        self._connection.close()
      self._process = -1

  def _open(self, connection: sqlite3.Connection) -> None:
    """Makes the tables of a new file; ValueError for a file of anything else."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if not tables:
      for statement in _TABLES:
        connection.execute(statement)
      connection.execute("INSERT INTO population VALUES (?, ?, ?, 0)",
                         (self.name, _VERSION, json.dumps(self.ranges)))
    elif "population" not in tables:
      raise ValueError(f"{self.path}: expected a population, found the tables {sorted(tables)}. "
                       "Give the population a file of its own")
    version, = connection.execute("SELECT version FROM population").fetchone()
    self._expect("tables of version", _VERSION, version)
    name, text = connection.execute("SELECT name, ranges FROM population").fetchone()
    self._expect("population", self.name, name)
    found = {key: Range(*value) for key, value in json.loads(text).items()}
    for key in sorted({*found, *self.ranges}):
      self._expect(f"for the hyperparameter {key!r}", self.ranges.get(key), found.get(key))

  def _expect(self, what: str, expected: Any, found: Any) -> None:
    if found != expected:
      raise ValueError(f"{self.path}: expected {what} {expected!r}, found {found!r}. Open it as it "
                       "was made, or start a new file")

  def _own(self, connection: sqlite3.Connection, member: str) -> tuple[int, int]:
    """(step, step of the last decision) of a member; ValueError where this is not its worker."""
    row = connection.execute("SELECT step, decided, incarnation FROM members WHERE name = ?",
                             (member,)).fetchone()
    if row is None or member not in self._incarnations:
      known = [name for name, in connection.execute("SELECT name FROM members ORDER BY name")]
      raise ValueError(f"{self.path}: expected a member that this worker joined, of "
                       f"{sorted(self._incarnations)}, found {member!r}. The population has "
                       f"{known}; `join` comes first")
    if row[2] != self._incarnations[member]:
      raise ValueError(f"{self.path}: member {member!r} was joined again, for the {row[2]}th time; "
                       f"expected {self._incarnations[member]}, as of this worker. End this one")
    return row[0], row[1]

  def _members(self, connection: sqlite3.Connection) -> dict[str, Member]:
    rows = connection.execute("SELECT name, step, hyperparameters, evaluations, checkpoint "
                              "FROM members ORDER BY name").fetchall()
    return {name: Member(name, step, checked(json.loads(hyperparameters), self.ranges),
                         tuple(value for _, value in json.loads(evaluations)),
                         Path(checkpoint) if checkpoint else None)
            for name, step, hyperparameters, evaluations, checkpoint in rows}

  @contextlib.contextmanager
  def _transaction(self) -> Iterator[sqlite3.Connection]:
    """A change: all of it or, where the body raises, nothing. Others wait."""
    with self._lock:
      if self._process != os.getpid():  # SQLite's connections must not be carried over a fork
        self._connection, self._process = _connect(self.path), os.getpid()
      self._connection.execute("BEGIN IMMEDIATE")
      try:
        yield self._connection
      except BaseException:
        self._connection.execute("ROLLBACK")
        raise
      self._connection.execute("COMMIT")


def _connect(path: Path) -> sqlite3.Connection:
  connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None,
                               check_same_thread=False)
  deadline = time.monotonic() + _BUSY_SECONDS
  while True:
    try:
      connection.execute("PRAGMA journal_mode = WAL")
      break
    except sqlite3.OperationalError as error:
      # Changing the mode does not wait for others, whatever the connection's timeout is.
      if "locked" not in str(error) or time.monotonic() > deadline:
        raise
      time.sleep(_RETRY_SECONDS)
  connection.execute("PRAGMA synchronous = FULL")
  return connection


def _existing(member: str, checkpoint: str | os.PathLike) -> Path:
  path = Path(checkpoint).absolute()
  if not path.exists():
    raise FileNotFoundError(f"member {member!r}: expected a checkpoint at {path}, found nothing. "
                            "Save it before it is reported")
  return path
