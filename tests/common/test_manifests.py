"""Manifests: every damage to a folder is found, and the message names the file."""

import json
import re
import shutil

import pytest

from starleague.common import manifests


@pytest.fixture
def path(tmp_path):
  folder = tmp_path / "folder"
  (folder / "inner").mkdir(parents=True)
  (folder / "a").write_bytes(b"a" * 10)
  (folder / "inner" / "b").write_bytes(b"b" * 10)
  manifests.write(folder / "manifest.json", {"step": 3, "name": "mini"})
  return folder / "manifest.json"


def _check(path):
  manifest = manifests.read(path)
  manifests.check_types(path, manifest, {"step": int, "name": str})
  manifests.check_files(path, manifest)
  return manifest


def _sealed(path, manifest):
  """Writes a manifest whose own digest fits."""
  path.write_text(json.dumps({"manifest": manifest, "sha256": manifests.manifest_digest(manifest)}))


def test_an_intact_folder_passes(path):
  manifest = _check(path)
  assert manifest["step"] == 3 and set(manifest["files"]) == {"a", "inner/b"}


def _flip(path):
  data = bytearray(path.read_bytes())
  data[5] ^= 1
  path.write_bytes(data)


def _replace_by_folder(path):
  path.unlink()
  path.mkdir()


def _replace_by_file(path):
  shutil.rmtree(path)
  path.write_text("")


@pytest.mark.parametrize(("damage", "message"), [
  (lambda f: _flip(f / "a"), r"/a is damaged: expected SHA-256 .*, found .* of 10 bytes"),
  (lambda f: (f / "inner" / "b").write_bytes(b"b" * 9), r"/inner/b is damaged: .* of 9 bytes"),
  (lambda f: (f / "a").unlink(), r"/a is missing"),
  (lambda f: (f / "a").rename(f / "c"), r"/a is missing"),
  (lambda f: (f / "c").touch(), r"/c is not listed .* expected 2 files, found 1 more"),
  (lambda f: (f / "c").symlink_to(f / "none"), r"/c is not listed"),
  (lambda f: _replace_by_folder(f / "a"), r"/a cannot be read: Is a directory"),
  (lambda f: _replace_by_file(f / "inner"), r"/inner/b cannot be read: Not a directory"),
  (lambda f: (f / "manifest.json").unlink(), r"/manifest.json is missing"),
  (lambda f: _replace_by_folder(f / "manifest.json"), r"/manifest.json cannot be read: Is a dir"),
  (lambda f: shutil.rmtree(f), r"/manifest.json is missing"),
])
def test_damaged_files_are_named(path, damage, message):
  damage(path.parent)
  with pytest.raises(manifests.ManifestError, match=message) as raised:
    _check(path)
  assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "message"), [
  ("", "is damaged: expected JSON"),
  ('{"manifest": {}', "is damaged: expected JSON"),
  ("\udcff", "is damaged: expected JSON"),
  ("[" * 100_000, "nested too deeply"),
  ("[" * 900 + "]" * 900, "keys 'manifest' and 'sha256', found "),
  ("[]", "found 'list'"), ("3", "found 'int'"), ("{}", r"found \[\]"),
  ('{"manifest": {}, "sha256": ""}', "expected SHA-256 '', found "),
  ('{"manifest": {}, "sha256": [1]}', r"expected SHA-256 \[1\], found "),
])
def test_damaged_manifests_are_named(path, text, message):
  path.write_bytes(text.encode(errors="surrogateescape"))
  with pytest.raises(manifests.ManifestError, match=message) as raised:
    _check(path)
  assert re.match(r".*/manifest\.json", str(raised.value)) and "\n" not in str(raised.value)


@pytest.mark.parametrize(("manifest", "message"), [
  ([], r"'manifest': expected an object, found \[\]"),
  ({}, r"expected the key 'files', found \[\]"),
  ({"files": []}, r"key 'files': expected dict, found \[\]"),
  ({"files": {"a": 3}}, r"'files', 'a': expected a SHA-256, found 3"),
  ({"files": {}, "step": True}, "key 'step': expected int, found True"),
  ({"files": {}, "step": "3"}, "key 'step': expected int, found '3'"),
  ({"files": {}, "step": 3}, "expected the key 'name'"),
  ({"files": {"\0": ""}, "step": 3, "name": ""}, "cannot be read: embedded null byte"),
])
def test_sealed_manifests_of_other_types_are_refused(path, manifest, message):
  _sealed(path, manifest)
  with pytest.raises(manifests.ManifestError, match=message):
    _check(path)
