"""The arrays of a checkpoint on disk, written and read by Orbax."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from starleague.common import arrays as checked
from starleague.common import files, manifests
from starleague.data.checkpoints.checkpoint_manifest import (
  MANIFEST,
  CheckpointDamagedError,
  Leaf,
  describe_leaves,
)
from starleague.data.trees import Tree, is_key


def require_first_host(directory: Path) -> None:
  """Rejects writes on the other hosts of a run, where Orbax silently writes no numpy arrays.

  Raises:
    RuntimeError: this is not the first host.
  """
  if jax.process_index() != 0:
    raise RuntimeError(
      f"host {jax.process_index()} was asked to write a checkpoint to {directory}; only host 0 of "
      "a run can: guard the call with jax.process_index() == 0")


def write(path: Path, trees: Mapping[str, Tree], manifest: Mapping[str, Any],
          aside: Path | None = None) -> None:
  """Writes a checkpoint, which appears at `path` when it is complete and on disk.

  Args:
    path: the checkpoint's folder.
    trees: pytrees of arrays and typed keys, by name.
    manifest: the manifest without leaves and files.
    aside: the name that an existing checkpoint at `path` gets; None: there must be none.

  Raises:
    ArraysError: a number is not finite, so that `read` would refuse it; nothing is written.
  """
  leaves = {name: describe_leaves(tree) for name, tree in trees.items()}
  stored = {name: _arrays(tree) for name, tree in trees.items()}
  for name, arrays in stored.items():
    for leaf, array in arrays.items():
      checked.check_values(path / name, leaf, array, checked.Spec(array.dtype, array.shape))
  with files.replacing_folder(path, aside) as folder:
    with _checkpointer() as (ocp, checkpointer):
      for name, found in stored.items():
        arrays = {leaf: array for leaf, array in found.items() if array.size}
        if arrays:  # Orbax saves neither empty trees nor empty arrays
          checkpointer.save(folder / name, args=ocp.args.PyTreeSave(arrays))
    manifests.write(folder / MANIFEST, {**manifest, "leaves": leaves})


def read(path: Path, name: str, leaves: Mapping[str, Leaf]) -> dict[str, Any]:
  """Reads the leaves of one tree, by name: numpy arrays and typed keys.

  Raises:
    CheckpointDamagedError: the arrays are not those that the manifest describes, or not finite.
  """
  stored = {leaf: described for leaf, described in leaves.items() if 0 not in described["shape"]}
  found = _restore(path / name, stored) if stored else {}
  for leaf, described in leaves.items():
    if leaf not in stored:
      found[leaf] = np.zeros(described["shape"], described["dtype"])
    elif described["key"] is not None:
      found[leaf] = jax.random.wrap_key_data(found[leaf], impl=described["key"])
    else:
      try:
        checked.check_values(path / name, leaf, found[leaf], checked.Spec(
          described["dtype"], tuple(described["shape"])))
      except checked.ArraysError as error:
        raise CheckpointDamagedError(str(error)) from error
  return found


def _restore(path: Path, leaves: Mapping[str, Leaf]) -> dict[str, Any]:
  """Reads arrays after a check of their names, dtypes and shapes."""
  with _checkpointer() as (ocp, checkpointer):
    as_numpy = ocp.RestoreArgs(restore_type=np.ndarray)
    try:
      stored = {name: (str(np.dtype(array.dtype)), list(array.shape)) for name, array in
                checkpointer.metadata(path).item_metadata.tree.items()}
      _check_stored(path, stored, leaves)
      return dict(checkpointer.restore(path, args=ocp.args.PyTreeRestore(
        item=dict.fromkeys(leaves, 0), restore_args=dict.fromkeys(leaves, as_numpy))))
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
      # The files are those of the manifest: the manifest and they were not written together.
      raise CheckpointDamagedError(
        f"{path}: expected {len(leaves)} arrays that Orbax wrote, found files that it cannot read"
      ) from error


def _check_stored(path: Path, stored: Mapping[str, tuple[str, list[int]]],
                  leaves: Mapping[str, Leaf]) -> None:
  """Checks the names, dtypes and shapes of stored arrays against the manifest's."""
  for name in leaves.keys() - stored.keys():
    raise CheckpointDamagedError(f"{path}: {name}: expected an array of this name, found none")
  for name in stored.keys() - leaves.keys():
    raise CheckpointDamagedError(f"{path}: {name}: expected no array of this name, found one")
  for name, (dtype, shape) in stored.items():
    described = leaves[name]
    if described["key"] is not None:
      data = jax.random.key_data(jax.random.key(0, impl=described["key"]))
      expected = str(data.dtype), [*described["shape"], *data.shape]
    else:
      expected = described["dtype"], described["shape"]
    if (dtype, shape) != expected:
      raise CheckpointDamagedError(f"{path}: {name}: expected {expected[0]}{expected[1]}, found "
                                   f"{dtype}{shape}")


def nest(leaves: Mapping[str, Any], described: Mapping[str, Leaf]) -> dict[str, Any]:
  """Rebuilds the nested dicts of parameters from their leaves."""
  tree: dict[str, Any] = {}
  for leaf, array in leaves.items():
    *parents, last = described[leaf]["path"]
    node = tree
    for parent in parents:
      node = node.setdefault(parent, {})
    node[last] = array
  return tree


def fill(template: Tree, leaves: Mapping[str, Any]) -> Tree:
  """Returns a tree of the template's structure with leaves looked up by name."""
  return jax.tree_util.tree_map_with_path(
    lambda path, _: leaves[jax.tree_util.keystr(path)], template)


def _arrays(tree: Tree) -> dict[str, np.ndarray]:
  return {jax.tree_util.keystr(path): np.asarray(
            jax.random.key_data(leaf) if is_key(leaf) else leaf)
          for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


@contextmanager
def _checkpointer() -> Iterator[tuple[Any, Any]]:
  """Yields the Orbax module and a checkpointer that logs warnings only.

  Orbax is imported here, when a checkpoint is first written or read: importing it takes a third of
  a CPU-second, and most processes of a run never do either.
  """
  import orbax.checkpoint as ocp

  # A host writes and reads alone: without these options, Orbax waits for all hosts of a run.
  process = jax.process_index()
  alone = ocp.options.MultiprocessingOptions(
    primary_host=process, active_processes={process}, barrier_sync_key_prefix=f"host{process}")
  handler = ocp.PyTreeCheckpointHandler(
    use_ocdbt=True, use_zarr3=True, multiprocessing_options=alone)
  logging.getLogger("absl").addFilter(_is_worth_logging)  # adds it once
  with ocp.Checkpointer(handler, multiprocessing_options=alone) as checkpointer:
    yield ocp, checkpointer


def _is_worth_logging(record: logging.LogRecord) -> bool:
  """Keeps warnings of Orbax and all records of other packages."""
  return record.levelno >= logging.WARNING or "/orbax/" not in record.pathname
