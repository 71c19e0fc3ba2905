"""The manifest of a checkpoint: which agent and which arrays it holds, and whether they fit."""

import dataclasses
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import jax
import numpy as np

from starleague.agent import config as agent_config
from starleague.agent import vocabulary
from starleague.agent.config import AgentConfig
from starleague.common import manifests
from starleague.common.errors import UserError
from starleague.data.trees import Tree, is_key

Leaf = dict[str, Any]  # shape, dtype, key, path: see `describe_leaves`

_logger = logging.getLogger(__name__)

SCHEMA = 1
MANIFEST = "manifest.json"
_TYPES = {"step": int, "preset": str, "config": dict, "vocabulary": str, "extra": dict,
          "leaves": dict}


class Described(Protocol):
  """The owner of checkpoints: an AgentConfig, or the description of another system.

  A frozen dataclass of JSON values.
  """

  __dataclass_fields__: ClassVar[dict[str, Any]]

  @property
  def name(self) -> str:
    """Of the preset or the system."""


class CheckpointMismatchError(UserError, ValueError):
  """An intact checkpoint of another schema, agent, vocabulary or state than the expected one."""

  def __init__(self, path: Path, what: str, found: Any, expected: Any, remedy: str):
    super().__init__(f"{path}: {what}: found {found!r}, expected {expected!r}; {remedy}")
    self.what, self.found, self.expected = what, found, expected


class CheckpointDamagedError(UserError, RuntimeError):
  """A checkpoint whose files are missing or are not those that were written."""


class CheckpointMisplacedError(CheckpointDamagedError):
  """A checkpoint in the folder of another step; its files may be sound."""


def read_manifest(path: str | os.PathLike) -> dict[str, Any]:
  """Reads the manifest of a checkpoint or snapshot.

  Returns:
    schema, step, preset, config, vocabulary, extra, leaves and files, each of its JSON type.

  Raises:
    CheckpointDamagedError: it is missing, is not the manifest that was written, or lacks a key.
    CheckpointMismatchError: it has another schema.
  """
  file = Path(path) / MANIFEST
  try:
    manifest = manifests.read(file)
    manifests.check_types(file, manifest, {"schema": int})
    if manifest["schema"] != SCHEMA:
      raise CheckpointMismatchError(Path(path), "schema", manifest["schema"], SCHEMA,
                                    "use the version of Starleague that wrote it")
    manifests.check_types(file, manifest, _TYPES)
    _check_described(file, manifest["leaves"])
  except manifests.ManifestError as error:
    raise CheckpointDamagedError(str(error)) from error
  return manifest


def _check_described(file: Path, trees: Mapping[str, Any]) -> None:
  """Checks the descriptions of leaves: types, dtypes, kinds of keys."""
  manifests.check_types(file, trees, dict.fromkeys(trees, dict) | {"params": dict})
  for tree, leaves in trees.items():
    for name, leaf in leaves.items():
      if (problem := _problem(leaf, needs_path=tree == "params")) is not None:
        raise manifests.ManifestError(f"{file}: {tree} leaf {name[:120]!r}: {problem}.")


def _problem(leaf: Any, needs_path: bool) -> str | None:
  """Returns what is wrong with a leaf's description, or None."""
  if not isinstance(leaf, dict) or set(leaf) != {"shape", "dtype", "key", "path"}:
    return "expected an object with shape, dtype, key and path"
  shape, dtype, key, path = (leaf[name] for name in ("shape", "dtype", "key", "path"))
  if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
    return "shape: expected a list of sizes"
  if not isinstance(dtype, str) or (dtype == "key") != (key is not None):
    return "dtype: expected a dtype, or 'key' for a key"
  if path is None and needs_path:
    return "path: expected the dict keys that lead to the parameter"
  if path is not None and not (
      isinstance(path, list) and path and all(isinstance(part, str) for part in path)):
    return "path: expected a list of dict keys"
  try:
    if key is None:
      np.dtype(dtype)
    else:
      jax.random.key(0, impl=key)
  except (TypeError, ValueError):
    return f"expected a known dtype, found {dtype[:40]!r} {str(key)[:40]!r}"
  return None


def describe(config: Described, step: int, extra: Mapping[str, Any] | None) -> dict[str, Any]:
  """Returns a manifest without leaves and files.

  Raises:
    TypeError, ValueError: `extra` is not JSON; nothing has been written yet.
  """
  manifest = {"schema": SCHEMA, "step": int(step), "preset": config.name,
              "config": dataclasses.asdict(config), "vocabulary": vocabulary.digest(),
              "extra": dict(extra or {})}
  return json.loads(json.dumps(manifest, allow_nan=False))


def check(path: Path, config: Described | None) -> dict[str, Any]:
  """Reads a checkpoint's manifest and checks vocabulary, agent and all files.

  Files that the manifest does not list are ignored with a warning.

  Args:
    path: the checkpoint's folder.
    config: the agent that it must fit; None: any.

  Raises:
    CheckpointMismatchError, CheckpointDamagedError.
  """
  manifest = read_manifest(path)
  if manifest["vocabulary"] != vocabulary.digest():
    raise CheckpointMismatchError(
      path, "vocabulary", manifest["vocabulary"], vocabulary.digest(),
      "its indices mean other units and functions: use the version of Starleague that wrote it")
  if config is not None:
    _check_config(path, manifest, config)
  try:
    manifests.check_files(path / MANIFEST, manifest, others=True)
  except manifests.ManifestError as error:
    raise CheckpointDamagedError(str(error)) from error
  listed = {MANIFEST, *manifest["files"]}
  if others := sorted(file.relative_to(path).as_posix() for file in path.rglob("*")
                      if not file.is_dir() and file.relative_to(path).as_posix() not in listed):
    _logger.warning("ignoring files that %s does not list: %s", path / MANIFEST, ", ".join(others))
  return manifest


def check_step(path: Path, step: int) -> None:
  """Checks that a checkpoint is in the folder of its step.

  Raises:
    CheckpointMisplacedError: it is not.
  """
  found = read_manifest(path)["step"]
  if found != step:
    raise CheckpointMisplacedError(
      f"{path} holds the checkpoint of step {found}, expected step {step}: give the folder its "
      f"name back, {found:012d}.")


def _check_config(path: Path, manifest: Mapping[str, Any], config: Described) -> None:
  own = isinstance(config, AgentConfig)
  kind = "preset" if own else "system"
  if manifest["preset"] != config.name:
    raise CheckpointMismatchError(path, kind, manifest["preset"], config.name,
                                  f"run with the {kind} {manifest['preset']!r}")
  found = agent_config.structure(manifest["config"])
  expected = agent_config.structure(dataclasses.asdict(config))
  for field in sorted(found.keys() | expected.keys()):
    ours, theirs = expected.get(field, "nothing"), found.get(field, "nothing")
    if ours != theirs:
      raise CheckpointMismatchError(path, f"{'agent' if own else 'system'} config, {field}", theirs,
                                    ours, "run with the config in the checkpoint's manifest")


def check_leaves(path: Path, tree: str, found: Mapping[str, Leaf],
                 expected: Mapping[str, Leaf]) -> None:
  """Checks that the leaves of a tree are those of the template.

  Raises:
    CheckpointMismatchError: names the first leaf that differs.
  """
  for leaf in sorted(found.keys() | expected.keys()):
    ours, theirs = expected.get(leaf), found.get(leaf)
    if ours != theirs:
      raise CheckpointMismatchError(
        path, f"{tree} leaf {leaf}", theirs or "nothing", ours or "nothing",
        "restore it with the network and the optimizer that it was saved with")


def describe_leaves(tree: Tree) -> dict[str, Leaf]:
  """Describes each leaf, by name.

  Returns:
    shape; dtype ("key" for a typed key); key, the implementation of a typed key, else None; path,
    the dict keys that lead to the leaf, None if another container is among them.
  """
  described = {}
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    keys = [getattr(entry, "key", None) for entry in path]
    typed_key = is_key(leaf)
    described[jax.tree_util.keystr(path)] = {
      "shape": list(np.shape(leaf)),
      "dtype": "key" if typed_key else str(leaf.dtype),
      "key": str(jax.random.key_impl(leaf)) if typed_key else None,
      "path": keys if all(isinstance(key, str) for key in keys) else None}
  return described


def require_nested_dicts(params: Tree) -> None:
  """Checks that parameters can be loaded without a template.

  Raises:
    ValueError: they are not nested dicts with string keys.
  """
  for leaf, described in describe_leaves(params).items():
    if not described["path"]:
      raise ValueError(f"parameter {leaf or 'at the root'}: expected nested dicts with string "
                       "keys, as Haiku's are, all the way to the arrays")
