"""The benchmark of offline learning does not count runs of other settings as its own."""

import argparse

import pytest

from benchmarks import offline


def settings(folder, **changes):
  return argparse.Namespace(**{"out": folder, "updates": 400, "games": 200, "offline": "{}"}
                            | changes)


def test_a_folder_has_runs_of_one_setting(tmp_path):
  for _ in range(2):
    offline.keep_settings(settings(tmp_path, offline='{"batch_size": 8}'))
  with pytest.raises(SystemExit) as error:
    offline.keep_settings(settings(tmp_path, updates=200))
  assert str(error.value) == (
    f'error: {tmp_path} has runs of {{"updates": 400, "games": 200, "offline": {{"batch_size": 8}}'
    '}, not of {"updates": 200, "games": 200, "offline": {}}; choose another --out')
