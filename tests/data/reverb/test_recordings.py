"""Recordings: saving, reading, and the example of the docs."""

import os
import pathlib
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

from starleague import agent
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common import manifests
from starleague.data import checkpoints, wire
from starleague.data.reverb import datasets, recordings
from tests.learner import numpy_twins as twins
from tests.learner.random_batches import random_batch

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONFIG = agent_config.mini()
UNROLL_LENGTH = 2


def packed(number: int, config: agent_config.AgentConfig = CONFIG) -> wire.Packed:
  """Returns a trajectory of random integers with a number in it."""
  random = np.random.default_rng(number)
  spec = wire.packed_spec(config, UNROLL_LENGTH)
  made = wire.Packed(*[random.integers(0, 9, x.shape).astype(x.dtype) for x in spec])
  made.int32[0, 0] = number
  return made


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
  path = tmp_path_factory.mktemp("data") / "games"
  recordings.save(path, map(packed, range(6)), "mini", UNROLL_LENGTH, 6, "a test")
  return path


def test_a_recording_returns_every_trajectory_repeatedly(recorded):
  seen = set()
  with datasets.dataset(recorded, 4) as batches:
    assert batches.recording == recordings.describe(recorded)
    assert batches.recording.trajectories == 6 and batches.recording.origin == "a test"
    for _ in range(30):  # endless: far more than the recording holds
      batch = next(batches)
      for b, number in enumerate(batch.int32[0, :, 0].tolist()):
        expected = packed(number)
        for name in wire.Columns._fields:
          np.testing.assert_array_equal(getattr(batch, name)[:, b], getattr(expected, name))
        np.testing.assert_array_equal(batch.state[b], expected.state)
        seen.add(number)
  # 120 draws all miss one of six with probability 6 * (5/6)^120 = 2e-9.
  assert seen == set(range(6))


def test_a_batch_unpacks_to_trajectories(recorded):
  with datasets.dataset(recorded, 2) as batches:
    trajectory = wire.unpack(next(batches), batches.config)
  spec = types.trajectory_spec(CONFIG, UNROLL_LENGTH)
  assert trajectory.steps.reward.shape == (UNROLL_LENGTH + 1, 2, 5)
  expected = spec.steps.observation.entities.shape[1:]
  assert trajectory.steps.observation.entities.shape[2:] == expected


def test_a_recording_of_a_changed_preset_says_so(recorded, tmp_path):
  changed = "core_size=32"
  config = agent_config.changed(CONFIG, changed)
  path = tmp_path / "games"
  recordings.save(path, [packed(7, config)], "mini", UNROLL_LENGTH, 1, "a test", changed)
  with datasets.dataset(path, 1) as batches:
    assert batches.config == config and batches.config.core_size == 32
    np.testing.assert_array_equal(next(batches).state[0], packed(7, config).state)
  assert recordings.describe(path).agent == changed
  assert "agent" not in manifests.read(recorded / recordings.MANIFEST)  # as in earlier versions
  with pytest.raises(recordings.RecordingError, match=(
      "with another size of the core state: expected 128, found 64; read it as it is, or record")):
    datasets.dataset(path, 1, config=CONFIG)
  described = manifests.read(path / recordings.MANIFEST)
  manifests.replace(path / recordings.MANIFEST, {**described, "agent": "cores=2"},
                    described["files"])
  with pytest.raises(recordings.RecordingError, match="json: agent: found 'cores=2', expected FI"):
    recordings.describe(path)


def test_saving_leaves_no_other_files(recorded):
  assert [path.name for path in recorded.parent.iterdir()] == ["games"]


def test_an_existing_path_is_not_overwritten(tmp_path):
  (tmp_path / "mine").write_text("kept")
  with pytest.raises(FileExistsError, match="mine exists: a recording is written once"):
    recordings.save(tmp_path / "mine", iter(()), "mini", UNROLL_LENGTH, 1, "")
  assert (tmp_path / "mine").read_text() == "kept"


def test_too_few_or_invalid_trajectories_leave_nothing(tmp_path):
  with pytest.raises(ValueError, match="expected 3 trajectories, found 2"):
    recordings.save(tmp_path / "few", map(packed, range(2)), "mini", UNROLL_LENGTH, 3, "")
  wrong = packed(0)._replace(float32=np.zeros((UNROLL_LENGTH + 2, 14), np.float32))
  with pytest.raises(
      ValueError, match="field 'float32' of trajectory 1: expected float32.*3, 14.*4"):
    recordings.save(tmp_path / "wrong", [packed(0), wrong], "mini", UNROLL_LENGTH, 2, "")
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("source", "message"), [
  ("data/none", "'data/none' is neither a folder of recorded trajectories nor the host:port"),
  ("localhost:1", "needs player, config and unroll_length; found None, None and None")])
def test_invalid_sources_are_refused(source, message):
  with pytest.raises(ValueError, match=message):
    datasets.dataset(source, 2)


@pytest.mark.slow
def test_the_example_of_the_docs_runs(tmp_path):
  """Runs the code of docs/datasets.md on copies of one trajectory: all means are equal."""
  page = (ROOT / "docs" / "datasets.md").read_text()
  examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
  code, = (example for example in examples if "with dataset(" in example)
  assert len(code.splitlines()) <= 26
  batch = random_batch(0, CONFIG, UNROLL_LENGTH, 1)
  trajectory = types.Trajectory(
    jax.tree.map(lambda x: x[:, 0], batch.steps), jax.tree.map(lambda x: x[0], batch.initial_state))
  recordings.save(tmp_path / "data" / "mini", [wire.pack(trajectory)] * 3, "mini", UNROLL_LENGTH, 3,
                  "a test")
  policy = agent.make_policy(CONFIG)
  params = policy.init(jax.random.key(0))
  checkpoints.save_params(tmp_path / "runs/mini/checkpoints", jax.device_get(params), CONFIG)
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300,
    env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}, check=False)
  assert done.returncode == 0, done.stderr
  found = [float(line) for line in done.stdout.split()]
  values = np.asarray(jax.jit(policy.unroll)(params, trajectory).baselines[:, 0], np.float64)
  returns = twins.upgo(values[:-1], values[-1], trajectory.steps.reward[:-1, 0],
                       trajectory.steps.discount[:-1])
  assert len(found) == 10
  np.testing.assert_allclose(found, np.mean(returns - values[:-1]), rtol=1e-4, atol=1e-5)
