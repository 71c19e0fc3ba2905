"""Checkpoints of a run, and snapshots of players: atomic, checked, and refused where they differ.

A checkpoint is a directory, `DIRECTORY/000000001200` for step 1200:

    params/         the parameters, by Orbax
    state/          everything else of the training state, by Orbax; a snapshot has none
    manifest.json   what it is: schema, step, agent, vocabulary, every leaf, SHA-256 of every file

It is written under another name and renamed when it is complete and on disk, so that a process
killed at any moment leaves the previous checkpoints and never half a one. A directory has one
writer, of a run over several hosts the first; anybody may read.
"""

import glob
import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from starleague.learner import checkpoint_files as files
from starleague.learner.checkpoint_files import (
  CheckpointDamagedError,
  CheckpointMismatchError,
  read_manifest,
)

__all__ = ["CheckpointDamagedError", "CheckpointMismatchError", "Checkpoints", "Restored",
           "load_params", "read_manifest", "save_params"]
Tree = Any
_logger = logging.getLogger(__name__)

_STEP = re.compile(r"\d{12}")
_REPLACED = re.compile(r"\.replaced-(\d{12})")


class Restored(NamedTuple):
  """What `Checkpoints.restore` gives."""

  step: int
  state: Any  # as the template
  extra: dict[str, Any]  # what was given to save


class Checkpoints:
  """The checkpoints of one run.

  Args:
    directory: made if need be.
    config: the AgentConfig of what is saved, or any frozen dataclass with a `name`.
    keep_last: the newest that are kept.
    keep_every: every checkpoint whose step this divides is kept too; None: no others.

  Raises:
    ValueError: keep_last or keep_every is not positive.
  """

  def __init__(self, directory: str | os.PathLike, config: Any, keep_last: int = 3,
               keep_every: int | None = None):
    if keep_last < 1 or (keep_every is not None and keep_every < 1):
      raise ValueError("expected keep_last >= 1 and keep_every >= 1 or None, found "
                       f"{keep_last} and {keep_every}")
    self.directory = Path(directory).absolute()
    self.directory.mkdir(parents=True, exist_ok=True)
    self._config, self._keep_last, self._keep_every = config, keep_last, keep_every
    self._damaged: set[int] = set()

  def steps(self) -> list[int]:
    """The steps that have a checkpoint, ascending."""
    return sorted(_find(self.directory))

  def save(self, step: int, state: Any, extra: Mapping[str, Any] | None = None) -> Path:
    """Saves a checkpoint, then removes those that need not be kept.

    Args:
      step: updates so far. A checkpoint of the same step is replaced.
      state: a host state (see `update.unreplicate`): a NamedTuple with the field `params`, nested
        dicts of arrays; the other fields hold any tree of arrays and typed keys.
      extra: anything that JSON holds.

    Returns:
      The checkpoint's path.

    Raises:
      ValueError: a later checkpoint exists; two pasts would mix in one directory.
      RuntimeError: this is not the first host of a run.
    """
    files.require_first_host(self.directory)  # before it cleans up what the first is writing
    later = [s for s in self.steps() if s > step and s not in self._damaged]
    if later:
      raise ValueError(f"{self.directory} already holds step {later[-1]}, later than {step}: "
                       "restore that one, or give the run a directory of its own")
    self._remove_leftovers()
    files.require_nested_dicts(state.params)
    trees = {"params": state.params, "state": state._replace(params=())}
    final = self.directory / f"{step:012d}"
    partial = self.directory / f".partial-{step:012d}-{os.getpid()}"
    files.write(partial, trees, files.describe(self._config, step, extra))
    if final.exists():
      # Under this name `_find` still knows it, until the new one stands in its place.
      os.rename(final, self.directory / f".replaced-{final.name}")
    os.rename(partial, final)
    files.sync(self.directory)
    self._damaged.discard(step)
    self._prune()
    return final

  def restore(self, template: Any, step: int | None = None) -> Restored | None:
    """Restores the newest sound checkpoint, or the one of a step.

    Args:
      template: a state of the structure, shapes and dtypes that are wanted; its values are not
        read.
      step: None: the newest; a damaged one is passed over with a warning that names the file.

    Returns:
      The state as numpy arrays and typed keys; None if there is no checkpoint at all.

    Raises:
      CheckpointMismatchError: it is of another schema, agent, vocabulary or state.
      CheckpointDamagedError: the one asked for, or every one there is, is damaged.
      FileNotFoundError: there is none of that step.
    """
    found = _find(self.directory)
    if step is not None:
      if step not in found:
        raise FileNotFoundError(f"{self.directory} has no checkpoint of step {step}; it has "
                                f"{sorted(found)}")
      return self._restore(found[step], template)
    return _newest(found, lambda path: self._restore(path, template), self._damaged.add)

  def _restore(self, path: Path, template: Any) -> Restored:
    manifest = files.check(path, self._config)
    trees = {"params": template.params, "state": template._replace(params=())}
    for name, tree in trees.items():
      files.check_leaves(path, name, manifest["leaves"].get(name, {}), files.describe_leaves(tree))
    parts = {name: files.fill(tree, files.read(path, name, manifest)) for name, tree in trees.items()}
    state = parts["state"]._replace(params=parts["params"])
    return Restored(manifest["step"], state, manifest["extra"])

  def _prune(self) -> None:
    found = _find(self.directory)
    sound = sorted(set(found) - self._damaged)
    kept = set(sound[-self._keep_last:])
    if self._keep_every is not None:
      kept |= {step for step in sound if step % self._keep_every == 0}
    for step, path in found.items():
      if step not in kept:
        # Renamed first: half a removal must not look like a checkpoint.
        os.rename(path, self.directory / f".removed-{path.name}-{os.getpid()}")
        self._damaged.discard(step)
    self._remove_leftovers()

  def _remove_leftovers(self) -> None:
    in_use = set(_find(self.directory).values())
    for path in self.directory.iterdir():
      if path.name.startswith((".partial-", ".removed-", ".replaced-")) and path not in in_use:
        shutil.rmtree(path)


def save_params(path: str | os.PathLike, params: Tree, config: Any, step: int = 0,
                extra: Mapping[str, Any] | None = None) -> Path:
  """Saves a player's snapshot: parameters only, at a path of its own, atomically.

  Args:
    path: does not exist yet; snapshots never change.
    params: nested dicts of arrays.
    config: its AgentConfig.
    step: updates so far.
    extra: anything that JSON holds.

  Raises:
    FileExistsError: the path exists.
  """
  path = Path(path).absolute()
  files.require_first_host(path.parent)
  files.require_nested_dicts(params)
  if path.exists():
    raise FileExistsError(f"{path} exists; a snapshot is never overwritten: choose another name")
  path.parent.mkdir(parents=True, exist_ok=True)
  partial = path.with_name(f".partial-{path.name}-{os.getpid()}")
  for leftover in path.parent.glob(f".partial-{glob.escape(path.name)}-*"):
    shutil.rmtree(leftover)
  files.write(partial, {"params": params}, files.describe(config, step, extra))
  os.rename(partial, path)
  files.sync(path.parent)
  return path


def load_params(path: str | os.PathLike, config: Any = None) -> Tree:
  """Loads the parameters of a snapshot, of a checkpoint, or of a run's newest sound checkpoint.

  Args:
    path: a snapshot, a checkpoint, or a directory of checkpoints.
    config: the AgentConfig that they must fit; None: any (`read_manifest` tells which).

  Returns:
    Nested dicts of numpy arrays.

  Raises:
    CheckpointMismatchError: another schema or vocabulary, or another agent than `config`.
    CheckpointDamagedError: it, or every one there is, is damaged.
    FileNotFoundError: there is none.
  """
  path = Path(path).absolute()

  def load(path):
    manifest = files.check(path, config)
    return files.nest(files.read(path, "params", manifest), manifest)

  found = _find(path) if path.is_dir() and not (path / files.MANIFEST).exists() else {}
  if found:
    return _newest(found, load, lambda step: None)
  if not path.is_dir():
    raise FileNotFoundError(f"no snapshot, checkpoint or directory of checkpoints at {path}")
  return load(path)


def _newest(found: Mapping[int, Path], load: Callable[[Path], Any],
            on_damaged: Callable[[int], Any]) -> Any:
  for step in sorted(found, reverse=True):
    try:
      return load(found[step])
    except CheckpointDamagedError as error:
      _logger.warning("checkpoint damaged, trying the one before: step=%d %s", step, error)
      on_damaged(step)
  if found:
    raise CheckpointDamagedError(
      f"every checkpoint of {next(iter(found.values())).parent} is damaged: steps "
      f"{sorted(found)}; restore the files from a copy, or start anew in another directory")
  return None


def _find(directory: Path) -> dict[int, Path]:
  found: dict[int, Path] = {}
  for path in directory.iterdir():
    if replaced := _REPLACED.fullmatch(path.name):
      found.setdefault(int(replaced[1]), path)
    elif _STEP.fullmatch(path.name):
      found[int(path.name)] = path
  return found
