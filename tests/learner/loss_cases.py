"""Cases that compare each loss with its float64 numpy twin and with rlax where rlax has it.

    python -m tests.learner.loss_cases        # largest errors over 1,000 random inputs

`losses/test_twins.py` draws such inputs with hypothesis and requires errors below 1e-5.
"""

import argparse
import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.learner import losses
from tests.learner import numpy_twins as twins
from tests.learner.rlax_without_tensorflow import rlax

T, N, ACTIONS, TASKS = 20, 3, 6, 3
BOUND = 1e-5


class Case(NamedTuple):
  """One comparison. All functions take the drawn inputs and return one array or a tuple."""

  name: str  # of a function of `starleague.learner.losses`, then its variant
  ours: Callable
  twin: Callable
  draw: Callable[[np.random.Generator], tuple]  # float32 and integers
  rlax: Callable | None = None  # rlax's function, or an equal expression of rlax's


def error(found: Any, expected: Any) -> float:
  """Returns the largest of |found - expected| / max(1, |expected|)."""
  found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
  worst = 0.0
  for x, y in zip(found, expected, strict=True):
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    assert x.shape == y.shape, (x.shape, y.shape)
    worst = max(worst, float((np.abs(x - y) / np.maximum(1.0, np.abs(y))).max(initial=0.0)))
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
      return float("inf")
  return worst


# Inputs.


def f32(x) -> np.ndarray:
  return np.asarray(x, np.float32)


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
  return f32(scale * rng.normal(size=shape))


def scale_of(rng: np.random.Generator) -> float:
  return float(rng.choice([0.1, 1.0, 3.0]))


def trajectory(rng: np.random.Generator) -> tuple:
  """Draws v_tm1, v_t, r_t, discount_t, rho_tm1 with sparse rewards and episode ends."""
  scale = scale_of(rng)
  v = normal(rng, T + 1)
  r = f32(scale * rng.normal(size=T) * (rng.random(T) < 0.5))
  g = f32(rng.choice([1.0, 0.9]) * (rng.random(T) < 0.9))
  return v[:-1], v[1:], r, g, f32(np.exp(scale * rng.normal(size=T)))


def without_ratio(rng: np.random.Generator) -> tuple:
  return trajectory(rng)[:4]


def with_lambda(rng: np.random.Generator) -> tuple:
  return *without_ratio(rng), f32(rng.random())


def two_logits(rng: np.random.Generator) -> tuple:
  return tuple(normal(rng, 2, T, ACTIONS, scale=scale_of(rng)))


def logits_and_choice(rng: np.random.Generator) -> tuple:
  return normal(rng, T, ACTIONS, scale=scale_of(rng)), rng.integers(0, ACTIONS, T)


def mask(rng: np.random.Generator, *shape: int) -> np.ndarray:
  return rng.random(shape) < 0.7


def group(rng: np.random.Generator) -> tuple:
  pi = -np.abs(normal(rng, N, T, scale=scale_of(rng)))
  return pi, f32(pi + normal(rng, N, T, scale=0.5)), mask(rng, N, T)


def labelled(rng: np.random.Generator) -> tuple:
  logits, labels = logits_and_choice(rng)
  logits[rng.random((T, ACTIONS)) < 0.2] = -1e9
  logits[:, 0] = 0.0  # one choice is always legal
  return logits, labels, mask(rng, T)


def imitated(rng: np.random.Generator) -> tuple:
  return -np.abs(normal(rng, T)), normal(rng, T), normal(rng, T, scale=scale_of(rng))


def chosen(rng: np.random.Generator) -> tuple:
  return normal(rng, T, ACTIONS, scale=scale_of(rng)), *logits_and_choice(rng)


def for_tasks(rng: np.random.Generator) -> tuple:
  return (normal(rng, T, ACTIONS), normal(rng, T, TASKS, ACTIONS), rng.integers(0, TASKS, T))


def popart_inputs(rng: np.random.Generator) -> tuple:
  shift, scale = normal(rng, TASKS), f32(np.exp(0.5 * rng.normal(size=TASKS)))
  return (normal(rng, 4, TASKS), normal(rng, TASKS), shift, scale, f32(scale**2 + shift**2),
          normal(rng, T, scale=10.0), rng.integers(0, TASKS - 1, T))


def one_target_a_task(rng: np.random.Generator) -> tuple:
  return *popart_inputs(rng)[:5], normal(rng, TASKS, scale=10.0), rng.permutation(TASKS)


def q_values(rng: np.random.Generator) -> tuple:
  q, online, target = normal(rng, 3, T, ACTIONS, scale=scale_of(rng))
  return (q, rng.integers(0, ACTIONS, T), online, target, normal(rng, T),
          f32(0.997 * (rng.random(T) < 0.9)))


# Functions under comparison.


def popart_ours(w, b, shift, scale, moment, targets, tasks, step_size):
  after, new = losses.popart_update(
    {"w": w, "b": b}, losses.PopArtState(shift, scale, moment), targets, tasks, step_size)
  return after["w"], after["b"], *new


def popart_outputs(w, b, shift, scale, moment, targets, tasks):
  """Returns unnormalised outputs after an update with a large step size."""
  w, b, *new = popart_ours(w, b, shift, scale, moment, targets, tasks, 0.1)
  return losses.popart_unnormalise(losses.PopArtState(*new), w.sum(0) + b, jnp.arange(TASKS))


def popart_rlax(w, b, shift, scale, moment, targets, tasks):
  _, update = rlax.popart(TASKS, step_size=3e-4, scale_lb=1e-4, scale_ub=1e6)
  state = rlax.PopArtState(shift, scale, moment)
  after, new = update({"w": w, "b": b}, state, targets, tasks)
  return after["w"], after["b"], new.shift, new.scale, new.second_moment


def expected_coma_gradient(q, logits, action):
  """Returns the gradient with respect to logits, averaged over the policy's actions."""
  del action

  def loss(logits):
    each = jax.vmap(lambda u: losses.coma_loss(q, logits, jnp.full(T, u)), out_axes=-1)(
      jnp.arange(ACTIONS))
    return (jax.lax.stop_gradient(jax.nn.softmax(logits)) * each).sum()

  return jax.grad(loss)(logits)


def expected_coma_twin(q, logits, action):
  del action
  pi = np.exp(twins.log_softmax(logits))
  return -pi * twins.coma(q, pi)  # gradient of the softmax; the mean advantage is 0


def qpg_gradient(q, logits, action):
  del action
  return T * jax.grad(lambda x: rlax.qpg_loss(x, q))(logits)


def vtrace_cases() -> list[Case]:
  """V-trace with the published constants and with random ones; ratios; policy gradient."""
  def options(rng):
    return *trajectory(rng), f32(rng.random()), f32(rng.uniform(0.5, 3)), f32(rng.uniform(0.5, 3))

  def twin(v_tm1, v_t, r, g, rho, lambda_=1.0, clip_rho=1.0, clip_pg_rho=1.0):
    return twins.vtrace(v_tm1, v_t[-1], r, g, rho, clip_rho, 1.0, clip_pg_rho, lambda_)

  def theirs(*inputs):
    return rlax.vtrace_td_error_and_advantage(*inputs)

  return [
    Case("vtrace_advantages", losses.vtrace_advantages, lambda *x: twin(*x)[1], trajectory,
         lambda *x: theirs(*x).pg_advantage),
    Case("vtrace_advantages, any lambda and clips", losses.vtrace_advantages,
         lambda *x: twin(*x)[1], options, lambda *x: theirs(*x).pg_advantage),
    Case("vtrace_targets", losses.vtrace_targets, lambda *x: twin(*x)[0], trajectory,
         lambda *x: theirs(*x).errors + x[0]),
    Case("joint_ratio", lambda pi, mu, used: losses.joint_ratio(list(pi), list(mu), list(used)),
         twins.joint_ratio, group),
    Case("joint_ratio, one argument of logits",
         lambda x, y, a: losses.joint_ratio(
           jnp.take_along_axis(jax.nn.log_softmax(x), a[:, None], -1)[:, 0],
           jnp.take_along_axis(jax.nn.log_softmax(y), a[:, None], -1)[:, 0], jnp.ones(T)),
         lambda x, y, a: np.exp(twins.log_prob(x, a) - twins.log_prob(y, a)),
         lambda rng: (*two_logits(rng), rng.integers(0, ACTIONS, T)),
         rlax.categorical_importance_sampling_ratios),
    Case("policy_gradient_loss", losses.policy_gradient_loss, twins.policy_gradient,
         lambda rng: (-np.abs(normal(rng, T)), normal(rng, T), mask(rng, T))),
    Case("policy_gradient_loss, mean over logits",
         lambda x, a, advantage: losses.policy_gradient_loss(
           jnp.take_along_axis(jax.nn.log_softmax(x), a[:, None], -1)[:, 0], advantage).mean(),
         lambda x, a, advantage: twins.policy_gradient(twins.log_prob(x, a), advantage, 1).mean(),
         lambda rng: (*logits_and_choice(rng), normal(rng, T)),
         lambda x, a, advantage: rlax.policy_gradient_loss(x, a, advantage, jnp.ones(T))),
  ]


def value_cases() -> list[Case]:
  """UPGO, TD(lambda), emphatic weights and explained variance."""
  def returns(v_tm1, v_t, r, g, lambda_):
    del v_tm1
    return losses.td_lambda_returns(v_t, r, g, lambda_)

  return [
    Case("upgo_returns", losses.upgo_returns,
         lambda v_tm1, v_t, r, g: twins.upgo(*(np.float64(x) for x in (v_tm1, v_t[-1], r, g))),
         without_ratio),
    Case("td_lambda_returns", returns,
         lambda v_tm1, v_t, r, g, lambda_: twins.lambda_returns(v_t, r, g, np.float64(lambda_)),
         with_lambda, lambda v_tm1, v_t, r, g, lambda_: rlax.lambda_returns(r, g, v_t, lambda_)),
    Case("td_lambda_loss", losses.td_lambda_loss,
         lambda v_tm1, v_t, r, g, lambda_: twins.td_loss(v_tm1, v_t[-1], r, g, np.float64(lambda_)),
         with_lambda,
         lambda v_tm1, v_t, r, g, lambda_: jnp.square(
           rlax.td_lambda(v_tm1, r, g, v_t, lambda_)) / 2),
    Case("emphatic_weights", lambda g, rho: losses.emphatic_weights(
      g, rho, losses.emphatic_init(N))[0], lambda g, rho: twins.emphatic(g, rho, N),
         lambda rng: trajectory(rng)[3:]),
    Case("explained_variance", losses.explained_variance, twins.explained_variance,
         lambda rng: (normal(rng, T), normal(rng, T), f32(mask(rng, T)))),
  ]


def policy_cases() -> list[Case]:
  """Entropy, KL to the teacher, supervised learning, self-imitation and COMA."""
  def theirs_entropy(logits):
    return -rlax.entropy_loss(logits, jnp.ones(T)) / jnp.log(ACTIONS)

  return [
    Case("action_entropy", losses.action_entropy, twins.entropy, lambda rng: two_logits(rng)[:1],
         lambda logits: rlax.softmax().entropy(logits) / jnp.log(ACTIONS)),
    Case("entropy_loss, mean over logits",
         lambda x: -losses.entropy_loss(losses.action_entropy(x)).mean(),
         lambda x: twins.entropy(x).mean(), lambda rng: two_logits(rng)[:1], theirs_entropy),
    Case("distillation_loss", losses.distillation_loss, twins.kl, two_logits,
         rlax.categorical_kl_divergence),
    Case("early_game", losses.early_game, twins.early,
         lambda rng: (f32(rng.uniform(0, 500, T)), mask(rng, T))),
    Case("supervised_loss", losses.supervised_loss, twins.supervised, labelled),
    Case("supervised_loss, all legal", losses.supervised_loss,
         lambda x, labels: -twins.log_prob(x, labels), logits_and_choice,
         lambda x, labels: rlax.categorical_cross_entropy(jax.nn.one_hot(labels, ACTIONS), x)),
    Case("discounted_returns", losses.discounted_returns, twins.discounted_returns,
         lambda rng: without_ratio(rng)[2:],
         lambda r, g: rlax.discounted_returns(r, g, jnp.zeros(T))),
    Case("self_imitation_loss", functools.partial(losses.self_imitation_loss, value_cost=0.01),
         functools.partial(twins.self_imitation, value_cost=0.01), imitated),
    Case("self_imitation_priority", lambda _, v, r: losses.self_imitation_priority(v, r),
         lambda _, v, r: np.maximum(np.float64(r) - np.float64(v), 0.0), imitated),
    Case("coma_advantages", lambda q, x, a: losses.coma_advantages(q, jax.nn.softmax(x)),
         lambda q, x, a: twins.coma(q, np.exp(twins.log_softmax(x))), chosen),
    Case("coma_loss", losses.coma_loss, twins.coma_loss, chosen),
    Case("coma_loss, its mean gradient", expected_coma_gradient, expected_coma_twin, chosen,
         qpg_gradient),
  ]


def distillation_cases() -> list[Case]:
  """Policy distillation with one task and with several."""
  kinds = (("nll", 1.0), ("mse", 1.0), ("kl", 1.0), ("kl", 0.1), ("kl", 0.01))
  single = [
    Case(f"policy_distillation_loss, {kind}" + f" at {temperature:g}" * (kind == "kl"),
         functools.partial(losses.policy_distillation_loss, kind=kind, temperature=temperature),
         functools.partial(twins.policy_distillation, kind=kind, temperature=temperature),
         two_logits,
         rlax.categorical_kl_divergence if (kind, temperature) == ("kl", 1.0) else None)
    for kind, temperature in kinds]
  return [*single, *(
    Case(f"multi_task_distillation_loss, {kind}",
         functools.partial(losses.multi_task_distillation_loss, kind=kind, temperature=0.1),
         lambda teacher, heads, task, kind=kind: twins.policy_distillation(
           teacher, heads[np.arange(T), task], kind, 0.1), for_tasks)
    for kind in ("nll", "mse", "kl"))]


def popart_cases() -> list[Case]:
  """PopArt's moments, preserved outputs and normalisation."""
  published = functools.partial(popart_ours, step_size=3e-4)
  return [
    Case("popart_update", published, functools.partial(twins.popart, step_size=3e-4),
         popart_inputs),
    Case("popart_update, one target a task", published,
         functools.partial(twins.popart, step_size=3e-4), one_target_a_task, popart_rlax),
    Case("popart_update, values preserved", popart_outputs,
         lambda w, b, shift, scale, *_: np.float64(scale) * (np.float64(w).sum(0) + b) + shift,
         popart_inputs),
    Case("popart_normalise",
         lambda *x: losses.popart_normalise(losses.PopArtState(*x[2:5]), x[5], x[6]),
         lambda *x: (np.float64(x[5]) - x[2][x[6]]) / np.float64(x[3][x[6]]), popart_inputs,
         lambda *x: rlax.normalize(rlax.PopArtState(*x[2:5]), x[5], x[6])),
  ]


def r2d2_cases() -> list[Case]:
  """R2D2's value rescaling, targets, errors and priorities."""
  def targets(n):
    def ours(q, action, online, target, r, g):
      del q, action
      return losses.double_q_targets(online, target, r, g, n)

    return Case(f"double_q_targets, n = {n}", ours,
                lambda q, action, *x: twins.double_q_targets(*x, n), q_values)

  def errors_twin(q, action, online, target, r, g):
    wanted = twins.double_q_targets(online, target, r, g, 5)
    return wanted - np.take_along_axis(np.float64(q), action[:, None], -1)[:, 0]

  return [
    Case("rescale_value", losses.rescale_value, twins.rescale,
         lambda rng: (normal(rng, T, scale=100.0),), rlax.signed_hyperbolic),
    Case("unscale_value", losses.unscale_value, twins.unscale,
         lambda rng: (normal(rng, T, scale=10.0),), rlax.signed_parabolic),
    *map(targets, (1, 3, 5)),
    Case("double_q_errors", losses.double_q_errors, errors_twin, q_values,
         lambda q, action, online, target, r, g: rlax.transformed_n_step_q_learning(
           q, action, target, jnp.argmax(online, -1), r, g, 5,
           tx_pair=rlax.SIGNED_HYPERBOLIC_PAIR)),
    Case("sequence_priority", losses.sequence_priority, twins.priority,
         lambda rng: (normal(rng, T), np.arange(T) >= rng.integers(0, T))),
  ]


CASES = [*vtrace_cases(), *value_cases(), *policy_cases(), *distillation_cases(), *popart_cases(),
         *r2d2_cases()]


def main() -> None:
  """Prints the table of `docs/losses.md`."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--inputs", type=int, default=1000, help="random inputs per loss")
  options = parser.parse_args()
  warnings.simplefilter("ignore", PendingDeprecationWarning)  # rlax's, of distrax
  print(f"JAX {jax.__version__}, {options.inputs} random inputs per loss; errors are "
        "|x - y| / max(1, |y|)\n")
  print("| loss | largest error from the float64 twin | largest difference from rlax |\n"
        "|---|---|---|")
  for case in CASES:
    ours, theirs = jax.jit(case.ours), case.rlax and jax.jit(case.rlax)
    worst = peer = 0.0
    for seed in range(options.inputs):
      inputs = case.draw(np.random.default_rng(seed))
      found = ours(*inputs)
      worst = max(worst, error(found, case.twin(*inputs)))
      peer = max(peer, error(found, theirs(*inputs)) if theirs else 0.0)
    name, _, what = case.name.partition(",")
    print(f"| `{name}`{',' * bool(what)}{what} | {worst:.1e} | {f'{peer:.1e}' if theirs else ''} |",
          flush=True)


if __name__ == "__main__":
  main()
