# %% [markdown]
# # Replay a dataset and train on it
#
# A dataset holds whole games, both sides of each, in Parquet ([datasets](../datasets.md)). This notebook records one
# with scripted players, looks at a game, and trains a small network of its own on it. To train the whole agent:
# `python -m starleague.experiments.supervise --run imitator --dataset FOLDER` ([imitation](../imitation.md)). It took
# 62 s of processor time, most of it compilation (two shared cores, JAX 0.7.1). It needs the extra `games`.

# %%
import collections
import importlib.util
import pathlib
import sys
import tempfile

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

from starleague.agent import vocabulary
from starleague.data import games, wire
from starleague.experiments.run.datasets import demonstrations

if importlib.util.find_spec("pyarrow") is None:
  sys.exit("error: this notebook needs pyarrow, which is not installed: "
           "pip install 'starleague[games]'")

path = pathlib.Path(tempfile.mkdtemp()) / "demonstrations"
demonstrators = demonstrations.Demonstrators("mini", ("demo_4000", "demo_7000"), seed=0)
written = demonstrations.record(path, demonstrators, games=24)
print(f"games={written.games} episodes={written.episodes} decisions={written.decisions}")

# %% [markdown]
# An episode is one player's side of a game. `games.steps` reads its decisions in the wire format, which
# `wire.unpack` turns into a `Trajectory`: observations, actions, rewards.

# %%
found = games.read(path)
learnt, held_out = games.split(found, 0.25)
unpack = jax.jit(lambda batch: wire.unpack(batch.packed, found.config))
batch = next(games.in_order(found, learnt, batch_size=8, unroll_length=32, seed=0))
steps = unpack(batch).steps
for t in range(8):
  action = vocabulary.FUNCTIONS.names[int(steps.action.function[t, 0])]
  print(f"loop={steps.observation.game_loop[t, 0]} minerals={steps.observation.player[t, 0, 0]} "
        f"{action} delay={steps.action.delay[t, 0]}")

# %% [markdown]
# The network predicts the next function from the player's scalars, its unit counts and its last function. Slots go
# through whole games in order; a weight of 0 marks the padding behind a game's end.


# %%
def features(observation):
  scalars = jnp.log1p(jnp.maximum(observation.player, 0).astype(jnp.float32))
  counts = jnp.log1p(observation.unit_counts.astype(jnp.float32))
  last = jax.nn.one_hot(observation.last_function, vocabulary.NUM_FUNCTIONS)
  return jnp.concatenate([scalars, counts, last], -1)


network = hk.without_apply_rng(hk.transform(
  lambda x: hk.nets.MLP([128, vocabulary.NUM_FUNCTIONS])(x)))
optimizer = optax.adam(3e-3)


def loss(params, steps):
  logits = network.apply(params, features(steps.observation))
  logits = jnp.where(steps.observation.available_actions, logits, -1e9)
  label, weight = steps.action.function.astype(jnp.int32), steps.weight
  entropy = optax.softmax_cross_entropy_with_integer_labels(logits, label)
  total = jnp.maximum(jnp.sum(weight), 1.0)
  right = (jnp.argmax(logits, -1) == label).astype(jnp.float32)
  return jnp.sum(entropy * weight) / total, jnp.sum(right * weight) / total


@jax.jit
def update(params, state, steps):
  gradient, accuracy = jax.grad(loss, has_aux=True)(params, steps)
  changes, state = optimizer.update(gradient, state)
  return optax.apply_updates(params, changes), state, accuracy


def batches(rows, seed):
  return (unpack(batch).steps for batch in games.in_order(
    found, rows, batch_size=8, unroll_length=32, seed=seed))


params = network.init(jax.random.key(0), features(steps.observation))
state = optimizer.init(params)
measure = jax.jit(loss)
accuracies = []
for epoch in range(6):
  accuracies.append(float(np.mean([measure(params, each)[1] for each in batches(held_out, 0)])))
  print(f"epoch={epoch} held_out_accuracy={accuracies[-1]:.3f}")
  for each in batches(learnt, epoch):
    params, state, _ = update(params, state, each)

# %%
labels = collections.Counter(
  int(label) for each in batches(learnt, 0) for label, weight in zip(
    np.ravel(each.action.function), np.ravel(each.weight), strict=True) if weight)
name, count = labels.most_common(1)[0]
print(f"most frequent: {vocabulary.FUNCTIONS.names[name]}, {count / labels.total():.3f}")
assert accuracies[-1] > count / labels.total() and accuracies[-1] > accuracies[0]
