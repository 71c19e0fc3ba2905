"""Reads folders of replays into tables; a killed run continues where it was."""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from starleague.common import manifests
from starleague.common.errors import UserError
from starleague.common.text import printable
from starleague.data.replays import refusals, tables, workers
from starleague.data.replays.decode import decode
from starleague.data.replays.records import RefusalRow
from starleague.data.replays.refusals import Refusal

SUFFIX = ".sc2replay"
MOST_BYTES = 64 << 20  # of a file; real ones have less than 2 MiB
_PART_FILES = 64
_PART_COMMANDS = 500_000


class Progress(NamedTuple):
  """How far a run is, in files."""

  done: int  # of this run, known ones included
  read: int  # replays in the tables, with those of earlier runs
  refused: int  # of this run


class Summary(NamedTuple):
  """What a run did."""

  files: int  # found in the folders
  known: int  # of these, read by earlier runs
  games: int  # in the tables
  reasons: dict[str, int]  # refused files in the tables, by reason


class ReplaysError(UserError):
  """Folders without replays."""


def find(folders: Sequence[str | os.PathLike]) -> list[Path]:
  """Returns the .SC2Replay files of folders, their subfolders and of files named themselves.

  Raises:
    ReplaysError: a folder does not exist, or there is no such file.
  """
  found: list[Path] = []
  for folder in map(Path, folders):
    if folder.is_dir():
      found += [Path(where) / name for where, _, names in os.walk(folder) for name in names
                if name.lower().endswith(SUFFIX)]
    elif folder.is_file():
      found.append(folder)
    else:
      raise ReplaysError(f"{folder}: no such file or folder; expected a folder with .SC2Replay "
                         "files")
  if not found:
    raise ReplaysError(f"{', '.join(map(str, folders))}: expected .SC2Replay files, found none")
  return sorted(dict.fromkeys(found))


def read(paths: Sequence[Path], store: tables.Store, processes: int,
         limits: workers.Limits = workers.DEFAULT_LIMITS,
         report: Callable[[Progress], None] = lambda progress: None,
         decoder: workers.Decoder = decode) -> Summary:
  """Decodes files into the tables of a store.

  Files that the store has, by SHA-256, are not decoded again. Files that ran into a limit are.
  Files that are too large to read are known by their path.

  Args:
    paths: of the files.
    store: where the tables are.
    processes: number of decoders at a time.
    limits: of each decoder.
    report: called after each file.
    decoder: see `workers.decode_all`.
  """
  reader = _Reader(store)
  jobs = ((str(path), refusal) for path in paths if (refusal := reader.admit(path)) is not _KNOWN)
  for path, found in workers.decode_all(jobs, processes, limits, decoder):
    reader.add(path, found)
    report(Progress(reader.done, reader.games, reader.refused))
  reader.flush()
  store.merge(reader.passing)
  reasons = [*store.column("refused", "reason"), *(row.reason for row in reader.passing)]
  return Summary(len(paths), reader.again, reader.games, workers.tally(reasons))


_KNOWN = Refusal("", "read by an earlier run")  # of files that are left out


def unreadable(path: Path) -> Refusal | None:
  """Returns why a file is not to be opened, or None."""
  try:
    status = path.stat()
  except OSError as error:
    return Refusal(refusals.UNREADABLE, f"cannot be read: {error.strerror}")
  if not stat.S_ISREG(status.st_mode):  # a pipe would never end
    return Refusal(refusals.UNREADABLE, "expected a regular file")
  if status.st_size > MOST_BYTES:
    return Refusal(refusals.TOO_LARGE,
                   f"{status.st_size} bytes, expected at most {MOST_BYTES}")
  return None


class _Reader:
  """Collects rows into parts, and knows what was read before."""

  def __init__(self, store: tables.Store):
    self._store = store
    self._known = {*store.column("games", "replay"), *store.column("refused", "replay")}
    refused = zip(store.column("refused", "file"), store.column("refused", "replay"), strict=True)
    self._without_digest = {file for file, digest in refused if not digest}
    self._keys = set(store.column("games", "key"))
    self._paths: dict[str, str] = {}  # of this run, by SHA-256
    self._digests: dict[str, str] = {}
    self._part = tables.empty_part()
    self.passing: list[RefusalRow] = []
    self._passing: set[str] = set()  # their SHA-256, where it is known
    self.games = len(self._keys)
    self.refused = self.again = self._added = 0

  @property
  def done(self) -> int:
    """Number of files that are finished, those of earlier runs included."""
    return self.again + self._added

  def admit(self, path: Path) -> Refusal | None:
    """Returns why a file is not to be decoded, or None; _KNOWN if an earlier run read it."""
    refusal = unreadable(path)
    if refusal is not None:
      if refusal.reason in refusals.PASSING or printable(str(path)) not in self._without_digest:
        return refusal
      self.again += 1
      return _KNOWN
    try:
      digest = manifests.file_digest(path)
    except OSError as error:
      return Refusal(refusals.UNREADABLE, f"cannot be read: {error.strerror}")
    if digest in self._known:
      self.again += 1
      return _KNOWN
    self._digests[str(path)] = digest
    first = self._paths.setdefault(digest, str(path))
    if first != str(path):
      return Refusal(refusals.DUPLICATE, f"the same file as {first}")
    return None

  def add(self, path: str, found: workers.Decoded | Refusal) -> None:
    """Adds what was found in a file; a second file of a game is refused."""
    digest = self._digests.pop(path, "")
    path = printable(path)
    self._added += 1
    if isinstance(found, workers.Decoded) and found.game.key in self._keys:
      found = Refusal(refusals.DUPLICATE, "another file of a game that was read")
    if isinstance(found, Refusal):
      row = RefusalRow(digest, path, found.reason, printable(found.detail))
      self.refused += 1
      # A copy of a file that is tried again is, too: the file must not be known by its content.
      if found.reason in refusals.PASSING or digest in self._passing:
        self.passing.append(row)
        self._passing |= {digest} - {""}
        return
      self._part.refused.append(row)
    else:
      self._keys.add(found.game.key)
      self.games += 1
      self._part.games.append(found.game._replace(file=path))
      self._part.players.extend(found.players)
      self._part.builds.extend(found.builds)
      self._part.commands.extend(found.commands)
    if (len(self._part.games) + len(self._part.refused) >= _PART_FILES
        or len(self._part.commands) >= _PART_COMMANDS):
      self.flush()

  def flush(self) -> None:
    """Writes the rows so far as a part."""
    if self._part.games or self._part.refused:
      self._store.add(self._part)
      self._part = tables.empty_part()
