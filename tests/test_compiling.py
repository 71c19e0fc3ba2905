"""Bound of the tests' compilation cache."""

import os

from tests import compiling


def test_cached_programs_that_were_read_lately_stay(tmp_path):
  for name, read, written in (("old-cache", 10, 20), ("read-cache", 100, 20),
                              ("new-cache", 20, 100), ("notes", 10, 20)):
    (tmp_path / name).write_text("program")
    os.utime(tmp_path / name, (read, written))
  compiling.remove_unread(tmp_path, 50.0)
  assert sorted(path.name for path in tmp_path.iterdir()) == ["new-cache", "notes", "read-cache"]
