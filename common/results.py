"""`results.csv` of a run: one measured figure per line, appended when measured.

The format is long, so that a new tag needs no new column:

    seconds,update,tag,value,low,high
    61.204,128,loss/policy,-0.0312,,
    61.204,128,score/eval/weak army,0.625,0.481,0.75

seconds  wall-clock time since the start of the run, earlier parts of a resumed run included
update   learner updates at the time of measurement
tag      KIND/NAME. `report` knows these kinds, and draws all others as well:
           score/train/OPPONENT, score/eval/OPPONENT, score/initial/OPPONENT (initial weights):
             wins plus half the draws, over games
           win_rate/eval/OPPONENT, win_rate/initial/OPPONENT: wins only, over games
           loss/NAME, entropy/ARGUMENT, kl/ARGUMENT, used/ARGUMENT, value/REWARD
           speed/actor, speed/learner (agent steps per second), speed/waiting (fraction of time)
           total/steps, total/steps_learnt, total/games (since the start)
           opening/ACTOR/NAME: share of the player's latest games of an actor with this opening;
             the rows of one report have the same time
           actor/NAME: agent steps per second of one actor of a league
           deaths/PROCESS: times that a process died and was started again, since the start
           imitation/KIND/NAME: of imitation, whose updates count on their own; KIND is loss,
             accuracy, cross_entropy, illegal, each also as held_out/KIND, used, update, speed,
             total
value    a number; nan and inf are kept, so that a diverged run is visible
low,high bounds of a 95% interval for scores and returns; otherwise empty

Several processes may append to one file: lines are written whole, under a lock.
"""

import contextlib
import fcntl
import math
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from starleague.common import disk
from starleague.common.errors import UserError

FILE_NAME = "results.csv"
HEADER = "seconds,update,tag,value,low,high"
DEATHS = "deaths/"  # prefix of tags


class ResultsError(UserError, ValueError):
  """A results file or a row that is not in the format of the module's docstring."""


class Row(NamedTuple):
  """One measured figure; see the module's docstring."""

  seconds: float
  update: int
  tag: str
  value: float
  low: float | None = None
  high: float | None = None


def append(path: str | os.PathLike[str], rows: Iterable[Row]) -> None:
  """Appends all rows or, after an error, none; creates a missing file with its header.

  An incomplete last line, left by a crash, is removed first. Safe between processes of one machine.

  Raises:
    ResultsError: a row that could not be read back, or a file that is not a results file.
    DiskFullError: there is no space left.
  """
  text = "".join(_format(row) + "\n" for row in rows)
  if not text:
    return
  with disk.named(pathlib.Path(path).parent), _locked(pathlib.Path(path)) as descriptor:
    start = os.pread(descriptor, len(HEADER) + 1, 0).decode(errors="replace")
    _check_header(start, path)
    size = _drop_torn_line(descriptor)
    data = memoryview((text if size else HEADER + "\n" + text).encode())
    try:
      while data:  # a full disk may accept a part
        data = data[os.write(descriptor, data):]
    except OSError:
      os.ftruncate(descriptor, size)
      raise


def read(path: str | os.PathLike[str]) -> list[Row]:
  """Returns all rows in written order, without an incomplete last line.

  Raises:
    FileNotFoundError: no such file.
    ResultsError: a wrong header, or a wrong line with its number.
  """
  path = pathlib.Path(path)
  if not path.is_file():
    raise FileNotFoundError(
      f"{path}: no such file; a run writes its figures there from its first update on")
  text = path.read_text(encoding="utf-8", errors="replace")
  _check_header(text[:len(HEADER) + 1], path)
  lines = text.split("\n")[:-1]  # text after the last newline is empty or incomplete
  return [_parse_line(line, path, number) for number, line in enumerate(lines[1:], start=2)]


class Follower:
  """Reads a results file piece by piece: each call returns the rows appended since the last one."""

  def __init__(self, path: str | os.PathLike[str]):
    self._path = pathlib.Path(path)
    self._offset = self._lines = 0

  def read(self) -> list[Row]:
    """Returns new rows; none while there is no file. An incomplete last line waits for its end.

    Raises:
      ValueError: a header or a line that is not a results file's, with its number.
    """
    try:
      with open(self._path, "rb") as file:
        file.seek(self._offset)
        data = file.read()
    except FileNotFoundError:
      return []
    complete = data[:data.rfind(b"\n") + 1]
    text = complete.decode("utf-8", errors="replace")
    if self._offset == 0 and text:
      _check_header(text[:len(HEADER) + 1], self._path)
    rows = []
    for line in text.split("\n")[:-1]:
      self._lines += 1
      if self._lines > 1:
        rows.append(_parse_line(line, self._path, self._lines))
    self._offset += len(complete)
    return rows


def last_seconds(path: str | os.PathLike[str]) -> float:
  """Returns the latest time in the file, at which a resumed run continues; 0 without a file."""
  if not pathlib.Path(path).is_file():
    return 0.0
  return max((row.seconds for row in read(path)), default=0.0)


def by_tag(rows: Iterable[Row]) -> dict[str, list[Row]]:
  """Groups rows by tag: rows in order of time, tags in order of first appearance."""
  tags: dict[str, list[Row]] = {}
  for row in rows:
    tags.setdefault(row.tag, []).append(row)
  return {tag: sorted(found, key=lambda row: row.seconds) for tag, found in tags.items()}


def deaths(tags: Mapping[str, Sequence[Row]]) -> dict[str, int]:
  """Returns the times that each process of a run has died, by its name in the tags.

  Args:
    tags: rows of the run as a whole, from `by_tag`.
  """
  return {tag.removeprefix(DEATHS): round(rows[-1].value) for tag, rows in tags.items()
          if tag.startswith(DEATHS)}


def as_tag(name: str) -> str:
  """Returns the name of a thing as a part of a tag, which has no commas: semicolons instead."""
  return name.replace(",", ";")


def _format(row: Row) -> str:
  """Returns a row as a line without newline, after checking that it can be read back."""
  tag = row.tag
  if not tag or not tag.isprintable() or set(tag) & set(',"') or tag != tag.strip():
    raise ResultsError(
      f"a tag must be printable and have no comma, quote or outer space; found {tag!r}")
  if row.update != int(row.update):
    raise ResultsError(f"{tag}: update must be a whole number; found {row.update!r}")
  low = "" if row.low is None else _number(row.low)
  high = "" if row.high is None else _number(row.high)
  line = f"{float(row.seconds):.3f},{int(row.update)},{tag},{_number(row.value)},{low},{high}"
  try:
    _parse(line)
  except ValueError as error:
    raise ResultsError(f"{tag}: {error}; found {row}") from None
  return line


def _number(value: float) -> str:
  return format(float(value), ".9g")  # 9 digits represent any float32 exactly


def _parse(line: str) -> Row:
  fields = line.split(",")
  if len(fields) != 6:
    raise ValueError(f"expected 6 fields ({HEADER})")
  try:
    seconds, update, value = float(fields[0]), int(fields[1]), float(fields[3])
    low, high = (float(field) if field else None for field in fields[4:])
  except ValueError:
    raise ValueError("expected numbers in all fields but the tag") from None
  if not 0 <= seconds < math.inf or update < 0:
    raise ValueError("expected seconds and update from 0 up")
  if not fields[2]:
    raise ValueError("expected a tag")
  if not fields[2].isprintable():  # such as null characters, which a crash of the machine leaves
    raise ValueError("expected a printable tag")
  if (low is None) != (high is None):
    raise ValueError("expected both bounds of the interval or neither")
  # Rounding to 9 digits may move a bound past an equal value.
  if low is not None and high is not None and not low - 1e-8 <= value <= high + 1e-8:
    raise ValueError("expected low <= value <= high")
  return Row(seconds, update, fields[2], value, low, high)


def _parse_line(line: str, path: pathlib.Path, number: int) -> Row:
  try:
    return _parse(line)
  except ValueError as error:
    raise ResultsError(f"{path}:{number}: {error}; found {line!r:.200}") from None


def _check_header(start: str, path: str | os.PathLike[str]) -> None:
  """Checks a file's first len(HEADER) + 1 characters; an incomplete header passes too."""
  if not (HEADER + "\n").startswith(start):
    raise ResultsError(
      f"{path}: not a results file: expected the first line {HEADER!r}, found "
      f"{start.split(chr(10), 1)[0]!r}; move it away, or name another folder")


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[int]:
  """Opens a file for appending, locked against other writers."""
  descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # held for one write; released by close, also in a crash
    yield descriptor
  finally:
    os.close(descriptor)


def _drop_torn_line(descriptor: int) -> int:
  """Removes an incomplete last line, left by a crash; returns the remaining size."""
  size = end = os.fstat(descriptor).st_size
  while end > 0:
    begin = max(0, end - 4096)
    newline = os.pread(descriptor, end - begin, begin).rfind(b"\n")
    if newline >= 0:
      end = begin + newline + 1
      break
    end = begin
  if end < size:
    os.ftruncate(descriptor, end)
  return end
