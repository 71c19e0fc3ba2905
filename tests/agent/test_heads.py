"""The heads: acting and learning agree, masks hold, arguments condition each other as published."""

import dataclasses
import itertools

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import blocks, distributions, heads, types, vocabulary
from starleague.agent import config as agent_config
from starleague.agent.heads import location
from starleague.agent.types import COLUMN

SETTINGS = dataclasses.replace(
  agent_config.mini(), max_entities=10, max_selected=6, pick_pooling="none", unit_mask="existing",
  function_mask="available")
CONTEXT = 7  # width of the scalar context
N = 128
MARINE_ATTACK = vocabulary.FUNCTIONS.index("Attack_pt")
OF_TYPE = {t: vocabulary.FUNCTION_TYPES.index(t) for t in set(vocabulary.FUNCTION_TYPES)}


def make_inputs(config: agent_config.AgentConfig, seed: int, rows: int) -> heads.HeadInputs:
  """Random inputs of `rows` steps."""
  size, coarse = config.max_entities, config.coarse_size
  generator = np.random.default_rng(seed)

  def normal(*shape):
    return generator.normal(size=(rows, *shape)).astype(np.float32)

  observation = types.zeros(types.observation_spec(size, config.map_size))
  observation = jax.tree.map(lambda x: np.repeat(x[None], rows, axis=0), observation)
  count = generator.integers(1, size + 1, rows).astype(np.int16)
  entities = np.zeros_like(observation.entities)
  entities[..., COLUMN["alliance"]] = generator.integers(1, 5, (rows, size))
  entities[..., COLUMN["unit_type"]] = generator.integers(1, 250, (rows, size))
  entities[np.arange(size) >= count[:, None]] = 0
  return heads.HeadInputs(
    core=normal(config.core_size), scalar_context=normal(CONTEXT),
    entity_embeddings=normal(size, config.entity_size),
    map_skips=tuple(normal(coarse, coarse, config.location_channels)
                    for _ in range(config.map_blocks + 1)),
    observation=observation._replace(
      entities=entities, entity_count=count,
      available_actions=generator.uniform(size=(rows, vocabulary.NUM_FUNCTIONS)) < 0.5))


def row(inputs: heads.HeadInputs, index: int = 0) -> heads.HeadInputs:
  """One step of a batch."""
  return jax.tree.map(lambda x: jnp.asarray(x[index]), inputs)


def repeated(inputs: heads.HeadInputs) -> heads.HeadInputs:
  """The first step of a batch in place of every one."""
  return jax.tree.map(lambda x: np.repeat(np.asarray(x[:1]), len(x), axis=0), inputs)


def make_heads(config: agent_config.AgentConfig):
  """Random parameters, biases too, and the two functions of one step."""
  def sample(inputs, greedy=False):
    with blocks.float32_parameters():
      return heads.sample(config, hk.next_rng_key(), inputs, greedy)

  def teacher_force(inputs, action):
    with blocks.float32_parameters():
      return heads.teacher_force(config, inputs, action)

  sample, teacher_force = hk.transform(sample), hk.without_apply_rng(hk.transform(teacher_force))
  inputs = row(make_inputs(config, 0, 1))
  shapes = jax.eval_shape(sample.init, jax.random.key(1), inputs)
  generator = np.random.default_rng(1)
  params = jax.tree.map(
    lambda x: jnp.asarray(generator.normal(size=x.shape, scale=max(x.shape[:-1] or (9,)) ** -0.5),
                          x.dtype), shapes)
  return params, sample.apply, teacher_force.apply


@pytest.fixture(scope="module")
def built():
  return make_heads(SETTINGS)


@pytest.fixture(scope="module")
def forced(built):
  """(inputs, actions) of a batch -> teacher-forced logits."""
  params, _, teacher_force = built
  return jax.jit(lambda i, a: jax.vmap(lambda x, y: teacher_force(params, x, y))(i, a))


@pytest.fixture(scope="module")
def sampler(built):
  """(keys, inputs) of a batch -> actions, log-probs, logits."""
  params, sample, _ = built
  return jax.jit(lambda k, i: jax.vmap(lambda x, y: sample(params, x, y))(k, i))


@pytest.fixture(scope="module")
def batch(sampler):
  """Inputs of N steps and what was sampled on them."""
  inputs = make_inputs(SETTINGS, 3, N)
  return inputs, sampler(jax.random.split(jax.random.key(4), N), inputs)


def labelled(inputs: heads.HeadInputs, **labels) -> types.Action:
  """A batch of actions; labels not given are legal for any function."""
  spec = types.action_spec(SETTINGS.max_selected)
  rows = inputs.core.shape[0]
  unused = {"delay": 1, "units": SETTINGS.max_entities}
  return types.Action(**{
    field: np.broadcast_to(labels.get(field, unused.get(field, 0)), (rows, *s.shape)).astype(
      s.dtype)
    for field, s in zip(types.Action._fields, spec, strict=True)})


def test_learning_reproduces_the_behaviour_log_probs(batch, forced):
  inputs, (action, log_prob, logits) = batch
  again = forced(inputs, action)
  found = jax.jit(jax.vmap(distributions.log_prob))(again, action)
  used = jax.vmap(vocabulary.argument_mask)(action.function)
  for field in vocabulary.Arguments._fields:
    assert getattr(used, field).any(), field  # each argument is put to the test
    np.testing.assert_allclose(
      getattr(found, field), getattr(log_prob, field), atol=1e-5, err_msg=field)
  for field in ("function", "delay", "location"):
    np.testing.assert_allclose(getattr(again, field), getattr(logits, field), atol=1e-4)


def test_actions_obey_spec_and_masks(batch):
  inputs, (action, log_prob, logits) = batch
  spec = types.action_spec(SETTINGS.max_selected)
  for field, expected in zip(types.Action._fields, spec, strict=True):
    value = getattr(action, field)
    assert (value.shape[1:], value.dtype) == (expected.shape, expected.dtype), field
  assert (action.delay >= 1).all()
  available = np.array(inputs.observation.available_actions).astype(bool)
  function = np.array(action.function)
  assert (available[np.arange(N), function] | (function == 0)).all()
  used = vocabulary.ARGUMENT_TABLE[function]
  for i, field in enumerate(vocabulary.Arguments._fields):
    unused = np.array(getattr(action, field))[~used[:, i]]
    assert (unused == (SETTINGS.max_entities if field == "units" else 0)).all(), field
    assert (np.array(getattr(log_prob, field))[~used[:, i]] == 0.0).all(), field
  targets = np.array(action.target_unit)[used[:, 5]]
  assert (targets < np.array(inputs.observation.entity_count)[used[:, 5]]).all()
  assert (action.location < SETTINGS.location_size**2).all()
  assert all(np.isfinite(x).all() for x in jax.tree.leaves((log_prob, logits)))


def test_units_are_picked_once_and_end_for_good(batch):
  inputs, (action, _, _) = batch
  end = SETTINGS.max_entities
  lengths = []
  for units, function, count in zip(np.array(action.units), np.array(action.function),
                                    np.array(inputs.observation.entity_count), strict=True):
    if not vocabulary.ARGUMENT_TABLE[function, 4]:
      continue
    length = int(np.argmax(units == end)) if (units == end).any() else len(units)
    assert length >= 1, "the end token came first"
    assert (units[length:] == end).all()
    assert len(set(units[:length])) == length and (units[:length] < count).all()
    lengths.append(length)
  assert {1, SETTINGS.max_selected} <= set(lengths)


def changed(forced, inputs, one: types.Action, other: types.Action) -> set[str]:
  """The arguments whose logits two labellings of the same inputs do not share."""
  first, second = forced(inputs, one), forced(inputs, other)
  return {field for field in vocabulary.Arguments._fields
          if not np.array_equal(getattr(first, field), getattr(second, field))}


@pytest.mark.parametrize("function_type", sorted(OF_TYPE))
def test_only_arguments_that_a_function_takes_condition_later_ones(batch, forced, function_type):
  inputs, _ = batch
  function = OF_TYPE[function_type]
  takes = vocabulary.Arguments(*vocabulary.ARGUMENT_TABLE[function])
  after_units = {"target_unit", "location"}
  after_repeat = after_units | {"units"}
  after_queued = after_repeat | {"repeat"}
  base = labelled(inputs, function=function)

  def condition(**label):
    return changed(forced, inputs, base, labelled(inputs, function=function, **label))

  assert condition(delay=9) == after_queued | {"queued"}
  assert condition(queued=1) == (after_queued if takes.queued else set())
  assert condition(repeat=2) == (after_repeat if takes.repeat else set())
  units = np.full(SETTINGS.max_selected, SETTINGS.max_entities)
  units[0] = 0
  # The picks always mask and steer the picks after them; only those of a function that takes
  # units pass on.
  assert condition(units=units) == ({"units"} | (after_units if takes.units else set()))
  assert condition(target_unit=1) == condition(location=5) == set()


def test_identical_observations_sample_different_actions(batch, sampler):
  one = repeated(batch[0])
  action, _, _ = sampler(jax.random.split(jax.random.key(5), N), one)
  assert len(np.unique(action.function)) > 20
  assert len(np.unique(action.delay)) > 40
  same, _, _ = sampler(jnp.broadcast_to(jax.random.key(5), (N,)), one)
  assert all((x == x[:1]).all() for x in same)


def test_sampled_frequencies_are_the_probabilities(batch, sampler):
  one = repeated(batch[0])
  functions = []
  for i in range(32):
    action, _, logits = sampler(jax.random.split(jax.random.key(100 + i), N), one)
    functions.append(np.array(action.function))
  draws = 32 * N
  frequencies = np.bincount(np.concatenate(functions), minlength=vocabulary.NUM_FUNCTIONS) / draws
  p = np.array(jax.nn.softmax(logits.function[0]))
  assert (frequencies[p == 0] == 0).all()
  # Five standard deviations, plus one draw for the rarest.
  assert (abs(frequencies - p) <= 5 * np.sqrt(p * (1 - p) / draws) + 1 / draws).all()


def test_greedy_takes_the_most_likely_choice(batch, built):
  params, sample, _ = built
  inputs = jax.tree.map(lambda x: x[:8], batch[0])
  greedy = jax.jit(lambda k, i: jax.vmap(lambda x, y: sample(params, x, y, greedy=True))(k, i))
  first, _, logits = greedy(jax.random.split(jax.random.key(6), 8), inputs)
  second, _, _ = greedy(jax.random.split(jax.random.key(7), 8), inputs)
  for field in types.Action._fields:
    np.testing.assert_array_equal(getattr(first, field), getattr(second, field))
  used = jax.vmap(vocabulary.argument_mask)(first.function)
  for field in types.Action._fields:
    best = np.array(getattr(logits, field)).argmax(-1)
    take = np.array(getattr(used, field))
    np.testing.assert_array_equal(
      np.array(getattr(first, field))[take], best[take], err_msg=field)


def test_any_label_leaves_everything_finite(batch, built):
  params, _, teacher_force = built
  inputs, _ = batch
  spec = types.action_spec(SETTINGS.max_selected)
  generator = np.random.default_rng(0)
  action = types.Action(*(
    generator.integers(np.iinfo(s.dtype).min, np.iinfo(s.dtype).max, (N, *s.shape)).astype(s.dtype)
    for s in spec))

  def loss(params, inputs, action):
    logits = teacher_force(params, inputs, action)
    parts = (distributions.log_prob(logits, action), distributions.entropy(logits, action),
             distributions.kl(jax.tree.map(lambda x: 0.5 * x, logits), logits, action))
    return sum(sum(part) for part in parts)

  def total(params, inputs):
    return jax.vmap(loss, (None, 0, 0))(params, inputs, action).sum()

  value, gradient = jax.jit(jax.value_and_grad(total))(params, inputs)
  assert np.isfinite(value)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(gradient))


def test_no_entities_at_all(batch, sampler):
  inputs = batch[0]
  observation = inputs.observation
  empty = observation._replace(
    entities=np.zeros_like(observation.entities),
    entity_count=np.zeros_like(observation.entity_count))
  action, log_prob, _ = sampler(
    jax.random.split(jax.random.key(8), N), inputs._replace(observation=empty))
  assert (action.units == SETTINGS.max_entities).all() and (action.target_unit == 0).all()
  assert (log_prob.units == 0.0).all() and (log_prob.target_unit == 0.0).all()


@pytest.fixture(scope="module")
def tiny():
  """Three entities, three picks: few enough for every selection to be listed."""
  return make_heads(dataclasses.replace(SETTINGS, max_entities=3, max_selected=3))


def test_probabilities_of_all_selections_sum_to_one(tiny):
  params, _, teacher_force = tiny
  inputs = row(make_inputs(dataclasses.replace(SETTINGS, max_entities=3), 9, 1))
  inputs = inputs._replace(
    observation=inputs.observation._replace(entity_count=jnp.int16(3)))
  selections = [
    (*picks, *[3] * (3 - length))
    for length in (1, 2, 3) for picks in itertools.permutations(range(3), length)]
  assert len(selections) == 15
  action = types.zeros(types.action_spec(3))._replace(function=np.int16(MARINE_ATTACK))

  def log_prob(units):
    chosen = action._replace(units=units)
    return distributions.log_prob(teacher_force(params, inputs, chosen), chosen).units

  found = jax.jit(jax.vmap(log_prob))(jnp.array(selections, jnp.int16))
  assert float(jnp.exp(found).sum()) == pytest.approx(1.0, abs=1e-5)
  assert float(jnp.exp(found).min()) > 0.0


def published_pointer(params, config, inputs, function, embedding, units):
  """The pointer as published, pick by pick, in NumPy: raw logits and the embedding after it."""
  p = {k: np.array(v, np.float64) for k, v in params["selected_units"].items()}
  linear = {name: {k: np.array(v, np.float64) for k, v in params[f"selected_units/{name}"].items()}
            for name in ("keys", "executors")}
  sigmoid = lambda x: 1.0 / (1.0 + np.exp(-x))  # noqa: E731
  keys = np.array(inputs.entity_embeddings) @ linear["keys"]["w"] + linear["keys"]["b"]
  keys = np.concatenate([keys, p["end_key"][None]])
  executors = np.maximum(
    vocabulary.CAPABLE[function] @ linear["executors"]["w"] + linear["executors"]["b"], 0)
  hidden = cell = np.zeros(config.key_size)
  divisor = {"entities": int(inputs.observation.entity_count), "512": 512, "none": 1}
  logits = []
  for unit in units:
    x = np.maximum(embedding @ p["query_hidden_w"] + p["query_hidden_b"] + executors, 0)
    x = x @ p["query_input_w"] + p["query_input_b"]
    gates = x @ p["lstm_input_w"] + p["lstm_input_b"] + hidden @ p["lstm_recurrent"]
    i, g, f, o = np.split(gates, 4)
    cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(g)
    hidden = sigmoid(o) * np.tanh(cell)
    logits.append(keys @ hidden / config.temperature)
    if unit < config.max_entities:
      pooled = keys[unit] / divisor[config.pick_pooling]
      embedding = embedding + pooled @ p["update_w"] + p["update_b"]
  return np.array(logits), embedding


@pytest.mark.parametrize("pooling", agent_config.PICK_POOLINGS)
def test_pointer_equals_the_published_recurrence(built, batch, pooling):
  params = built[0]
  config = dataclasses.replace(SETTINGS, pick_pooling=pooling)
  inputs = row(batch[0])
  inputs = inputs._replace(observation=inputs.observation._replace(entity_count=jnp.int16(9)))
  embedding = jax.random.normal(jax.random.key(10), (config.autoregressive_size,))
  units = jnp.array([3, 0, 7, 10, 10, 10])
  force = hk.without_apply_rng(hk.transform(lambda: heads.selected_units.teacher_force(
    config, inputs, embedding, jnp.int32(MARINE_ATTACK), jnp.bool_(True), units)))
  logits, updated = jax.jit(force.apply)(params)
  expected, after = published_pointer(
    params, config, inputs, MARINE_ATTACK, np.array(embedding, np.float64), np.array(units))
  legal = np.array(logits) > -1e8
  np.testing.assert_array_equal(legal[:4], [
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1],
    [0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1], [0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1]])
  np.testing.assert_array_equal(legal[4:], np.eye(11)[[10, 10]])
  np.testing.assert_allclose(logits[:4][legal[:4]], expected[:4][legal[:4]], atol=1e-5)
  np.testing.assert_allclose(updated, after, atol=1e-5)


def test_transposed_convolution_equals_haikus():
  x = jax.random.normal(jax.random.key(0), (5, 7, 3))
  ours = hk.without_apply_rng(hk.transform(
    lambda y: location.TransposedConvolution(2, name="up")(y)))
  theirs = hk.without_apply_rng(hk.transform(lambda y: hk.Conv2DTranspose(2, 4, 2, name="up")(y)))
  taps = jax.random.normal(jax.random.key(1), (4, 4, 3, 2))
  params = {"up": {"w": taps, "b": jnp.array([0.5, -1.0])}}
  # Haiku keeps the taps mirrored, with output channels before input channels.
  mirrored = {"up": {"w": taps[::-1, ::-1].transpose(0, 1, 3, 2), "b": params["up"]["b"]}}
  found = jax.jit(ours.apply)(params, x)
  assert found.shape == (10, 14, 2)
  np.testing.assert_allclose(found, jax.jit(theirs.apply)(mirrored, x), atol=1e-5)


def test_location_index_is_row_times_size_plus_column(built, batch):
  params = jax.tree.map(jnp.zeros_like, built[0])
  # Only the first channel of the last skip passes, and every tap spreads it alike.
  autoregressive = SETTINGS.autoregressive_size // SETTINGS.coarse_size**2
  first = params["location/input"]["w"].at[0, 0, autoregressive, 0].set(1.0)
  params["location/input"] = {**params["location/input"], "w": first}
  for i in range(len(SETTINGS.location_upsamples)):
    name = f"location/upsample_{i}"
    params[name] = {**params[name], "w": jnp.ones_like(params[name]["w"])}
  inputs = row(batch[0])
  y, x = 2, 5
  skips = [jnp.zeros_like(skip) for skip in inputs.map_skips]
  skips[-1] = skips[-1].at[y, x, 0].set(1.0)
  run = hk.without_apply_rng(hk.transform(lambda: location.logits(
    SETTINGS, inputs._replace(map_skips=tuple(skips)),
    jnp.zeros(SETTINGS.autoregressive_size), jnp.int32(0))))
  size = SETTINGS.location_size
  grid = np.array(jax.jit(run.apply)(params)).reshape(size, size)
  rows, columns = np.nonzero(grid > 0)
  # Cells 4r to 4r + 3 of the grid lie over coarse cell r; the taps reach three further.
  assert (rows.min(), rows.max()) == (4 * y - 3, 4 * y + 6)
  assert (columns.min(), columns.max()) == (4 * x - 3, 4 * x + 6)


def test_repeat_can_be_switched_off():
  config = dataclasses.replace(SETTINGS, repeat=False)
  params, _, _ = make_heads(config)
  assert not [name for name in params if name.startswith("repeat")]
  logits = heads.categorical.repeat_logits(config, jnp.ones(config.autoregressive_size))
  np.testing.assert_array_equal(jax.nn.softmax(logits), [1.0, 0.0, 0.0])
  assert (heads.categorical.embedding(config, "repeat", jnp.int32(0), jnp.bool_(True)) == 0.0).all()
