"""A run's directory on a node that may not share it with the run's coordinator.

The coordinator's files are those of the run: what is missing here, or is of an earlier run of the
name, is copied from it. A node that shares the coordinator's directory has everything already.
"""

import pathlib
from typing import NamedTuple

from starleague.common import files, run_files
from starleague.league import shared_files
from starleague.league.client import LeagueClient
from starleague.league.players import LeagueError, is_first_snapshot
from starleague.league.shared_files import PIECE_BYTES, FileEntry, Incoming

ATTEMPTS = 3  # of a copy whose files arrive with another SHA-256
_LOCK = ".copies.lock"  # in the run's directory


class RunCopy(NamedTuple):
  """A run's directory, and the coordinator that has what is missing here.

  Attributes:
    run_dir: the directory on this node.
    client: of the coordinator; None: there is only what is here.
  """

  run_dir: pathlib.Path
  client: LeagueClient | None = None

  def fetch(self, name: str) -> bool:
    """Copies a file or folder of the run that is missing here, or is another one.

    Args:
      name: path in the run's directory; see `shared_files`.

    Returns:
      Whether the run has it, here and at its coordinator.

    Raises:
      LeagueUnavailableError: the coordinator did not answer within the deadline.
      LeagueError: the files do not arrive as the coordinator lists them.
    """
    path = self.run_dir / name
    if self.client is None:
      return path.exists()
    entries = self.client.list_files(name)
    if entries is None:
      return False
    if entries != shared_files.listing(path):
      path.parent.mkdir(parents=True, exist_ok=True)
      with files.locked(self.run_dir / _LOCK):  # the processes of a node copy it once
        if entries != shared_files.listing(path):
          self._copy(name, entries, self.client)
    return True

  def snapshot(self, player: str) -> pathlib.Path:
    """Returns the path of a frozen player's parameters, copied here if they were missing.

    A league begins with snapshots of the initial parameters, which are stored once. Raises the
    errors of `fetch`.
    """
    name = run_files.snapshot_name(player)
    if not self.fetch(name) and is_first_snapshot(player):
      name = run_files.INITIAL
      self.fetch(name)
    return self.run_dir / name

  def send(self, name: str) -> None:
    """Copies a file or folder to the coordinator, unless it has one of this name.

    Raises:
      LeagueUnavailableError: the coordinator did not answer within the deadline.
      LeagueError: the files do not arrive as they are listed here.
    """
    if self.client is None:
      return
    path = self.run_dir / name
    entries = shared_files.listing(path) or []
    key = shared_files.digest(entries)
    for _ in range(ATTEMPTS):
      sizes = self.client.offer_files(name, entries)
      if sizes is None:
        return
      for entry, size in zip(entries, sizes, strict=True):
        for offset in range(size, entry.size, PIECE_BYTES):
          self.client.write_file(
            name, key, entry.path, offset, shared_files.read_piece(path, entry.path, offset))
    if self.client.offer_files(name, entries) is not None:
      raise LeagueError(_differs(str(path), "at the coordinator"))

  def _copy(self, name: str, entries: list[FileEntry], client: LeagueClient) -> None:
    """Copies listed files in pieces."""
    incoming = Incoming(self.run_dir / name, shared_files.digest(entries))
    for _ in range(ATTEMPTS):
      for entry, size in zip(entries, incoming.sizes(entries), strict=True):
        while size < entry.size:
          piece = client.read_file(name, entry.path, size)
          incoming.write(entry.path, size, piece)
          if not piece:
            break
          size += len(piece)
      if incoming.install(entries, replaces=True):
        return
    raise LeagueError(_differs(name, f"in {self.run_dir}"))


def _differs(what: str, where: str) -> str:
  return (f"{what} does not arrive {where} with the SHA-256 of its files, after {ATTEMPTS} "
          "attempts: check the disks and the network.")
