"""One checkpoint on disk: its manifest, its arrays, and whether both are what was written."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from starleague.agent import vocabulary
from starleague.common.errors import UserError

Tree = Any

SCHEMA = 1
MANIFEST = "manifest.json"
# Fields of an AgentConfig that say how it is run, not what its parameters mean: a checkpoint may be
# restored under other values.
RUN_FIELDS = frozenset({"dtype", "remat", "entity_embedding", "temperature", "delay_temperature"})


class CheckpointMismatchError(UserError, ValueError):
  """A sound checkpoint, but of something else than what it is restored into."""

  def __init__(self, path: Path, what: str, found: Any, expected: Any, remedy: str):
    super().__init__(f"{path}: {what}: found {found!r}, expected {expected!r}; {remedy}")
    self.what, self.found, self.expected = what, found, expected


class CheckpointDamagedError(UserError, RuntimeError):
  """A checkpoint whose files are missing or are not what was written."""


def read_manifest(path: str | os.PathLike) -> dict[str, Any]:
  """The manifest of a checkpoint or snapshot: schema, step, preset, config, vocabulary, extra,
  leaves, files.

  Raises:
    CheckpointDamagedError: it is missing, or not what was written.
  """
  path = Path(path) / MANIFEST
  try:
    document = json.loads(path.read_bytes())
    manifest, written = document["manifest"], document["sha256"]
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise CheckpointDamagedError(f"{path} cannot be read: {error!r}") from error
  if _digest_of(manifest) != written:
    raise CheckpointDamagedError(f"{path} is not what was written: its SHA-256 differs")
  return manifest


def describe(config: Any, step: int, extra: Mapping[str, Any] | None) -> dict[str, Any]:
  """A manifest without leaves and files; fails here, before anything is written, if JSON must."""
  manifest = {"schema": SCHEMA, "step": int(step), "preset": config.name,
              "config": dataclasses.asdict(config), "vocabulary": vocabulary.digest(),
              "extra": dict(extra or {})}
  return json.loads(json.dumps(manifest, allow_nan=False))


def require_first_host(directory: Path) -> None:
  """Refuses to write on a run's other hosts: Orbax writes no numpy array there, and does not say so.

  Raises:
    RuntimeError: this is not the first host.
  """
  if jax.process_index() != 0:
    raise RuntimeError(
      f"host {jax.process_index()} was asked to write a checkpoint to {directory}; only host 0 of "
      "a run can: guard the call with jax.process_index() == 0")


def write(path: Path, trees: Mapping[str, Tree], manifest: dict[str, Any]) -> None:
  """Writes a whole checkpoint at `path`, down to the disk."""
  path.mkdir()
  leaves = {name: describe_leaves(tree) for name, tree in trees.items()}
  with _checkpointer() as checkpointer:
    for name, tree in trees.items():
      arrays = {leaf: array for leaf, array in _arrays(tree).items() if array.size}
      if arrays:  # Orbax saves neither empty trees nor empty arrays; their leaves are described
        checkpointer.save(path / name, args=ocp.args.PyTreeSave(arrays))
  files = {}
  for file in sorted(file for file in path.rglob("*") if file.is_file()):
    sync(file)
    files[file.relative_to(path).as_posix()] = _file_digest(file)
  manifest = {**manifest, "leaves": leaves, "files": files}
  document = {"manifest": manifest, "sha256": _digest_of(manifest)}
  (path / MANIFEST).write_text(json.dumps(document, indent=1) + "\n")
  sync(path / MANIFEST)
  for directory in (path, *(d for d in path.rglob("*") if d.is_dir())):
    sync(directory)


def read(path: Path, name: str, manifest: dict[str, Any]) -> dict[str, Any]:
  """The leaves of one tree, by name: numpy arrays and typed keys."""
  leaves = manifest["leaves"][name]
  stored = [leaf for leaf, described in leaves.items() if 0 not in described["shape"]]
  arrays = {}
  if stored:
    as_numpy = ocp.RestoreArgs(restore_type=np.ndarray)
    with _checkpointer() as checkpointer:
      arrays = checkpointer.restore(path / name, args=ocp.args.PyTreeRestore(
        item=dict.fromkeys(stored, 0), restore_args=dict.fromkeys(stored, as_numpy)))
  for leaf, described in leaves.items():
    if leaf not in stored:
      arrays[leaf] = np.zeros(described["shape"], described["dtype"])
    elif described["key"] is not None:
      arrays[leaf] = jax.random.wrap_key_data(arrays[leaf], impl=described["key"])
  return arrays


def check(path: Path, config: Any) -> dict[str, Any]:
  """The manifest of a checkpoint that is sound and fits; config None fits every agent."""
  manifest = read_manifest(path)
  if manifest["schema"] != SCHEMA:
    raise CheckpointMismatchError(path, "schema", manifest["schema"], SCHEMA,
                                  "use the version of Starleague that wrote it")
  if manifest["vocabulary"] != vocabulary.digest():
    raise CheckpointMismatchError(
      path, "vocabulary", manifest["vocabulary"], vocabulary.digest(),
      "its indices mean other units and functions: use the version of Starleague that wrote it")
  if config is not None:
    _check_config(path, manifest, config)
  for name, digest in manifest["files"].items():
    file = path / name
    try:
      sound = _file_digest(file) == digest
    except FileNotFoundError as error:
      raise CheckpointDamagedError(f"{file} is missing") from error
    except OSError as error:
      raise CheckpointDamagedError(f"{file} cannot be read: {error!r}") from error
    if not sound:
      raise CheckpointDamagedError(f"{file} is not what was written: its SHA-256 differs")
  return manifest


def _check_config(path: Path, manifest: Mapping[str, Any], config: Any) -> None:
  if manifest["preset"] != config.name:
    raise CheckpointMismatchError(path, "preset", manifest["preset"], config.name,
                                  f"run with the preset {manifest['preset']!r}")
  found = _flatten(manifest["config"])
  expected = _flatten(json.loads(json.dumps(dataclasses.asdict(config))))
  for field in sorted(found.keys() | expected.keys()):
    ours, theirs = expected.get(field, "nothing"), found.get(field, "nothing")
    if field not in RUN_FIELDS and ours != theirs:
      raise CheckpointMismatchError(path, f"agent config, {field}", theirs, ours,
                                    "run with the config that the checkpoint's manifest holds")


def check_leaves(path: Path, tree: str, found: Mapping[str, Any],
                 expected: Mapping[str, Any]) -> None:
  """Refuses a tree whose leaves are not those of the template."""
  for leaf in sorted(found.keys() | expected.keys()):
    ours, theirs = expected.get(leaf), found.get(leaf)
    if ours != theirs:
      raise CheckpointMismatchError(
        path, f"{tree} leaf {leaf}", theirs or "nothing", ours or "nothing",
        "restore it with the network and the optimizer that it was saved with")


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
  """{"a": {"b": 1}} -> {"a.b": 1}."""
  flat: dict[str, Any] = {}
  for name, value in tree.items():
    if isinstance(value, Mapping):
      flat |= _flatten(value, f"{prefix}{name}.")
    else:
      flat[prefix + name] = value
  return flat


def nest(leaves: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
  """The nested dicts that parameters were saved as."""
  tree: dict[str, Any] = {}
  for leaf, array in leaves.items():
    *parents, last = manifest["leaves"]["params"][leaf]["path"]
    node = tree
    for parent in parents:
      node = node.setdefault(parent, {})
    node[last] = array
  return tree


def fill(template: Tree, leaves: Mapping[str, Any]) -> Tree:
  """A tree of the template's structure with the leaves of these names."""
  return jax.tree_util.tree_map_with_path(
    lambda path, _: leaves[jax.tree_util.keystr(path)], template)


def require_nested_dicts(params: Tree) -> None:
  """Refuses parameters that could not be loaded without a template."""
  for leaf, described in describe_leaves(params).items():
    if not described["path"]:
      raise ValueError(f"parameter {leaf or 'at the root'}: expected nested dicts with string "
                       "keys, as Haiku's are, all the way to the arrays")


def describe_leaves(tree: Tree) -> dict[str, dict[str, Any]]:
  """What each leaf is, by name: its shape, dtype, kind of key if it is one, keys that lead to it
  if they are all of dicts."""
  described = {}
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    keys = [getattr(entry, "key", None) for entry in path]
    is_key = _is_key(leaf)
    described[jax.tree_util.keystr(path)] = {
      "shape": list(np.shape(leaf)),
      "dtype": "key" if is_key else str(leaf.dtype),
      "key": str(jax.random.key_impl(leaf)) if is_key else None,
      "path": keys if all(isinstance(key, str) for key in keys) else None}
  return described


def _arrays(tree: Tree) -> dict[str, np.ndarray]:
  return {jax.tree_util.keystr(path): np.asarray(
            jax.random.key_data(leaf) if _is_key(leaf) else leaf)
          for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def _is_key(leaf: Any) -> bool:
  return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _checkpointer() -> ocp.Checkpointer:
  # A host writes or reads by itself: without this, Orbax waits for all hosts of a run.
  process = jax.process_index()
  alone = ocp.options.MultiprocessingOptions(
    primary_host=process, active_processes={process}, barrier_sync_key_prefix=f"host{process}")
  return ocp.Checkpointer(
    ocp.PyTreeCheckpointHandler(use_ocdbt=True, use_zarr3=True, multiprocessing_options=alone),
    multiprocessing_options=alone)


def _file_digest(path: Path) -> str:
  with path.open("rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(manifest: Mapping[str, Any]) -> str:
  canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
  return hashlib.sha256(canonical.encode()).hexdigest()


def sync(path: Path) -> None:
  """Waits until a file, or the names in a directory, are on disk."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
