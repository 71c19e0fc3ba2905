"""Damaged checkpoints: each kind of damage is one line that names the file."""

import json
import logging
import shutil

import jax
import numpy as np
import pytest

from starleague.agent import config
from starleague.common import manifests
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.data.checkpoints.store import CheckpointDamagedError, CheckpointMismatchError
from starleague.learner.train_state import TrainState

MINI = config.mini()
REJECTIONS = CheckpointDamagedError, CheckpointMismatchError
LEAF = "['layer']['w']"


def make_state(seed=0):
  zero = np.zeros((), np.int32)
  params = {"layer": {"w": np.full((2, 3), seed, np.float32), "none": np.zeros((0, 2), np.float32)}}
  return TrainState(params, {"mean": np.ones(6, np.float32)}, zero, jax.random.key(0), zero, zero)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
  """A directory with checkpoints of steps 1 and 2, copied by each test."""
  directory = tmp_path_factory.mktemp("two")
  saver = checkpoints.Checkpoints(directory, MINI)
  for step in (1, 2):
    saver.save(step, make_state(step))
  return directory


def rewritten(change):
  """Returns a damage that changes the manifest and keeps its digest valid."""
  def damage(path):
    manifest = checkpoints.read_manifest(path)
    change(manifest)
    (path / "manifest.json").write_text(
      json.dumps({"manifest": manifest, "sha256": manifests.manifest_digest(manifest)}))

  return damage


def text(content):
  """Returns a damage that replaces the manifest's file."""
  def damage(path):
    (path / "manifest.json").write_bytes(content)

  return damage


def leaf(name, value):
  def change(manifest):
    manifest["leaves"]["params"][LEAF][name] = value

  return rewritten(change)


def without(key):
  return rewritten(lambda manifest: manifest.pop(key))


def wrong(key, value):
  return rewritten(lambda manifest: manifest.update({key: value}))


def add_leaf(manifest):
  described = manifest["leaves"]["params"][LEAF]
  manifest["leaves"]["params"]["['layer']['other']"] = {**described, "path": ["layer", "other"]}


def file_for_folder(path):
  shutil.rmtree(path / "params")
  (path / "params").write_text("not a folder")


def folder_for_file(path):
  file = min(file for file in (path / "params").rglob("*") if file.is_file())
  file.unlink()
  file.mkdir()


def folder_for_manifest(path):
  (path / "manifest.json").unlink()
  (path / "manifest.json").mkdir()


def file_for_checkpoint(path):
  shutil.rmtree(path)
  path.write_text("not a checkpoint")


DAMAGES = {
  "deep JSON": text(b"[" * 200_000),
  "deep sound JSON": text(b'{"manifest":' * 2_000 + b"1" + b"}" * 2_000),
  "binary": text(bytes(range(256))),
  "empty": text(b""),
  "a list": text(b"[1, 2]"),
  "a number": text(b"7"),
  "no digest": text(b'{"manifest": {}}'),
  "digest of another type": text(b'{"manifest": {}, "sha256": {"a": 1}}'),
  "not UTF-8": text(b'{"manifest": "\xff\xfe", "sha256": ""}'),
  "huge number": text(b'{"manifest": ' + b"9" * 10_000 + b', "sha256": ""}'),
  **{f"no {key}": without(key) for key in ("schema", "step", "preset", "config", "vocabulary",
                                           "extra", "leaves")},
  **{f"{key} of another type": wrong(key, value) for key, value in (
    ("schema", "1"), ("step", "2"), ("step", True), ("preset", 3), ("config", []),
    ("vocabulary", None), ("extra", "x"), ("leaves", []), ("files", {"params": 1}))},
  "files named like folders": wrong("files", {"params": "0" * 64}),
  "files with a null character": wrong("files", {"a\0b": "0" * 64}),
  "leaves without params": wrong("leaves", {"state": {}}),
  "leaves of another type": wrong("leaves", {"params": []}),
  "leaf of another type": wrong("leaves", {"params": {"w": 1}}),
  "leaf that is not stored": rewritten(add_leaf),
  "leaf with another shape": leaf("shape", [3, 2]),
  "leaf with an impossible shape": leaf("shape", [-2, 3]),
  "leaf with a shape of another type": leaf("shape", "2, 3"),
  "leaf with an unknown dtype": leaf("dtype", "float33"),
  "leaf with a dtype of another type": leaf("dtype", 4),
  "leaf with an unknown key": leaf("key", "unknown"),
  "leaf without a path": leaf("path", None),
  "leaf with a path of another type": leaf("path", [1]),
  "a file for a folder": file_for_folder,
  "a folder for a file": folder_for_file,
  "a folder for the manifest": folder_for_manifest,
  "a file for a checkpoint": file_for_checkpoint,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_one_line_and_the_previous_checkpoint_is_used(two, tmp_path, caplog, name):
  directory = shutil.copytree(two, tmp_path / "run")
  path = directory / "000000000002"
  DAMAGES[name](path)
  reader = checkpoints.Checkpoints(directory, MINI)

  def restore():
    reader.restore(make_state(), step=2)

  def load():
    checkpoints.load_params(path, MINI)

  for attempt in (restore, load):
    expected = FileNotFoundError if attempt is load and path.is_file() else REJECTIONS
    with pytest.raises(expected) as caught:
      attempt()
    message = str(caught.value)
    assert str(path) in message and "\n" not in message and len(message) < 700, message
  with caplog.at_level(logging.WARNING):
    try:
      restored = reader.restore(make_state())
    except CheckpointMismatchError:
      return  # intact, but of another state: the user decides
  assert restored.step == 1
  warning, = [record.getMessage() for record in caplog.records
              if record.name.startswith("starleague")]
  assert str(path) in warning
  # The run continues and sets the damaged checkpoint aside, whatever it is.
  saver = checkpoints.Checkpoints(directory, MINI, keep_last=1)
  saver.restore(make_state())
  saver.save(2, make_state(5))
  assert {entry.name for entry in directory.iterdir()} == {
    "000000000002", "damaged-000000000002"}
  assert checkpoints.load_params(directory)["layer"]["w"][0, 0] == 5


def test_file_for_the_directory_of_checkpoints(tmp_path):
  file = tmp_path / "checkpoints"
  file.write_text("not a folder")
  for path in (file, file / "below"):
    with pytest.raises(UserError, match=f"{path}: expected a folder of checkpoints, found a file"):
      checkpoints.Checkpoints(path, MINI)


def test_saving_and_restoring_log_nothing_at_info(tmp_path, caplog):
  with caplog.at_level(logging.INFO):
    saver = checkpoints.Checkpoints(tmp_path, MINI)
    saver.save(1, make_state())
    saver.restore(make_state())
    logging.getLogger("absl").info("of another package")
  assert [record.getMessage() for record in caplog.records
          if not record.name.startswith("jax")] == ["of another package"]
