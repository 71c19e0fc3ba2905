"""The peer of benchmarks/catch.py: IMPALA with the structure of dm-haiku's examples/impala.

Written for this benchmark with rlax, Haiku and optax. As there: actor threads step one environment
each and call a jitted network for one step at a time; raw random keys, which are indexed at each
step; a host queue of trajectories; a thread that stacks a batch and puts it on the device; a
learner with one jitted update, which fetches the new parameters for the actors after each.
"""

import queue
import threading
import time
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import rlax
from bsuite.environments import catch

NUM_ACTIONS, DISCOUNT, ENTROPY_COST, BASELINE_COST = 3, 0.99, 0.01, 0.5
LAYERS = (128, 64)  # of the example's network for Catch


class Step(NamedTuple):
  """A step of a trajectory, [T + 1, ...] or [T + 1, B, ...]."""

  observation: Any
  reward: Any  # of the transition into this step
  discount: Any
  first: Any
  logits: Any
  action: Any


def network(observation: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Returns logits [..., 3] and values [...] of observations [..., 10, 5]."""
  x = observation.reshape(*observation.shape[:-2], -1)
  for size in LAYERS:
    x = jax.nn.relu(hk.Linear(size)(x))
  return hk.Linear(NUM_ACTIONS)(x), hk.Linear(1)(x)[..., 0]


_NETWORK = hk.without_apply_rng(hk.transform(network))


@jax.jit
def _act(key, params, observation):
  logits, _ = _NETWORK.apply(params, observation)
  return logits, jax.random.categorical(key, logits)


def _loss(params, batch: Step) -> jax.Array:
  """V-trace actor-critic; sums over steps and batch."""
  logits, values = _NETWORK.apply(params, batch.observation)
  action, mu = batch.action[:-1], batch.logits[:-1]
  reward, discount = jnp.clip(batch.reward[1:], -1, 1), DISCOUNT * batch.discount[1:]
  mask = 1.0 - batch.first[1:]  # from the last step of an episode to the first of the next
  ratio = rlax.categorical_importance_sampling_ratios(logits[:-1], mu, action)
  found = jax.vmap(rlax.vtrace_td_error_and_advantage, in_axes=1, out_axes=1)(
    values[:-1], values[1:], reward, discount, ratio)
  steps = logits.shape[0] - 1
  policy = jax.vmap(rlax.policy_gradient_loss, in_axes=1)(
    logits[:-1], action, found.pg_advantage, mask).sum() * steps
  entropy = jax.vmap(rlax.entropy_loss, in_axes=1)(logits[:-1], mask).sum() * steps
  return (policy + ENTROPY_COST * entropy
          + BASELINE_COST * 0.5 * (jnp.square(found.errors) * mask).sum())


class Peer:
  """Threads that act, a thread that stacks, and a learner in the calling thread."""

  def __init__(self, actors: int, unroll_length: int, batch_size: int):
    self._length, self._batch_size = unroll_length, batch_size
    self._optimizer = optax.rmsprop(1e-3, decay=0.99, eps=0.1)
    params = _NETWORK.init(jax.random.PRNGKey(0), jnp.zeros((10, 5)))
    self._state = (params, self._optimizer.init(params))
    self._params = jax.device_get(params)
    self._host: queue.Queue = queue.Queue(maxsize=batch_size)
    self._device: queue.Queue = queue.Queue(maxsize=1)
    self._stop = threading.Event()
    self.error: Exception | None = None
    self._threads = [threading.Thread(target=self._guarded, args=(self._play, seed))
                     for seed in range(actors)]
    self._threads.append(threading.Thread(target=self._guarded, args=(self._stack,)))

    @jax.jit
    def update(state, batch):
      params, optimizer_state = state
      gradients = jax.grad(_loss)(params, batch)
      updates, optimizer_state = self._optimizer.update(gradients, optimizer_state)
      return optax.apply_updates(params, updates), optimizer_state

    self._update = update

  def _guarded(self, target, *arguments) -> None:
    try:
      target(*arguments)
    except Exception as error:
      self.error = error
      self._stop.set()

  def _put(self, target: queue.Queue, item: Any) -> None:
    while not self._stop.is_set():
      try:
        return target.put(item, timeout=0.1)
      except queue.Full:
        continue

  def _get(self, source: queue.Queue) -> Any:
    while not self._stop.is_set():
      try:
        return source.get(timeout=0.1)
      except queue.Empty:
        continue

  def _play(self, seed: int) -> None:
    environment, key = catch.Catch(seed=seed), jax.random.PRNGKey(seed)
    step, steps = environment.reset(), []
    while not self._stop.is_set():
      params = jax.device_put(self._params)
      key, own = jax.random.split(key)
      keys = jax.random.split(own, self._length + 1)
      for i in range(self._length + (not steps)):
        logits, action = _act(keys[i], params, step.observation)
        steps.append(Step(step.observation, np.float32(step.reward or 0), np.float32(
          1 if step.discount is None else step.discount), np.float32(step.first()), logits, action))
        step = environment.step(int(action))
      trajectory = jax.device_get(steps)
      self._put(self._host, jax.tree.map(lambda *leaves: np.stack(leaves), *trajectory))
      steps = steps[-1:]

  def _stack(self) -> None:
    while not self._stop.is_set():
      batch = [self._get(self._host) for _ in range(self._batch_size)]
      if not self._stop.is_set():
        self._put(self._device, jax.device_put(
          jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *batch)))

  def measure(self, warm_up: int, seconds: float) -> tuple[float, float]:
    """Returns frames per second, and per second of CPU time, after some updates."""
    for thread in self._threads:
      thread.start()
    updates, began, cpu = 0, 0.0, 0.0
    try:
      while updates <= warm_up or time.monotonic() - began < seconds:
        batch = self._get(self._device)
        if self.error is not None:
          raise self.error
        self._state = self._update(self._state, batch)
        self._params = jax.device_get(self._state[0])
        updates += 1
        if updates == warm_up:
          began, cpu = time.monotonic(), time.process_time()
      frames = (updates - warm_up) * self._batch_size * self._length
      return frames / (time.monotonic() - began), frames / (time.process_time() - cpu)
    finally:
      self._stop.set()
      for thread in self._threads:
        thread.join()
