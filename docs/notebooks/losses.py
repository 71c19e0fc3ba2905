# %% [markdown]
# # Losses in your own code
#
# `starleague.learner.losses` needs JAX, chex and Haiku. This notebook trains an actor-critic of its own on a
# corridor: V-trace, UPGO, TD(lambda) and entropy, each batch used four times, so that the importance ratios
# count. It took 5 s of processor time (two shared cores, JAX 0.7.1).

# %%
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from starleague.learner import losses

T, B, PLACES, UPDATES, USES = 32, 64, 12, 60, 4

# %% [markdown]
# An episode begins at the third of twelve places. Each step goes left or right. The right end gives the reward 1,
# the left end 0; both end the episode. A random policy reaches the right end in 2 of 11 episodes. The policy is a
# table of logits, the value function a table of values.


# %%
class Params(NamedTuple):
  """What is learnt."""

  logits: jax.Array  # [PLACES, 2]
  values: jax.Array  # [PLACES]


class Batch(NamedTuple):
  """Trajectories, time-major."""

  places: jax.Array  # [T + 1, B]
  actions: jax.Array  # [T, B]
  behaviour: jax.Array  # [T, B]: log-probs of the actions when they were taken
  r_t: jax.Array  # [T, B]
  discount_t: jax.Array  # [T, B]


def step(place, action):
  """Moves; returns the next place, the reward and the discount, 0 where the episode ended."""
  reached = place + 2 * action - 1
  over = (reached == 0) | (reached == PLACES - 1)
  reward = (reached == PLACES - 1).astype(jnp.float32)
  return jnp.where(over, 2, reached), reward, jnp.where(over, 0.0, 0.97)


def log_prob(logits, places, actions):
  found = jax.nn.log_softmax(logits[places])
  return jnp.take_along_axis(found, actions[..., None], -1)[..., 0]


@jax.jit
def play(params, key, places):
  """Plays T steps of B episodes, which go on in the next batch."""
  def one(places, key):
    actions = jax.random.categorical(key, params.logits[places])
    reached, reward, discount = step(places, actions)
    return reached, (places, actions, reward, discount)

  last, (before, actions, r_t, discount_t) = jax.lax.scan(one, places, jax.random.split(key, T))
  behaviour = log_prob(params.logits, before, actions)
  return Batch(jnp.concatenate([before, last[None]]), actions, behaviour, r_t, discount_t)


# %% [markdown]
# Losses are written for one trajectory, `[T]`. `vmap` over the second axis makes them losses of `[T, B]`. They
# return per-step values and stop gradients where the papers do.

# %%
over_batch = functools.partial(jax.vmap, in_axes=1, out_axes=1)


def loss(params, batch):
  values = params.values[batch.places]
  v_tm1, v_t = values[:-1], values[1:]
  r_t, discount_t = batch.r_t, batch.discount_t
  now = log_prob(params.logits, batch.places[:-1], batch.actions)
  rho = losses.joint_ratio(now, batch.behaviour, jnp.ones_like(now))

  vtrace = over_batch(losses.vtrace_advantages)(v_tm1, v_t, r_t, discount_t, rho)
  upgo = jnp.minimum(rho, 1.0) * (
    over_batch(losses.upgo_returns)(v_tm1, v_t, r_t, discount_t) - v_tm1)
  policy = losses.policy_gradient_loss(now, vtrace + upgo)
  value = over_batch(losses.td_lambda_loss)(v_tm1, v_t, r_t, discount_t)
  entropy = losses.entropy_loss(losses.action_entropy(params.logits[batch.places[:-1]]))
  return jnp.mean(policy + value + 0.01 * entropy), jnp.mean(rho)


# %%
optimizer = optax.adam(0.03)


@jax.jit
def update(params, state, batch):
  gradient, ratio = jax.grad(loss, has_aux=True)(params, batch)
  changes, state = optimizer.update(gradient, state)
  return optax.apply_updates(params, changes), state, ratio


params = Params(jnp.zeros((PLACES, 2)), jnp.zeros(PLACES))
state = optimizer.init(params)
places = jnp.full(B, 2)
success = []
for number, key in enumerate(jax.random.split(jax.random.key(0), UPDATES)):
  batch = play(params, key, places)
  places = batch.places[-1]
  for _ in range(USES):
    params, state, ratio = update(params, state, batch)
  episodes = jnp.sum(batch.discount_t == 0)
  success.append(float(jnp.sum(batch.r_t) / jnp.maximum(episodes, 1)))
  if number % 10 == 0:
    print(f"batch={number} episodes={episodes} success={success[-1]:.3f} mean_ratio={ratio:.3f}")

# %%
print(f"success of the first batch {success[0]:.3f}, of the last {success[-1]:.3f}")
print("values", [round(float(value), 2) for value in params.values[1:-1]])
assert success[0] < 0.4 and success[-1] > 0.95
