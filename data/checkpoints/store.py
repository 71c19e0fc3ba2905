"""Checkpoints of a run and snapshots of players: atomic, verified, and rejected where they differ.

A checkpoint is a folder, `DIRECTORY/000000001200` for step 1200:

    params/         the parameters, by Orbax
    state/          the rest of the training state, by Orbax; a snapshot has none
    manifest.json   schema, step, agent, vocabulary, description of all leaves, SHA-256 of all files

It is written under another name and renamed once complete and on disk: a process killed at any
moment leaves the previous checkpoints and never a partial one. One process writes a directory, the
first host of a run; any process may read it.
"""

import glob
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from starleague.common import disk, files
from starleague.common.disk import DiskFullError
from starleague.data.checkpoints import arrays, checkpoint_manifest
from starleague.data.checkpoints.checkpoint_manifest import (
  MANIFEST,
  CheckpointDamagedError,
  CheckpointMismatchError,
  CheckpointMisplacedError,
  read_manifest,
)
from starleague.data.trees import Tree

__all__ = ["CheckpointDamagedError", "CheckpointMismatchError", "Checkpoints", "DiskFullError",
           "Restored", "find", "load_params", "load_params_and_step",
           "read_manifest", "save_params"]
Loaded = TypeVar("Loaded")
_logger = logging.getLogger(__name__)

_STEP = re.compile(r"\d{12}")
_REPLACED = re.compile(r"\.replaced-(\d{12})")
# Prefixes of checkpoints that were skipped: they are in the folder of another step, or damaged.
_MISPLACED, _DAMAGED = "misplaced-", "damaged-"
_LEFTOVERS = (files.PARTIAL, ".removed-", ".replaced-")  # prefixes of names that a kill leaves


class Restored(NamedTuple):
  """A restored checkpoint."""

  step: int
  state: Any  # of the template's type
  extra: dict[str, Any]  # as given to `save`


class Checkpoints:
  """The checkpoints of one run.

  Args:
    directory: created if missing.
    config: the saved agent's.
    keep_last: number of newest checkpoints that are kept.
    keep_every: checkpoints whose step is a multiple of this are kept as well; None: no others.

  Raises:
    ValueError: keep_last or keep_every is not positive.
    CheckpointDamagedError: `directory` is a file, or lies below one.
  """

  def __init__(self, directory: str | os.PathLike, config: checkpoint_manifest.Described,
               keep_last: int = 3, keep_every: int | None = None):
    if keep_last < 1 or (keep_every is not None and keep_every < 1):
      raise ValueError("expected keep_last >= 1 and keep_every >= 1 or None, found "
                       f"{keep_last} and {keep_every}")
    self.directory = Path(directory).absolute()
    try:
      self.directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
      raise CheckpointDamagedError(
        f"{self.directory}: expected a folder of checkpoints, found a file; move it away"
      ) from error
    self.config, self._keep_last, self._keep_every = config, keep_last, keep_every
    self._skipped: dict[int, str] = {}  # prefix of each checkpoint that cannot be used, by step

  def steps(self) -> list[int]:
    """Returns the steps that have a checkpoint, ascending."""
    return list(find(self.directory))

  def save(self, step: int, state: Any, extra: Mapping[str, Any] | None = None) -> Path:
    """Saves a checkpoint, then removes those that are not to be kept.

    Args:
      step: updates so far. A checkpoint of the same step is replaced.
      state: a host state (see `update.unreplicate`): a NamedTuple with the field `params`, nested
        dicts of arrays; its other fields are pytrees of arrays and typed keys.
      extra: any JSON object.

    Returns:
      The checkpoint's path.

    Raises:
      ValueError: a later checkpoint exists; the directory would mix two runs.
      ArraysError: a number is not finite; names the leaf. The complete checkpoints are kept.
      RuntimeError: this is not the first host of a run.
      DiskFullError: there is no space left; the complete checkpoints are kept.
    """
    arrays.require_first_host(self.directory)  # before leftovers are removed
    self._set_aside()
    newest = max(self.steps(), default=step)
    if newest > step:
      raise ValueError(f"{self.directory} already holds step {newest}, later than {step}: "
                       "restore that one, or use another directory")
    self._remove_leftovers()
    checkpoint_manifest.require_nested_dicts(state.params)
    trees = {"params": state.params, "state": state._replace(params=())}
    final = self.directory / f"{step:012d}"
    # Under the name `.replaced-...`, `find` still finds the old one until the new one is in place.
    manifest = checkpoint_manifest.describe(self.config, step, extra)
    with _disk_full_named(self.directory, step):
      arrays.write(final, trees, manifest, aside=self.directory / f".replaced-{final.name}")
    self._prune()
    return final

  def restore(self, template: Any, step: int | None = None) -> Restored | None:
    """Restores the newest intact checkpoint, or the one of a step.

    Args:
      template: a state with the expected structure, shapes and dtypes; its values are not read.
      step: None: the newest. Damaged checkpoints are skipped with a warning that names the file;
        the next `save` sets them aside.

    Returns:
      The state as numpy arrays and typed keys; None if there is no checkpoint.

    Raises:
      CheckpointMismatchError: it has another schema, agent, vocabulary or state.
      CheckpointDamagedError: the checkpoint of `step`, or every one, is damaged.
      FileNotFoundError: there is none of that step.
    """
    found = find(self.directory)
    if step is not None:
      if step not in found:
        raise FileNotFoundError(f"{self.directory} has no checkpoint of step {step}; it has "
                                f"{list(found)}")
      return self._restore(found[step], template, step)
    return _newest(
      found, lambda step: self._restore(found[step], template, step), self._on_damaged)

  def _on_damaged(self, step: int, error: CheckpointDamagedError) -> None:
    misplaced = isinstance(error, CheckpointMisplacedError)
    self._skipped[step] = _MISPLACED if misplaced else _DAMAGED

  def _restore(self, path: Path, template: Any, step: int) -> Restored:
    checkpoint_manifest.check_step(path, step)
    manifest = checkpoint_manifest.check(path, self.config)
    trees = {"params": template.params, "state": template._replace(params=())}
    leaves = {name: manifest["leaves"].get(name, {}) for name in trees}
    for name, tree in trees.items():
      checkpoint_manifest.check_leaves(
        path, name, leaves[name], checkpoint_manifest.describe_leaves(tree))
    parts = {name: arrays.fill(tree, arrays.read(path, name, leaves[name]))
             for name, tree in trees.items()}
    state = parts["state"]._replace(params=parts["params"])
    return Restored(manifest["step"], state, manifest["extra"])

  def _set_aside(self) -> None:
    """Renames skipped checkpoints, which are never removed: their files may be worth a repair.

    Their folders' names would stand for steps that the run has yet to reach.
    """
    found = find(self.directory)
    for step in sorted(self._skipped.keys() & found.keys()):
      aside = self.directory / f"{self._skipped[step]}{step:012d}"
      while aside.exists():
        aside = aside.with_name(f"{aside.name}-")
      _logger.warning("setting aside a checkpoint that cannot be used: %s", aside)
      os.rename(found[step], aside)
    self._skipped.clear()

  def _prune(self) -> None:
    found = find(self.directory)
    kept = set(list(found)[-self._keep_last:])
    if self._keep_every is not None:
      kept |= {step for step in found if step % self._keep_every == 0}
    for step, path in found.items():
      if step not in kept:
        # Renamed first: a partly removed checkpoint must not have a checkpoint's name.
        os.rename(path, self.directory / f".removed-{path.name}-{os.getpid()}")
    self._remove_leftovers()

  def _remove_leftovers(self) -> None:
    in_use = set(find(self.directory).values())
    for path in self.directory.iterdir():
      if path.name.startswith(_LEFTOVERS) and path not in in_use:
        _remove(path)


def find(directory: str | os.PathLike) -> dict[int, Path]:
  """Returns the paths of a directory's checkpoints by step, ascending; none without a directory.

  A checkpoint that was being replaced when its process was killed has the path `.replaced-STEP`.
  """
  found: dict[int, Path] = {}
  directory = Path(directory).absolute()
  for path in directory.iterdir() if directory.is_dir() else ():
    if replaced := _REPLACED.fullmatch(path.name):
      found.setdefault(int(replaced[1]), path)
    elif _STEP.fullmatch(path.name):
      found[int(path.name)] = path
  return dict(sorted(found.items()))


def save_params(path: str | os.PathLike, params: Tree, config: checkpoint_manifest.Described,
                step: int = 0, extra: Mapping[str, Any] | None = None) -> Path:
  """Saves a player's snapshot, its parameters only, atomically.

  Args:
    path: must not exist; snapshots never change.
    params: nested dicts of arrays.
    config: the agent's.
    step: updates so far.
    extra: any JSON object.

  Raises:
    FileExistsError: the path exists.
    ValueError: `params` are not nested dicts.
    ArraysError: a parameter is not finite; names it.
    RuntimeError: this is not the first host of a run.
  """
  path = Path(path).absolute()
  arrays.require_first_host(path.parent)
  checkpoint_manifest.require_nested_dicts(params)
  for leftover in path.parent.glob(f"{files.PARTIAL}{glob.escape(path.name)}-*"):
    _remove(leftover)
  arrays.write(path, {"params": params},
                         checkpoint_manifest.describe(config, step, extra))
  return path


def load_params(path: str | os.PathLike,
                config: checkpoint_manifest.Described | None = None) -> Tree:
  """Loads the parameters of a snapshot or checkpoint; see `load_params_and_step`."""
  return load_params_and_step(path, config)[0]


def load_params_and_step(path: str | os.PathLike,
                         config: checkpoint_manifest.Described | None = None) -> tuple[Tree, int]:
  """Loads the parameters of a snapshot, of a checkpoint, or of a run's newest intact checkpoint.

  Args:
    path: a snapshot, a checkpoint, or a directory of checkpoints.
    config: the agent that they must fit; None: any (`read_manifest` returns which).

  Returns:
    Nested dicts of numpy arrays, and the updates behind them.

  Raises:
    CheckpointMismatchError: another schema or vocabulary, or another agent than `config`.
    CheckpointDamagedError: the checkpoint, or every one, is damaged.
    FileNotFoundError: there is none, as in an empty folder.
  """
  path = Path(path).absolute()

  def load(path: Path, step: int | None = None) -> tuple[Tree, int]:
    if step is not None:
      checkpoint_manifest.check_step(path, step)
    manifest = checkpoint_manifest.check(path, config)
    leaves = manifest["leaves"]["params"]
    return arrays.nest(arrays.read(path, "params", leaves), leaves), manifest["step"]

  found = find(path) if path.is_dir() and not (path / MANIFEST).exists() else {}
  newest = _newest(found, lambda step: load(found[step], step), lambda step, error: None)
  if newest is not None:
    return newest
  if not any((path / name).exists() for name in (MANIFEST, "params")):
    raise FileNotFoundError(f"no snapshot, checkpoint or directory of checkpoints at {path}")
  return load(path)


def _newest(found: Mapping[int, Path], load: Callable[[int], Loaded],
            on_damaged: Callable[[int, CheckpointDamagedError], None]) -> Loaded | None:
  """Loads the newest intact checkpoint; None if there is no checkpoint."""
  for step in sorted(found, reverse=True):
    try:
      return load(step)
    except CheckpointDamagedError as error:
      _logger.warning("checkpoint damaged, using the previous one: step=%d %s", step, error)
      on_damaged(step, error)
  if found:
    raise CheckpointDamagedError(
      f"every checkpoint of {next(iter(found.values())).parent} is damaged: steps "
      f"{list(found)}; restore the files from a copy, or start a new run in another directory")
  return None


@contextmanager
def _disk_full_named(directory: Path, step: int) -> Iterator[None]:
  """Turns the errors of a full disk, also those of Orbax's own writers, into `DiskFullError`."""
  try:
    yield
  except Exception as error:
    if not disk.is_full(error):
      raise
    steps = list(find(directory))
    kept = f"step {steps[-1]} is kept" if steps else "there is none before it"
    raise disk.full(
      directory, f" to save the checkpoint of step {step}", f"; {kept}") from error


def _remove(path: Path) -> None:
  """Removes a folder, or the file that stands in its place."""
  if path.is_dir():
    shutil.rmtree(path)
  else:
    path.unlink()
