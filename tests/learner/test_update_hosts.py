"""One learner on two hosts; each host is this file, run as a program."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config
from starleague.agent.types import Trajectory
from starleague.data.checkpoints.store import Checkpoints
from starleague.learner import train_state
from starleague.learner import update as update_lib
from tests.processes import HANG_S

ROOT = Path(__file__).parents[2]
OPTIMIZER = train_state.make_optimizer(1e-2)


def toy_loss(params, key, batch):
  noise = jax.random.normal(key, params["layer"]["w"].shape)
  x = batch.steps["x"] @ params["layer"]["w"] + batch.initial_state
  return jnp.square(x).mean() + (noise * params["layer"]["w"]).sum(), {}


def train(host, hosts):
  """Runs three updates on this host's share of batches of 16; returns host state and loss."""
  assert jax.device_count() == 8
  update = update_lib.make_update(toy_loss, OPTIMIZER)
  params = {"layer": {"w": np.arange(6, dtype=np.float32).reshape(3, 2)}}
  state = update.replicate(train_state.initial_state(params, OPTIMIZER, jax.random.key(1)))
  rows = slice(host * 16 // hosts, (host + 1) * 16 // hosts)
  for step in range(3):
    rng = np.random.default_rng(step)
    x, initial_state = (
      rng.normal(size=shape).astype(np.float32) for shape in ((2, 16, 3), (16, 2)))
    batch = Trajectory({"x": x[:, rows]}, initial_state[rows])
    state, metrics = update(state, update.place(batch))
  return update_lib.unreplicate(state), metrics["loss"]


def check_first_and_votes(host):
  """Checks that the other host gets the first one's values bit for bit, and the consensus."""
  update = update_lib.make_update(toy_loss, OPTIMIZER)
  mine = {"x": np.array([-0.0, np.nan, 1e-45, 0.1], np.float32) if host == 0
               else np.ones(4, np.float32),
          "count": np.int32(7 + host), "key": jax.random.key(host)}
  found = update_lib.unreplicate(update.replicate(mine, from_first=True))
  assert found["x"].view(np.uint32).tolist() == [2**31, 0x7fc00000, 1, 0x3dcccccd]
  assert found["count"] == 7
  assert jax.random.key_data(found["key"]).tolist() == jax.random.key_data(
    jax.random.key(0)).tolist()
  vote = update.make_vote()
  answers = [vote(x) for x in (0.0, 0.25 * host, 0.5 - 0.25 * host, 1.0)]
  assert [answer() for answer in answers] == [0.0, 0.25, 0.5, 1.0]


def run_host(host, port, directory):
  jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=host)
  assert jax.device_count() == 8 and jax.local_device_count() == 4
  check_first_and_votes(host)
  state, loss = train(host, hosts=2)
  assert np.isfinite(loss)
  saver = Checkpoints(directory, config.mini())
  if host == 0:
    saver.save(3, state)  # without the other host: Orbax must not wait for it
  else:
    with pytest.raises(RuntimeError, match="host 1 was asked to write a checkpoint .* only host 0"):
      saver.save(4, state)
  print(json.dumps(state.params["layer"]["w"].tolist()))
  jax.distributed.shutdown()


@pytest.mark.slow
def test_two_hosts_learn_the_same_as_one(tmp_path):
  with socket.socket() as free:
    free.bind(("localhost", 0))
    port = free.getsockname()[1]
  environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu",
                 "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
  processes = [
    subprocess.Popen([sys.executable, __file__, str(host), str(port), str(tmp_path)], cwd=ROOT,
                     env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for host in range(2)]
  results = []
  try:
    for process in processes:
      output, errors = process.communicate(timeout=HANG_S)
      assert process.returncode == 0, errors
      results.append(json.loads(output.splitlines()[-1]))
  finally:
    for process in processes:
      process.kill()
  expected, _ = train(0, hosts=1)
  restored = Checkpoints(tmp_path, config.mini()).restore(expected)
  assert restored.step == 3
  for found in (*results, restored.state.params["layer"]["w"]):
    np.testing.assert_allclose(found, expected.params["layer"]["w"], rtol=1e-5)


if __name__ == "__main__":
  run_host(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
