"""Kills a process while it saves; the process is this file, run as a program."""

import importlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from starleague.agent import config
from starleague.data.checkpoints.store import Checkpoints
from starleague.learner.train_state import TrainState
from tests.processes import HANG_S

ROOT = Path(__file__).parents[3]


def state_of(step: int) -> TrainState:
  """Returns a state whose values all equal the step."""
  zero = np.zeros((), np.int32)
  params = {"layer": {"w": np.full((64, 64), step, np.float32)}}
  return TrainState(params, {"mean": np.full(1000, step, np.float32)}, zero + step, zero, zero,
                    zero)


def save_for_ever(directory: str) -> None:
  """Saves each step twice: the second checkpoint replaces the first."""
  saver = Checkpoints(directory, config.mini(), keep_last=1, keep_every=5)
  restored = saver.restore(state_of(0))
  step = 0 if restored is None else restored.step
  os.write(1, b"ready\n")
  while True:
    step += 1
    for _ in range(2):
      saver.save(step, state_of(step))
      os.write(1, b"saved %d\n" % step)


def main() -> None:
  """Forks savers from one warm parent: a line on stdin starts one, an empty line ends the program.

  Writes to stdout each saved step, and the start and end of each child.
  """
  importlib.import_module("orbax.checkpoint")  # once, before the first fork
  for line in sys.stdin:
    if not line.strip():
      return
    child = os.fork()
    if child == 0:
      save_for_ever(sys.argv[1])
    os.write(1, b"child %d\n" % child)
    os.waitpid(child, 0)
    os.write(1, b"gone\n")


@pytest.mark.slow
def test_killed_at_any_moment_the_newest_checkpoint_is_sound(tmp_path):
  process = subprocess.Popen(
    [sys.executable, __file__, str(tmp_path)],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=ROOT,
    env={**os.environ, "PYTHONPATH": str(ROOT)})
  # A deadline for all reads below: it ends the saver and closes its output.
  watchdog = threading.Timer(HANG_S, process.kill)
  watchdog.start()
  random_moment = random.Random(0)
  saved, kills_with_leftovers = 0, 0
  try:
    for kill in range(20):
      print("go", file=process.stdin)
      child, lines = None, []
      # Every other child saves at least once, however busy the machine is. The fork and the child's
      # first line may come in either order.
      awaited = "saved" if kill % 2 else "ready"
      while child is None or not any(line.startswith(awaited) for line in lines):
        line = process.stdout.readline()
        assert line, "the saver died"
        lines.append(line.strip())
        if line.startswith("child"):
          child = int(line.split()[1])
      time.sleep(random_moment.uniform(0.02, 0.8))
      os.kill(child, signal.SIGKILL)
      while lines[-1] != "gone":
        lines.append(process.stdout.readline().strip())
        assert lines[-1], "the saver died"
      saved = max([saved, *(int(line.split()[1]) for line in lines if line.startswith("saved"))])
      kills_with_leftovers += any(path.name.startswith(".") for path in tmp_path.iterdir())
      saved = check_newest(tmp_path, saved)
    print(file=process.stdin)
    assert process.wait(HANG_S) == 0
  finally:
    watchdog.cancel()
    process.kill()
  print(f"killed 20 times, {kills_with_leftovers} of them during a save; reached step {saved}; the "
        "newest checkpoint was always intact, and no reported one was lost")
  assert saved >= 5  # it made progress
  assert kills_with_leftovers >= 3  # and was killed during saves
  reader = Checkpoints(tmp_path, config.mini())
  assert [step for step in reader.steps() if step < saved - 1] == list(range(5, saved - 1, 5))


def check_newest(directory, saved):
  """Checks a killed saver's directory, whose last report was `saved`; returns the newest step."""
  reader = Checkpoints(directory, config.mini())
  restored = reader.restore(state_of(0))
  if restored is None:
    assert saved == 0
    return 0
  assert restored.step == reader.steps()[-1]  # none was damaged and skipped
  assert restored.step in (saved, saved + 1)  # nothing that was reported is lost
  expected = state_of(restored.step)
  for a, e in zip(jax.tree.leaves(restored.state), jax.tree.leaves(expected), strict=True):
    np.testing.assert_array_equal(a, e)
  return restored.step


if __name__ == "__main__":
  main()
