"""A small policy, random batches, and the objectives in float64 numpy."""

import itertools
import types as python_types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.agent.vocabulary import Arguments
from starleague.learner import RLWeights, rl_loss, sl_loss, terms
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
    return {"heads": heads, "baselines": rng.normal(size=(FEATURES, 5)).astype(np.float32)}

  def unroll_batch(self, params, batch):
    features = batch.steps.observation.player[..., :FEATURES] / 100.0
    logits = {field: features @ w for field, w in params["heads"].items()}
    logits["units"] = logits["units"].reshape(*features.shape[:2], K, E + 1)
    values = jnp.asarray(features @ params["baselines"])
    values = values.at[..., 0].add(batch.initial_state.hidden[:, 0, 0])
    return Output(Arguments(**logits), values, batch.initial_state)


POLICY = LinearPolicy()


def make_batch(seed, batch_size=B):
  """Draws trajectories with episode ends, padding steps and inactive pseudo-rewards."""
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


# The twin. `params` are learnt; targets, advantages and ratios are computed from `frozen`, as
# gradients stop there: the twin's derivative by `params` is the objective's gradient.


def twin_unroll(params, batch):
  features = batch.steps.observation.player[..., :FEATURES] / 100.0
  logits = {name: features @ np.asarray(w, np.float64) for name, w in params["heads"].items()}
  logits["units"] = logits["units"].reshape(T + 1, -1, K, E + 1)
  values = features @ np.asarray(params["baselines"], np.float64)
  values[..., 0] += batch.initial_state.hidden[:, 0, 0]
  return logits, values


def picks(units):
  """Returns the number of picks, the end token included."""
  ends = np.flatnonzero(units == E)
  return ends[0] + 1 if len(ends) else K


def one_step(name, label, function, *logits):
  """Applies `function(logits..., label)` to one argument of a step; for units, sums over picks."""
  if name != "units":
    return function(*logits, label)
  return sum(function(*(x[k] for x in logits), label[k]) for k in range(picks(label)))


def twin_log_prob(logits, label):
  return twins.log_softmax(logits)[label]


def _is_early(weights, observation, t, b):
  """Whether the KL of the function counts: early in a game with units, effects or upgrades of z."""
  z, seconds = observation.statistics, observation.game_loop[t, b] / 22.4
  return seconds < weights.function_kl_seconds and any(
    part[t, b].any() for part in (z.units, z.effects, z.upgrades))


def _add_divergences(terms, weights, steps, b, weight, uses, logits, teacher_logits):
  """Adds the entropy and the KL to the teacher of the steps of one sequence."""
  for t, (i, name) in itertools.product(range(T), enumerate(Arguments._fields)):
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
    if name == "function" and _is_early(weights, steps.observation, t, b):
      terms["loss/function_kl"] += weights.function_kl * weight[t] * kl


def twin_rl_terms(weights, params, frozen, teacher, batch):
  """Computes each term of the loss, keyed by the name of its metric."""
  steps, size = batch.steps, batch.steps.weight.shape[1]
  logits, values = twin_unroll(params, batch)
  frozen_logits, frozen_values = twin_unroll(frozen, batch)
  teacher_logits, _ = twin_unroll(teacher, batch)
  terms = dict.fromkeys(
    [f"value/{name}" for name in types.REWARDS]
    + [f"{kind}/{name}" for kind in ("policy", "upgo") for name in Arguments._fields]
    + ["loss/entropy", "loss/teacher_kl", "loss/function_kl"], 0.0)
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
        _, advantage = twins.vtrace(
          v[:-1], v[-1], r[:, k], g, ratios[group], weights.clip_rho, 1.0, weights.clip_pg_rho,
          weights.vtrace_lambda)
        gains = twins.upgo(v[:-1], v[-1], r[:, k], g) - v[:-1]
        upgo = np.minimum(ratios[group], weights.clip_pg_rho) * gains
        for name in names:
          scale = weight * active * log_probs[name]
          terms[f"policy/{name}"] -= weights.policy[k] * scale @ advantage
          terms[f"upgo/{name}"] -= weights.upgo[k] * scale @ upgo
    _add_divergences(terms, weights, steps, b, weight, uses, logits, teacher_logits)
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
  squares = sum((np.float64(x) ** 2).sum() for x in params["heads"].values())
  return total / steps.weight[:-1].size + 1e-5 * 0.5 * squares


PUBLISHED = RLWeights()
# A small run without pseudo-rewards and teacher.
WINLOSS_ALONE = RLWeights(
  policy=(1.0, 0, 0, 0, 0), baseline=(10.0, 0, 0, 0, 0), teacher_kl=0.0, function_kl=0.0)
PARAMS, TEACHER = POLICY.init(0), POLICY.init(1)


@jax.jit
def published(params, batch):
  return jax.value_and_grad(
    lambda p: rl_loss(POLICY, PUBLISHED, p, TEACHER, batch), has_aux=True)(params)


@jax.jit
def imitation_gradient(params, batch):
  return jax.value_and_grad(lambda p: sl_loss(POLICY, p, batch), has_aux=True)(params)


def means(metrics):
  """Returns the metrics of an objective as they are recorded."""
  return terms.measured({name: float(value) for name, value in metrics.items()})


def replace_steps(batch, at, scrambled):
  """Returns the batch with its steps `at` replaced by those of another."""
  def swap(x, y):
    x = x.copy()
    x[at] = y[at]
    return x

  return batch._replace(steps=jax.tree.map(swap, batch.steps, scrambled.steps))


def assert_same(one, other, rtol=1e-5):
  for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
    np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-5)
