"""The learner on two hosts, two processes of this machine, each with its own data server."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import portpicker
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common import results, run_files
from starleague.data import checkpoints, wire
from starleague.data.reverb.server import make_server, make_tables
from starleague.data.reverb.writer import TrajectoryWriter
from starleague.experiments import learner as experiment
from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.games import registry
from tests import compiling
from tests.experiments.launch import launch
from tests.experiments.runs import saved_steps
from tests.learner.random_batches import random_batch

MINI = agent_config.mini()
T = 2
SETTINGS = {
  "init": "random",
  "unroll_length": T, "seconds": 1e6,
  "learner": {"batch_size": 8, "checkpoint_interval_s": 1.0, "log_interval_s": 0.2,
              "publish_interval_s": 0.5}}
DEADLINE_S = 900


def serve(batch):
  """Returns a data server that samples a batch's trajectories without limit."""
  server = make_server(make_tables(
    [run_files.PLAYER], MINI, T, samples_per_item=100_000, min_size=1, tolerance=8))
  writer = TrajectoryWriter(f"localhost:{server.port}", run_files.PLAYER, MINI, T, num_rows=1)
  for row in range(8):
    writer.send(run_files.PLAYER, wire.pack(types.Trajectory(
      jax.tree.map(lambda x, b=row: x[:, b], batch.steps),
      jax.tree.map(lambda x, b=row: x[b], batch.initial_state))))
  writer.flush()
  writer.close()
  return server


@pytest.fixture(scope="module")
def servers():
  """Two data servers with different trajectories."""
  started = [serve(random_batch(host, MINI, T, 8)) for host in range(2)]
  yield started
  for server in started:
    server.stop()


def start(run_dirs, servers):
  coordinator = f"localhost:{portpicker.pick_unused_port()}"
  environment = {
    **os.environ, "JAX_PLATFORMS": "cpu",
    # The cache of the tests: programs are compiled once per machine.
    "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir or "",
    "XLA_FLAGS": f"--xla_force_host_platform_device_count=2 {compiling.FAST}"}
  return [
    subprocess.Popen(
      [sys.executable, "-m", "starleague.experiments.learner", "--run_dir", str(run_dir),
       "--address", f"localhost:{server.port}", "--coordinator", coordinator, "--hosts", "2",
       "--host", str(host)],
      env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for host, (run_dir, server) in enumerate(zip(run_dirs, servers, strict=True))]


def finish(processes):
  """Returns (statuses, outputs) after the end of all processes."""
  try:
    outputs = [process.communicate(timeout=DEADLINE_S)[0] for process in processes]
  finally:
    for process in processes:
      process.kill()
  return [process.returncode for process in processes], outputs


def train_until(processes, run_dir, step):
  """Waits for a checkpoint later than a step."""
  end = time.monotonic() + DEADLINE_S
  while (saved_steps(run_dir / run_files.CHECKPOINTS) or [0])[-1] <= step:
    if time.monotonic() > end or any(process.poll() is not None for process in processes):
      for process in processes:
        process.kill()
      pytest.fail(f"no checkpoint after step {step}: {finish(processes)}")
    time.sleep(0.2)


def stopped_at(outputs):
  return [int(re.search(r"stopped update=(\d+)", output)[1]) for output in outputs]


@pytest.mark.slow
def test_two_hosts_train_save_once_end_together_and_resume(servers, tmp_path):
  run_dir = tmp_path / "run"
  config = settings.complete(SETTINGS)
  settings.save(config, run_dir)
  processes = start([run_dir] * 2, servers)
  train_until(processes, run_dir, 2)
  processes[1].send_signal(signal.SIGTERM)  # one gets the signal, all end
  statuses, outputs = finish(processes)
  assert statuses == [entry.INTERRUPTED] * 2, outputs
  step, other = stopped_at(outputs)
  assert step == other == saved_steps(run_dir / run_files.CHECKPOINTS)[-1] > 2

  # Host 0 alone restores, saves, publishes and logs.
  info = [server.localhost_client().server_info() for server in servers]
  assert [x[f"parameters/{run_files.PLAYER}"].current_size for x in info] == [1, 0]
  assert all(x[run_files.PLAYER].rate_limiter_info.sample_stats.completed >= 4 * step for x in info)
  assert len(list((run_dir / "tensorboard").iterdir())) == 1
  rows = results.by_tag(results.read(run_dir / results.FILE_NAME))["loss/total"]
  assert len({row.update for row in rows}) == len(rows) > 1
  assert np.isfinite([row.value for row in rows]).all()

  processes = start([run_dir] * 2, servers)
  train_until(processes, run_dir, step)
  for process in processes:
    process.send_signal(signal.SIGTERM)
  statuses, outputs = finish(processes)
  assert statuses == [entry.INTERRUPTED] * 2, outputs
  assert f"restored update={step} " in outputs[0] and "restored" not in outputs[1]
  last, other = stopped_at(outputs)
  assert last == other == saved_steps(run_dir / run_files.CHECKPOINTS)[-1] > step
  parts = registry.make_parts(config)
  before, after = (
    checkpoints.load_params(run_dir / path, parts.config)
    for path in (run_files.INITIAL, run_files.CHECKPOINTS))
  moved = jax.tree.map(lambda x, y: float(np.abs(x - y).max()), before, after)
  assert max(jax.tree.leaves(moved)) > 1e-3


@pytest.mark.slow
def test_non_finite_updates_stop_all_hosts_with_a_diagnosis(servers, tmp_path):
  """One host has a NaN reward: both hosts skip the same updates, stop, and write a diagnosis."""
  run_dir = tmp_path / "run"
  spoilt = random_batch(2, MINI, T, 8)
  spoilt.steps.weight[:] = 1.0
  spoilt.steps.reward[1, :, 0] = np.nan
  learner_settings = SETTINGS["learner"] | {"max_skipped": 3, "checkpoint_interval_s": 1e6}
  settings.save(settings.complete(SETTINGS | {"learner": learner_settings}), run_dir)
  server = serve(spoilt)
  statuses, outputs = finish(start([run_dir] * 2, [servers[0], server]))
  server.stop()
  assert statuses == [1, 1], outputs
  for output in outputs:
    assert "error: 3 updates in a row were not finite, the last at step 3" in output
    assert "Traceback" not in output
  fine, bad = (
    json.loads((run_dir / "diagnosis" / f"not_finite_step_3_process_{host}.json").read_text())
    for host in range(2))
  assert fine["not_finite_batch_leaves"] == {}
  assert bad["not_finite_batch_leaves"] == {
    ".steps.reward": {"count": 4, "first_index": [0, 1, 0, 0]}}  # device, step, row, winloss
  for found in (fine, bad):  # only the terms that depend on rewards
    assert {"loss/policy", "loss/value", "value/winloss"} <= set(found["not_finite_metrics"])
    assert "loss/entropy" not in found["not_finite_metrics"]
  assert saved_steps(run_dir / run_files.CHECKPOINTS) == [1]  # the first update alone


@pytest.mark.slow
def test_hosts_with_different_configs_raise(servers, tmp_path):
  run_dirs = [tmp_path / "one", tmp_path / "two"]
  for seed, run_dir in enumerate(run_dirs):
    settings.save(settings.complete(SETTINGS | {"seed": seed}), run_dir)
  statuses, outputs = finish(start(run_dirs, servers))
  assert statuses == [1, 1]
  assert all("error: the hosts have read different settings" in output for output in outputs)


@pytest.mark.parametrize("waits", [False, True])
def test_the_process_ends_at_once_while_a_thread_waits_for_reverb(tmp_path, monkeypatch, waits):
  """Such a thread would abort the process while Python ends."""
  ended = []
  monkeypatch.setattr(experiment.reinforcement, "learn", lambda *arguments: True)
  monkeypatch.setattr(experiment.sampler, "waiting", lambda: waits)
  monkeypatch.setattr(experiment.os, "_exit", ended.append)
  settings.save(settings.complete({}), tmp_path)
  assert launch(experiment, "--run_dir", tmp_path, "--address", "localhost:1") is None
  assert ended == [0] * waits
