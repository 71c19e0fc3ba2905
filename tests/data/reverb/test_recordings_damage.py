"""Every kind of damage to a recording raises RecordingError, in one line that names the file."""

import json
import re
import shutil

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.common import manifests
from starleague.data import wire
from starleague.data.reverb import datasets, recordings

CONFIG = agent_config.mini()
UNROLL_LENGTH = 2
COUNT = 3
MANIFEST = recordings.MANIFEST
PARTS = ("DONE", "chunks.tfrecord", "items.tfrecord", "tables.tfrecord")
HOLDS_BYTES = (MANIFEST, *PARTS[1:])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
  random = np.random.default_rng(0)
  spec = wire.packed_spec(CONFIG, UNROLL_LENGTH)
  packed = wire.Packed(*[random.integers(0, 9, x.shape).astype(x.dtype) for x in spec])
  path = tmp_path_factory.mktemp("data") / "games"
  recordings.save(path, [packed] * COUNT, "mini", UNROLL_LENGTH, COUNT, "a test")
  return path


@pytest.fixture
def copy(recorded, tmp_path):
  return shutil.copytree(recorded, tmp_path / "copy")


def checkpoint(folder):
  """The folder of Reverb's checkpoint."""
  return next(path for path in folder.iterdir() if path.is_dir())


def find(folder, name):
  return folder / name if name == MANIFEST else checkpoint(folder) / name


def refused(folder, message, **arguments):
  with pytest.raises(recordings.RecordingError, match=message) as raised:
    datasets.dataset(folder, 2, **arguments)
  text = str(raised.value)
  assert str(folder) in text and "\n" not in text, text


def missing(file):
  file.unlink()


def renamed(file):
  file.rename(file.with_name("other"))


def folder_in_place(file):
  file.unlink()
  file.mkdir()


def dangling_link(file):
  file.unlink()
  file.symlink_to("nowhere")


def longer(file):
  file.write_bytes(file.read_bytes() + b"\n\0")


def truncated(file):
  file.write_bytes(file.read_bytes()[:-2])


def emptied(file):
  file.write_bytes(b"")


def flipped(place):
  """One flipped bit: at the start, in the middle or at the end of a file."""
  def flip(file):
    data = bytearray(file.read_bytes())
    data[int(place * (len(data) - 1))] ^= 1
    file.write_bytes(data)
  flip.__name__ = f"flipped_{place}"
  return flip


@pytest.mark.parametrize("name", [MANIFEST, *PARTS])
@pytest.mark.parametrize("damage", [missing, renamed, folder_in_place, dangling_link, longer])
def test_damaged_files_are_named(copy, damage, name):
  damage(find(copy, name))
  refused(copy, re.escape(name))


@pytest.mark.parametrize("name", HOLDS_BYTES)
@pytest.mark.parametrize("damage", [truncated, emptied, *map(flipped, (0.0, 0.5, 1.0))],
                         ids=lambda damage: damage.__name__)
def test_changed_bytes_are_found(copy, damage, name):
  damage(find(copy, name))
  refused(copy, rf"{re.escape(name)}.*(damaged: expected .* found|expected .* found)")


def test_a_flipped_bit_in_any_byte_of_the_manifest_is_found(copy):
  file = copy / MANIFEST
  intact = file.read_bytes()
  for place in range(len(intact)):
    damaged = bytearray(intact)
    damaged[place] ^= 1 << place % 8
    file.write_bytes(damaged)
    with pytest.raises(recordings.RecordingError, match=MANIFEST):
      recordings.describe(copy)


def swap_files(folder):
  one, other = (checkpoint(folder) / name for name in ("chunks.tfrecord", "items.tfrecord"))
  kept = one.read_bytes()
  one.write_bytes(other.read_bytes())
  other.write_bytes(kept)


def file_in_place_of_checkpoint(folder):
  path = checkpoint(folder)
  shutil.rmtree(path)
  path.touch()


def newer_checkpoint(folder):
  shutil.copytree(checkpoint(folder), folder / "2999-01-01T00:00:00.0+00:00")


@pytest.mark.parametrize(("damage", "message"), [
  (lambda folder: shutil.rmtree(checkpoint(folder)), "is missing"),
  (lambda folder: checkpoint(folder).rename(folder / "renamed"), "is missing"),
  (file_in_place_of_checkpoint, "cannot be read: Not a directory"),
  (newer_checkpoint, r"2999.*is not listed .* expected 4 files, found 4 more"),
  (lambda folder: (folder / "notes.txt").touch(), "notes.txt is not listed"),
  (swap_files, r"\.tfrecord is damaged: expected SHA-256 .*, found"),
], ids=["no_checkpoint", "renamed_checkpoint", "file_for_checkpoint", "newer_checkpoint",
        "extra_file", "swapped_files"])
def test_damaged_folders_are_refused(copy, damage, message):
  damage(copy)
  refused(copy, message)


def test_an_empty_folder_is_no_recording(tmp_path):
  refused(tmp_path, f"is not a recording: expected a file {MANIFEST}, found none")


@pytest.mark.parametrize(("text", "message"), [
  ("null", "found 'NoneType'"), ("[]", "found 'list'"), ('"text"', "found 'str'"),
  ("{}", r"found \[\]"), ("[" * 100_000, "nested too deeply"),
  ('{"manifest": ' + '{"a":' * 5_000 + "1" + "}" * 5_001, "nested too deeply"),
  ('{"preset": "mini", "schema": 1}', "keys 'manifest' and 'sha256'.*of another version"),
  ('{"manifest": {}, "sha256": "0"}', "expected SHA-256 '0', found"),
  ("\0\1\2", "expected JSON"), ("{'manifest': 1}", "expected JSON"),
], ids=["null", "list", "string", "empty_object", "deep", "deep_manifest", "old", "other_digest",
        "binary", "python"])
def test_files_without_a_manifest_are_refused(copy, text, message):
  (copy / MANIFEST).write_text(text)
  refused(copy, rf"{MANIFEST}.*{message}")


REMOVED = object()


@pytest.mark.parametrize(("key", "value", "message"), [
  ("schema", REMOVED, "expected the key 'schema'"),
  ("schema", 1, "another schema: expected 2, found 1"),
  ("schema", "2", "key 'schema': expected int, found '2'"),
  ("preset", REMOVED, "expected the key 'preset'"),
  ("preset", "huge", "preset: .*'huge'"),
  ("preset", 3, "key 'preset': expected str, found 3"),
  ("preset", ["mini"], r"key 'preset': expected str, found \['mini'\]"),
  ("preset", "small", "its trajectories differ from recording.json: field .* found .*, expected"),
  ("vocabulary", REMOVED, "expected the key 'vocabulary'"),
  ("vocabulary", "0", "another vocabulary: expected '.*', found '0'"),
  ("vocabulary", None, "key 'vocabulary': expected str, found None"),
  ("unroll_length", REMOVED, "expected the key 'unroll_length'"),
  ("unroll_length", "2", "key 'unroll_length': expected int, found '2'"),
  ("unroll_length", 2.0, "key 'unroll_length': expected int, found 2.0"),
  ("unroll_length", True, "key 'unroll_length': expected int, found True"),
  ("unroll_length", 0, "unroll_length: expected 1 to .*, found 0"),
  ("unroll_length", -2, "unroll_length: expected 1 to .*, found -2"),
  ("unroll_length", 10**30, "unroll_length: expected 1 to .*, found 1000"),
  ("unroll_length", 5,
   "differ from recording.json: field 'bits' .*found uint8.3, .*expected uint8.6"),
  ("trajectories", REMOVED, "expected the key 'trajectories'"),
  ("trajectories", "3", "key 'trajectories': expected int, found '3'"),
  ("trajectories", [3], r"key 'trajectories': expected int, found \[3\]"),
  ("trajectories", {}, "key 'trajectories': expected int, found {}"),
  ("trajectories", -3, "trajectories: expected 1 to .*, found -3"),
  ("trajectories", 0, "trajectories: expected 1 to .*, found 0"),
  ("trajectories", 2, "expected 2 trajectories as in recording.json, found 3"),
  ("trajectories", 4, "expected 4 trajectories as in recording.json, found 3"),
  ("origin", REMOVED, "expected the key 'origin'"),
  ("origin", None, "key 'origin': expected str, found None"),
  ("files", REMOVED, "expected the key 'files'"),
  ("files", [], r"key 'files': expected dict, found \[\]"),
  ("files", {}, "is not listed in recording.json: expected 0 files, found 4 more"),
  ("files", {"DONE": None}, "'files', 'DONE': expected a SHA-256, found None"),
  ("colour", "red", "found 'colour' too"),
])
def test_other_manifests_with_a_valid_digest_are_refused(copy, key, value, message):
  """Damage that the manifest's own SHA-256 does not show: a manifest that somebody wrote."""
  manifest = json.loads((copy / MANIFEST).read_text())["manifest"] | {key: value}
  manifest = {name: value for name, value in manifest.items() if value is not REMOVED}
  (copy / MANIFEST).write_text(json.dumps(
    {"manifest": manifest, "sha256": manifests.manifest_digest(manifest)}))
  refused(copy, message)


@pytest.mark.parametrize(("asked", "message"), [
  ({"config": agent_config.full()}, "another preset: expected 'full', found 'mini'"),
  ({"unroll_length": 16}, "another unroll length: expected 16, found 2")])
def test_another_agent_than_the_recordings_is_refused(recorded, asked, message):
  refused(recorded, message, **asked)
