"""The objectives against a float64 twin, and what must hold for any policy."""

import types as python_types
from typing import NamedTuple

import jax
import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.agent.vocabulary import Arguments
from starleague.learner import RLWeights, SLWeights, rl_loss, sl_loss
from starleague.learner.objective import GROUPS
from tests.learner import numpy_twins as twins

T, B, E, K, L = 5, 2, 3, 2, 2
FEATURES = 4
SIZES = Arguments(vocabulary.NUM_FUNCTIONS, types.NUM_DELAYS, 2, 3, K * (E + 1), E, L * L)
CONFIG = python_types.SimpleNamespace(
  max_entities=E, map_size=2, max_selected=K, core_layers=1, core_size=2)


class Output(NamedTuple):
  logits: Arguments
  baselines: jax.Array
  state: types.CoreState


class LinearPolicy:
  """Logits and values linear in `player`; the state's first number shifts the first value."""

  def init(self, seed):
    rng = np.random.default_rng(seed)
    heads = {field: rng.normal(size=(FEATURES, size)).astype(np.float32)
             for field, size in zip(Arguments._fields, SIZES, strict=True)}
    return {"heads": heads, "values": rng.normal(size=(FEATURES, 5)).astype(np.float32)}

  def unroll(self, params, trajectory):
    features = trajectory.steps.observation.player[:, :FEATURES] / 100.0
    logits = {field: features @ w for field, w in params["heads"].items()}
    logits["units"] = logits["units"].reshape(-1, K, E + 1)
    values = features @ params["values"]
    values = values.at[:, 0].add(trajectory.initial_state.hidden[0, 0])
    return Output(Arguments(**logits), values, trajectory.initial_state)


POLICY = LinearPolicy()


def make_batch(seed, batch_size=B):
  """Random trajectories: some games end, some steps fill, some pseudo-rewards are off."""
  rng = np.random.default_rng(seed)
  spec = types.trajectory_spec(CONFIG, T)
  steps = jax.tree.map(
    lambda s: np.zeros((T + 1, batch_size, *s.shape[1:]), s.dtype), spec.steps)
  shape = (T + 1, batch_size)
  observation = steps.observation._replace(
    player=rng.integers(-100, 100, (*shape, 10)).astype(np.int32),
    game_loop=rng.integers(0, 10_000, shape).astype(np.int32),
    statistics=steps.observation.statistics._replace(
      units=np.broadcast_to(
        rng.random(batch_size)[:, None] < 0.5, (*shape, vocabulary.NUM_UNIT_TYPES))))
  action = types.Action(
    function=rng.integers(0, vocabulary.NUM_FUNCTIONS, shape).astype(np.int16),
    delay=rng.integers(1, 128, shape).astype(np.int16),
    queued=rng.integers(0, 2, shape).astype(np.uint8),
    repeat=rng.integers(0, 3, shape).astype(np.uint8),
    units=rng.integers(0, E + 1, (*shape, K)).astype(np.int16),
    target_unit=rng.integers(0, E, shape).astype(np.int16),
    location=rng.integers(0, L * L, shape).astype(np.int32))
  steps = steps._replace(
    observation=observation, action=action,
    log_prob=Arguments(*(rng.normal(-2, 1, shape).astype(np.float32) for _ in SIZES)),
    reward=rng.normal(size=(*shape, 5)).astype(np.float32),
    discount=(rng.random(shape) < 0.8).astype(np.float32),
    pseudo_active=rng.random((*shape, 4)) < 0.5,
    weight=(rng.random(shape) < 0.8).astype(np.float32))
  state = jax.tree.map(
    lambda s: rng.normal(size=(batch_size, *s.shape)).astype(np.float32), spec.initial_state)
  return types.Trajectory(steps, state)


# The twin. What is learnt is `params`; targets, advantages and ratios are `frozen`'s, which is what
# stopping gradients means: the twin's derivative by `params` is the objective's gradient.


def twin_unroll(params, batch):
  features = batch.steps.observation.player[..., :FEATURES] / 100.0
  logits = {name: features @ np.asarray(w, np.float64) for name, w in params["heads"].items()}
  logits["units"] = logits["units"].reshape(T + 1, -1, K, E + 1)
  values = features @ np.asarray(params["values"], np.float64)
  values[..., 0] += batch.initial_state.hidden[:, 0, 0]
  return logits, values


def picks(units):
  """How many picks were made, the end token's with them."""
  ends = np.flatnonzero(units == E)
  return ends[0] + 1 if len(ends) else K


def one_step(name, label, function, *logits):
  """`function(logits..., label)` of one argument of one step; of units, summed over picks."""
  if name != "units":
    return function(*logits, label)
  return sum(function(*(x[k] for x in logits), label[k]) for k in range(picks(label)))


def twin_log_prob(logits, label):
  return twins.log_softmax(logits)[label]


def twin_rl_terms(weights, params, frozen, teacher, batch):
  """Each term of the loss, by the name of its metric."""
  steps, size = batch.steps, batch.steps.weight.shape[1]
  logits, values = twin_unroll(params, batch)
  frozen_logits, frozen_values = twin_unroll(frozen, batch)
  teacher_logits, _ = twin_unroll(teacher, batch)
  terms = dict.fromkeys(
    [f"value/{name}" for name in types.REWARDS]
    + [f"{kind}/{name}" for kind in ("policy", "upgo") for name in Arguments._fields]
    + ["loss/entropy", "loss/teacher_kl", "loss/action_type_kl"], 0.0)
  for b in range(size):
    weight = np.float64(steps.weight[:-1, b]) / (T * size)
    g, r = np.float64(steps.discount[:-1, b]), np.float64(steps.reward[:-1, b])
    # Steps that fill use nothing: within a trace their ratio is 1.
    uses = vocabulary.ARGUMENT_TABLE[steps.action.function[:-1, b]] & (weight > 0)[:, None]
    ratios, log_probs = {}, {}
    for group, names in GROUPS.items():
      log_ratio = np.zeros(T)
      for name in names:
        used = uses[:, Arguments._fields.index(name)]
        label = getattr(steps.action, name)
        log_probs[name] = np.array([
          used[t] * one_step(name, label[t, b], twin_log_prob, logits[name][t, b])
          for t in range(T)])
        now = np.array([
          one_step(name, label[t, b], twin_log_prob, frozen_logits[name][t, b]) for t in range(T)])
        log_ratio += used * (now - getattr(steps.log_prob, name)[:-1, b])
      ratios[group] = np.exp(log_ratio)
    for k, reward in enumerate(types.REWARDS):
      v, live = frozen_values[:, b, k], values[:-1, b, k]
      target = twins.lambda_returns(v[1:], r[:, k], g, weights.td_lambda)
      terms[f"value/{reward}"] += weights.baseline[k] * 0.5 * weight @ (target - live) ** 2
      active = 1.0 if k == 0 else np.float64(steps.pseudo_active[:-1, b, k - 1])
      for group, names in GROUPS.items():
        _, advantage = twins.vtrace(v[:-1], v[-1], r[:, k], g, ratios[group])
        upgo = np.minimum(ratios[group], 1) * (twins.upgo(v[:-1], v[-1], r[:, k], g) - v[:-1])
        for name in names:
          scale = weight * active * log_probs[name]
          terms[f"policy/{name}"] -= weights.policy[k] * scale @ advantage
          terms[f"upgo/{name}"] -= weights.upgo[k] * scale @ upgo
    for t in range(T):
      seconds = steps.observation.game_loop[t, b] / 22.4
      early = seconds < 240 and steps.observation.statistics.units[t, b].any()
      for i, name in enumerate(Arguments._fields):
        if not uses[t, i]:
          continue
        label, student = getattr(steps.action, name)[t, b], logits[name][t, b]
        entropy = one_step(name, label, lambda x, _: twins.entropy(x), student)
        if name == "units":
          entropy /= picks(label)
        kl = one_step(
          name, label, lambda x, y, _: twins.kl(x, y), teacher_logits[name][t, b], student)
        terms["loss/entropy"] -= weights.entropy * weight[t] * entropy
        terms["loss/teacher_kl"] += weights.teacher_kl * weight[t] * kl
        if name == "function" and early:
          terms["loss/action_type_kl"] += weights.action_type_kl * weight[t] * kl
  return terms


def twin_sl_loss(params, batch):
  steps = batch.steps
  logits, _ = twin_unroll(params, batch)
  total = 0.0
  for t, b in np.ndindex(T, steps.weight.shape[1]):
    for i, name in enumerate(Arguments._fields):
      if vocabulary.ARGUMENT_TABLE[steps.action.function[t, b], i]:
        total -= steps.weight[t, b] * one_step(
          name, getattr(steps.action, name)[t, b], twin_log_prob, logits[name][t, b])
  squares = sum((np.float64(x) ** 2).sum() for x in jax.tree.leaves(params))
  return total / steps.weight[:-1].size + 1e-5 * 0.5 * squares


PUBLISHED = RLWeights()
# What a small run may leave out: the pseudo-rewards, the teacher.
WINLOSS_ALONE = RLWeights(
  policy=(1.0, 0, 0, 0, 0), baseline=(10.0, 0, 0, 0, 0), teacher_kl=0.0, action_type_kl=0.0)
PARAMS, TEACHER = POLICY.init(0), POLICY.init(1)


@jax.jit
def published(params, batch):
  return jax.value_and_grad(
    lambda p: rl_loss(POLICY, PUBLISHED, p, TEACHER, batch), has_aux=True)(params)


@jax.jit
def imitation(params, batch):
  return jax.value_and_grad(lambda p: sl_loss(POLICY, p, batch), has_aux=True)(params)


def replace_steps(batch, at, scrambled):
  """The batch with the steps `at` of another."""
  def swap(x, y):
    x = x.copy()
    x[at] = y[at]
    return x

  return batch._replace(steps=jax.tree.map(swap, batch.steps, scrambled.steps))


def assert_same(one, other, rtol=1e-5):
  for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
    np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-5)


# The RL objective.


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rl_twin(seed):
  batch = make_batch(seed)
  (loss, metrics), _ = published(PARAMS, batch)
  terms = twin_rl_terms(PUBLISHED, PARAMS, PARAMS, TEACHER, batch)
  for name, expected in terms.items():
    np.testing.assert_allclose(metrics[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)
  np.testing.assert_allclose(loss, sum(terms.values()), rtol=1e-5)
  assert metrics["loss/total"] == loss
  for kind in ("value", "policy", "upgo"):
    expected = sum(value for name, value in terms.items() if name.startswith(f"{kind}/"))
    np.testing.assert_allclose(metrics[f"loss/{kind}"], expected, rtol=1e-5, atol=1e-5)
  by_reward = sum(metrics[f"policy/{name}"] for name in types.REWARDS)
  np.testing.assert_allclose(by_reward, metrics["loss/policy"], rtol=1e-4)
  assert all(np.shape(x) == () and np.isfinite(x) for x in metrics.values())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rl_gradient_twin(seed):
  """Along a random direction, with targets, advantages, ratios and the teacher held fast."""
  batch = make_batch(seed)
  rng = np.random.default_rng(seed)
  direction = jax.tree.map(lambda x: rng.normal(size=x.shape), PARAMS)

  def along(step):
    params = jax.tree.map(lambda x, d: np.float64(x) + step * d, PARAMS, direction)
    return sum(twin_rl_terms(PUBLISHED, params, PARAMS, TEACHER, batch).values())

  expected = (along(1e-5) - along(-1e-5)) / 2e-5
  _, gradient = published(PARAMS, batch)
  actual = sum(jax.tree.leaves(jax.tree.map(
    lambda g, d: (np.float64(g) * d).sum(), gradient, direction)))
  np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_parts_of_a_batch_average_to_the_whole():
  """So `pmean` over devices is one device's result; steps that fill are spread unevenly here."""
  batch = make_batch(3)
  batch.steps.weight[2:, 1] = 0.0
  for function in (published, imitation):
    (loss, _), gradient = function(PARAMS, batch)
    parts = [
      function(PARAMS, types.Trajectory(
        jax.tree.map(lambda x, b=b: x[:, b:b + 1], batch.steps),
        jax.tree.map(lambda x, b=b: x[b:b + 1], batch.initial_state))) for b in range(B)]
    assert_same(loss, np.mean([part[0][0] for part in parts]))
    assert_same(gradient, jax.tree.map(lambda *x: np.mean(x, 0), *(part[1] for part in parts)),
                rtol=1e-4)


def test_steps_that_fill_do_nothing():
  batch = make_batch(4)
  batch.steps.weight[:] = 1.0
  batch.steps.weight[3:] = 0.0
  batch.steps.discount[2] = 0.0
  scrambled = make_batch(5)
  scrambled.steps.weight[:] = 0.0
  other = replace_steps(batch, slice(3, None), scrambled)
  for function in (published, imitation):
    assert_same(function(PARAMS, batch), function(PARAMS, other))
  (_, metrics), _ = published(PARAMS, batch)
  assert metrics["learnt_steps"] == pytest.approx(3 / T)

  scrambled.steps.weight[:] = 0.0
  (loss, metrics), gradient = published(PARAMS, scrambled)
  assert loss == 0.0 and all(np.isfinite(x) for x in metrics.values())
  assert all((g == 0.0).all() for g in jax.tree.leaves(gradient))


def test_last_step_lends_its_value_alone():
  """Its reward among them, which the published pseudocode adds in."""
  batch, scrambled = make_batch(6), make_batch(7)
  same_view = scrambled._replace(steps=scrambled.steps._replace(
    observation=batch.steps.observation))
  expected = published(PARAMS, batch)
  assert_same(published(PARAMS, replace_steps(batch, -1, same_view)), expected)

  batch.steps.discount[-2] = 1.0  # the game goes on into the last step
  (before, _), _ = published(PARAMS, batch)
  (after, _), _ = published(PARAMS, replace_steps(batch, -1, scrambled))
  assert abs(after - before) > 1e-3


def test_ratio_is_one_on_policy():
  batch = make_batch(8)
  logits, _ = twin_unroll(PARAMS, batch)
  own = Arguments(*(
    np.array([[one_step(name, label[t, b], twin_log_prob, logits[name][t, b]) for b in range(B)]
              for t in range(T + 1)], np.float32)
    for name in Arguments._fields for label in [getattr(batch.steps.action, name)]))
  (_, metrics), _ = published(
    PARAMS, batch._replace(steps=batch.steps._replace(log_prob=own)))
  shifted = Arguments(*(x - 1.0 for x in own))  # likelier now: every ratio is clipped
  (_, clipped), _ = published(
    PARAMS, batch._replace(steps=batch.steps._replace(log_prob=shifted)))
  for group in ("function", "delay"):
    assert metrics[f"ratio/{group}"] == pytest.approx(1.0, abs=1e-5)
    assert clipped[f"ratio/{group}"] == 1.0 and clipped[f"clipped_fraction/{group}"] == 1.0
  assert metrics["ratio/others"] == pytest.approx(1.0, abs=1e-5)


def test_ratios_ignore_unused_arguments():
  """The published pseudocode's do not."""
  batch = make_batch(9)
  used = vocabulary.ARGUMENT_TABLE[batch.steps.action.function]  # [T + 1, B, 7]
  assert not used.all()
  log_prob = Arguments(*(
    np.where(used[..., i], x, -30.0).astype(np.float32)
    for i, x in enumerate(batch.steps.log_prob)))
  other = batch._replace(steps=batch.steps._replace(log_prob=log_prob))
  assert_same(published(PARAMS, batch), published(PARAMS, other), rtol=1e-6)


def test_pseudo_rewards_that_are_off_teach_their_value_alone():
  batch = make_batch(10)
  batch.steps.pseudo_active[:] = True
  (_, on), _ = published(PARAMS, batch)
  batch.steps.pseudo_active[:] = False
  (_, off), _ = published(PARAMS, batch)
  for name in types.PSEUDO_REWARDS:
    assert off[f"policy/{name}"] == 0.0 != on[f"policy/{name}"]
    assert off[f"value/{name}"] == on[f"value/{name}"] > 0.0
  assert off["policy/winloss"] == on["policy/winloss"] != 0.0


def test_action_type_kl_is_early_and_conditioned():
  """Before four minutes; the published pseudocode's mask is for after them."""
  batch = make_batch(11)
  batch.steps.weight[:] = 1.0

  def kl(game_loop, conditioned):
    batch.steps.observation.game_loop[:] = game_loop
    statistics = batch.steps.observation.statistics
    z = statistics._replace(
      units=np.zeros_like(statistics.units), upgrades=np.zeros_like(statistics.upgrades))
    z.upgrades[..., 3] = conditioned
    steps = batch.steps._replace(observation=batch.steps.observation._replace(statistics=z))
    (_, metrics), _ = published(PARAMS, batch._replace(steps=steps))
    return float(metrics["loss/action_type_kl"]), float(metrics["kl/function"])

  early, function = kl(5375, True)  # 239.96 s
  assert early == pytest.approx(0.1 * function, rel=1e-5) and early > 0.01
  assert kl(5376, True)[0] == 0.0  # 240 s
  assert kl(0, False)[0] == 0.0


class CountingPolicy(LinearPolicy):
  """Counts how often it is unrolled while a program is traced."""

  def __init__(self):
    self.unrolls = 0

  def unroll(self, params, trajectory):
    self.unrolls += 1
    return super().unroll(params, trajectory)


def test_terms_of_no_weight_are_left_out():
  batch = make_batch(12)
  policy = CountingPolicy()
  loss, metrics = jax.jit(lambda p: rl_loss(policy, WINLOSS_ALONE, p, None, batch))(PARAMS)
  assert policy.unrolls == 1  # the teacher is not unrolled
  terms = twin_rl_terms(WINLOSS_ALONE, PARAMS, PARAMS, TEACHER, batch)
  np.testing.assert_allclose(loss, sum(terms.values()), rtol=1e-5)
  assert {"value/winloss", "policy/winloss", "upgo/function"} <= metrics.keys()
  left_out = {"kl/", "build_order", "effects", "upgrades", "built_units"}
  assert not [name for name in metrics for part in left_out if part in name]

  nothing = RLWeights(policy=(0.0,) * 5, baseline=(0.0,) * 5, upgo=(0.0,) * 5, entropy=0.0,
                      teacher_kl=0.0, action_type_kl=0.0)
  assert rl_loss(policy, nothing, PARAMS, None, batch)[0] == 0.0


def test_a_teacher_that_is_wanted_and_missing():
  with pytest.raises(ValueError, match="teacher_params is None"):
    rl_loss(POLICY, PUBLISHED, PARAMS, None, make_batch(0))


def test_a_batch_needs_two_steps_and_whole_rewards():
  batch = make_batch(0)
  short = batch._replace(steps=jax.tree.map(lambda x: x[:1], batch.steps))
  with pytest.raises(ValueError, match="T at least 1"):
    sl_loss(POLICY, PARAMS, short)
  cut = batch._replace(steps=batch.steps._replace(reward=batch.steps.reward[..., :4]))
  with pytest.raises(AssertionError):
    rl_loss(POLICY, PUBLISHED, PARAMS, TEACHER, cut)


# The imitation objective.


@pytest.mark.parametrize("seed", [0, 1])
def test_sl_twin(seed):
  batch = make_batch(seed)
  (loss, metrics), gradient = imitation(PARAMS, batch)
  np.testing.assert_allclose(loss, twin_sl_loss(PARAMS, batch), rtol=1e-5)
  assert metrics["loss/total"] == loss
  assert all(metrics[f"illegal/{name}"] == 0.0 for name in Arguments._fields)
  rng = np.random.default_rng(seed)
  direction = jax.tree.map(lambda x: rng.normal(size=x.shape), PARAMS)
  ahead, behind = (
    twin_sl_loss(jax.tree.map(lambda x, d, s=s: np.float64(x) + s * d, PARAMS, direction), batch)
    for s in (1e-5, -1e-5))
  actual = sum(jax.tree.leaves(jax.tree.map(
    lambda g, d: (np.float64(g) * d).sum(), gradient, direction)))
  np.testing.assert_allclose(actual, (ahead - behind) / 2e-5, rtol=1e-4)


def test_sl_leaves_out_illegal_labels_and_says_how_many():
  batch = make_batch(2)
  batch.steps.weight[:] = 1.0
  batch.steps.action.delay[:3] = types.NUM_DELAYS  # one past the end
  (loss, metrics), gradient = imitation(PARAMS, batch)
  assert metrics["illegal/delay"] == pytest.approx(3 / T)
  assert metrics["illegal/function"] == 0.0
  without = make_batch(2)
  without.steps.weight[:] = 1.0
  (whole, clean), _ = imitation(PARAMS, without)
  delays = float(clean["cross_entropy/delay"] - metrics["cross_entropy/delay"])
  assert whole - loss == pytest.approx(delays, rel=1e-4) and delays > 0.0
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient))


def test_sl_accuracy():
  batch = make_batch(3)
  batch.steps.weight[:] = 1.0
  logits, _ = twin_unroll(PARAMS, batch)
  likeliest = {name: x.argmax(-1) for name, x in logits.items()}
  actions = {
    name: likeliest[name].astype(getattr(batch.steps.action, name).dtype)
    for name in ("delay", "queued", "units", "location")}
  actions["location"][::2] ^= 1  # wrong at every other step
  actions["function"] = np.full_like(
    batch.steps.action.function, vocabulary.FUNCTION_TYPES.index("raw_cmd_pt"))
  steps = batch.steps._replace(action=batch.steps.action._replace(**actions))
  (_, metrics), _ = imitation(PARAMS, batch._replace(steps=steps))
  assert metrics["accuracy/delay"] == metrics["accuracy/queued"] == 1.0
  assert metrics["accuracy/units"] == 1.0
  assert metrics["accuracy/location"] == pytest.approx(2 / 5)
  assert metrics["accuracy/target_unit"] == 0.0 == metrics["cross_entropy/target_unit"]  # unused


def test_sl_weights_cost_their_arguments():
  batch = make_batch(4)
  batch.steps.weight[:] = 1.0
  only_delay = SLWeights(arguments=Arguments(0, 9.0, 0, 0, 0, 0, 0), l2=0.0)
  loss, metrics = jax.jit(lambda p: sl_loss(POLICY, p, batch, only_delay))(PARAMS)
  assert loss == pytest.approx(9.0 * float(metrics["cross_entropy/delay"]), rel=1e-5)
  assert "loss/l2" not in metrics


# The weights.


def test_published_weights():
  assert PUBLISHED.policy == (1.0, 4.0, 6.0, 6.0, 6.0)
  assert PUBLISHED.baseline == (10.0, 1.0, 1.0, 1.0, 1.0)
  assert PUBLISHED.upgo == (1.0, 0.0, 0.0, 0.0, 0.0)
  assert (PUBLISHED.entropy, PUBLISHED.teacher_kl, PUBLISHED.action_type_kl) == (1e-4, 2e-3, 1e-1)
  assert (PUBLISHED.td_lambda, PUBLISHED.vtrace_lambda) == (0.8, 1.0)
  assert (PUBLISHED.clip_rho, PUBLISHED.clip_pg_rho) == (1.0, 1.0)
  assert hash(PUBLISHED) == hash(RLWeights()) and hash(SLWeights()) is not None  # static in jit


@pytest.mark.parametrize("bad, message", [
  ({"policy": (1.0, 2.0)}, "RLWeights.policy has 2 entries"),
  ({"entropy": -1.0}, "RLWeights.entropy is -1.0"),
  ({"upgo": (1.0, 0, 0, 0, float("nan"))}, "RLWeights.upgo is"),
  ({"td_lambda": 1.5}, "RLWeights.td_lambda is 1.5"),
])
def test_impossible_rl_weights_are_refused(bad, message):
  with pytest.raises(ValueError, match=message):
    RLWeights(**bad)


def test_impossible_sl_weights_are_refused():
  with pytest.raises(ValueError, match="l2 is -1"):
    SLWeights(l2=-1.0)
  with pytest.raises(ValueError, match="repeat is -2"):
    SLWeights(arguments=Arguments(1, 1, 1, -2, 1, 1, 1))
