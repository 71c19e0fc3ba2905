"""Datasets on disk: trajectories as a folder that Reverb restores, for research away from a run.

A recording is a Reverb checkpoint of one table and `recording.json`, which says what it holds. It
becomes a folder of its name only when it is complete. `datasets.dataset` reads it: a private server
restores it.
"""

import dataclasses
import json
import os
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from starleague.agent import config as agent_config
from starleague.agent import vocabulary
from starleague.common.errors import UserError
from starleague.data import sampler, transport, wire
from starleague.data.server import make_server, signature

MANIFEST = "recording.json"
SCHEMA = 1
TABLE = "recording"


class RecordingError(UserError, ValueError):
  """A folder is no recording, or none that this code reads: says which and why."""


@dataclasses.dataclass(frozen=True)
class Recording:
  """What a folder holds.

  Attributes:
    preset: of the agent whose shapes the trajectories have.
    unroll_length: T.
    trajectories: how many there are.
    origin: free text: who played.
    vocabulary: digest of the vocabulary that the indices are of.
    schema: of the folder.
  """

  preset: str
  unroll_length: int
  trajectories: int
  origin: str
  vocabulary: str
  schema: int = SCHEMA


def _table(config, unroll_length: int, size: int) -> Any:
  """A table that keeps what it is given and gives it as often as it is asked."""
  reverb = transport.load_reverb()
  return reverb.Table(
    name=TABLE, sampler=reverb.selectors.Uniform(), remover=reverb.selectors.Fifo(), max_size=size,
    rate_limiter=reverb.rate_limiters.MinSize(1),
    signature=signature(wire.packed_spec(config, unroll_length)._asdict()))


def require_new(path: str | os.PathLike) -> None:
  """Raises FileExistsError where there is something already: a recording is written once."""
  if Path(path).exists():
    raise FileExistsError(f"{path} exists: a recording is written once; choose another name.")


def save(path: str | os.PathLike, trajectories: Iterable[wire.Packed], preset: str,
         unroll_length: int, count: int, origin: str) -> Recording:
  """Writes a recording.

  Args:
    path: the folder; must not exist.
    trajectories: `wire.pack`ed, of the preset's shapes; `count` of them are taken.
    preset: name of the agent's preset.
    unroll_length: T.
    count: how many to take.
    origin: who played, for whoever finds the folder.

  Returns:
    What was written.

  Raises:
    FileExistsError: there is something at `path`; raised before any trajectory is taken.
    ValueError: there are fewer than `count`, or one has another shape; nothing is left behind.
  """
  require_new(path)
  path = Path(path).absolute()
  config = agent_config.preset(preset)
  spec = wire.packed_spec(config, unroll_length)
  path.parent.mkdir(parents=True, exist_ok=True)
  partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
  server = make_server([_table(config, unroll_length, count)], None, str(partial))
  try:
    written = _insert(server, trajectories, spec, count)
    if written < count:
      raise ValueError(f"expected {count} trajectories, found {written}.")
    server.localhost_client().checkpoint()
    recording = Recording(preset, unroll_length, count, origin, vocabulary.digest())
    (partial / MANIFEST).write_text(json.dumps(dataclasses.asdict(recording), indent=2) + "\n")
    os.replace(partial, path)
  finally:
    server.stop()
    shutil.rmtree(partial, ignore_errors=True)
  return recording


def _insert(server, trajectories: Iterable[wire.Packed], spec: wire.Packed, count: int) -> int:
  written = 0
  with server.localhost_client().trajectory_writer(num_keep_alive_refs=1) as writer:
    for packed in trajectories:
      for name, expected, found in zip(spec._fields, spec, packed, strict=True):
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
          raise ValueError(f"field {name!r} of trajectory {written}: expected {expected.dtype}"
                           f"{list(expected.shape)}, found {found.dtype}{list(found.shape)}.")
      writer.append(packed._asdict())
      writer.create_item(
        TABLE, 1.0, {name: writer.history[name][-1] for name in packed._fields})
      writer.flush(block_until_num_items=8)
      written += 1
      if written == count:
        break
    writer.flush()
  return written


def describe(path: str | os.PathLike) -> Recording:
  """What a folder holds.

  Raises:
    RecordingError: it is no recording, a damaged one, or one of another schema or vocabulary.
  """
  file = Path(path) / MANIFEST
  try:
    values = json.loads(file.read_text())
    recording = Recording(**values)
  except FileNotFoundError as error:
    raise RecordingError(f"{path} is not a recording: it has no {MANIFEST}.") from error
  except (TypeError, ValueError) as error:
    raise RecordingError(f"{file} is damaged: {error}.") from error
  for name, expected in (("schema", SCHEMA), ("vocabulary", vocabulary.digest())):
    found = getattr(recording, name)
    if found != expected:
      raise RecordingError(f"{path} was recorded with another {name}: expected {expected!r}, found "
                           f"{found!r}; record it again with this version.")
  return recording


class Recorded(sampler.Dataset):
  """Batches of a recording, without end; see `datasets.dataset`. Its server is its own."""

  def __init__(self, path: str | os.PathLike, batch_size: int, config=None,
               unroll_length: int | None = None, deadline_s: float = 300.0, prefetch: int = 2):
    self._server = None
    self.recording = describe(path)
    own = agent_config.preset(self.recording.preset)
    for what, wanted, found in (
        ("preset", config and config.name, own.name),
        ("unroll length", unroll_length, self.recording.unroll_length)):
      if wanted not in (None, found):
        raise RecordingError(f"{path} was recorded with another {what}: expected {wanted!r}, found "
                             f"{found!r}; read it as it is, or record again.")
    table = _table(own, self.recording.unroll_length, self.recording.trajectories)
    self._server = make_server([table], None, str(Path(path).absolute()))
    try:
      self._check_size(path)
      super().__init__(f"localhost:{self._server.port}", TABLE, batch_size, own,
                       self.recording.unroll_length, deadline_s, prefetch)
    except BaseException:
      self._stop()
      raise

  def _check_size(self, path: str | os.PathLike) -> None:
    info = self._server.localhost_client().server_info(timeout=10)  # type: ignore[union-attr]
    found = info[TABLE].current_size if TABLE in info else 0
    if found != self.recording.trajectories:
      raise RecordingError(f"{path} is damaged: expected {self.recording.trajectories} "
                           f"trajectories, found {found}; copy it again, or record again.")

  def _stop(self) -> None:
    server, self._server = self._server, None
    if server is not None:
      server.stop()

  def close(self) -> None:
    """Ends the iteration and stops the private server."""
    super().close()
    self._stop()
