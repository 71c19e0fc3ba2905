"""The whole update of the published agent: one sequence of eight steps on a CPU.

It runs as a separate program, to measure its peak memory:

    python -m tests.learner.test_update_full
"""

import dataclasses
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from starleague import agent
from starleague.learner import objective, train_state, update, weights
from tests import compiling
from tests.learner.random_batches import random_batch

ROOT = Path(__file__).parents[2]
T, B = 8, 1


def main() -> None:
  """Runs one update with all terms of the objective; prints the results as JSON."""
  # The settings for a CPU; the parameters are the same.
  config = dataclasses.replace(agent.full(), dtype="float32", entity_embedding="gather")
  policy = agent.make_policy(config)
  costs = weights.RLWeights()
  shapes = jax.eval_shape(policy.init, jax.random.key(0))
  rng = np.random.default_rng(0)

  def draw():
    return jax.tree.map(
      lambda x: (rng.normal(size=x.shape) / np.sqrt(max(1, np.prod(x.shape[:-1])))).astype(x.dtype),
      shapes)

  def loss_fn(params, key, batch, teacher):
    del key
    return objective.rl_loss(policy, costs, params, teacher, batch)

  params = draw()
  optimizer = train_state.make_optimizer()
  run = update.make_update(loss_fn, optimizer, jax.devices()[:1])
  state = run.replicate(train_state.initial_state(params, optimizer, jax.random.key(0)))
  teacher = run.replicate(draw())
  batch = run.place(random_batch(0, config, T, B))
  start = time.perf_counter()
  state, metrics = run(state, batch, teacher)
  values = {name: float(x) for name, x in jax.device_get(metrics).items()}
  seconds = time.perf_counter() - start
  after = update.unreplicate(state.params)
  moved = [float(np.abs(x - y).max()) for x, y in
           zip(jax.tree.leaves(after), jax.tree.leaves(params), strict=True)]
  print(json.dumps({
    "parameters": sum(x.size for x in jax.tree.leaves(params)), "metrics": values,
    "leaves": len(moved), "leaves_moved": int(np.count_nonzero(moved)), "largest_step": max(moved),
    "seconds": seconds,
    "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))


@pytest.mark.nightly
@pytest.mark.slow
def test_the_published_agent_learns_a_step_on_a_cpu():
  done = subprocess.run(
    [sys.executable, "-m", "tests.learner.test_update_full"], cwd=ROOT, capture_output=True,
    text=True, timeout=1500, check=False,
    env={**os.environ, "JAX_PLATFORMS": "cpu",
         "XLA_FLAGS": compiling.FAST})
  assert done.returncode == 0, done.stderr
  found = json.loads(done.stdout.splitlines()[-1])
  values = found["metrics"]
  assert all(np.isfinite(x) for x in values.values())
  assert values["skipped"] == 0 and values["step"] == 1 and values["gradient_norm"] > 0.01
  assert all(values[f"illegal/{name}"] == 0.0 for name in ("function", "delay", "location"))
  assert found["parameters"] > 40e6
  # Adam's first step has the size of the learning rate.
  assert found["largest_step"] == pytest.approx(3e-5, rel=0.02)
  assert found["leaves_moved"] > 0.8 * found["leaves"]
  assert found["peak_gib"] < 8.0


if __name__ == "__main__":
  main()
