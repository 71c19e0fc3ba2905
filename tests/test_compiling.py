"""Events of compilation, and the bound of the tests' compilation cache."""

import os

import jax
import numpy as np

from tests import compiling


def test_a_program_is_heard_when_it_compiles():
  program = jax.jit(lambda x: 3 * x)
  with compiling.events() as first:
    program(np.float32(1))
  with compiling.events() as second:
    program(np.float32(2))
  jax.jit(lambda x: 4 * x)(np.float32(1))
  assert first.count(compiling.COMPILED) == 1 and second == []


def test_cached_programs_that_were_read_lately_stay(tmp_path):
  for name, read, written in (("old-cache", 10, 20), ("read-cache", 100, 20),
                              ("new-cache", 20, 100), ("notes", 10, 20)):
    (tmp_path / name).write_text("program")
    os.utime(tmp_path / name, (read, written))
  compiling.remove_unread(tmp_path, 50.0)
  assert sorted(path.name for path in tmp_path.iterdir()) == ["new-cache", "notes", "read-cache"]
