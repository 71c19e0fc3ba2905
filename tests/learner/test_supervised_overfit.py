"""Imitation learns 64 decisions by heart, with `mini` and with a small agent on `full`'s code path.

It runs as a separate program, with XLA's optimisations:

    python -m tests.learner.test_supervised_overfit mini
"""

import dataclasses
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

from starleague.agent import config as agent_config
from starleague.agent import policy
from starleague.data import wire
from starleague.learner import supervised, terms, train_state, update
from tests.learner.random_batches import random_batch
from tests.learner.test_update_policy import random_params

ROOT = Path(__file__).parents[2]
T, B = 8, 8
UPDATES = {"mini": 300, "small_full": 400}


def small_full():
  """Returns a small agent with the options of `full`."""
  full = agent_config.full()
  scalar = dataclasses.replace(agent_config.mini().scalar, build_order_layers=2,
                               build_order_pooling=full.scalar.build_order_pooling)
  return dataclasses.replace(
    full, max_entities=32, map_size=32, location_size=64, max_selected=8, entity_size=32,
    entity_layers=2, entity_key_size=16, entity_hidden=64, scatter_size=8, map_projection=8,
    map_downsamples=(8, 16, 16), map_blocks=2, spatial_size=32, scalar=scalar, core_layers=2,
    core_size=64, head_size=32, action_blocks=2, autoregressive_size=128, key_size=16,
    function_embedding=32, location_channels=16, location_upsamples=(16, 8, 8, 1),
    baseline_size=16, baseline_blocks=1)


def decisions(config):
  """Returns 64 random legal decisions in eight games."""
  steps = random_batch(3, config, T, B).steps
  steps.weight[...] = steps.discount[...] = 1.0
  rng = np.random.default_rng(0)
  for argument in ("queued", "repeat"):
    values = getattr(steps.action, argument)
    values *= rng.integers(0, 3 if argument == "repeat" else 2, values.shape, np.uint8)
  return wire.Columns(*wire.seal(wire.pack_steps(steps), None)[:-1])


def main(name: str) -> None:
  """Learns the decisions; prints the accuracies and the illegal labels as JSON."""
  config = {"mini": agent_config.mini, "small_full": small_full}[name]()
  config = dataclasses.replace(config, temperature=1.0)
  agent, options = policy.make_policy(config), supervised.Options()
  optimizer = train_state.make_optimizer(
    optax.cosine_decay_schedule(5e-3, UPDATES[name]), b1=0.9, b2=0.999, eps=1e-8, max_norm=10.0)
  run = update.make_update(
    functools.partial(supervised.imitation_loss, agent, config, options), optimizer,
    jax.devices()[:1], batch_axes=supervised.BATCH_AXES, carries=True)
  params = random_params(agent, 0)
  state = run.replicate(train_state.initial_state(params, optimizer, jax.random.key(0)))
  carry = run.place_carry(supervised.Carry(
    np.zeros((B, *wire.packed_spec(config, T).state.shape), np.float32),
    np.zeros((B, 2), bool)))
  chunks = run.place(supervised.Chunks(decisions(config), np.ones(B, bool), None))
  for step in range(UPDATES[name]):
    state, metrics, carry = run.carried(state, chunks._replace(carry=carry))
    if step % 50 == 0:
      print({k: round(float(v), 3) for k, v in metrics.items() if "accuracy" in k},
            file=sys.stderr, flush=True)
  print(json.dumps(terms.measured(
    {name: float(value) for name, value in jax.device_get(metrics).items()})))


@pytest.mark.slow
@pytest.mark.parametrize("name", [
  "mini", pytest.param("small_full", marks=pytest.mark.nightly)])
def test_imitation_learns_64_decisions_by_heart(name):
  done = subprocess.run(
    [sys.executable, "-m", "tests.learner.test_supervised_overfit", name], cwd=ROOT,
    capture_output=True, text=True, timeout=1500, check=False,
    env={**os.environ, "JAX_PLATFORMS": "cpu",
         "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false"})
  assert done.returncode == 0, done.stderr
  metrics = json.loads(done.stdout.splitlines()[-1])
  for argument in supervised.ARGUMENTS:
    assert metrics[f"illegal/{argument}"] == 0.0, argument
    assert metrics[f"accuracy/{argument}"] > 0.99, (argument, metrics)
  assert metrics["skipped"] == 0


if __name__ == "__main__":
  main(sys.argv[1])
