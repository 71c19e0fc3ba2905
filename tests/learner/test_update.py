from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from starleague.agent.types import Trajectory
from starleague.learner import train_state
from starleague.learner import update as update_lib
from tests import compiling

T, B, FEATURES, STATE = 3, 16, 5, 4


def toy_params(seed=0):
  rng = np.random.default_rng(seed)
  return {"layer": {"w": rng.normal(size=(FEATURES, STATE)).astype(np.float32),
                    "b": np.zeros(STATE, np.float32)}}


def toy_batch(seed=0, batch=B):
  rng = np.random.default_rng(seed)
  return Trajectory(
    steps={"x": rng.normal(size=(T + 1, batch, FEATURES)).astype(np.float32),
           "count": rng.integers(0, 9, (T + 1, batch)).astype(np.int16)},
    initial_state=rng.normal(size=(batch, STATE)).astype(np.float32))


def toy_loss(params, key, batch):
  """A recurrent toy loss, which depends on steps, their order and the initial state."""
  del key
  x, count = batch.steps["x"], batch.steps["count"].astype(jnp.float32)

  def step(state, x):
    state = jnp.tanh(0.5 * state + x @ params["layer"]["w"] + params["layer"]["b"])
    return state, state

  _, states = jax.lax.scan(step, batch.initial_state, x)
  error = jnp.square(states[:-1].sum(-1) - count[:-1])
  return error.mean(), {"error_of_first": error[0].mean(), "rows": jnp.float32(x.shape[1])}


def noisy_loss(params, key, batch):
  loss, metrics = toy_loss(params, key, batch)
  noise = jax.random.normal(key, params["layer"]["w"].shape)
  return loss + (noise * params["layer"]["w"]).sum(), {**metrics, "noise": noise.sum()}


def fresh_state(optimizer, seed=0):
  return train_state.initial_state(toy_params(seed), optimizer, jax.random.key(7))


def run(update, optimizer, batches):
  state = update.replicate(fresh_state(optimizer))
  history = []
  for batch in batches:
    state, metrics = update(state, update.place(batch))
    history.append(jax.device_get(metrics))
  return update_lib.unreplicate(state), history


def assert_trees_close(actual, expected, tolerance):
  actual, expected = jax.tree.leaves(actual), jax.tree.leaves(expected)
  assert len(actual) == len(expected) > 0
  for a, e in zip(actual, expected, strict=True):
    np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="module")
def optimizer():
  return train_state.make_optimizer(1e-2)


@pytest.fixture(scope="module")
def on_eight(optimizer):
  assert jax.local_device_count() == 8
  return update_lib.make_update(toy_loss, optimizer)


@pytest.fixture(scope="module")
def on_one(optimizer):
  return update_lib.make_update(toy_loss, optimizer, devices=jax.devices()[:1])


def test_shard_batch_gives_consecutive_trajectories_to_each_device():
  batch = toy_batch()
  sharded = update_lib.shard_batch(batch, 8)
  assert sharded.steps["x"].shape == (8, T + 1, 2, FEATURES)
  assert sharded.initial_state.shape == (8, 2, STATE)
  for device in range(8):
    rows = slice(2 * device, 2 * device + 2)
    np.testing.assert_array_equal(sharded.steps["x"][device], batch.steps["x"][:, rows])
    np.testing.assert_array_equal(sharded.steps["count"][device], batch.steps["count"][:, rows])
    np.testing.assert_array_equal(sharded.initial_state[device], batch.initial_state[rows])


def test_shard_batch_rejects_sizes_that_do_not_divide():
  with pytest.raises(ValueError, match="12 trajectories.*8 devices.*batch of 8"):
    update_lib.shard_batch(toy_batch(batch=12), 8)
  batch = toy_batch()
  with pytest.raises(ValueError, match=r"expected 16 trajectories.*found 4"):
    update_lib.shard_batch(batch._replace(initial_state=batch.initial_state[:4]), 2)


class FlatBatch(NamedTuple):
  """The toy batch in another layout: the axis of the trajectories differs by field."""

  x: np.ndarray  # [B, T + 1, FEATURES]
  count: np.ndarray  # [T + 1, B]
  state: np.ndarray  # [STATE, B]


def test_batches_of_another_layout_give_the_same_update(optimizer, on_eight):
  def flat_loss(params, key, batch):
    return toy_loss(params, key, Trajectory(
      {"x": batch.x.swapaxes(0, 1), "count": batch.count}, batch.state.T))

  update = update_lib.make_update(
    flat_loss, optimizer, batch_axes={"x": 0, "count": 1, "state": 1})
  batch = toy_batch()
  flat = FlatBatch(batch.steps["x"].swapaxes(0, 1), batch.steps["count"], batch.initial_state.T)
  expected, _ = run(on_eight, optimizer, [batch])
  found, _ = run(update, optimizer, [flat])
  assert_trees_close(found.params, expected.params, 1e-6)
  with pytest.raises(ValueError, match=r"leaf state: expected 16 trajectories as in x, found 8"):
    update.place(flat._replace(state=flat.state[:, :8]))


def test_replicate_and_unreplicate_are_inverse_and_share_no_memory(optimizer):
  state = fresh_state(optimizer)
  replicated = update_lib.replicate(state)
  assert replicated.params["layer"]["w"].shape == (8, FEATURES, STATE)
  assert replicated.key.shape == (8,)
  back = update_lib.unreplicate(replicated)
  assert_trees_close((back.params, back.opt_state), (state.params, state.opt_state), 0)
  assert back.step.dtype == np.int32 and back.step.shape == ()
  np.testing.assert_array_equal(jax.random.key_data(back.key), jax.random.key_data(state.key))
  assert not np.shares_memory(back.params["layer"]["w"], state.params["layer"]["w"])


def test_empty_trees_replicate_to_empty_trees():
  assert update_lib.replicate(()) == () and update_lib.unreplicate({}) == {}


def test_eight_devices_one_device_and_no_pmap_agree(on_eight, on_one, optimizer):
  batches = [toy_batch(seed) for seed in range(5)]
  eight, eight_metrics = run(on_eight, optimizer, batches)
  one, one_metrics = run(on_one, optimizer, batches)
  assert_trees_close((eight.params, eight.opt_state), (one.params, one.opt_state), 1e-5)

  params, opt_state = toy_params(), optimizer.init(toy_params())
  for batch, metrics, metrics_of_one in zip(batches, eight_metrics, one_metrics, strict=True):
    (loss, aux), gradient = jax.value_and_grad(toy_loss, has_aux=True)(params, None, batch)
    change, opt_state = optimizer.update(gradient, opt_state, params)
    params = optax.apply_updates(params, change)
    for found in (metrics, metrics_of_one):
      np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)
      np.testing.assert_allclose(found["error_of_first"], aux["error_of_first"], rtol=1e-5)
      np.testing.assert_allclose(found["gradient_norm"], optax.tree.norm(gradient), rtol=1e-5)
      np.testing.assert_allclose(found["update_norm"], optax.tree.norm(change), rtol=1e-4)
    assert metrics["rows"] == B // 8 and metrics_of_one["rows"] == B
  assert_trees_close(eight.params, params, 1e-5)
  assert eight.step == 5 and eight.skipped == 0


@pytest.mark.parametrize("devices, accumulate", [(1, 8), (2, 4), (8, 2)])
def test_accumulation_gives_the_same_update(on_one, optimizer, devices, accumulate):
  batches = [toy_batch(seed) for seed in range(3)]
  accumulated = update_lib.make_update(
    toy_loss, optimizer, jax.devices()[:devices], accumulate=accumulate)
  actual, actual_metrics = run(accumulated, optimizer, batches)
  expected, expected_metrics = run(on_one, optimizer, batches)
  assert_trees_close((actual.params, actual.opt_state), (expected.params, expected.opt_state), 1e-5)
  np.testing.assert_allclose(actual_metrics[-1]["loss"], expected_metrics[-1]["loss"], rtol=1e-5)
  assert actual_metrics[-1]["rows"] == B // devices // accumulate


def test_accumulation_rejects_sizes_that_do_not_divide(optimizer):
  update = update_lib.make_update(toy_loss, optimizer, accumulate=3)
  with pytest.raises(ValueError, match="2 trajectories cannot be split into 3 parts"):
    update(update.replicate(fresh_state(optimizer)), update.place(toy_batch()))
  with pytest.raises(ValueError, match="accumulate: expected at least 1, found 0"):
    update_lib.make_update(toy_loss, optimizer, accumulate=0)


def test_keys_differ_by_step_and_share_and_not_by_layout(optimizer):
  batches = [toy_batch(0)] * 2
  eight, eight_metrics = run(update_lib.make_update(noisy_loss, optimizer), optimizer, batches)
  one, one_metrics = run(
    update_lib.make_update(noisy_loss, optimizer, jax.devices()[:1], accumulate=8),
    optimizer, batches)
  assert_trees_close(eight.params, one.params, 1e-5)
  for step in range(2):
    key = jax.random.fold_in(jax.random.key(7), step)
    noise = [jax.random.normal(jax.random.fold_in(key, share), (FEATURES, STATE)).sum()
             for share in range(8)]
    for metrics in (eight_metrics, one_metrics):
      np.testing.assert_allclose(metrics[step]["noise"], np.mean(noise), rtol=1e-4)


def carrying_loss(params, key, batch):
  """The toy loss, whose carry is the last state of each trajectory."""
  loss, metrics = toy_loss(params, key, batch)

  def step(state, x):
    return jnp.tanh(0.5 * state + x @ params["layer"]["w"] + params["layer"]["b"]), None

  last, _ = jax.lax.scan(step, batch.initial_state, batch.steps["x"])
  return loss, (metrics, {"state": last, "rows": batch.steps["count"][0]})


@pytest.mark.parametrize("devices, accumulate", [(1, 1), (1, 4), (8, 1), (4, 2)])
def test_a_carry_has_each_row_and_is_the_next_state(optimizer, devices, accumulate):
  update = update_lib.make_update(carrying_loss, optimizer, jax.devices()[:devices], accumulate,
                                  carries=True)
  state = update.replicate(fresh_state(optimizer))
  expected = toy_batch().initial_state
  for seed in range(3):
    params = update_lib.unreplicate(state.params)["layer"]
    batch = toy_batch(seed)
    placed = update.place(batch)
    if seed:
      placed = placed._replace(initial_state=carry["state"])  # noqa: F821
    state, metrics, carry = update.carried(state, placed)
    for x in batch.steps["x"]:
      expected = np.tanh(0.5 * expected + x @ params["w"] + params["b"])
    assert carry["state"].shape == (devices, B // devices, STATE)
    np.testing.assert_allclose(carry["state"].reshape(B, STATE), expected, atol=1e-6)
    np.testing.assert_array_equal(carry["rows"].reshape(B), batch.steps["count"][0])
  assert metrics["rows"].shape == () and int(metrics["step"]) == 3


@pytest.mark.parametrize("devices", [1, 4])
def test_finish_changes_the_parameters_after_the_optimizer(optimizer, devices):
  """The bias becomes the mean of the carries of all devices; the weights are the optimizer's."""
  def finish(params, carry):
    mean = jax.lax.pmean(carry["rows"].astype(jnp.float32).mean(), update_lib.AXIS)
    return {"layer": {**params["layer"], "b": jnp.full(STATE, mean)}}

  chosen = jax.devices()[:devices]
  plain = update_lib.make_update(carrying_loss, optimizer, chosen, carries=True)
  finished = update_lib.make_update(
    carrying_loss, optimizer, chosen, carries=True, finish=finish)
  batch = toy_batch()
  expected, _ = run(plain, optimizer, [batch])
  found, _ = run(finished, optimizer, [batch])
  # XLA rounds the same sum differently in two programs.
  np.testing.assert_allclose(
    found.params["layer"]["w"], expected.params["layer"]["w"], rtol=2e-7)
  np.testing.assert_allclose(
    found.params["layer"]["b"], batch.steps["count"][0].mean(), rtol=1e-6)


def test_an_update_that_finishes_with_nan_is_skipped(optimizer):
  update = update_lib.make_update(
    carrying_loss, optimizer, carries=True,
    finish=lambda params, carry: jax.tree.map(lambda x: x * jnp.nan, params))
  state, history = run(update, optimizer, [toy_batch()])
  assert_trees_close(state.params, toy_params(), 0.0)
  assert int(history[0]["skipped"]) == 1


def test_a_carry_does_not_compile_the_update_again(optimizer):
  traces = []

  def loss_fn(params, key, batch):
    traces.append(None)
    return carrying_loss(params, key, batch)

  update = update_lib.make_update(loss_fn, optimizer, carries=True)
  state = update.replicate(fresh_state(optimizer))
  carry = update.place_carry({"state": toy_batch().initial_state})
  for number in range(4):
    batch = update.place(toy_batch(number)._replace(initial_state=None))
    state, _, carry = update.carried(state, batch._replace(initial_state=carry["state"]))
  assert len(traces) == 1


def test_another_learning_rate_does_not_compile_the_update_again():
  traces = []

  def loss_fn(params, key, batch):
    traces.append(None)
    return toy_loss(params, key, batch)

  optimizer = train_state.make_optimizer(1e-2, adjustable=True)
  update = update_lib.make_update(loss_fn, optimizer)
  state = update.replicate(fresh_state(optimizer))
  norms = []
  for rate in (1e-2, 1e-2, 2e-2, 1e-3):
    state = train_state.with_learning_rate(state, rate)
    state, metrics = update(state, update.place(toy_batch()))
    norms.append(float(metrics["update_norm"]))
  assert len(traces) == 1
  assert norms[0] == pytest.approx(10 * norms[3], rel=0.5) and norms[2] > norms[1]


@pytest.mark.parametrize("poison", ["one share's input", "gradient only", "optimizer only"])
def test_updates_that_are_not_finite_are_skipped_on_all_devices_and_counted(optimizer, poison):
  def loss_fn(params, key, batch):
    loss, metrics = toy_loss(params, key, batch)
    flag = batch.steps["x"][0, :, 0].max()
    if poison == "gradient only":  # the root of 0 is finite, its slope is not
      loss = loss + jnp.sqrt(jnp.where(flag > 50, 0.0, 1.0) + 0 * params["layer"]["w"].sum())
    elif poison == "optimizer only":  # 1e25 is finite, its square is not
      loss = loss + jnp.where(flag > 50, 1e25, 0.0) * params["layer"]["w"].sum()
    return loss, metrics

  good, bad = toy_batch(1), toy_batch(2)
  bad.steps["x"][0, 13, 0] = np.nan if poison == "one share's input" else 100.0
  update = update_lib.make_update(loss_fn, optimizer)
  state = update.replicate(fresh_state(optimizer))
  state, _ = update(state, update.place(good))
  before = update_lib.unreplicate(state)
  counts = []
  for batch in (bad, bad, good):
    state, metrics = update(state, update.place(batch))
    counts.append([int(metrics[name]) for name in ("step", "skipped", "consecutive_skipped")])
    if batch is bad:
      now = update_lib.unreplicate(state)
      assert_trees_close((now.params, now.opt_state), (before.params, before.opt_state), 0)
      assert np.isfinite(metrics["loss"]) == (poison != "one share's input")
  assert counts == [[2, 1, 1], [3, 2, 2], [4, 2, 0]]
  for leaf in jax.tree.leaves(state.params):  # all devices skipped the same updates
    copies = np.asarray(leaf)
    np.testing.assert_array_equal(copies, np.broadcast_to(copies[:1], copies.shape))
  after = update_lib.unreplicate(state).params["layer"]["w"]
  assert np.abs(after - before.params["layer"]["w"]).max() > 1e-4


def test_state_is_donated_and_the_host_copy_is_not(on_eight, optimizer):
  host = fresh_state(optimizer)
  saved = jax.tree.map(lambda x: np.array(x), host.params)
  state = on_eight.replicate(host)
  batch = on_eight.place(toy_batch())
  for _ in range(3):
    given = state
    published = update_lib.unreplicate(state.params)
    kept = jax.tree.map(np.array, published)
    state, _ = on_eight(given, batch)
    assert all(x.is_deleted() for x in jax.tree.leaves((given.params, given.opt_state)))
    assert_trees_close(published, kept, 0)
  assert not any(x.is_deleted() for x in jax.tree.leaves(batch))
  assert_trees_close(host.params, saved, 0)


def test_twenty_updates_compile_once(optimizer):
  traces = []

  def loss_fn(params, key, batch):
    traces.append(None)
    return toy_loss(params, key, batch)

  update = update_lib.make_update(loss_fn, optimizer)
  state = update.replicate(fresh_state(optimizer))
  placed = [update.place(toy_batch(seed)) for seed in range(20)]
  with compiling.events() as events:
    for batch in placed:
      state, metrics = update(state, batch)
  assert int(metrics["step"]) == 20
  assert len(traces) == 1
  assert events.count(compiling.COMPILED) == 1
  # A state that was saved and restored uses the same program.
  state, _ = update(update.replicate(update_lib.unreplicate(state)), placed[0])
  assert len(traces) == 1


def test_fixed_trees_reach_the_loss_and_are_not_donated(optimizer):
  def loss_fn(params, key, batch, teacher):
    loss, metrics = toy_loss(params, key, batch)
    distance = jnp.square(params["layer"]["w"] - teacher["layer"]["w"]).sum()
    return loss + distance, {**metrics, "distance": distance}

  update = update_lib.make_update(loss_fn, optimizer)
  teacher = update.replicate(toy_params(seed=3))
  state = update.replicate(fresh_state(optimizer))
  for _ in range(2):
    state, metrics = update(state, update.place(toy_batch()), teacher)
    if int(metrics["step"]) == 1:
      expected = np.square(toy_params(0)["layer"]["w"] - toy_params(3)["layer"]["w"]).sum()
      np.testing.assert_allclose(metrics["distance"], expected, rtol=1e-5)
  assert not any(x.is_deleted() for x in jax.tree.leaves(teacher))
