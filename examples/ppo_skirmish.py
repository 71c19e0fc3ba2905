"""PPO on Skirmish: games, network and learning in one jitted program, as in PureJaxRL.

  python examples/ppo_skirmish.py --seeds 3

Evaluates the policy before and after training in other games than those of training.
Sources: Schulman et al. 2017 (PPO), Lu et al. 2022 (PureJaxRL).
"""

import argparse
import dataclasses
import functools
import time
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

from starleague.environments.skirmish.adapters import pure
from starleague.league import wilson_interval
from starleague.learner import losses

ILLEGAL = -1e9  # logit of an action that has no effect


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of a run."""

  seeds: int = 1
  opponent: str = "rusher"  # a scripted player of the tier
  tier: str = "mini"
  copies: int = 64  # games at once
  steps: int = 64  # of each game between two updates
  updates: int = 150
  epochs: int = 2
  minibatches: int = 4
  hidden: int = 128
  learning_rate: float = 5e-4
  max_gradient_norm: float = 0.5
  discount: float = 0.997
  lambda_: float = 0.95
  clip: float = 0.2
  value_weight: float = 0.5
  entropy_weight: float = 0.02
  games: int = 256  # of an evaluation


class Sample(NamedTuple):
  """A step of each game, [steps, copies, ...]."""

  observation: jax.Array
  mask: jax.Array
  action: jax.Array
  log_prob: jax.Array
  value: jax.Array
  reward: jax.Array
  discount: jax.Array


def make_network(config: Config, num_actions: int) -> hk.Transformed:
  """Makes the actor-critic: (params, observation, mask) -> (logits of legal actions, value)."""
  def forward(observation, mask):
    def torso(name):
      sizes = [config.hidden, config.hidden]
      return hk.nets.MLP(sizes, activation=jnp.tanh, activate_final=True, name=name)(observation)

    logits = hk.Linear(num_actions, w_init=hk.initializers.VarianceScaling(0.01))(torso("actor"))
    value = hk.Linear(1)(torso("critic"))[..., 0]
    return jnp.where(mask, logits, ILLEGAL), value

  return hk.without_apply_rng(hk.transform(forward))


def objective(params, network, config: Config, batch: Sample, advantages, returns):
  """Computes PPO's loss of a minibatch: clipped surrogate, values, entropy of legal actions."""
  logits, values = network.apply(params, batch.observation, batch.mask)
  log_probs = jax.nn.log_softmax(logits)
  ratio = jnp.exp(jnp.take_along_axis(log_probs, batch.action[:, None], 1)[:, 0] - batch.log_prob)
  advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
  surrogate = jnp.minimum(
    ratio * advantages, jnp.clip(ratio, 1 - config.clip, 1 + config.clip) * advantages)
  entropy_loss = losses.entropy_loss(losses.action_entropy(logits, batch.mask))
  return (-surrogate + config.value_weight * 0.5 * jnp.square(returns - values)
          + config.entropy_weight * entropy_loss).mean()


def act(config: Config, environment, network, params, carry, key):
  """Plays a step of all games: (games, (samples, scores of the games that ended, else NaN))."""
  observation, state = carry
  mask = jax.vmap(environment.get_avail_actions)(state)
  logits, value = network.apply(params, observation, mask)
  action_key, step_key = jax.random.split(key)
  action = jax.random.categorical(action_key, logits)
  log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
  keys = jax.random.split(step_key, len(action))
  next_observation, state, reward, done, info = jax.vmap(environment.step)(keys, state, action)
  sample = Sample(observation, mask, action, log_prob, value, reward,
                  config.discount * info["discount"])
  return (next_observation, state), (sample, jnp.where(done, reward, jnp.nan))


def learn(config: Config, network, optimizer, state, samples: Sample, bootstrap, key):
  """Updates (params, optimizer's state) by minibatches of shuffled steps."""
  next_values = jnp.concatenate([samples.value[1:], bootstrap[None]])
  returns = jax.vmap(losses.td_lambda_returns, (1, 1, 1, None), 1)(
    next_values, samples.reward, samples.discount, config.lambda_)
  data = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]),
                      (samples, returns - samples.value, returns))

  def minibatch(carry, indices):
    params, optimizer_state = carry
    batch = jax.tree.map(lambda x: x[indices], data)
    gradients = jax.grad(objective)(params, network, config, *batch)
    updates, optimizer_state = optimizer.update(gradients, optimizer_state)
    return (optax.apply_updates(params, updates), optimizer_state), None

  order = jnp.concatenate([jax.random.permutation(each, config.steps * config.copies)
                           for each in jax.random.split(key, config.epochs)])
  return jax.lax.scan(minibatch, state, order.reshape(config.epochs * config.minibatches, -1))[0]


def make_programs(config: Config):
  """Makes the jitted programs.

  Returns:
    train: key -> (params before, params after, scores of games [updates, steps, copies]).
    evaluate: (key, params) -> results of `config.games` games: 1, 0 or -1.
  """
  environment = pure.Solo(config.opponent, tier=config.tier)
  network = make_network(config, environment.num_actions)
  optimizer = optax.chain(optax.clip_by_global_norm(config.max_gradient_norm),
                          optax.adam(config.learning_rate, eps=1e-5))
  step = functools.partial(act, config, environment, network)

  def start(key, copies):
    return jax.vmap(environment.reset)(jax.random.split(key, copies))

  def update(carry, key):
    learner, games = carry
    act_key, learn_key = jax.random.split(key)
    games, (samples, results) = jax.lax.scan(
      functools.partial(step, learner[0]), games, jax.random.split(act_key, config.steps))
    _, bootstrap = network.apply(learner[0], games[0], jnp.ones(samples.mask.shape[1:], bool))
    return (learn(config, network, optimizer, learner, samples, bootstrap, learn_key),
            games), results

  def train(key):
    network_key, game_key, update_key = jax.random.split(key, 3)
    games = start(game_key, config.copies)
    first = network.init(network_key, games[0], jnp.ones((1, environment.num_actions), bool))
    ((params, _), _), results = jax.lax.scan(
      update, ((first, optimizer.init(first)), games), jax.random.split(update_key, config.updates))
    return first, params, results

  def evaluate(key, params):
    start_key, play_key = jax.random.split(key)
    most = -(-environment.rules.tier.loop_limit // environment.loops)  # steps of the longest game
    _, (_, results) = jax.lax.scan(functools.partial(step, params), start(start_key, config.games),
                                   jax.random.split(play_key, most))
    first = jnp.argmax(~jnp.isnan(results), axis=0)  # of each copy, its first game
    return jnp.take_along_axis(results, first[None], 0)[0]

  return jax.jit(train), jax.jit(evaluate)


def describe(results: Any) -> str:
  """Formats the results of games: wins with a 95% interval, and draws."""
  low, high = wilson_interval(float(np.sum(results > 0)), len(results))
  return (f"wins={np.mean(results > 0):.1%} interval={low:.1%}..{high:.1%} "
          f"draws={np.mean(results == 0):.1%} games={len(results)}")


def main() -> None:
  parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS, description=__doc__)
  for name in ("seeds", "opponent", "tier", "copies", "updates", "games"):
    parser.add_argument(f"--{name}", type=Config.__annotations__[name])
  options = vars(parser.parse_args())
  usual = Config.opponent if options.get("tier", "mini") == "mini" else "rush"
  config = Config(**{"opponent": usual, **options})
  try:
    train, evaluate = make_programs(config)
  except ValueError as error:  # an unknown opponent or tier
    parser.error(str(error))
  for seed in range(config.seeds):
    wall, cpu = time.perf_counter(), time.process_time()
    key, game_key = jax.random.split(jax.random.key(seed))
    first, params, results = jax.block_until_ready(train(key))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for parameters, name in ((first, "untrained"), (params, "trained")):
      print(f"seed={seed} opponent={config.opponent} {name} "
            f"{describe(np.asarray(evaluate(game_key, parameters)))}", flush=True)
    print(f"seed={seed} steps={results.size} training_games={np.sum(~np.isnan(results))} "
          f"seconds={wall:.0f} cpu_seconds={cpu:.0f} (the first seed compiles)", flush=True)


if __name__ == "__main__":
  main()
