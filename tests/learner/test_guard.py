import json

import jax
import numpy as np
import pytest

from starleague.agent.types import Trajectory
from starleague.learner import guard as guard_lib
from starleague.learner import train_state
from starleague.learner import update as update_lib


def test_guard_saves_the_batch_and_names_the_term_that_is_not_finite(tmp_path):
  def loss_fn(params, key, batch):
    del key
    x = batch.steps["reward"]
    terms = {"value": (params * x).mean(), "entropy": (params ** 2).mean()}
    return terms["value"] + terms["entropy"], terms

  optimizer = train_state.make_optimizer()
  update = update_lib.make_update(loss_fn, optimizer)
  state = update.replicate(
    train_state.initial_state(np.ones((), np.float32), optimizer, jax.random.key(0)))
  good = Trajectory({"reward": np.ones((3, 8), np.float32)}, np.zeros((8, 1), np.float32))
  bad = Trajectory({"reward": np.ones((3, 8), np.float32)}, np.zeros((8, 1), np.float32))
  bad.steps["reward"][1, 5] = np.inf

  guard = guard_lib.Guard(tmp_path / "diagnosis", limit=3)
  # Two consecutive ones are tolerated, and a good one resets the count.
  for batch in (bad, bad, good, bad, bad):
    placed = update.place(batch)
    state, metrics = update(state, placed)
    guard.check(metrics, placed)
  assert not (tmp_path / "diagnosis").exists()
  placed = update.place(bad)
  state, metrics = update(state, placed)
  guard.check(metrics, placed)
  with pytest.raises(guard_lib.NonFiniteError) as caught:
    guard.finish()

  path = tmp_path / "diagnosis" / "not_finite_step_6_process_0.json"
  assert str(path) in str(caught.value) and str(path.with_suffix(".npz")) in str(caught.value)
  assert "value" in str(caught.value) and "entropy" not in str(caught.value)
  report = json.loads(path.read_text())
  assert report["not_finite_metrics"] == ["gradient_norm", "loss", "value"]
  assert report["metrics"]["update_norm"] == 0  # nothing was applied
  assert report["metrics"]["consecutive_skipped"] == 3 and report["metrics"]["value"] == "inf"
  (leaf, found), = report["not_finite_batch_leaves"].items()
  assert found == {"count": 1, "first_index": [5, 1, 0]}  # device 5, step 1
  with np.load(path.with_suffix(".npz")) as arrays:
    np.testing.assert_array_equal(arrays[leaf], update_lib.shard_batch(bad, 8).steps["reward"])
  assert sorted(x.name for x in path.parent.iterdir()) == [path.name, path.stem + ".npz"]


def test_guard_inspects_the_previous_update(tmp_path):
  guard = guard_lib.Guard(tmp_path, limit=1)
  fine = {"consecutive_skipped": np.int32(0), "step": np.int32(1), "loss": np.float32(1)}
  skipped = {"consecutive_skipped": np.int32(1), "step": np.int32(2), "loss": np.float32(1)}
  guard.check(fine, {"x": np.zeros(2)})
  guard.check(skipped, {"x": np.full(2, 7.0)})  # not inspected yet
  with pytest.raises(guard_lib.NonFiniteError, match="step 2.*no metric, but the optimizer state"):
    guard.check(fine, {"x": np.zeros(2)})
  with np.load(tmp_path / "not_finite_step_2_process_0.npz") as arrays:
    np.testing.assert_array_equal(arrays["['x']"], [7.0, 7.0])


def test_packed_batch_is_saved_unpacked(tmp_path):
  guard = guard_lib.Guard(tmp_path, limit=1, readable=lambda x: {"a": x[:, 0], "b": x[:, 1]})
  skipped = {"consecutive_skipped": np.int32(1), "step": np.int32(9), "loss": np.float32(np.nan)}
  guard.check(skipped, np.array([[1.0, 2.0], [3.0, np.nan]]))
  with pytest.raises(guard_lib.NonFiniteError, match="not finite in it: loss"):
    guard.finish()
  report = json.loads((tmp_path / "not_finite_step_9_process_0.json").read_text())
  assert report["not_finite_batch_leaves"] == {"['b']": {"count": 1, "first_index": [1]}}


def test_guard_rejects_a_limit_of_zero(tmp_path):
  with pytest.raises(ValueError, match="limit: expected at least 1, found 0"):
    guard_lib.Guard(tmp_path, limit=0)
