"""Masks, log-probs, entropy and divergence against hand-worked numbers and a NumPy twin."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starleague.agent import distributions, types, vocabulary
from starleague.agent.types import COLUMN, NUM_ENTITY_COLUMNS, Action
from starleague.agent.vocabulary import Arguments

E, K, L = 6, 4, 3
SIZES = Arguments(
  function=(vocabulary.NUM_FUNCTIONS,), delay=(128,), queued=(2,), repeat=(3,), units=(K, E + 1),
  target_unit=(E,), location=(L * L,))
FUNCTION_OF_TYPE = {t: vocabulary.FUNCTION_TYPES.index(t) for t in set(vocabulary.FUNCTION_TYPES)}

log_prob = jax.jit(distributions.log_prob)
entropy = jax.jit(distributions.entropy)
kl = jax.jit(distributions.kl)
is_legal = jax.jit(distributions.is_legal)


def random_logits(seed: int, spread: float, illegal: float) -> Arguments:
  """Masked logits, the first choice of every argument legal."""
  generator = np.random.default_rng(seed)

  def draw(shape):
    logits = spread * generator.normal(size=shape)
    mask = generator.uniform(size=shape) >= illegal
    mask[..., 0] = True
    return np.where(mask, logits, distributions.NEGATIVE).astype(np.float32)

  return Arguments(*(draw(shape) for shape in SIZES))


def random_action(seed: int, function: int, logits: Arguments) -> Action:
  """Legal labels for the logits; units are independent picks with an end token now and then."""
  generator = np.random.default_rng(seed + 1)

  def pick(row):
    return generator.choice(np.flatnonzero(row > -1e8))

  units = np.array([pick(row) for row in logits.units])
  if generator.uniform() < 0.5:
    units[generator.integers(1, K):] = E
  return Action(
    function=np.int16(function), delay=np.int16(pick(logits.delay)),
    queued=np.uint8(pick(logits.queued)), repeat=np.uint8(pick(logits.repeat)),
    units=units.astype(np.int16), target_unit=np.int16(pick(logits.target_unit)),
    location=np.int32(pick(logits.location)))


def softmax(logits):
  """float64 probabilities, exact zeros where masked."""
  legal = logits > -1e8
  weights = np.where(legal, np.exp(np.where(legal, logits - logits[legal].max(), 0.0)), 0.0)
  return weights / weights.sum()


def twin(logits: Arguments, action: Action, one) -> dict:
  """`one(logits row, label)` summed over executed picks for units, 0 where unused."""
  used = vocabulary.ARGUMENT_TABLE[int(action.function)]
  values = {}
  for field, use in zip(Arguments._fields, used, strict=True):
    value, label = getattr(logits, field).astype(np.float64), getattr(action, field)
    if field == "units":
      total = 0.0
      for row, unit in zip(value, label, strict=True):
        total += one(row, int(unit))
        if unit == E:
          break
    else:
      total = one(value, int(label))
    values[field] = total if use else 0.0
  return values


cases = given(
  seed=st.integers(0, 2**31), spread=st.sampled_from((0.0, 1.0, 30.0)),
  illegal=st.sampled_from((0.0, 0.5, 1.0)),
  function=st.sampled_from(sorted(FUNCTION_OF_TYPE.values())))


@cases
@settings(max_examples=30)
def test_log_prob_equals_numpy(seed, spread, illegal, function):
  logits = random_logits(seed, spread, illegal)
  action = random_action(seed, function, logits)
  action = action._replace(function=np.int16(function))
  logits.function[function] = 1.5  # so that the function is legal
  with np.errstate(divide="ignore"):
    expected = twin(
      logits, action, lambda row, i: np.log(softmax(row)[i]) if row[i] > -1e8 else -1e9)
  found = log_prob(logits, action)
  legal = is_legal(logits, action)
  for field in Arguments._fields:
    assert found._asdict()[field] == pytest.approx(expected[field], rel=1e-5, abs=1e-5), field
    assert bool(legal._asdict()[field]) == (expected[field] > -1e8), field


@cases
@settings(max_examples=30)
def test_entropy_equals_numpy_and_lies_in_0_to_1(seed, spread, illegal, function):
  logits = random_logits(seed, spread, illegal)
  action = random_action(seed, function, logits)

  def one(row, _):
    p = softmax(row)
    legal = (row > -1e8).sum()
    return -np.sum(p * np.log(np.where(p > 0, p, 1.0))) / np.log(legal) if legal > 1 else 0.0

  expected = twin(logits, action, one)
  executed = 1 + int(np.argmax(action.units == E)) if (action.units == E).any() else K
  expected["units"] /= executed
  found = entropy(logits, action)._asdict()
  for field in Arguments._fields:
    assert found[field] == pytest.approx(expected[field], abs=2e-5), field
    assert -1e-6 <= found[field] <= 1.0 + 1e-6


@cases
@settings(max_examples=30)
def test_kl_equals_numpy_and_is_zero_to_itself(seed, spread, illegal, function):
  student = random_logits(seed, spread, illegal)
  generator = np.random.default_rng(seed)
  teacher = Arguments(*(
    np.where(x > -1e8, x + generator.normal(size=x.shape), x).astype(np.float32)
    for x in student))
  action = random_action(seed, function, student)
  expected = {}
  used = vocabulary.ARGUMENT_TABLE[function]
  for field, use in zip(Arguments._fields, used, strict=True):
    rows = [np.atleast_2d(getattr(x, field)).astype(np.float64) for x in (teacher, student)]
    total = 0.0
    for i, (t, s) in enumerate(zip(*rows, strict=True)):
      p, q = softmax(t), softmax(s)
      seen = p > 0
      # An exact zero of the student only comes of float64 underflow, where p is as small.
      total += np.sum(p[seen] * (np.log(p[seen]) - np.log(np.maximum(q[seen], 1e-300))))
      if field == "units" and action.units[i] == E:
        break
    expected[field] = total if use else 0.0
  found = kl(teacher, student, action)._asdict()
  itself = kl(student, student, action)
  for field in Arguments._fields:
    assert found[field] == pytest.approx(expected[field], rel=1e-4, abs=3e-5), field
    assert abs(itself._asdict()[field]) < 1e-5


def test_temperature():
  logits = jnp.array([1.0, 0.0, -1.0])
  legal = jnp.ones(3, bool)
  np.testing.assert_allclose(
    jax.nn.softmax(distributions.apply_mask(logits, legal, 1.0)), [.665241, .244728, .090031],
    atol=1e-6)
  np.testing.assert_allclose(
    jax.nn.softmax(distributions.apply_mask(logits, legal, 0.8)), [.730679, .209343, .059978],
    atol=1e-6)


def test_masks_stay_exact_under_temperature_and_bfloat16():
  logits = distributions.apply_mask(
    jnp.array([1.0, 2.0], jnp.bfloat16), jnp.array([True, False]), 0.5)
  assert logits.dtype == jnp.float32
  np.testing.assert_array_equal(logits, [2.0, -1e9])
  assert int(distributions.num_legal(logits)) == 1


def test_hand_worked_categorical():
  logits = jnp.array([0.0, jnp.log(3.0), distributions.NEGATIVE])
  assert float(distributions.categorical_log_prob(logits, jnp.array(1))) == pytest.approx(
    np.log(0.75), abs=1e-6)
  # H(1/4, 3/4) = 0.562335 nats, over log 2.
  assert float(distributions.categorical_entropy(logits)) == pytest.approx(0.811278, abs=1e-6)
  uniform = jnp.array([0.0, 0.0, distributions.NEGATIVE])
  assert float(distributions.categorical_entropy(uniform)) == pytest.approx(1.0, abs=1e-6)
  # KL((1/4, 3/4) || (1/2, 1/2)) = log 2 - 0.562335.
  assert float(distributions.categorical_kl(logits, uniform)) == pytest.approx(0.130812, abs=1e-6)


def test_kl_applies_the_students_mask_to_the_teacher():
  teacher = jnp.array([0.0, jnp.log(3.0), 5.0])
  student = jnp.array([0.0, 0.0, distributions.NEGATIVE])
  assert float(distributions.categorical_kl(teacher, student)) == pytest.approx(0.130812, abs=1e-6)


def test_gradients_equal_their_closed_forms():
  logits = jnp.array([0.3, -1.0, distributions.NEGATIVE, 2.0])
  teacher = jnp.array([1.0, 0.0, distributions.NEGATIVE, 0.0])
  p, q = np.array(jax.nn.softmax(logits)), np.array(jax.nn.softmax(teacher))
  one_hot = np.array([0, 1, 0, 0])
  np.testing.assert_allclose(
    jax.grad(lambda x: distributions.categorical_log_prob(x, jnp.array(1)))(logits),
    one_hot - p, atol=1e-6)
  np.testing.assert_allclose(
    jax.grad(lambda x: distributions.categorical_kl(teacher, x))(logits), p - q, atol=1e-6)
  legal = np.where(p > 0, np.log(np.where(p > 0, p, 1.0)), 0.0)
  np.testing.assert_allclose(
    jax.grad(distributions.categorical_entropy)(logits),
    -p * (legal - np.sum(p * legal)) / np.log(3), atol=1e-6)


@pytest.mark.parametrize("name", ("one", "none", "far"))
def test_edges_are_finite_in_value_and_gradient(name):
  logits = {
    "one": jnp.array([distributions.NEGATIVE, 3.0, distributions.NEGATIVE]),
    "none": jnp.full(3, distributions.NEGATIVE),
    "far": jnp.array([1e4, -1e4, 0.0])}[name]
  functions = (
    lambda x: distributions.categorical_log_prob(x, jnp.array(0)),
    distributions.categorical_entropy,
    lambda x: distributions.categorical_kl(x, jnp.zeros(3)),
    lambda x: distributions.categorical_kl(jnp.zeros(3), x))
  for function in functions:
    value, gradient = jax.value_and_grad(function)(logits)
    assert np.isfinite(value) and np.isfinite(gradient).all()
  assert float(distributions.categorical_entropy(logits)) == 0.0


def test_labels_of_any_value_are_finite():
  logits = random_logits(0, 1.0, 0.5)
  for value in (-5, 10_000):
    action = Action(*(np.full_like(x, value, np.int32) for x in random_action(0, 0, logits)))
    for values in (log_prob(logits, action), entropy(logits, action), kl(logits, logits, action)):
      assert np.isfinite(jax.tree.leaves(values)).all()
    assert not is_legal(logits, action).function


def test_unused_arguments_are_zero_for_every_function_type():
  logits = random_logits(1, 1.0, 0.0)
  for function in FUNCTION_OF_TYPE.values():
    action = random_action(1, function, logits)
    for values in (log_prob(logits, action), entropy(logits, action)):
      used = vocabulary.ARGUMENT_TABLE[function]
      np.testing.assert_array_equal(np.array(values) != 0.0, used)


def test_executed_picks():
  for units, expected in (
      ([1, 2, 6, 6], [1, 1, 1, 0]), ([6, 6, 6, 6], [1, 0, 0, 0]), ([1, 2, 3, 4], [1, 1, 1, 1]),
      ([1, 6, 2, 3], [1, 1, 0, 0])):
    np.testing.assert_array_equal(distributions.executed_picks(jnp.array(units), 6), expected)


def test_sampling_frequencies_are_the_probabilities():
  logits = jnp.array([1.0, distributions.NEGATIVE, 0.0, -1.0, 2.0])
  draws = 20_000
  keys = jax.random.split(jax.random.key(3), draws)
  samples = jax.vmap(distributions.sample, (0, None))(keys, logits)
  frequencies = np.bincount(samples, minlength=5) / draws
  p = np.array(jax.nn.softmax(logits))
  assert frequencies[1] == 0.0
  # Four standard deviations of a binomial proportion.
  assert (abs(frequencies - p) <= 4 * np.sqrt(p * (1 - p) / draws)).all()
  assert int(distributions.mode(logits)) == 4


def test_sampling_by_rows_gives_the_same_frequencies():
  logits = jnp.array([1.0, distributions.NEGATIVE, 0.0, -1.0, 2.0, 0.5])
  logits = jnp.concatenate([logits, jnp.full(3, distributions.NEGATIVE)])  # a row without choices
  draws = 20_000
  samples = jax.vmap(distributions.sample_by_rows, (0, None, None))(
    jax.random.split(jax.random.key(4), draws), logits, 3)
  frequencies = np.bincount(samples, minlength=9) / draws
  p = np.array(jax.nn.softmax(logits))
  assert (frequencies[p == 0] == 0).all()
  assert (abs(frequencies - p) <= 4 * np.sqrt(p * (1 - p) / draws)).all()


def test_legal_functions():
  available = jnp.zeros(5, bool).at[3].set(True)
  np.testing.assert_array_equal(
    distributions.legal_functions(available, masked=True), [1, 0, 0, 1, 0])
  assert distributions.legal_functions(available, masked=False).all()


def test_legal_delays():
  legal = distributions.legal_delays()
  assert legal.shape == (128,) and not legal[0] and legal[1:].all()


def test_legal_picks():
  units = jnp.array([True, True, False])
  none = jnp.zeros(3, bool)
  yes, no = jnp.bool_(True), jnp.bool_(False)
  picks = distributions.legal_picks
  np.testing.assert_array_equal(picks(units, none, yes, no), [1, 1, 0, 0])
  np.testing.assert_array_equal(picks(units, none.at[1].set(True), no, no), [1, 0, 0, 1])
  np.testing.assert_array_equal(picks(units, none, no, yes), [0, 0, 0, 1])
  # All taken: the end is all that is left. None to take: it is all there ever was.
  np.testing.assert_array_equal(picks(units, units, no, no), [0, 0, 0, 1])
  np.testing.assert_array_equal(picks(none, none, yes, no), [0, 0, 0, 1])


def test_legal_units_by_rule():
  types_ = vocabulary.UNIT_TYPES
  marine, scv = types_.index("Marine"), types_.index("SCV")
  function = vocabulary.FUNCTIONS.index("Build_Barracks_pt")
  entities = np.zeros((5, types.NUM_ENTITY_COLUMNS), np.int16)
  # An own marine, an own SCV, an enemy SCV, an own SCV past the count of existing rows.
  for row, (unit_type, alliance) in enumerate(((marine, 1), (scv, 1), (scv, 4), (scv, 1))):
    entities[row, COLUMN["unit_type"]], entities[row, COLUMN["alliance"]] = unit_type, alliance

  def legal(rule, function=function, entities=entities, count=3):
    return np.array(distributions.legal_units(
      jnp.asarray(entities), jnp.int16(count), jnp.int16(function), rule)).astype(int).tolist()

  assert legal("existing") == [1, 1, 1, 0, 0]
  assert legal("own") == [1, 1, 0, 0, 0]
  assert legal("capable") == [0, 1, 0, 0, 0]
  # No own unit can train a marine: all own ones. None is owned: all that exist.
  assert legal("capable", vocabulary.FUNCTIONS.index("Train_Marine_quick")) == [1, 1, 0, 0, 0]
  enemies = entities.copy()
  enemies[:, COLUMN["alliance"]] = 4
  assert legal("capable", entities=enemies) == legal("own", entities=enemies) == [1, 1, 1, 0, 0]
  assert legal("capable", count=0) == [0, 0, 0, 0, 0]
  with pytest.raises(ValueError, match="'any'.*\"existing\", \"own\" or \"capable\""):
    legal("any")


@pytest.mark.parametrize("column, value", [
  ("is_in_cargo", 1), ("display_type", 4), ("unit_type", vocabulary.EFFECT_TYPE)])
def test_own_rows_that_take_no_commands_are_not_legal_units(column, value):
  """Passengers, ordered structures and own effects. UnloadAllAt names no executors: all types."""
  entities = np.zeros((3, types.NUM_ENTITY_COLUMNS), np.int16)
  entities[:, COLUMN["unit_type"]] = vocabulary.UNIT_TYPES.index("Medivac")
  entities[:, COLUMN["alliance"]], entities[:, COLUMN["display_type"]] = 1, 1
  entities[1, COLUMN[column]] = value
  for name in ("UnloadAllAt_pt", "Attack_pt", "Train_Marine_quick"):  # the last: none can
    for rule, expected in (("existing", [1, 1, 1]), ("own", [1, 0, 1]), ("capable", [1, 0, 1])):
      found = distributions.legal_units(
        jnp.asarray(entities), jnp.int16(3), jnp.int16(vocabulary.FUNCTIONS.index(name)), rule)
      assert found.astype(int).tolist() == expected


def test_legal_targets():
  entities = np.zeros((5, NUM_ENTITY_COLUMNS), np.int16)
  entities[:, COLUMN["alliance"]] = [4, 4, 1, 4, 4]
  entities[:, COLUMN["is_on_screen"]] = [0, 1, 0, 1, 0]

  def legal(name, count=4, on_screen=True, entities=entities):
    function = jnp.int16(vocabulary.FUNCTIONS.index(name))
    return np.asarray(distributions.legal_targets(
      jnp.asarray(entities), jnp.int16(count), function, on_screen)).astype(int).tolist()

  assert legal("Attack_unit", on_screen=False) == [1, 1, 1, 1, 0]
  assert legal("Attack_unit") == [0, 1, 1, 1, 0]  # on screen, or own
  assert legal("Move_unit") == [1, 1, 1, 1, 0]  # by the small map too
  assert legal("Attack_unit", count=1) == [1, 0, 0, 0, 0]  # nothing near: all that exist
  assert legal("Attack_unit", count=0) == legal("Move_unit", count=0) == [1, 0, 0, 0, 0]


def test_legal_locations():
  camera = jnp.array([64, 0, 192, 128], jnp.int16)  # cells 1 and 2 of the upper half, of 4 x 4

  def legal(name, camera=camera, on_screen=True):
    function = jnp.int16(vocabulary.FUNCTIONS.index(name))
    return np.asarray(distributions.legal_locations(camera, function, 4, on_screen)).reshape(4, 4)

  shown = np.zeros((4, 4), bool)
  shown[:2, 1:3] = True
  np.testing.assert_array_equal(legal("Build_Barracks_pt"), shown)
  assert legal("Attack_pt").all() and legal("Build_Barracks_pt", on_screen=False).all()
  assert legal("Build_Barracks_pt", camera=jnp.zeros(4, jnp.int16)).all()  # no camera
