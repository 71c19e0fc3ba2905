"""Checkpoints of a run: restored bit for bit, kept, refused where they differ."""

import dataclasses
import errno
import json
import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config as config_lib
from starleague.agent import vocabulary
from starleague.agent.types import Trajectory
from starleague.common import manifests
from starleague.common.arrays import ArraysError
from starleague.data import checkpoints
from starleague.data.checkpoints import checkpoint_manifest
from starleague.data.checkpoints.store import (
  CheckpointDamagedError,
  CheckpointMismatchError,
  Checkpoints,
)
from starleague.learner import train_state
from starleague.learner import update as update_lib
from tests.data.checkpoints.states import (
  MINI,
  OPTIMIZER,
  assert_same,
  flip_a_bit,
  largest_file,
  make_state,
)


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
def test_all_leaves_are_restored_bit_for_bit(tmp_path, implementation):
  state = make_state(5, implementation=implementation)
  path = Checkpoints(tmp_path, MINI).save(5, state, {"frames": 320})
  assert path == tmp_path / "000000000005"
  restored = Checkpoints(tmp_path, MINI).restore(make_state(0, implementation=implementation))
  assert restored.step == 5 and restored.extra == {"frames": 320}
  assert_same(restored.state, state)
  np.testing.assert_array_equal(
    jax.random.normal(restored.state.key, (3,)), jax.random.normal(state.key, (3,)))


def test_restore_of_the_newest_and_of_a_step(two):
  reader = Checkpoints(two, MINI)
  assert reader.steps() == [1, 2]
  assert_same(reader.restore(make_state()).state, make_state(2))
  first = reader.restore(make_state(), step=1)
  assert_same(first.state, make_state(1))
  assert first.extra == {"frames": 64, "names": ["a", None]}
  with pytest.raises(FileNotFoundError, match=r"no checkpoint of step 3; it has \[1, 2\]"):
    reader.restore(make_state(), step=3)


def test_restore_without_checkpoints_is_none(tmp_path):
  assert Checkpoints(tmp_path / "new" / "run", MINI).restore(make_state()) is None


def test_manifest_describes_the_checkpoint(two):
  manifest = checkpoints.read_manifest(two / "000000000002")
  assert manifest["schema"] == checkpoint_manifest.SCHEMA and manifest["step"] == 2
  assert manifest["preset"] == "mini" and manifest["vocabulary"] == vocabulary.digest()
  assert manifest["config"]["core_size"] == MINI.core_size
  assert manifest["config"]["scalar"]["player"] == MINI.scalar.player
  on_disk = {file.relative_to(two / "000000000002").as_posix()
             for file in (two / "000000000002").rglob("*") if file.is_file()}
  assert set(manifest["files"]) == on_disk - {"manifest.json"}
  leaf = manifest["leaves"]["params"]["['policy/~/head_1']['w']"]
  assert leaf == {"shape": [4, 3], "dtype": "float32", "key": None,
                  "path": ["policy/~/head_1", "w"]}


@pytest.mark.parametrize("error", [
  OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EDQUOT, "Disk quota exceeded"),
  ValueError("RESOURCE_EXHAUSTED: Error writing: No space left on device")])
def test_a_full_disk_is_one_line_and_keeps_the_newest_checkpoint(copied, monkeypatch, error):
  def full(path, values):
    raise error

  saver = Checkpoints(copied, MINI, keep_last=1)
  saver.restore(make_state())
  with monkeypatch.context() as patched:
    patched.setattr(manifests, "write", full)
    with pytest.raises(checkpoints.DiskFullError, match=(
        rf"^{copied}: no space left to save the checkpoint of step 3, \d+ MB are free; "
        "step 2 is kept: free some space")) as raised:
      saver.save(3, make_state(3))
  assert "\n" not in str(raised.value)
  assert {path.name for path in copied.iterdir()} == {"000000000001", "000000000002"}
  assert_same(Checkpoints(copied, MINI).restore(make_state()).state, make_state(2))
  saver.save(3, make_state(3))
  assert saver.steps() == [3]


def test_other_errors_of_a_save_pass(copied, monkeypatch):
  def denied(path, values):
    raise PermissionError(errno.EACCES, "Permission denied")

  monkeypatch.setattr(manifests, "write", denied)
  with pytest.raises(PermissionError):
    Checkpoints(copied, MINI).save(3, make_state(3))


def test_earlier_step_than_the_newest_is_rejected(copied):
  saver = Checkpoints(copied, MINI)
  saver.restore(make_state(), step=1)
  with pytest.raises(ValueError, match="already holds step 2, later than 1"):
    saver.save(1, make_state(1))


def rewrite(path, **changes):
  """Changes the manifest as another version, preset or vocabulary would, with a valid digest."""
  manifest = {**checkpoints.read_manifest(path), **changes}
  (path / "manifest.json").write_text(json.dumps(
    {"manifest": manifest, "sha256": manifests.manifest_digest(manifest)}))


@pytest.mark.parametrize("field, value", [("schema", 99), ("vocabulary", "0" * 64),
                                          ("preset", "full")])
def test_mismatch_names_the_field(copied, field, value):
  rewrite(copied / "000000000002", **{field: value})
  expected = {"schema": checkpoint_manifest.SCHEMA, "vocabulary": vocabulary.digest(),
              "preset": "mini"}[field]
  with pytest.raises(CheckpointMismatchError, match=f"000000000002: {field}: found") as caught:
    Checkpoints(copied, MINI).restore(make_state())  # and does not fall back to step 1
  assert (caught.value.what, caught.value.found, caught.value.expected) == (field, value, expected)
  if field != "preset":
    with pytest.raises(CheckpointMismatchError, match=field):
      checkpoints.load_params(copied)


def test_other_sizes_are_rejected_and_other_run_fields_accepted(two):
  other = dataclasses.replace(
    MINI, scalar=dataclasses.replace(MINI.scalar, player=MINI.scalar.player + 1))
  with pytest.raises(CheckpointMismatchError, match=r"agent config, scalar\.player: found 16, "
                                                    "expected 17"):
    Checkpoints(two, other).restore(make_state())
  same = dataclasses.replace(MINI, dtype="bfloat16", temperature=0.5, remat="blocks")
  assert Checkpoints(two, same).restore(make_state()).step == 2


@pytest.mark.parametrize("template, message", [
  (make_state(width=5), r"params leaf \['policy/~/head_1'\]\['b'\]: found .*\[3\].*\[5\]"),
  (make_state(implementation="rbg"), r"state leaf \.key: found .*threefry2x32.*rbg"),
  (make_state(optimizer=train_state.make_optimizer()),
   r"state leaf \.opt_state.*(found|expected) 'nothing'.* the optimizer"),
], ids=["shape", "key", "optimizer"])
def test_mismatch_of_the_state_names_the_leaf(two, template, message):
  with pytest.raises(CheckpointMismatchError, match=message):
    Checkpoints(two, MINI).restore(template)


def test_last_and_periodic_checkpoints_are_kept(tmp_path):
  saver = Checkpoints(tmp_path, MINI, keep_last=2, keep_every=20)
  for step in range(0, 60, 5):
    saver.save(step, make_state(step))
  assert saver.steps() == [0, 20, 40, 50, 55]
  assert {path.name for path in tmp_path.iterdir()} == {f"{s:012d}" for s in saver.steps()}
  for options in ({"keep_last": 0}, {"keep_every": 0}):
    with pytest.raises(ValueError, match="expected keep_last >= 1 and keep_every >= 1"):
      Checkpoints(tmp_path, MINI, **options)


def test_leftovers_of_a_killed_process_are_ignored_and_removed(copied):
  for name in (".partial-000000000003-1", ".removed-000000000000-1"):
    shutil.copytree(copied / "000000000002", copied / name)
    (copied / name / "manifest.json").unlink()
  # Killed between the two renames that replace step 2: the old one is still found.
  (copied / "000000000002").rename(copied / ".replaced-000000000002")
  saver = Checkpoints(copied, MINI)
  assert saver.steps() == [1, 2]
  assert list(checkpoints.find(copied).items()) == [
    (1, copied / "000000000001"), (2, copied / ".replaced-000000000002")]
  assert checkpoints.find(copied / "none") == {}
  assert_same(saver.restore(make_state()).state, make_state(2))
  saver.save(2, make_state(8))
  assert {path.name for path in copied.iterdir()} == {"000000000001", "000000000002"}
  assert_same(saver.restore(make_state()).state, make_state(8))


def test_extra_that_is_not_json_is_rejected_before_anything_is_written(tmp_path):
  saver = Checkpoints(tmp_path, MINI)
  for extra in ({"x": np.zeros(2)}, {"x": float("nan")}):
    with pytest.raises((TypeError, ValueError), match="JSON"):
      saver.save(1, make_state(), extra)
  assert list(tmp_path.iterdir()) == []


def test_numbers_that_restore_refuses_are_not_saved(tmp_path):
  saver = Checkpoints(tmp_path, MINI)
  saver.save(1, make_state())
  bad = make_state(2)
  bad.params["policy/~/head_1"]["w"][1, 2] = np.inf
  with pytest.raises(ArraysError, match=re.escape(
      f"{tmp_path}/000000000002/params: ['policy/~/head_1']['w'][1, 2]: expected finite numbers, "
      "found inf") + "$"):
    saver.save(2, bad)
  assert [path.name for path in tmp_path.iterdir()] == ["000000000001"]
  assert_same(Checkpoints(tmp_path, MINI).restore(make_state()).state, make_state())


def test_snapshot_of_a_player(tmp_path, two):
  params = make_state(3).params
  path = checkpoints.save_params(tmp_path / "main_0" / "snapshot_7", params, MINI, step=9,
                                 extra={"player": "main_0"})
  assert_same(checkpoints.load_params(path), params)
  assert_same(checkpoints.load_params(path, MINI), params)
  manifest = checkpoints.read_manifest(path)
  assert manifest["extra"] == {"player": "main_0"} and manifest["step"] == 9
  assert [p.name for p in path.parent.iterdir()] == ["snapshot_7"]
  with pytest.raises(FileExistsError, match="never overwritten"):
    checkpoints.save_params(path, params, MINI)
  with pytest.raises(CheckpointMismatchError, match="preset: found 'mini', expected 'full'"):
    checkpoints.load_params(path, config_lib.full())
  with pytest.raises(ValueError, match="nested dicts with string keys"):
    checkpoints.save_params(tmp_path / "list", [params], MINI)
  # Also from a run's checkpoints: one of them, or the newest.
  assert_same(checkpoints.load_params(two / "000000000001"), make_state(1).params)
  assert_same(checkpoints.load_params(two), make_state(2).params)


def test_load_params_finds_damage(copied, tmp_path):
  flip_a_bit(largest_file(copied / "000000000002" / "params"))
  with pytest.raises(CheckpointDamagedError, match="damaged: expected SHA-256"):
    checkpoints.load_params(copied / "000000000002")
  assert_same(checkpoints.load_params(copied), make_state(1).params)
  with pytest.raises(FileNotFoundError, match="no snapshot"):
    checkpoints.load_params(tmp_path / "nowhere")
  (tmp_path / "empty" / "notes").mkdir(parents=True)
  with pytest.raises(FileNotFoundError, match=f"at {tmp_path}/empty$"):
    checkpoints.load_params(tmp_path / "empty")
  (copied / "000000000001" / "manifest.json").unlink()
  with pytest.raises(CheckpointDamagedError, match="manifest.json is missing"):
    checkpoints.load_params(copied / "000000000001")


def test_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path):
  def loss_fn(params, key, batch):
    noise = jax.random.normal(key, params["layer"]["w"].shape)
    x = batch.steps["x"] @ (params["layer"]["w"] + 0.1 * noise) + batch.initial_state
    return jnp.square(x).mean() + jnp.sin(x).sum(-1).mean(), {}

  def data(step):
    rng = np.random.default_rng(step)
    x = rng.normal(size=(3, 16, 4)).astype(np.float32)
    if step == 3:
      x[0, 0, 0] = np.nan  # the count of skipped updates is restored as well
    return Trajectory({"x": x}, rng.normal(size=(16, 5)).astype(np.float32))

  update = update_lib.make_update(loss_fn, OPTIMIZER)
  params = {"layer": {"w": np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)}}
  begin = train_state.initial_state(params, OPTIMIZER, jax.random.key(3))

  def train(host, steps, saver=None):
    state = update.replicate(host)
    for step in steps:
      state, _ = update(state, update.place(data(step)))
      if saver is not None and (step + 1) % 4 == 0:
        saver.save(step + 1, update_lib.unreplicate(state))
    return update_lib.unreplicate(state)

  uninterrupted = train(begin, range(10))
  train(begin, range(6), Checkpoints(tmp_path, MINI))  # stops at 6, saved at 4
  restored = Checkpoints(tmp_path, MINI).restore(begin)
  assert restored.step == 4 == int(restored.state.step) and restored.state.skipped == 1
  assert_same(train(restored.state, range(restored.step, 10)), uninterrupted)
