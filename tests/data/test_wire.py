"""The wire format is exact; its layout equals one computed by hand."""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import wire

CONFIG = agent_config.mini()
UNROLL_LENGTH = 3


def random_tree(spec, seed):
  """Returns random arrays over the range of each dtype; binary planes hold 0 and 1."""
  random = np.random.default_rng(seed)

  def draw(leaf):
    if leaf.dtype == np.bool_:
      return random.random(leaf.shape) < 0.5
    if leaf.dtype == np.float32:
      return random.normal(size=leaf.shape).astype(np.float32)
    limits = np.iinfo(leaf.dtype)
    return random.integers(limits.min, limits.max, leaf.shape, leaf.dtype, endpoint=True)

  tree = jax.tree.map(draw, spec)
  tree.steps.observation.minimap[:, wire.BINARY_PLANES] &= 1
  return tree


@functools.lru_cache(maxsize=4)
def trajectory(seed):
  return random_tree(types.trajectory_spec(CONFIG, UNROLL_LENGTH), seed)


@pytest.fixture(scope="module")
def unpack():
  return jax.jit(lambda packed: wire.unpack(packed, CONFIG))


def assert_same(found, expected):
  assert jax.tree.structure(found) == jax.tree.structure(expected)
  for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
    assert x.dtype == y.dtype
    np.testing.assert_array_equal(x, y)


@hypothesis.given(seed=st.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=20, deadline=None)
def test_round_trip_is_exact(unpack, seed):
  original = random_tree(types.trajectory_spec(CONFIG, UNROLL_LENGTH), seed)
  assert_same(unpack(wire.pack(original)), original)


def test_batch_round_trip_is_exact(unpack):
  rows = [trajectory(seed) for seed in range(3)]
  packed = [wire.pack(row) for row in rows]
  batch = wire.Packed(*[np.stack(x, axis=int(name != "state"))
                        for name, x in zip(wire.Packed._fields, zip(*packed, strict=True),
                                           strict=True)])
  expected = types.Trajectory(
    steps=jax.tree.map(lambda *x: np.stack(x, axis=1), *[row.steps for row in rows]),
    initial_state=jax.tree.map(lambda *x: np.stack(x), *[row.initial_state for row in rows]))
  assert_same(unpack(batch), expected)


def test_packing_on_the_device_gives_the_same_columns():
  steps = trajectory(0).steps
  assert_same(jax.jit(wire.pack_steps)(jax.device_put(steps)), wire.pack_steps(steps))


def test_state_round_trip_with_leading_axes():
  spec = types.core_state_spec(CONFIG)
  random = np.random.default_rng(0)
  state = jax.tree.map(
    lambda x: random.normal(size=(2, 5, *x.shape)).astype(np.float32), spec)
  vector = wire.pack_state(state, num_leading=2)
  assert vector.shape == (2, 5, 2 * CONFIG.core_layers * CONFIG.core_size)
  assert_same(wire.unpack_state(vector, CONFIG), state)


def test_packed_spec_describes_packed_trajectories():
  found = jax.tree.map(lambda x: (x.shape, np.dtype(x.dtype)), wire.pack(trajectory(0)))
  spec = wire.packed_spec(CONFIG, UNROLL_LENGTH)
  assert jax.tree.map(lambda x: (x.shape, np.dtype(x.dtype)), spec) == found


def test_layout_by_hand():
  layout = wire.layout(CONFIG)
  statistics = 256 + 82 + 90  # units, effects, upgrades
  bits = 4 * 32 * 32 + 4 * statistics + 3 * 90 + 327 + 4  # planes, z's, upgrades, actions, pseudo
  assert layout.num_bits == bits
  assert layout.widths.bits == -(-bits // 8)
  # height, visibility, player_relative; 4 build orders of 20 * (1 + 2); 2 unit counts; 2 races,
  # queued and repeat of the observation and of the action; the action's result
  assert layout.widths.uint8 == 3 * 32 * 32 + 4 * 60 + 2 * 256 + 2 + 2 + 2 + 1
  # entities; count, mmr, last delay and function; camera; function, delay, target; units
  assert layout.widths.int16 == 64 * 48 + 4 + 4 + 3 + 8
  assert layout.widths.int32 == 2 * (10 + 13) + 1 + 1  # player and score twice; loop; location
  assert layout.widths.float32 == 7 + 5 + 1 + 1  # log-probs, reward, discount, weight


def test_field_holds_its_leaf():
  steps = trajectory(0).steps
  columns = wire.pack_steps(steps)
  fields = wire.layout(CONFIG).fields
  for path, leaf in [("reward", steps.reward), ("discount", steps.discount[:, None]),
                     ("action.units", steps.action.units),
                     ("observation.game_loop", steps.observation.game_loop[:, None])]:
    field = fields[path]
    np.testing.assert_array_equal(getattr(columns, field.column)[:, field.slice], leaf)


def test_summed_fields_are_those_before_the_differences():
  """Over the whole range of each dtype."""
  for seed in range(3):
    steps = trajectory(seed).steps
    columns = wire.pack_steps(steps)
    columns = wire.Columns(*(
      x if x.dtype == np.float32 else wire.difference(x) for x in columns))
    for path, expected in (("observation.player", steps.observation.player),
                           ("observation.mmr", steps.observation.mmr[:, None])):
      found = wire.summed(columns, path, CONFIG)
      assert found.dtype == expected.dtype
      np.testing.assert_array_equal(found, expected)


def test_difference_wraps_around():
  x = np.array([[0, 250], [255, 4], [1, 4]], np.uint8)
  np.testing.assert_array_equal(wire.difference(x), [[0, 250], [255, 10], [2, 0]])
  y = np.array([[32767], [-32768], [0]], np.int16)
  np.testing.assert_array_equal(wire.difference(y), [[32767], [1], [-32768]])


def test_an_unchanging_game_is_zeros_on_the_wire():
  spec = types.trajectory_spec(CONFIG, UNROLL_LENGTH)
  first = jax.tree.map(lambda x: x[:1], trajectory(1).steps)
  still = types.Trajectory(
    steps=jax.tree.map(lambda x: np.repeat(x, UNROLL_LENGTH + 1, axis=0), first),
    initial_state=types.zeros(spec.initial_state))
  packed = wire.pack(still)
  for column in (packed.bits, packed.uint8, packed.int16, packed.int32):
    assert column[0].any()
    assert not column[1:].any()


@pytest.mark.parametrize("plane", ["creep", "alerts", "pathable", "buildable"])
def test_binary_plane_with_another_value_is_refused(plane):
  steps = jax.tree.map(np.copy, trajectory(0).steps)
  steps.observation.minimap[1, types.MINIMAP_PLANES.index(plane), 3, 4] = 2
  with pytest.raises(ValueError, match=f"'{plane}' must hold 0 and 1 only, found 2"):
    wire.pack_steps(steps)


PARAMS = {
  "torso": {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float32([0.5])},
  "count": np.array(7, np.int32)}


def test_parameters_round_trip():
  vector = wire.flatten_parameters(jax.tree.map(jnp.asarray, PARAMS))
  assert vector.dtype == np.uint8
  assert vector.size == wire.parameters_size(PARAMS) == 4 * (6 + 1 + 1)
  np.testing.assert_array_equal(vector[:4].view(np.int32), [7])  # the order of the tree
  spec = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), PARAMS)
  assert_same(wire.unflatten_parameters(vector, spec), PARAMS)


def test_parameters_of_another_size_are_refused():
  with pytest.raises(ValueError, match="32 bytes do not fit a tree of 28 bytes"):
    wire.unflatten_parameters(wire.flatten_parameters(PARAMS), {"torso": PARAMS["torso"]})


@pytest.mark.parametrize("other", [
  {"torso": PARAMS["torso"], "counts": PARAMS["count"]},  # a name
  {"torso": {"w": PARAMS["torso"]["w"].T, "b": PARAMS["torso"]["b"]}, "count": PARAMS["count"]},
  {"torso": PARAMS["torso"], "count": np.array(7, np.float32)},  # a dtype
], ids=["name", "shape", "dtype"])
def test_hash_tells_trees_apart(other):
  assert wire.parameters_size(other) == wire.parameters_size(PARAMS)
  assert wire.parameters_hash(other) != wire.parameters_hash(PARAMS)


def test_hash_ignores_values_and_kind_of_array():
  zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), PARAMS)
  assert wire.parameters_hash(zeros) == wire.parameters_hash(PARAMS)
  assert len(wire.parameters_hash(PARAMS)) == 32


def test_leaf_of_another_dtype_or_shape_is_named():
  steps = trajectory(0).steps
  wire.check_steps(steps, CONFIG)
  wide = steps._replace(action=steps.action._replace(
    function=steps.action.function.astype(np.int32)))
  with pytest.raises(ValueError, match=(
      r"leaf 'action.function' of the steps: found int32\[4\], expected int16\[4\]")):
    wire.check_steps(wide, CONFIG)
  short = steps._replace(reward=steps.reward[:, :4])
  with pytest.raises(ValueError, match=r"'reward' .*float32\[4, 4\], expected float32\[4, 5\]"):
    wire.check_steps(short, CONFIG)


def test_empty_batch_has_the_axes_that_batch_axes_states():
  empty = wire.empty_batch(CONFIG, UNROLL_LENGTH, 5)
  packed = wire.pack(trajectory(0))
  assert list(wire.BATCH_AXES) == list(wire.Packed._fields)
  for name, axis in wire.BATCH_AXES.items():
    one, batch = getattr(packed, name), getattr(empty, name)
    assert batch.dtype == one.dtype and batch.shape[axis] == 5 and not batch.any()
    assert np.take(batch, 0, axis).shape == one.shape
  assert not np.any(jax.jit(lambda x: wire.unpack(x, CONFIG).steps.weight)(empty))
