"""Datasets on disk: what is written comes back, whole or not at all."""

import json

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types, wire
from starleague.learner import recordings

CONFIG = agent_config.mini()
UNROLL_LENGTH = 2


def packed(number: int) -> wire.Packed:
  """A trajectory of random bytes and its number."""
  random = np.random.default_rng(number)
  spec = wire.packed_spec(CONFIG, UNROLL_LENGTH)
  made = wire.Packed(*[random.integers(0, 9, x.shape).astype(x.dtype) for x in spec])
  made.int32[0, 0] = number
  return made


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
  path = tmp_path_factory.mktemp("data") / "games"
  recordings.save(path, map(packed, range(6)), "mini", UNROLL_LENGTH, 6, "a test")
  return path


def test_everything_comes_back_and_again(recorded):
  seen = set()
  with recordings.dataset(recorded, 4) as batches:
    assert batches.recording == recordings.describe(recorded)
    assert batches.recording.trajectories == 6 and batches.recording.origin == "a test"
    for _ in range(30):  # without end: far more than there is
      batch = next(batches)
      for b, number in enumerate(batch.int32[0, :, 0].tolist()):
        expected = packed(number)
        for name in wire.Columns._fields:
          np.testing.assert_array_equal(getattr(batch, name)[:, b], getattr(expected, name))
        np.testing.assert_array_equal(batch.state[b], expected.state)
        seen.add(number)
  # Each of 120 draws misses a given one of six with 5/6: all are seen but for one in 5e8.
  assert seen == set(range(6))


def test_a_batch_unpacks_to_trajectories(recorded):
  with recordings.dataset(recorded, 2) as batches:
    trajectory = wire.unpack(next(batches), batches.config)
  spec = types.trajectory_spec(CONFIG, UNROLL_LENGTH)
  assert trajectory.steps.reward.shape == (UNROLL_LENGTH + 1, 2, 5)
  assert trajectory.steps.observation.entities.shape[2:] == spec.steps.observation.entities.shape[1:]


def test_only_the_folder_is_left(recorded):
  assert [path.name for path in recorded.parent.iterdir()] == ["games"]


def test_an_existing_folder_is_not_touched(tmp_path):
  (tmp_path / "mine").write_text("kept")
  with pytest.raises(FileExistsError, match="mine exists: a recording is written once"):
    recordings.save(tmp_path / "mine", iter(()), "mini", UNROLL_LENGTH, 1, "")
  assert (tmp_path / "mine").read_text() == "kept"


def test_too_few_or_wrong_trajectories_leave_nothing(tmp_path):
  with pytest.raises(ValueError, match="expected 3 trajectories, found 2"):
    recordings.save(tmp_path / "few", map(packed, range(2)), "mini", UNROLL_LENGTH, 3, "")
  wrong = packed(0)._replace(float32=np.zeros((UNROLL_LENGTH + 2, 14), np.float32))
  with pytest.raises(ValueError, match="field 'float32' of trajectory 1: expected float32.*3, 14.*4"):
    recordings.save(tmp_path / "wrong", [packed(0), wrong], "mini", UNROLL_LENGTH, 2, "")
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("change", "message"), [
  ({"schema": 99}, "another schema: expected 1, found 99"),
  ({"vocabulary": "0"}, "another vocabulary: expected '.*', found '0'"),
  ({"colour": "red"}, "is damaged: .*colour")])
def test_other_recordings_are_refused(recorded, tmp_path, change, message):
  values = json.loads((recorded / recordings.MANIFEST).read_text()) | change
  (tmp_path / recordings.MANIFEST).write_text(json.dumps(values))
  with pytest.raises(recordings.RecordingError, match=message):
    recordings.dataset(tmp_path, 2)


def test_what_is_no_recording_is_named(tmp_path):
  with pytest.raises(recordings.RecordingError, match=f"{tmp_path} is not a recording"):
    recordings.dataset(tmp_path, 2)
  (tmp_path / recordings.MANIFEST).write_text("{")
  with pytest.raises(recordings.RecordingError, match="recording.json is damaged"):
    recordings.describe(tmp_path)
