"""Random batches that a policy can learn from: legal actions, all kinds of entities."""

import jax
import numpy as np

from starleague.agent import types, vocabulary


def fill_observation(rng, observation, config):
  """Fills in own units of random types and places; all functions are available."""
  entities = observation.entities
  count = rng.integers(5, config.max_entities, entities.shape[:2])
  entities[..., types.COLUMN["unit_type"]] = rng.integers(1, 255, entities.shape[:3])
  entities[..., types.COLUMN["alliance"]] = types.ALLIANCE_SELF
  for name in ("x", "y", "health_ratio"):
    entities[..., types.COLUMN[name]] = rng.integers(0, 255, entities.shape[:3])
  entities *= (np.arange(config.max_entities) < count[..., None])[..., None].astype(np.int16)
  observation.entity_count[...] = count
  observation.available_actions[...] = True
  observation.minimap[...] = rng.integers(0, 2, observation.minimap.shape)
  observation.player[...] = rng.integers(0, 500, observation.player.shape)
  observation.game_loop[...] = rng.integers(0, 9000, observation.game_loop.shape)


def fill_action(rng, action, observation, config):
  """Fills in random functions with legal arguments."""
  for row in np.ndindex(action.function.shape):
    function = rng.integers(vocabulary.NUM_FUNCTIONS)
    takes = dict(zip(vocabulary.Arguments._fields, vocabulary.ARGUMENT_TABLE[function],
                     strict=True))
    count = int(observation.entity_count[row])
    unit_types = observation.entities[row][:count, types.COLUMN["unit_type"]]
    capable = np.flatnonzero(vocabulary.EXECUTORS[function, unit_types])
    rows = rng.permutation(capable if len(capable) else np.arange(count))[:config.max_selected - 1]
    action.function[row], action.delay[row] = function, rng.integers(1, 128)
    action.queued[row], action.repeat[row] = takes["queued"], takes["repeat"]
    action.units[row] = config.max_entities
    action.units[row][:len(rows) * takes["units"]] = rows[:len(rows) * takes["units"]]
    action.target_unit[row] = rng.integers(count) * takes["target_unit"]
    action.location[row] = rng.integers(config.location_size ** 2) * takes["location"]


def random_batch(seed, config, length, size):
  """Draws a batch with learnt and padding steps, and with and without episode ends."""
  rng = np.random.default_rng(seed)
  zeros = types.zeros(types.trajectory_spec(config, length))
  batch = types.Trajectory(
    steps=jax.tree.map(lambda x: np.repeat(x[:, None], size, 1), zeros.steps),
    initial_state=jax.tree.map(
      lambda x: rng.normal(size=(size, *x.shape), scale=0.1).astype(x.dtype), zeros.initial_state))
  step = batch.steps
  fill_observation(rng, step.observation, config)
  fill_action(rng, step.action, step.observation, config)
  used = vocabulary.ARGUMENT_TABLE[step.action.function]
  for i, log_prob in enumerate(step.log_prob):
    log_prob[...] = -rng.uniform(1, 5, log_prob.shape) * used[..., i]
  step.reward[...] = rng.normal(size=step.reward.shape)
  step.discount[...] = rng.random(step.discount.shape) < 0.8
  step.pseudo_active[...] = rng.random(step.pseudo_active.shape) < 0.5
  step.weight[...] = rng.random(step.weight.shape) < 0.8
  return batch
