"""Encodings against hand-worked classes, and the encoders' invariants."""

import dataclasses

import haiku as hk
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import blocks, config, encoders, types
from starleague.agent import vocabulary as v
from starleague.agent.encoders import entity, fields, scalar, spatial

MINI = config.mini()
_indices = jax.jit(fields.indices)
_numbers = jax.jit(fields.numbers)


def _transformed(function):
  def in_float32(*args):
    with blocks.float32_parameters():
      return function(*args)
  return hk.without_apply_rng(hk.transform(in_float32))


def _entity(**columns):
  """[1, F] int16: one entity with the given columns, zero elsewhere."""
  row = np.zeros((1, types.NUM_ENTITY_COLUMNS), np.int16)
  for name, value in columns.items():
    row[0, types.COLUMN[name]] = value
  return row


def _class_of(field: str, **columns) -> int:
  at = [f.name for f in fields.FIELDS].index(field)
  return int(_indices(_entity(**columns))[0, at])


@pytest.mark.parametrize(("health", "bucket"), [
  (0, 0), (1, 1), (35, 5), (36, 6), (1500, 38), (9999, 38)])
def test_health_is_the_floor_of_its_square_root(health, bucket):
  assert _class_of("current_health", health=health) == bucket


@pytest.mark.parametrize("cap", [200, 1000, 1500, 1800, 2500])
def test_square_root_classes_are_exact_at_every_value(cap):
  x = np.arange(-5, cap + 100)
  expected = [int(np.floor(np.sqrt(np.float64(min(max(i, 0), cap))))) for i in x]
  np.testing.assert_array_equal(fields.square_root_class(jnp.asarray(x), cap), expected)


@pytest.mark.parametrize(("mmr", "bucket"), [
  (-5, 0), (0, 0), (3500, 3), (5999, 5), (6200, 6), (7100, 6)])
def test_mmr_is_in_thousands_up_to_six(mmr, bucket):
  assert int(scalar.mmr_class(jnp.int16(mmr))) == bucket


def test_positions_are_bits_the_lowest_first():
  np.testing.assert_array_equal(fields.position_bits(jnp.int16(130)), [0, 1, 0, 0, 0, 0, 0, 1])
  np.testing.assert_array_equal(fields.position_bits(jnp.int16(300)), np.ones(8))
  np.testing.assert_array_equal(fields.position_bits(jnp.int16(-1)), np.zeros(8))


@pytest.mark.parametrize(("field", "columns", "expected"), [
  ("unit_type", {"unit_type": 300}, 255),
  ("alliance", {"alliance": 4}, 4),
  ("current_shields", {"shield": 9}, 3),
  ("current_energy", {"energy": 250}, 14),
  ("cargo_space_used", {"cargo_space_taken": 12}, 8),
  ("current_minerals", {"mineral_contents": 1799}, 17),
  ("current_minerals", {"mineral_contents": 1800}, 18),
  ("current_vespene", {"vespene_contents": 2500}, 25),
  ("assigned_harvesters", {"assigned_harvesters": 24}, 24),
  ("ideal_harvesters", {"ideal_harvesters": 30}, 16),
  ("weapon_cooldown", {"weapon_cooldown": 400}, 31),
  ("order_progress_1", {"order_progress_0": 100}, 9),
  ("order_progress_2", {"order_progress_1": 59}, 5),
  ("armor_upgrades", {"armor_upgrade_level": 4}, 3),
  ("is_active", {"active": -3}, 0),
  ("order_1", {"order_id_0": 326}, 326),
])
def test_classes_of_columns(field, columns, expected):
  assert _class_of(field, **columns) == expected


@pytest.mark.parametrize(("kind", "left", "expected"), [
  ("MineralField", 1700, 10), ("RichMineralField", 1500, 0), ("MineralField750", 50, 26),
  ("MineralField450", 0, 21), ("Marine", 0, 0)])
def test_mined_minerals_is_initial_minus_current_contents(kind, left, expected):
  unit_type = v.UNIT_TYPES.index(kind)
  assert _class_of("mined_minerals", unit_type=unit_type, mineral_contents=left) == expected


@pytest.mark.parametrize(("kind", "expected"), [("VespeneGeyser", 47), ("RichVespeneGeyser", 50)])
def test_mined_vespene_of_an_empty_geyser(kind, expected):
  assert _class_of("mined_vespene", unit_type=v.UNIT_TYPES.index(kind)) == expected


def test_later_orders_distinguish_training_functions_only():
  marine = v.FUNCTIONS.index("Train_Marine_quick")
  at = list(v.TRAINING_FUNCTIONS).index(marine)
  assert _class_of("order_2", order_id_1=marine) == at > 0
  assert _class_of("order_4", order_id_3=v.FUNCTIONS.index("Attack_pt")) == 0


def test_each_addon_has_its_own_class():
  assert [_class_of("addon_type", addon_unit_type=v.UNIT_TYPES.index(name))
          for name in (*fields.ADDONS, "Marine")] == [1, 2, 3, 4, 5, 6, 0]


def test_attributes_of_known_types():
  names = ("light", "armored", "biological", "mechanical", "psionic", "massive", "structure",
           "detector", "summoned", "flying", "addon", "burrowed", "heroic")
  def attributes(unit):
    row = fields.ATTRIBUTES[v.UNIT_TYPES.index(unit)]
    return {name for name, has in zip(names, row, strict=True) if has}
  assert attributes("Marine") == {"light", "biological"}
  assert attributes("Battlecruiser") == {"armored", "mechanical", "massive", "flying"}
  assert attributes("BarracksTechLab") == {"armored", "mechanical", "structure", "addon"}
  assert attributes("DroneBurrowed") == {"light", "biological", "burrowed"}


def test_number_of_inputs_is_the_published_one():
  # 1206 with 49 training functions and 24 classes of harvesters: here they are 50 and 25.
  assert fields.NUM_CLASSES + fields.NUM_NUMBERS + fields.NUM_ATTRIBUTES == 1206 + 3 + 1


@hypothesis.given(st.integers(0, 2 ** 32 - 1))
@hypothesis.settings(max_examples=20, deadline=None)
def test_every_int16_has_a_class(seed):
  rows = np.random.default_rng(seed).integers(
    -2 ** 15, 2 ** 15, (16, types.NUM_ENTITY_COLUMNS)).astype(np.int16)
  indices = np.asarray(_indices(rows))
  assert (indices >= 0).all()
  assert (indices < [field.classes for field in fields.FIELDS]).all()
  numbers = np.asarray(_numbers(rows))
  assert (numbers >= 0).all() and (numbers <= 1).all()


def test_ratios_are_fractions_of_one():
  rows = _entity(build_progress=50, health_ratio=255, shield_ratio=51, order_progress_0=100)
  np.testing.assert_allclose(
    _numbers(rows)[0, :6], [0.5, 1.0, 0.2, 0.0, 1.0, 0.0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_looking_rows_up_equals_multiplying_one_hots(dtype):
  rows = np.random.default_rng(0).integers(
    0, 300, (16, types.NUM_ENTITY_COLUMNS)).astype(np.int16)
  networks = [_transformed(lambda x, method=method: entity.FieldEmbedding(
    8, method, name="fields")(x, jnp.dtype(dtype))) for method in ("gather", "one_hot")]
  params = jax.jit(networks[0].init)(jax.random.key(0), rows)
  gathered, multiplied = (jax.jit(network.apply)(params, rows) for network in networks)
  assert gathered.dtype == multiplied.dtype == jnp.dtype(dtype)
  tolerance = 1e-5 if dtype == "float32" else 0.03
  np.testing.assert_allclose(np.asarray(gathered, np.float32), np.asarray(multiplied, np.float32),
                             rtol=tolerance, atol=tolerance)


def observation(seed: int = 0, count: int = 20) -> types.Observation:
  """A made-up observation of mini's shapes with plausible values and `count` entities."""
  random = np.random.default_rng(seed)
  o = types.zeros(types.observation_spec(MINI.max_entities, MINI.map_size))
  o.entities[:count] = random.integers(0, 200, (count, types.NUM_ENTITY_COLUMNS))
  o.minimap[:] = random.integers(0, 2, o.minimap.shape)
  o.player[:] = random.integers(0, 300, o.player.shape)
  o.available_actions[:] = random.random(o.available_actions.shape) < 0.3
  o.upgrades[:] = random.random(o.upgrades.shape) < 0.3
  o.unit_counts[:] = random.integers(0, 4, o.unit_counts.shape)
  o.statistics.build_order[:5] = random.integers(1, 250, 5)
  o.statistics.units[:] = random.random(o.statistics.units.shape) < 0.3
  return o._replace(entity_count=np.int16(count), game_loop=np.int32(1234), mmr=np.int16(3500),
                    home_race=np.uint8(1), away_race=np.uint8(3), last_delay=np.int16(8),
                    last_function=np.int16(2), last_queued=np.uint8(1))


@pytest.fixture(scope="module")
def encode():
  network = _transformed(lambda o: (
    encoders.encode(MINI, o), entity.encode(MINI, o.entities, o.entity_count).embedded))
  params = jax.jit(network.init)(jax.random.key(0), observation())
  return jax.jit(lambda o: network.apply(params, o))


def _with_entities(o, entities):
  return o._replace(entities=np.asarray(entities))


def test_rows_past_the_count_have_no_effect(encode):
  o = observation()
  entities = o.entities.copy()
  entities[20:] = 77
  for before, after in zip(jax.tree.leaves(encode(o)),
                           jax.tree.leaves(encode(_with_entities(o, entities))), strict=True):
    np.testing.assert_array_equal(before, after)


def test_permuting_entities_permutes_their_embeddings_only(encode):
  o = observation()
  order = np.concatenate([np.random.default_rng(1).permutation(20), np.arange(20, 64)])
  encoding, embedded = encode(o)
  permuted, embedded_permuted = encode(_with_entities(o, o.entities[order]))
  np.testing.assert_allclose(
    permuted.entity_embeddings, encoding.entity_embeddings[order], atol=1e-5)
  np.testing.assert_allclose(embedded_permuted, embedded, atol=1e-5)
  np.testing.assert_allclose(permuted.core_input, encoding.core_input, atol=1e-4)


def test_empty_observation_is_finite(encode):
  empty = types.zeros(types.observation_spec(MINI.max_entities, MINI.map_size))
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(encode(empty)))


@pytest.mark.parametrize(("preset", "core_input", "context"), [
  ("full", 256 + 256 + 1504, 544), ("mini", None, None)])
def test_shapes_of_the_encoding(preset, core_input, context):
  sizes = config.preset(preset)
  o = types.observation_spec(sizes.max_entities, sizes.map_size)
  network = _transformed(lambda o: encoders.encode(sizes, o))
  encoding = jax.eval_shape(
    network.apply, jax.eval_shape(network.init, jax.random.key(0), o), o)
  coarse, channels = sizes.coarse_size, sizes.map_downsamples[-1]
  assert encoding.entity_embeddings.shape == (sizes.max_entities, sizes.entity_size)
  assert [x.shape for x in encoding.map_skips] == (
    [(coarse, coarse, channels)] * (1 + sizes.map_blocks))
  assert {x.dtype for x in jax.tree.leaves(encoding)} == {jnp.dtype(sizes.dtype)}
  if core_input is not None:
    assert encoding.core_input.shape == (core_input,)
    assert encoding.scalar_context.shape == (context,)


@pytest.mark.parametrize("method", config.ENTITY_EMBEDDINGS)
def test_entities_are_scattered_to_their_cells_and_summed(method):
  rows = np.concatenate([_entity(x=0, y=0), _entity(x=255, y=8), _entity(x=250, y=15)])
  vectors = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
  drawn = np.asarray(spatial.draw(jnp.ones((32, 32, 2)), vectors, rows, method)) - 1
  expected = np.zeros((32, 32, 2))
  expected[0, 0] = [1, 2]
  expected[1, 31] = [8, 10]
  np.testing.assert_array_equal(drawn, expected)


def test_planes_are_one_hots_and_a_height():
  layers = np.zeros((8, 2, 2), np.uint8)
  layers[0, 0, 1] = 51
  layers[1, 0, 1] = 3
  layers[3, 0, 1] = 9  # out of range: the last class
  layers[7, 0, 1] = 1
  channels = np.asarray(spatial.planes(jnp.asarray(layers), jnp.float32))
  assert channels.shape == (2, 2, 20)
  np.testing.assert_allclose(
    channels[0, 1], [0.2, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1], rtol=1e-6)


def test_number_of_map_channels_is_the_published_one():
  # 18 of the game's planes, 2 of the camera, 32 of entities (detailed architecture).
  assert spatial.NUM_CHANNELS + config.full().scatter_size == 52


def test_camera_is_an_input(encode):
  o = observation()
  here, there = (encode(o._replace(camera=np.int16(corners)))[0]
                 for corners in ([0, 0, 128, 128], [128, 128, 256, 256]))
  assert np.abs(here.map_skips[0] - there.map_skips[0]).max() > 1e-3


def test_projecting_planes_equals_the_product_with_their_channels():
  random = np.random.default_rng(0)
  minimap = random.integers(0, 7, (8, 4, 4)).astype(np.uint8)
  weights = jnp.asarray(random.normal(size=(spatial.NUM_CHANNELS, 3)), jnp.float32)
  bias = jnp.asarray(random.normal(size=3), jnp.float32)
  place = jnp.asarray(random.normal(size=(4, 4, 3)), jnp.float32)
  def product(weights, bias):
    return spatial.planes(jnp.asarray(minimap), jnp.float32) @ weights + bias
  def projected(weights, bias):
    return spatial.project_planes(jnp.asarray(minimap, jnp.float32), weights, bias)
  np.testing.assert_allclose(projected(weights, bias), product(weights, bias), atol=1e-5)
  gradients = [jax.grad(lambda w, b, f=f: (f(w, b) * place).sum(), argnums=(0, 1))(weights, bias)
               for f in (projected, product)]
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), *gradients)


def test_time_embedding_covers_all_timescales():
  np.testing.assert_allclose(scalar.time_embedding(jnp.int32(0), 8), [0, 0, 0, 0, 1, 1, 1, 1])
  scales = np.array([1.0, 10 ** (5 / 3), 10 ** (10 / 3), 1e5])
  np.testing.assert_allclose(
    scalar.time_embedding(jnp.int32(90), 8),
    [*np.sin(90 / scales), *np.cos(90 / scales)], atol=1e-5)


def test_negative_scores_are_finite():
  np.testing.assert_allclose(scalar.log_counts(jnp.array([-7, 0, 1])), [0, 0, np.log(2)], rtol=1e-6)


@pytest.mark.parametrize("pooling", ["flatten", "mean"])
def test_empty_build_order_is_zero_and_order_matters(pooling):
  sizes = dataclasses.replace(MINI.scalar, build_order_pooling=pooling)
  network = _transformed(lambda z: scalar.BuildOrderEncoder(sizes, name="build_order")(
    z, jnp.float32))
  z = types.zeros(types.statistics_spec())
  params = jax.jit(network.init)(jax.random.key(0), z)
  apply = jax.jit(network.apply)
  np.testing.assert_array_equal(apply(params, z), 0.0)
  places = z._replace(build_order_xy=np.full((20, 2), 9, np.uint8))
  np.testing.assert_array_equal(apply(params, places), 0.0)
  orders = [z._replace(build_order=np.array([*two, *[0] * 18], np.uint8)) for two in
            ((5, 9), (9, 5))]
  forwards, backwards = (np.asarray(apply(params, order)) for order in orders)
  assert np.abs(forwards - backwards).max() > 1e-3
