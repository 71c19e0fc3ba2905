"""The whole policy: one parameter tree; acting and learning agree."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import starleague.agent as agent
from starleague.agent import config as agent_config
from starleague.agent import distributions, types
from starleague.agent import vocabulary as v

MINI = agent_config.mini()
T, B = 5, 3


def _steps(shape, seed=0):
  """Made-up steps with entities, legal functions and, in most, something to do."""
  random = np.random.default_rng(seed)
  steps = jax.tree.map(
    lambda x: np.zeros((*shape, *x.shape), x.dtype),
    types.step_spec(MINI.max_entities, MINI.map_size, MINI.max_selected))
  o = steps.observation
  o.entity_count[...] = random.integers(2, 30, shape)
  real = np.arange(MINI.max_entities) < o.entity_count[..., None]
  o.entities[...] = random.integers(0, 200, o.entities.shape) * real[..., None]
  o.entities[..., types.COLUMN["alliance"]] = real * random.choice([1, 1, 4], real.shape)
  o.minimap[...] = random.integers(0, 2, o.minimap.shape)
  o.player[...] = random.integers(0, 300, o.player.shape)
  o.available_actions[...] = random.random(o.available_actions.shape) < 0.3
  o.available_actions[..., 0] = True
  o.unit_counts[...] = random.integers(0, 4, o.unit_counts.shape)
  o.game_loop[...] = random.integers(0, 9000, shape)
  o.mmr[...] = 3500
  o.home_race[...] = 1
  o.last_function[...] = random.integers(0, v.NUM_FUNCTIONS, shape)
  for z in (o.statistics, steps.privileged.executed, steps.privileged.opponent_statistics,
            steps.privileged.opponent_executed):
    z.build_order[...] = random.integers(1, 250, z.build_order.shape)
    z.build_order_xy[...] = random.integers(0, 256, z.build_order_xy.shape)
    for part in (z.units, z.effects, z.upgrades):
      part[...] = random.random(part.shape) < 0.3
  for flags in (o.upgrades, o.enemy_upgrades, steps.privileged.opponent_upgrades):
    flags[...] = random.random(flags.shape) < 0.3
  for counts in (steps.privileged.cumulative_score, steps.privileged.opponent_player,
                 steps.privileged.opponent_unit_counts,
                 steps.privileged.opponent_cumulative_score):
    counts[...] = random.integers(0, 200, counts.shape)
  steps.discount[...] = 1.0
  steps.weight[...] = 1.0
  return steps


@pytest.fixture(scope="module")
def mini():
  """The policy, its parameters, and its functions compiled once; a count of their traces."""
  policy = agent.make_policy(MINI)
  traces = []

  def counted(*args):
    traces.append(1)
    return policy.step(*args)

  step = jax.jit(jax.vmap(counted, in_axes=(None, 0, 0, 0)))
  unroll = jax.jit(jax.vmap(policy.unroll, in_axes=(None, types.Trajectory(1, 0))))
  return policy, policy.init(jax.random.key(0)), step, unroll, traces


def _batched_initial_state(policy):
  return jax.tree.map(lambda x: jnp.zeros((B, *x.shape)), policy.initial_state())


@pytest.fixture(scope="module")
def played(mini):
  """T + 1 steps acted one by one, as a trajectory; their logits; the state before the last."""
  policy, params, step, _, _ = mini
  steps = _steps((T + 1, B))
  steps.discount[2, 1] = 0.0  # player 1's game ends with step 2
  state = _batched_initial_state(policy)
  actions, log_probs, logits = [], [], []
  for t in range(T + 1):
    before = state
    observation = jax.tree.map(lambda x, t=t: x[t], steps.observation)
    output = step(params, jax.random.split(jax.random.key(t), B), observation, state)
    keep = (steps.discount[t] != 0).astype(np.float32)[:, None, None]
    state = jax.tree.map(lambda x, keep=keep: x * keep, output.state)
    actions.append(output.action)
    log_probs.append(output.log_prob)
    logits.append(output.logits)
  stack = lambda trees: jax.tree.map(lambda *x: jnp.stack(x), *trees)  # noqa: E731
  steps = steps._replace(action=stack(actions), log_prob=stack(log_probs))
  trajectory = types.Trajectory(steps, _batched_initial_state(policy))
  return trajectory, stack(logits), before


def test_public_names():
  for name in agent.__all__:
    assert getattr(agent, name) is not None
  assert {"full", "mini", "AgentConfig", "make_policy", "Policy", "Observation", "Action",
          "Trajectory"} <= set(agent.__all__)


def test_unroll_reproduces_acting(mini, played):
  _, params, _, unroll, _ = mini
  trajectory, logits, state = played
  output = unroll(params, trajectory)
  for name in v.Arguments._fields:
    forced = jnp.swapaxes(getattr(output.logits, name), 0, 1)
    acted = getattr(logits, name)
    assert forced.dtype == jnp.float32
    np.testing.assert_allclose(forced, acted, rtol=1e-4, atol=1e-4, err_msg=name)
  for part, expected in zip(output.state, state, strict=True):
    np.testing.assert_allclose(part, expected, atol=1e-5)
  assert output.baselines.shape == (B, T + 1, 5) and output.baselines.dtype == jnp.float32


def test_unroll_reproduces_behaviour_log_probs(mini, played):
  _, params, _, unroll, _ = mini
  trajectory, _, _ = played
  output = unroll(params, trajectory)
  actions = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), trajectory.steps.action)
  log_prob = jax.vmap(jax.vmap(distributions.log_prob))(output.logits, actions)
  for name in v.Arguments._fields:
    np.testing.assert_allclose(jnp.swapaxes(getattr(log_prob, name), 0, 1),
                               getattr(trajectory.steps.log_prob, name), atol=1e-5, err_msg=name)


def test_a_batch_is_unrolled_as_its_trajectories_are(mini, played):
  policy, params, _, unroll, _ = mini
  trajectory, _, _ = played
  discount = np.array(trajectory.steps.discount)
  discount[1, 0] = 0.0  # a game ends within
  trajectory = trajectory._replace(steps=trajectory.steps._replace(discount=discount))
  expected, output = unroll(params, trajectory), jax.jit(policy.unroll_batch)(params, trajectory)
  for name in ("logits", "baselines"):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, jnp.swapaxes(y, 0, 1), atol=1e-4),
                 getattr(output, name), getattr(expected, name))
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5),
               output.state, expected.state)


def test_trajectories_continue_from_the_state_before_the_bootstrap(mini, played):
  """Learning from two overlapping pieces sees the same logits as from the whole."""
  _, params, _, unroll, _ = mini
  trajectory, _, _ = played
  whole = unroll(params, trajectory)
  # The same shapes, so that nothing is compiled again: the game goes on after its last step.
  after = jax.tree.map(lambda x: jnp.concatenate([x[-1:], x[:-1]]), trajectory.steps)
  output = unroll(params, types.Trajectory(after, whole.state))
  np.testing.assert_allclose(
    output.logits.function[:, 0], whole.logits.function[:, -1], atol=1e-4)
  np.testing.assert_allclose(output.baselines[:, 0], whole.baselines[:, -1], atol=1e-4)


def test_the_state_after_a_game_is_zero(mini, played):
  _, params, _, unroll, _ = mini
  trajectory, _, _ = played
  discount = np.array(trajectory.steps.discount)
  discount[T - 1, 0] = 0.0
  state = unroll(params, trajectory._replace(
    steps=trajectory.steps._replace(discount=discount))).state
  for part in state:
    np.testing.assert_array_equal(part[0], 0.0)
    assert np.abs(part[1:]).max() > 0


def test_rows_past_the_count_change_no_output(mini, played):
  _, params, _, unroll, _ = mini
  trajectory, _, _ = played
  observation = trajectory.steps.observation
  real = np.arange(MINI.max_entities) < np.asarray(observation.entity_count)[..., None]
  entities = np.where(real[..., None], observation.entities, 55).astype(np.int16)
  changed = trajectory._replace(steps=trajectory.steps._replace(
    observation=observation._replace(entities=entities)))
  for before, after in zip(jax.tree.leaves(unroll(params, trajectory)),
                           jax.tree.leaves(unroll(params, changed)), strict=True):
    np.testing.assert_array_equal(before, after)


def test_acting_is_a_function_of_its_key(mini):
  policy, params, step, _, _ = mini
  observation = jax.tree.map(
    lambda x: jnp.repeat(jnp.asarray(x[:1]), B, axis=0), _steps((B,)).observation)
  state = _batched_initial_state(policy)
  keys = jax.random.split(jax.random.key(3), B)
  first, again = (step(params, keys, observation, state) for _ in range(2))
  for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
    np.testing.assert_array_equal(a, b)
  other = step(params, jax.random.split(jax.random.key(4), B), observation, state)
  assert any((np.asarray(a) != np.asarray(b)).any() for a, b in zip(
    jax.tree.leaves(first.action), jax.tree.leaves(other.action), strict=True))
  delays = np.asarray(first.action.delay)
  assert len(set(delays.tolist())) > 1  # rows with one observation do not act alike


def test_equal_seeds_give_equal_parameters(mini):
  policy, params, _, _, _ = mini
  for a, b in zip(jax.tree.leaves(params),
                  jax.tree.leaves(policy.init(jax.random.key(0))), strict=True):
    np.testing.assert_array_equal(a, b)


def test_many_steps_compile_once(mini, played):
  policy, params, step, _, traces = mini
  assert played is not None
  state = _batched_initial_state(policy)
  steps = _steps((B,), seed=5).observation
  for t in range(100):
    keys = jax.random.split(jax.random.key(t), B)
    state = step(params, keys, steps._replace(game_loop=steps.game_loop + t), state).state
  assert len(traces) == 1
  assert np.isfinite(np.asarray(state.cell)).all()


def _loss(output):
  """A loss that depends on every logit and value."""
  finite = [jnp.where(x > -1e8, x, 0.0) for x in jax.tree.leaves(output.logits)]
  return sum((x * jnp.cos(jnp.arange(x.size).reshape(x.shape))).sum() for x in finite) + (
    jnp.square(output.baselines).sum())


@pytest.mark.slow
def test_gradient_reaches_every_parameter(mini, played):
  policy, params, _, _, _ = mini
  trajectory, _, _ = played
  functions = np.array([[v.FUNCTIONS.index(name) for name in (
    "Attack_pt", "Train_Marine_quick", "Harvest_Gather_unit")]] * (T + 1), np.int16)
  action = trajectory.steps.action._replace(function=functions)
  trajectory = trajectory._replace(steps=trajectory.steps._replace(action=action))
  gradient = jax.jit(jax.grad(lambda params: _loss(jax.vmap(
    policy.unroll, in_axes=(None, types.Trajectory(1, 0)))(params, trajectory))))
  gradients = {f"{module}/{name}": np.asarray(x)
               for module, entries in gradient(params).items() for name, x in entries.items()}
  assert all(np.isfinite(x).all() for x in gradients.values())
  assert [name for name, x in gradients.items() if not x.any()] == []


def _bytes_kept_for_the_backward_pass(config, trajectory):
  policy = agent.make_policy(config)
  params = jax.eval_shape(policy.init, jax.random.key(0))
  kept = jax.eval_shape(
    lambda params: jax.vjp(lambda p: policy.unroll(p, trajectory).logits, params)[1], params)
  return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(kept))


@pytest.mark.slow
def test_recomputing_keeps_less_for_the_backward_pass(played):
  trajectory, _, _ = played
  one = types.Trajectory(jax.tree.map(lambda x: x[:, 0], trajectory.steps),
                         jax.tree.map(lambda x: x[0], trajectory.initial_state))
  none, blocks, parts = (_bytes_kept_for_the_backward_pass(
    dataclasses.replace(MINI, remat=remat), one) for remat in agent_config.REMATS)
  assert parts < blocks < none
  assert parts < none / 2


@pytest.mark.slow
def test_recomputing_changes_nothing(mini, played):
  _, params, _, _, _ = mini
  trajectory, _, _ = played
  one = types.Trajectory(jax.tree.map(lambda x: x[:, 0], trajectory.steps),
                         jax.tree.map(lambda x: x[0], trajectory.initial_state))
  found = []
  for remat in agent_config.REMATS:
    policy = agent.make_policy(dataclasses.replace(MINI, remat=remat))
    shapes = jax.eval_shape(policy.init, jax.random.key(0))
    assert jax.tree.map(jnp.shape, shapes) == jax.tree.map(jnp.shape, params)
    found.append(jax.jit(jax.value_and_grad(lambda p, f=policy: _loss(f.unroll(p, one))))(params))
  for other in found[1:]:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4),
                 found[0], other)


def _counts(preset):
  policy = agent.make_policy(preset)
  params = jax.eval_shape(policy.init, jax.random.key(0))
  counts: dict[str, int] = {}
  for module, entries in params.items():
    name = module.split("/")[0]
    counts[name] = counts.get(name, 0) + sum(x.size for x in entries.values())
  assert {x.dtype for x in jax.tree.leaves(params)} == {jnp.dtype("float32")}
  return counts


def test_full_has_the_published_layers_parameters():
  counts = _counts(agent_config.full())
  millions = {"entity_encoder": 2.81, "spatial_encoder": 10.01, "core": 6.06, "location": 3.18,
              "target_unit": 0.34, "selected_units": 0.39}
  for name, expected in millions.items():
    assert counts[name] / 1e6 == pytest.approx(expected, abs=0.006), name
  baselines = counts.pop("baselines")
  assert sum(counts.values()) / 1e6 == pytest.approx(28.5, abs=0.05)
  executed = 256 * (5 * 2 * 320 + 7 * 2 * 32)  # inputs beyond the published: what both have done
  assert (baselines - executed) / 1e6 == pytest.approx(13.3, rel=0.03)


def test_full_acts_and_learns_in_float32_at_the_ends():
  full = agent_config.full()
  policy = agent.make_policy(full)
  params = jax.eval_shape(policy.init, jax.random.key(0))
  output = jax.eval_shape(policy.unroll, params, types.trajectory_spec(full, 2))
  assert output.logits.location.shape == (3, 65536)
  assert output.baselines.shape == (3, 5)
  assert {x.dtype for x in jax.tree.leaves(output)} == {jnp.dtype("float32")}
