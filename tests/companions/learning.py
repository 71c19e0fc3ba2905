"""Short trainings of companion systems for tests."""

import dataclasses
import threading

import jax
import jax.numpy as jnp
import numpy as np

from starleague.companions import acting, evaluation, experience, registry, training
from starleague.companions.options import RunOptions
from starleague.companions.system import inputs_spec, step_format
from starleague.data import wire
from starleague.data.assembler import Assembler
from tests.companions.catch import make_catch


def learn(name, folder, config, task=None, **options):
  """Trains a system on Catch, or on another task; returns its mean return by part."""
  entry = registry.find(name)
  chosen = RunOptions(**{"task": "catch" if task is None else task.name, "seed": 1, **options})
  task = make_catch(chosen.copies) if task is None else task
  system = entry.make(config, task, inputs_spec(task))
  trained = training.train(system, task, chosen, dataclasses.asdict(config), folder,
                           threading.Event(), lambda steps, text: None)
  found = evaluation.evaluate(system, task, trained.params, chosen, threading.Event())
  return {part: score.mean for part, score in found.items()}


def played(system, task, params, unroll_length, iterations=None):
  """Returns a batch of unrolls [T + 1, B, ...] that a system has played, one of each copy."""
  actor = acting.make_acting(system, task, iterations or unroll_length + 1)
  _, records, _ = actor.run(params, actor.init(jax.random.key(3)))
  form = step_format(system, task)
  cuts = Assembler(form, unroll_length, task.copies, continuous=True).add(
    jax.tree.map(np.asarray, records))
  packed = [cut.packed for cut in cuts[:task.copies]]
  batch = wire.Packed(*[np.stack(parts, axis) for parts, axis in zip(
    zip(*packed, strict=True), wire.BATCH_AXES.values(), strict=True)])
  unroll = experience.unpack(experience.Batch(*batch, np.zeros(task.copies, bool)), form)
  return jax.tree.map(jnp.asarray, unroll)
