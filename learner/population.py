"""Population-based training: members train separately, copy better ones and explore variations.

Source: Jaderberg et al. 2017, "Population Based Training of Neural Networks", algorithm 1. A worker
trains one member and reports its evaluations. At intervals the member is ready: it continues, or it
is overwritten with the weights and hyperparameters of a better member (exploit), and its
hyperparameters are changed at random (explore). Over time the population finds a schedule of
hyperparameters, not one setting.

`evolution` holds the rules of selection and exploration. Workers share a `Population`, a SQLite
file in which every change is one transaction. No worker waits for the training of another: each may
start, end or be killed at any time. All workers run on one machine; see `common.database`.
"""

import json
import math
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from starleague.common.database import Database
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

_VERSION = 2
# The table `population` has one row. `decided` is the step of a member's latest decision;
# `reported` is the number of reports of the population at the member's latest report.
_TABLES = (
  "CREATE TABLE IF NOT EXISTS population (name TEXT NOT NULL, ranges TEXT NOT NULL,"
  " reports INTEGER NOT NULL)",
  "CREATE TABLE IF NOT EXISTS members (name TEXT PRIMARY KEY, incarnation INTEGER NOT NULL,"
  " step INTEGER NOT NULL, decided INTEGER NOT NULL, reported INTEGER NOT NULL,"
  " hyperparameters TEXT NOT NULL, evaluations TEXT NOT NULL, checkpoint TEXT) WITHOUT ROWID",
  "CREATE TABLE IF NOT EXISTS changes (number INTEGER PRIMARY KEY, member TEXT NOT NULL,"
  " step INTEGER NOT NULL, source TEXT, hyperparameters TEXT NOT NULL)",
  "CREATE TABLE IF NOT EXISTS choices (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)


class Member(NamedTuple):
  """A member of a population.

  Attributes:
    name: unique in the population.
    step: of its latest report, counted by its worker; 0 before the first.
    hyperparameters: name -> value, to train with.
    evaluations: the most recent ones of its current weights, oldest first; higher is better.
    checkpoint: the latest reported one, to resume from; None before the first report.
  """

  name: str
  step: int
  hyperparameters: dict[str, float]
  evaluations: tuple[float, ...]
  checkpoint: Path | None


class Exploit(NamedTuple):
  """A decision to overwrite a member.

  Attributes:
    source: name of the better member.
    checkpoint: of `source`, to load.
    hyperparameters: those of `source` after exploration, to train with.
  """

  source: str
  checkpoint: Path
  hyperparameters: dict[str, float]


class Change(NamedTuple):
  """A change of a member's hyperparameters; `source` is None for its first ones."""

  member: str
  step: int
  source: str | None
  hyperparameters: dict[str, float]


class Population:
  """The members of one population, in a file that threads and processes of one machine share."""

  def __init__(self, path: str | os.PathLike, name: str, ranges: Mapping[str, Range],
               interval: int, select: Select = t_selection, explore: Explore = perturb,
               window: int = 10, patience: int = 10,
               choices: Mapping[str, int | str] | None = None):
    """Opens or creates the file; every worker opens it with the same arguments.

    Args:
      path: the file; its folder is created if missing.
      name: of the population; a file holds one.
      ranges: of each hyperparameter.
      interval: steps between two decisions of a member (1e6 to 1e7 agent steps in the paper's
        section 4.1).
      select: t_selection or truncation_selection, or a partial of them.
      explore: perturb or resample, or a partial of them.
      window: number of most recent evaluations of a member that count.
      patience: a member is ignored once the population has received `patience` reports per member
        since its last one. Otherwise workers that died early would hold the bottom ranks for ever,
        and no member below the top would be overwritten.
      choices: the caller's own that decide the course, by the name that errors show. The file
        keeps them. One that was begun without any takes those of the first that has some.

    Raises:
      ValueError: an argument is invalid, or the file holds something else.
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
    self._choices = {key: json.dumps(value) for key, value in (choices or {}).items()}
    self._incarnations: dict[str, int] = {}  # of the members that this object joined
    self._database = Database(self.path, "population", _VERSION, _TABLES, alone=True)
    with self._database.transaction() as connection:
      self._open(connection)

  def join(self, rng: np.random.Generator, member: str) -> Member:
    """Makes this object the worker of a member, either new or left by a dead worker.

    A previous worker of the member is refused from now on.

    Args:
      rng: draws the first hyperparameters of a new member.
      member: its name.
    """
    if not isinstance(member, str) or not member:
      raise ValueError(f"member: expected a text that is not empty, found {member!r}")
    with self._database.transaction() as connection:
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
    """Stores evaluations of a member and the checkpoint that was evaluated.

    A repeated report, as after a restart, replaces the earlier one of the same step.

    Args:
      member: one that this object joined.
      step: of its worker; it continues to count when the member is overwritten.
      values: [N] evaluations since the last report, oldest first; higher is better.
      checkpoint: the member's own, complete and on disk: other workers may load it from now on.

    Raises:
      ValueError: `member` is unknown, or has another worker; `step` is before its last; `values`
        is empty or not finite. Nothing is changed.
      FileNotFoundError: the checkpoint does not exist. Nothing is changed.
    """
    numbers = [float(value) for value in values]
    if not numbers or not all(map(math.isfinite, numbers)):
      raise ValueError(f"member {member!r} at step {step}: expected one or more finite "
                       f"evaluations, found {numbers}. For one that diverged report the lowest "
                       "score there is, and it will be overwritten")
    path = _existing(member, checkpoint)
    with self._database.transaction() as connection:
      last, _ = self._own(connection, member)
      if step < last:
        raise ValueError(f"member {member!r}: expected a report of step {last} or later, found "
                         f"{step}. A restarted worker resumes from the result of `join`")
      found = connection.execute("SELECT evaluations FROM members WHERE name = ?", (member,))
      kept = [pair for pair in json.loads(found.fetchone()[0]) if pair[0] < step]
      evaluations = [*kept, *([int(step), number] for number in numbers)][-self._window:]
      connection.execute("UPDATE population SET reports = reports + 1")
      connection.execute(
        "UPDATE members SET step = ?, evaluations = ?, checkpoint = ?,"
        " reported = (SELECT reports FROM population) WHERE name = ?",
        (int(step), json.dumps(evaluations), str(path), member))

  def decide(self, rng: np.random.Generator, member: str) -> Exploit | None:
    """Decides whether a member that is ready is overwritten.

    To carry out the decision, the worker loads the checkpoint, saves it as one of its own and calls
    `adopt`. If the source has removed the checkpoint in the meantime, the worker continues.

    Args:
      rng: draws selection and exploration. Seed it with a seed, the member's number and its step
        to draw the same after a restart.
      member: one that this object joined.

    Returns:
      The member to copy; None to continue, as until `interval` steps after the last decision.

    Raises:
      ValueError: `member` is unknown, or has another worker.
    """
    with self._database.transaction() as connection:
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
    """Overwrites a member after its worker has loaded and saved the copied checkpoint.

    A worker that is killed before this call resumes as it was, one that is killed after it resumes
    as the copy. Evaluations of the former weights are deleted.

    Args:
      member: one that this object joined.
      exploit: the result of `decide`.
      checkpoint: the member's own, complete and on disk, of the copied weights.

    Raises:
      ValueError: `member` is unknown, or has another worker; a hyperparameter is outside its range.
      FileNotFoundError: the checkpoint does not exist. Nothing is changed.
    """
    path = _existing(member, checkpoint)
    text = json.dumps(checked(exploit.hyperparameters, self.ranges), sort_keys=True)
    with self._database.transaction() as connection:
      step, _ = self._own(connection, member)
      connection.execute("UPDATE members SET hyperparameters = ?, evaluations = '[]',"
                         " checkpoint = ? WHERE name = ?", (text, str(path), member))
      connection.execute("INSERT INTO changes VALUES (NULL, ?, ?, ?, ?)",
                         (member, step, exploit.source, text))
      return self._members(connection)[member]

  def members(self) -> list[Member]:
    """Returns all members, by name."""
    with self._database.transaction() as connection:
      return list(self._members(connection).values())

  def history(self) -> list[Change]:
    """Returns every change of hyperparameters, oldest first: schedules and lineage."""
    rows = self._database.rows(
      "SELECT member, step, source, hyperparameters FROM changes ORDER BY number")
    return [Change(member, step, source, json.loads(text)) for member, step, source, text in rows]

  def close(self) -> None:
    """Closes the file; the next use reopens it."""
    self._database.close()

  def _open(self, connection: sqlite3.Connection) -> None:
    """Fills a new file; raises ValueError for a file of another population."""
    row = connection.execute("SELECT name, ranges FROM population").fetchone()
    if row is None:
      row = self.name, json.dumps(self.ranges)
      connection.execute("INSERT INTO population VALUES (?, ?, 0)", row)
    name, text = row
    self._expect("population", self.name, name)
    found = {key: Range(*value) for key, value in json.loads(text).items()}
    for key in sorted({*found, *self.ranges}):
      self._expect(f"for the hyperparameter {key!r}", self.ranges.get(key), found.get(key))
    stored = dict(connection.execute("SELECT name, value FROM choices")) or self._choices
    for key in sorted({*stored, *self._choices}):
      self._expect(key, *(json.loads(each.get(key, "null")) for each in (self._choices, stored)))
    connection.executemany("INSERT OR IGNORE INTO choices VALUES (?, ?)", self._choices.items())

  def _expect(self, what: str, expected: Any, found: Any) -> None:
    if found != expected:
      raise ValueError(f"{self.path}: expected {what} {expected!r}, found {found!r}. Open it as it "
                       "was made, or start a new file")

  def _own(self, connection: sqlite3.Connection, member: str) -> tuple[int, int]:
    """Returns (step, step of the last decision); ValueError if this is not the member's worker."""
    row = connection.execute("SELECT step, decided, incarnation FROM members WHERE name = ?",
                             (member,)).fetchone()
    if row is None or member not in self._incarnations:
      known = [name for name, in connection.execute("SELECT name FROM members ORDER BY name")]
      raise ValueError(f"{self.path}: expected a member that this worker joined, of "
                       f"{sorted(self._incarnations)}, found {member!r}. The population has "
                       f"{known}; `join` comes first")
    if row[2] != self._incarnations[member]:
      raise ValueError(f"{self.path}: member {member!r} was joined {row[2]} times; expected "
                       f"{self._incarnations[member]} times, as of this worker. End this one")
    return row[0], row[1]

  def _members(self, connection: sqlite3.Connection) -> dict[str, Member]:
    rows = connection.execute("SELECT name, step, hyperparameters, evaluations, checkpoint "
                              "FROM members ORDER BY name").fetchall()
    return {name: Member(name, step, checked(json.loads(hyperparameters), self.ranges),
                         tuple(value for _, value in json.loads(evaluations)),
                         Path(checkpoint) if checkpoint else None)
            for name, step, hyperparameters, evaluations, checkpoint in rows}


def _existing(member: str, checkpoint: str | os.PathLike) -> Path:
  path = Path(checkpoint).absolute()
  if not path.exists():
    raise FileNotFoundError(f"member {member!r}: expected a checkpoint at {path}, found nothing. "
                            "Save it before it is reported")
  return path
