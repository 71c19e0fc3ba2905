"""Damaged and swapped checkpoints: skipped, named, set aside, never removed."""

import logging
import shutil

import pytest

from starleague.data import checkpoints
from starleague.data.checkpoints.store import CheckpointDamagedError, Checkpoints
from tests.data.checkpoints.states import MINI, assert_same, flip_a_bit, largest_file, make_state


def every_file(directory):
  return sorted(file.relative_to(directory) for file in directory.rglob("*") if file.is_file())


@pytest.mark.parametrize("how", ["flipped", "missing", "empty"])
def test_damage_to_any_file_is_found_and_the_previous_one_used(two, tmp_path, caplog, how):
  names = every_file(two / "000000000002")
  assert len(names) >= 10
  for i, name in enumerate(names):
    directory = shutil.copytree(two, tmp_path / str(i))
    file = directory / "000000000002" / name
    if how == "flipped":
      flip_a_bit(file)
    elif how == "missing":
      file.unlink()
    else:
      file.write_bytes(b"")
    caplog.clear()
    with caplog.at_level(logging.WARNING):
      restored = Checkpoints(directory, MINI).restore(make_state())
    assert restored.step == 1
    assert_same(restored.state, make_state(1))
    warning, = [record.getMessage() for record in caplog.records
                if record.name.startswith("starleague")]
    assert str(file) in warning
    with pytest.raises(CheckpointDamagedError, match=name.name):
      Checkpoints(directory, MINI).restore(make_state(), step=2)


def test_all_damaged_is_an_error(copied):
  for step in (1, 2):
    flip_a_bit(largest_file(copied / f"{step:012d}"))
  with pytest.raises(CheckpointDamagedError,
                     match=r"every checkpoint .* is damaged: steps \[1, 2\]"):
    Checkpoints(copied, MINI).restore(make_state())


def test_a_run_sets_a_damaged_checkpoint_aside_and_saves_its_step_again(copied):
  damaged = largest_file(copied / "000000000002")
  flip_a_bit(damaged)
  saver = Checkpoints(copied, MINI, keep_last=1)
  assert saver.restore(make_state()).step == 1
  saver.save(2, make_state(7))
  assert saver.steps() == [2]
  assert_same(Checkpoints(copied, MINI).restore(make_state()).state, make_state(7))
  # A repair of its file makes it a checkpoint again: nothing of it was removed.
  flip_a_bit(copied / "damaged-000000000002" / damaged.relative_to(copied / "000000000002"))
  assert_same(checkpoints.load_params(copied / "damaged-000000000002"), make_state(2).params)


def test_a_step_may_be_damaged_again(copied):
  for _ in range(2):
    saver = Checkpoints(copied, MINI)
    flip_a_bit(largest_file(copied / "000000000002"))
    assert saver.restore(make_state()).step == 1
    saver.save(2, make_state(2))
  assert sorted(path.name for path in copied.glob("damaged*")) == [
    "damaged-000000000002", "damaged-000000000002-"]


def test_a_damaged_newest_checkpoint_does_not_displace_the_newest_sound_one(copied):
  """It was damaged after the process that saves had restored it."""
  saver = Checkpoints(copied, MINI, keep_last=1)
  saver.restore(make_state())
  flip_a_bit(largest_file(copied / "000000000002"))
  with pytest.raises(ValueError):
    saver.save(1, make_state(1))  # nothing is removed by a save that is refused
  assert saver.restore(make_state()).step == 1
  saver.save(3, make_state(3))
  assert saver.steps() == [3]
  assert Checkpoints(copied, MINI).restore(make_state()).step == 3


def test_damaged_checkpoints_do_not_count_as_kept(copied):
  saver = Checkpoints(copied, MINI, keep_last=2)
  saver.save(4, make_state(4))
  assert saver.steps() == [2, 4]
  flip_a_bit(largest_file(copied / "000000000004"))
  saver = Checkpoints(copied, MINI, keep_last=2)
  assert saver.restore(make_state()).step == 2
  saver.save(3, make_state(3))  # earlier than the damaged one, which is set aside
  assert saver.steps() == [2, 3]


def test_unlisted_files_are_ignored_with_a_warning_and_nothing_sound_is_lost(copied, caplog):
  stray = copied / "000000000002" / "params" / ".DS_Store"
  stray.write_text("x")
  saver = Checkpoints(copied, MINI)
  with caplog.at_level(logging.WARNING):
    assert_same(saver.restore(make_state()).state, make_state(2))
  warning, = [record.getMessage() for record in caplog.records
              if record.name.startswith("starleague")]
  assert "does not list: params/.DS_Store" in warning
  saver.save(3, make_state(3))
  assert saver.steps() == [1, 2, 3] and stray.exists()
  assert checkpoints.load_params(copied / "000000000002")["policy"].keys() == {"scale", "none"}


def swap(directory, one, other):
  (directory / one).rename(directory / "swapped")
  (directory / other).rename(directory / one)
  (directory / "swapped").rename(directory / other)


def test_swapped_checkpoints_are_skipped_and_never_deleted(copied, caplog):
  Checkpoints(copied, MINI).save(3, make_state(3))
  swap(copied, "000000000002", "000000000003")
  saver = Checkpoints(copied, MINI, keep_last=1)
  with caplog.at_level(logging.WARNING):
    assert saver.restore(make_state()).step == 1
  assert "000000000003 holds the checkpoint of step 2, expected step 3" in caplog.text
  assert_same(checkpoints.load_params(copied), make_state(1).params)
  saver.save(2, make_state(7))
  assert saver.steps() == [2]
  for name, step in (("misplaced-000000000002", 3), ("misplaced-000000000003", 2)):
    assert_same(checkpoints.load_params(copied / name), make_state(step).params)


def test_only_swapped_checkpoints_are_an_error(copied):
  swap(copied, "000000000001", "000000000002")
  with pytest.raises(CheckpointDamagedError, match="every checkpoint .* is damaged"):
    Checkpoints(copied, MINI).restore(make_state())
  with pytest.raises(CheckpointDamagedError, match="step 1, expected step 2: give the folder its"):
    Checkpoints(copied, MINI).restore(make_state(), step=2)
