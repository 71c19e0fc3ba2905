"""A run that is too short to measure ends the benchmark in one line."""

import subprocess

import pytest

from benchmarks import run
from starleague.common import results


def test_a_run_without_an_update_is_named(tmp_path, monkeypatch):
  def train(*arguments, **options):
    (tmp_path / "short").mkdir()
    results.append(tmp_path / "short" / results.FILE_NAME,
                   [results.Row(seconds=1.0, update=0, tag="count/steps", value=8.0)])

  monkeypatch.setattr(subprocess, "run", train)
  with pytest.raises(SystemExit, match=r"^error: the run ended before its first update; raise "
                                       r"--seconds$"):
    run.whole(tmp_path, "short", 1.0)
