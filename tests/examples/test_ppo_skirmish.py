"""The PPO example: its loss by hand, and a run of seconds from start to evaluation."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from examples import ppo_skirmish as ppo
from starleague.environments.skirmish.bots import scripts

CONFIG = ppo.Config(opponent="rusher", copies=4, steps=16, updates=3, hidden=16, games=8)


def sample(network, params, count=6):
  """Steps whose action 2 is always taken; action 0 is illegal."""
  observation = jax.random.normal(jax.random.key(1), (count, 5))
  mask = jnp.ones((count, 3), bool).at[:, 0].set(False)
  logits, value = network.apply(params, observation, mask)
  log_prob = jax.nn.log_softmax(logits)[:, 2]
  return ppo.Sample(observation, mask, jnp.full(count, 2), log_prob, value, jnp.zeros(count),
                    jnp.ones(count))


@pytest.fixture(scope="module")
def scene():
  network = ppo.make_network(CONFIG, 3)
  params = network.init(jax.random.key(0), jnp.zeros((1, 5)), jnp.ones((1, 3), bool))
  return network, params, sample(network, params)


def test_the_loss_of_unchanged_parameters_by_hand(scene):
  network, params, batch = scene
  logits, values = network.apply(params, batch.observation, batch.mask)
  probabilities = np.asarray(jax.nn.softmax(logits))
  assert (probabilities[:, 0] == 0).all()
  advantages, returns = jnp.arange(6.0), jnp.full(6, 0.5)
  legal = probabilities[:, 1:].astype(np.float64)
  entropy = -(legal * np.log(legal)).sum(axis=1) / np.log(2)
  # The ratios are 1, and normalised advantages have mean 0.
  expected = 0.25 * np.mean((0.5 - np.asarray(values)) ** 2) - 0.02 * entropy.mean()
  found = ppo.objective(params, network, CONFIG, batch, advantages, returns)
  assert float(found) == pytest.approx(expected, abs=1e-6)


def test_a_step_makes_better_actions_more_probable(scene):
  network, params, batch = scene
  config = dataclasses.replace(CONFIG, value_weight=0.0, entropy_weight=0.0)
  advantages = jnp.array([3.0, -1.0, -1.0, -1.0, 1.0, -1.0])
  gradients = jax.grad(ppo.objective)(params, network, config, batch, advantages, jnp.zeros(6))
  moved = optax.apply_updates(params, jax.tree.map(lambda g: -0.1 * g, gradients))
  log_prob = jax.nn.log_softmax(network.apply(moved, batch.observation, batch.mask)[0])[:, 2]
  change = np.asarray(log_prob - batch.log_prob)
  assert change[0] > 0 and change[0] > change[[1, 2, 3, 5]].max()


def test_ratios_are_clipped(scene):
  network, params, batch = scene
  far = batch._replace(log_prob=batch.log_prob - 1.0)  # all ratios are e
  config = dataclasses.replace(CONFIG, value_weight=0.0, entropy_weight=0.0)
  advantages = jnp.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
  found = ppo.objective(params, network, config, far, advantages, jnp.zeros(6))
  assert float(found) == pytest.approx(-(3 * 1.2 - 3 * np.e) / 6, abs=1e-5)


def test_results_are_described():
  assert ppo.describe(np.array([1.0, 1.0, 1.0, 0.0, -1.0])) == (
    "wins=60.0% interval=23.1%..88.2% draws=20.0% games=5")


@pytest.mark.parametrize(("arguments", "tier", "opponent"), [
  ([], "mini", "rusher"), (["--tier=default"], "default", "rush"),
  (["--tier=large"], "large", "rush"), (["--tier=large", "--opponent=L7"], "large", "L7")])
def test_each_tier_has_an_opponent(monkeypatch, capsys, arguments, tier, opponent):
  def make_programs(config):
    raise ValueError(f"{config.opponent} at {config.tier}")

  monkeypatch.setattr(ppo, "make_programs", make_programs)
  monkeypatch.setattr("sys.argv", ["ppo", *arguments])
  with pytest.raises(SystemExit, match="^2$"):
    ppo.main()
  assert capsys.readouterr().err.splitlines()[-1] == f"ppo: error: {opponent} at {tier}"
  assert opponent in scripts.names_of(tier)


@pytest.mark.parametrize(("arguments", "message"), [
  (["--opponent", "nobody"], "nobody"), (["--tier", "huge"], "huge")])
def test_unknown_names_are_one_line(monkeypatch, capsys, arguments, message):
  monkeypatch.setattr("sys.argv", ["ppo", *arguments])
  with pytest.raises(SystemExit, match="^2$"):
    ppo.main()
  error = capsys.readouterr().err.splitlines()[-1]
  assert error.startswith("ppo: error: ") and message in error


@pytest.mark.slow
def test_a_run_of_seconds():
  train, evaluate = ppo.make_programs(CONFIG)
  first, params, results = train(jax.random.key(0))
  assert results.shape == (3, 16, 4)
  assert jax.tree.all(jax.tree.map(lambda x: bool(jnp.isfinite(x).all()), params))
  moved = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), first, params)
  assert min(jax.tree.leaves(moved)) > 0
  games = np.asarray(evaluate(jax.random.key(1), params))
  assert games.shape == (8,) and np.isin(games, (-1, 0, 1)).all()
  np.testing.assert_array_equal(games, evaluate(jax.random.key(1), params))
  again = train(jax.random.key(0))[1]
  jax.tree.map(np.testing.assert_array_equal, params, again)
