"""Counts of an actor's steps and games."""

import pytest

from starleague.actor.loops import counts
from starleague.common import results


@pytest.mark.parametrize("name, tags", [
  (None, {"count/steps": 12, "count/games": 3}),
  ("1", {"count/steps": 12, "count/games": 3, "actor/1": 12 / 6})])
def test_counts_are_reported_every_few_seconds(name, tags, tmp_path, monkeypatch):
  now = [100.0]
  monkeypatch.setattr(counts.time, "time", lambda: now[0])
  counted = counts.Counts(tmp_path, 90.0, name)
  assert counted.add(5, 1) is None
  now[0] = 106.0
  assert counted.add(7, 2, update=4) == 106.0
  found = results.read(tmp_path / results.FILE_NAME)
  assert {row.tag: row.value for row in found} == tags
  assert {(row.seconds, row.update) for row in found} == {(16.0, 4)}
