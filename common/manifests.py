"""Manifests: a JSON file that describes a folder, with the SHA-256 of every file in it.

    {"manifest": {..., "files": {"params/data": "9f86d0..."}}, "sha256": "2c26b4..."}

`sha256` is the digest of the manifest itself, as JSON with sorted keys and no spaces.
"""

import hashlib
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from starleague.common import files


class ManifestError(ValueError):
  """A folder's manifest or files are missing or are not those that were written."""


def write(path: str | os.PathLike, values: Mapping[str, Any]) -> dict[str, Any]:
  """Writes a manifest with the digests of all files in its folder.

  Args:
    path: the manifest's file. It must not exist; the folder's other files are complete.
    values: what it says, as JSON; the key "files" is added.

  Returns:
    The manifest.
  """
  path = pathlib.Path(path)
  return replace(
    path, values, {name: file_digest(path.parent / name) for name in _files_in(path.parent)})


def replace(path: str | os.PathLike, values: Mapping[str, Any],
            digests: Mapping[str, str]) -> dict[str, Any]:
  """Writes a manifest atomically; an existing one stays until the new one is complete.

  Args:
    path: the manifest's file.
    values: what it says, as JSON; the key "files" is added.
    digests: SHA-256 of the files it lists, by name.

  Returns:
    The manifest.
  """
  manifest = {**values, "files": dict(digests)}
  document = {"manifest": manifest, "sha256": manifest_digest(manifest)}
  with files.replacing(path) as file:
    file.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
  return manifest


def read(path: str | os.PathLike) -> dict[str, Any]:
  """Reads a manifest and verifies its digest.

  Raises:
    ManifestError: the file is missing, unreadable, not such JSON, or not what was written; the
      message names it.
  """
  path = pathlib.Path(path)
  try:
    document = json.loads(path.read_bytes())
    if not isinstance(document, dict) or set(document) != {"manifest", "sha256"}:
      keys = sorted(document) if isinstance(document, dict) else type(document).__name__
      raise ManifestError(f"{path}: expected a JSON object with the keys 'manifest' and 'sha256', "
                          f"found {_short(keys)}; it is damaged or of another version.")
    manifest, expected = document["manifest"], document["sha256"]
    found = manifest_digest(manifest)
  except FileNotFoundError as error:
    raise ManifestError(f"{path} is missing.") from error
  except OSError as error:
    raise ManifestError(f"{path} cannot be read: {error.strerror}.") from error
  except RecursionError as error:
    raise ManifestError(f"{path} is damaged: expected a manifest, found JSON that is nested too "
                        "deeply.") from error
  except ManifestError:
    raise
  except ValueError as error:
    raise ManifestError(f"{path} is damaged: expected JSON, found {_short(error)}.") from error
  if found != expected:
    raise ManifestError(f"{path} is damaged: expected SHA-256 {_short(expected)}, found {found}.")
  if not isinstance(manifest, dict):
    raise ManifestError(f"{path}: 'manifest': expected an object, found {_short(manifest)}.")
  check_types(path, manifest, {"files": dict})
  for name, digest in manifest["files"].items():
    if not isinstance(digest, str):
      raise ManifestError(f"{path}: 'files', {_short(name)}: expected a SHA-256, found "
                          f"{_short(digest)}.")
  return manifest


def check_types(path: str | os.PathLike, manifest: Mapping[str, Any],
                types: Mapping[str, type]) -> None:
  """Checks that a manifest has these keys with values of these JSON types.

  Args:
    path: the manifest's file, for the message.
    manifest: as read.
    types: int, str, float, bool, dict or list, by key. A bool is not an int.

  Raises:
    ManifestError: names the first key that is missing or has another type.
  """
  for key, expected in types.items():
    if key not in manifest:
      raise ManifestError(f"{path}: expected the key {key!r}, found {_short(sorted(manifest))}.")
    if type(manifest[key]) is not expected:
      raise ManifestError(
        f"{path}: key {key!r}: expected {expected.__name__}, found {_short(manifest[key])}.")


def check_files(path: str | os.PathLike, manifest: Mapping[str, Any], *,
                others: bool = False) -> None:
  """Checks that the folder holds exactly the files of its manifest, byte for byte.

  Args:
    path: the manifest's file.
    manifest: as read.
    others: whether the folder may hold other files too.

  Raises:
    ManifestError: a file is missing, differs, cannot be read, or is not listed; names it.
  """
  folder = pathlib.Path(path).parent
  for name, expected in manifest["files"].items():
    file = folder / name
    try:
      found = file_digest(file)
    except FileNotFoundError as error:
      raise ManifestError(f"{file} is missing.") from error
    except (OSError, ValueError) as error:  # a ValueError for a null character in the name
      reason = getattr(error, "strerror", error)
      raise ManifestError(f"{file} cannot be read: {reason}.") from error
    if found != expected:
      raise ManifestError(f"{file} is damaged: expected SHA-256 {expected}, found {found} of "
                          f"{file.stat().st_size} bytes.")
  if others:
    return
  extra = set(_files_in(folder)) - set(manifest["files"]) - {pathlib.Path(path).name}
  if extra:
    raise ManifestError(
      f"{folder / min(extra)} is not listed in {pathlib.Path(path).name}: expected "
      f"{len(manifest['files'])} files, found {len(extra)} more; remove them.")


def file_digest(path: str | os.PathLike) -> str:
  """SHA-256 of a file, in hexadecimal digits."""
  with open(path, "rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _files_in(folder: pathlib.Path) -> list[str]:
  """Everything below a folder that is not a folder, by relative path."""
  return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*")
                if not file.is_dir() or file.is_symlink())


def manifest_digest(manifest: Any) -> str:
  """SHA-256 of a manifest, in hexadecimal digits."""
  canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
  return hashlib.sha256(canonical.encode()).hexdigest()


def _short(value: Any, limit: int = 120) -> str:
  """A value as one line of limited length."""
  try:
    text = " ".join((str(value) if isinstance(value, Exception) else repr(value)).split())
  except RecursionError:
    text = f"a deep {type(value).__name__}"
  return text if len(text) <= limit else f"{text[:limit]}..."
