"""Arrays of checkpoints: what is read is what was written, bit for bit, or an error."""

import logging
import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.arrays import ArraysError
from starleague.data.checkpoints import arrays
from starleague.data.checkpoints.checkpoint_manifest import (
  MANIFEST,
  CheckpointDamagedError,
  describe_leaves,
)

PARAMS = {"torso": {"w": np.float32([[1, 2], [3, -0.0]]), "b": jnp.bfloat16([0.5, 3.0])},
          "steps": np.array(7, np.int32), "none": np.zeros((0, 2), np.float32)}


def written(tmp_path, **trees):
  """Writes trees; returns the checkpoint's folder."""
  arrays.write(tmp_path / "saved", trees, {"schema": 1})
  return tmp_path / "saved"


def test_arrays_and_keys_are_read_bit_for_bit(tmp_path):
  state = {"key": jax.random.key(3), "count": np.uint8([1, 2])}
  path = written(tmp_path, params=PARAMS, state=state)
  for name, tree in (("params", PARAMS), ("state", state)):
    described = describe_leaves(tree)
    leaves = arrays.read(path, name, described)
    found = arrays.fill(tree, leaves)
    assert jax.tree.structure(found) == jax.tree.structure(tree)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
      assert a.dtype == b.dtype and a.shape == b.shape
      if name == "params":
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
  assert jax.random.key_data(found["key"]).tolist() == jax.random.key_data(state["key"]).tolist()
  np.testing.assert_array_equal(found["count"], state["count"])


def test_parameters_are_nested_without_a_template(tmp_path):
  path, described = written(tmp_path, params=PARAMS), describe_leaves(PARAMS)
  found = arrays.nest(arrays.read(path, "params", described), described)
  assert set(found) == set(PARAMS) and set(found["torso"]) == {"w", "b"}
  np.testing.assert_array_equal(found["torso"]["w"], PARAMS["torso"]["w"])
  assert found["none"].shape == (0, 2) and found["steps"] == 7


def test_trees_without_elements_have_a_manifest_only(tmp_path):
  tree = {"none": np.zeros((0, 3), np.float32)}
  path = written(tmp_path, state=tree, params={})
  assert [file.name for file in path.iterdir()] == [MANIFEST]
  found = arrays.read(path, "state", describe_leaves(tree))
  assert [x.shape for x in found.values()] == [(0, 3)]
  assert arrays.read(path, "params", {}) == {}


KEY = jax.random.key(3)


@pytest.mark.parametrize(("tree", "message"), [
  ({"w": np.zeros((3, 2), np.float32), "key": KEY},
   "['w']: expected float32[3, 2], found float32[2, 3]"),
  ({"w": np.zeros((2, 3), np.float64), "key": KEY},
   "['w']: expected float64[2, 3], found float32[2, 3]"),
  ({"w": np.zeros((2, 3), np.float32), "key": jax.random.key(3, impl="rbg")},
   "['key']: expected uint32[4], found uint32[2]"),
  ({"w": np.zeros((2, 3), np.float32), "key": jax.random.split(KEY, 2)},
   "['key']: expected uint32[2, 2], found uint32[2]"),
  ({"w": np.zeros((2, 3), np.float32), "key": np.uint32([0, 3])}, None),
  ({"w": np.zeros((2, 3), np.float32), "key": KEY, "b": np.ones(1)},
   "['b']: expected an array of this name, found none"),
  ({"w": np.zeros((2, 3), np.float32)}, "['key']: expected no array of this name, found one"),
])
def test_arrays_of_another_manifest_are_damaged(tmp_path, tree, message):
  path = written(tmp_path, params={"w": np.zeros((2, 3), np.float32), "key": KEY})
  if message is None:
    assert arrays.read(path, "params", describe_leaves(tree))["['key']"].tolist() == [0, 3]
    return
  with pytest.raises(CheckpointDamagedError, match=re.escape(f"{path}/params: {message}") + "$"):
    arrays.read(path, "params", describe_leaves(tree))


@pytest.mark.parametrize(("array", "found"), [
  (np.float32([1, np.nan]), "nan"), (np.float32([1, np.inf]), "inf"),
  (np.float64([1, -np.inf]), "-inf"), (jnp.bfloat16([1, np.nan]), "nan")])
def test_numbers_that_are_not_finite_are_refused_and_damage(tmp_path, monkeypatch, array, found):
  with pytest.raises(ArraysError, match=re.escape(
      f"{tmp_path}/saved/params: ['w'][1]: expected finite numbers, found {found}") + "$"):
    written(tmp_path, params={"w": array})
  assert not any(tmp_path.iterdir())
  with monkeypatch.context() as unchecked:
    unchecked.setattr(arrays.checked, "check_values", lambda *_: None)
    path, described = written(tmp_path, params={"w": array}), describe_leaves({"w": array})
  with pytest.raises(CheckpointDamagedError, match=re.escape(
      f"{path}/params: ['w'][1]: expected finite numbers, found {found}")):
    arrays.read(path, "params", described)


@pytest.mark.parametrize("damage", [
  lambda path: (path / "_METADATA").write_text("{"),
  lambda path: (path / "_METADATA").write_text(""),
  lambda path: (path / "manifest.ocdbt").unlink(), shutil.rmtree,
  lambda path: (path / "manifest.ocdbt").write_bytes(b"x" * 100)])
def test_files_that_orbax_cannot_read_are_damage(tmp_path, damage):
  path, described = written(tmp_path, params=PARAMS), describe_leaves(PARAMS)
  damage(path / "params")
  with pytest.raises(CheckpointDamagedError, match=re.escape(
      f"{path}/params: expected 3 arrays that Orbax wrote, found files that it cannot read") + "$"):
    arrays.read(path, "params", described)


def test_an_existing_checkpoint_is_moved_aside(tmp_path):
  path = written(tmp_path, params={"w": np.float32([1])})
  arrays.write(path, {"params": {"w": np.float32([2])}}, {"schema": 1}, tmp_path / "aside")
  described = describe_leaves({"w": np.float32([1])})
  assert arrays.read(path, "params", described)["['w']"] == 2
  assert arrays.read(tmp_path / "aside", "params", described)["['w']"] == 1


def test_other_hosts_may_not_write(tmp_path, monkeypatch):
  arrays.require_first_host(tmp_path)
  monkeypatch.setattr(jax, "process_index", lambda: 2)
  with pytest.raises(RuntimeError, match="host 2 was asked to write a checkpoint to .*only host 0"):
    arrays.require_first_host(tmp_path)


@pytest.mark.parametrize("level, path, expected", [
  (logging.INFO, "/site/orbax/checkpoint/a.py", False),
  (logging.WARNING, "/site/orbax/checkpoint/a.py", True),
  (logging.INFO, "/site/starleague/learner/update.py", True),
])
def test_orbax_logs_warnings_only(level, path, expected):
  record = logging.LogRecord("absl", level, path, 1, "saved", None, None)
  assert arrays._is_worth_logging(record) is expected
