"""Recordings: trajectories in a folder, for research without a run.

A recording is a Reverb checkpoint of one table with a manifest, `recording.json`, that describes it
and holds the SHA-256 of every file. The folder appears under its name only when it is complete.
`datasets.dataset` reads it: a private server restores the checkpoint.
"""

import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from starleague.agent import config as agent_config
from starleague.agent import vocabulary
from starleague.agent.config import AgentConfig
from starleague.common import files, manifests
from starleague.common.errors import UserError
from starleague.data import wire
from starleague.data.reverb import sampler, transport
from starleague.data.reverb.server import DataServer, make_server, signature

MANIFEST = "recording.json"
SCHEMA = 2
TABLE = "recording"
_TYPES = {"schema": int, "preset": str, "unroll_length": int, "trajectories": int, "origin": str,
          "vocabulary": str}
_OPTIONAL = {"agent": str}  # absent without changes, as in files of earlier versions


class RecordingError(UserError, ValueError):
  """A folder is not a recording, is damaged, or was made by another version; says which."""


class Recording(NamedTuple):
  """Description of a recording.

  Attributes:
    preset: of the agent whose shapes the trajectories have.
    unroll_length: T.
    trajectories: their number.
    origin: free text: which agent played.
    vocabulary: digest of the vocabulary that the trajectories use.
    schema: version of the folder's format.
    agent: changes of the preset, see `agent_config.changed`; empty: none.
  """

  preset: str
  unroll_length: int
  trajectories: int
  origin: str
  vocabulary: str
  schema: int = SCHEMA
  agent: str = ""

  @property
  def config(self) -> AgentConfig:
    """The agent whose shapes the trajectories have. Raises ValueError if there is no such agent."""
    return agent_config.changed(agent_config.preset(self.preset), self.agent)


def _table(config: AgentConfig, unroll_length: int, size: int) -> Any:
  """Returns a reverb.Table without rate limit that keeps its items however often they are used."""
  reverb = transport.load_reverb()
  return reverb.Table(
    name=TABLE, sampler=reverb.selectors.Uniform(), remover=reverb.selectors.Fifo(), max_size=size,
    rate_limiter=reverb.rate_limiters.MinSize(1),
    signature=signature(wire.packed_spec(config, unroll_length)._asdict()))


def require_new(path: str | os.PathLike) -> None:
  """Raises FileExistsError if the path exists: recordings are never overwritten."""
  if Path(path).exists():
    raise FileExistsError(f"{path} exists: a recording is written once; choose another name.")


def save(path: str | os.PathLike, trajectories: Iterable[wire.Packed], preset: str,
         unroll_length: int, count: int, origin: str, agent: str = "") -> Recording:
  """Writes a recording.

  Args:
    path: the folder; must not exist.
    trajectories: packed, with the shapes of the agent; the first `count` are written.
    preset: name of the agent's preset.
    unroll_length: T.
    count: number of trajectories.
    origin: which agent played, for readers of the folder.
    agent: changes of the preset, see `agent_config.changed`.

  Returns:
    Its description.

  Raises:
    FileExistsError: `path` exists; raised before any trajectory is taken.
    ValueError: there are fewer than `count` trajectories, or one has another shape, or there is no
      such agent. Nothing is left on disk.
  """
  require_new(path)
  recording = Recording(
    preset, unroll_length, count, origin, vocabulary.digest(), agent=agent)
  config, described = recording.config, recording._asdict()
  if not agent:  # earlier versions read it, too
    del described["agent"]
  with files.replacing_folder(path) as partial:
    with make_server([_table(config, unroll_length, count)], None, partial) as server:
      written = _insert(server, trajectories, wire.packed_spec(config, unroll_length), count)
      if written < count:
        raise ValueError(f"expected {count} trajectories, found {written}.")
      server.checkpoint()
    manifests.write(partial / MANIFEST, described)
  return recording


def _insert(server: DataServer, trajectories: Iterable[wire.Packed], spec: wire.Packed,
            count: int) -> int:
  """Inserts up to `count` trajectories; returns their number."""
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
  """Reads the description of a recording; `verify` also checks its files.

  Raises:
    RecordingError: the folder is not a recording, its manifest is damaged, or it has another
      schema, vocabulary or an unknown preset.
  """
  return _describe(Path(path))[0]


def verify(path: str | os.PathLike) -> Recording:
  """Reads the description of a recording and checks the SHA-256 of its files.

  Raises:
    RecordingError: as `describe`, or a file is missing, damaged or not part of the recording.
  """
  recording, manifest = _describe(Path(path))
  try:
    manifests.check_files(Path(path) / MANIFEST, manifest)
  except manifests.ManifestError as error:
    raise RecordingError(f"{error} Copy the recording again, or record again.") from error
  return recording


def _describe(path: Path) -> tuple[Recording, Mapping[str, Any]]:
  file = path / MANIFEST
  if not os.path.lexists(file):
    raise RecordingError(f"{path} is not a recording: expected a file {MANIFEST}, found none.")
  try:
    manifest = manifests.read(file)
    types = _TYPES | {key: kind for key, kind in _OPTIONAL.items() if key in manifest}
    manifests.check_types(file, manifest, types)
  except manifests.ManifestError as error:
    raise RecordingError(f"{error} Copy the recording again, or record again.") from error
  unknown = set(manifest) - set(types) - {"files"}
  if unknown:
    raise RecordingError(f"{file}: expected the keys {sorted(types)} and 'files', found "
                         f"{min(unknown)!r} too; read it with the version that recorded it.")
  recording = Recording(**{key: manifest[key] for key in types})
  for name, expected in (("schema", SCHEMA), ("vocabulary", vocabulary.digest())):
    found = getattr(recording, name)
    if found != expected:
      raise RecordingError(f"{file}: recorded with another {name}: expected {expected!r}, found "
                           f"{found!r}; record it again with this version.")
  for name in ("unroll_length", "trajectories"):
    if not 1 <= getattr(recording, name) < 2**31:
      raise RecordingError(f"{file}: {name}: expected 1 to {2**31 - 1}, found "
                           f"{getattr(recording, name)}; record again.")
  try:
    preset = agent_config.preset(recording.preset)
  except ValueError as error:
    raise RecordingError(f"{file}: preset: {error}") from error
  try:
    agent_config.changed(preset, recording.agent)
  except ValueError as error:
    raise RecordingError(f"{file}: agent: {error}") from error
  return recording, manifest


class Recorded(sampler.Dataset):
  """Endless batches of a recording, from a private server; see `datasets.dataset`.

  Attributes:
    recording: its description.
  """

  def __init__(self, path: str | os.PathLike, batch_size: int, config: AgentConfig | None = None,
               unroll_length: int | None = None, deadline_s: float = 300.0, prefetch: int = 2,
               stop: threading.Event | None = None):
    self._server: DataServer | None = None
    self.recording = recording = verify(path)
    own = recording.config
    for what, wanted, found in (
        ("preset", config and config.name, own.name),
        ("size of the core state", config and _state_size(config), _state_size(own)),
        ("unroll length", unroll_length, recording.unroll_length)):
      if wanted not in (None, found):
        raise RecordingError(f"{path} was recorded with another {what}: expected {wanted!r}, found "
                             f"{found!r}; read it as it is, or record again.")
    self._server = _restore(path, recording, own)
    try:
      super().__init__(f"localhost:{self._server.port}", TABLE, batch_size, own,
                       recording.unroll_length, deadline_s, prefetch, stop)
    except transport.SignatureMismatchError as error:
      self._server.stop()
      raise RecordingError(f"{path}: its trajectories differ from {MANIFEST}: {error}") from error
    except BaseException:
      self._server.stop()
      raise

  def close(self, wait_s: float = 1.0) -> None:
    """Ends the iteration and stops the private server."""
    super().close(wait_s)
    if self._server is not None:
      self._server.stop()


def _state_size(config: AgentConfig) -> int:
  """Returns the number of floats of an agent's core state."""
  return wire.packed_spec(config, 1).state.shape[0]


def _restore(path: str | os.PathLike, recording: Recording, config: AgentConfig) -> DataServer:
  """Starts a server with the trajectories of a recording."""
  table = _table(config, recording.unroll_length, recording.trajectories)
  try:
    server = make_server([table], None, Path(path).absolute())
  except (RuntimeError, transport.load_reverb().errors.ReverbError) as error:
    reason = str(error).partition("\n")[0]
    raise RecordingError(f"{path} cannot be restored: {reason}; record again.") from error
  info = server.localhost_client().server_info(timeout=10)
  found = info[TABLE].current_size if TABLE in info else 0
  if found != recording.trajectories:
    server.stop()
    raise RecordingError(f"{path}: expected {recording.trajectories} trajectories as in "
                         f"{MANIFEST}, found {found}; copy the recording again, or record again.")
  return server
