"""Workers are replaced when they end, a few times in a row; they end with their parent."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from starleague.companions.workers.processes import MOST_LOSSES, Workers, WorkersError
from tests.companions.workers import targets
from tests.processes import runs, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]


def got(workers, number):
  connection = workers._processes[number].connection
  assert connection.poll(120)
  return connection.recv_bytes().decode()


def test_a_killed_worker_is_replaced_with_other_arguments():
  workers = Workers(2, targets.idle, lambda number, replaced: (number, replaced))
  try:
    assert [got(workers, number) for number in range(2)] == ["(0, 0)", "(1, 0)"]
    assert workers.poll() == []
    kept, killed = workers.pids()
    os.kill(killed, signal.SIGKILL)
    found = []
    wait_until(lambda: found.extend(workers.poll()) or found)
    assert found == [1] and workers.pids()[0] == kept and workers.pids()[1] != killed
    assert got(workers, 1) == "(1, 1)"
    assert workers.poll(stalled=[0]) == [0] and not runs(kept)
    assert got(workers, 0) == "(0, 1)"
    pids = workers.pids()
  finally:
    workers.close()
  assert not any(map(runs, pids))


@pytest.mark.parametrize("target, reason", [
  (targets.dying, "its process ended with status 3"), (targets.explaining, "the floor is missing")])
def test_losses_in_a_row_end_the_run_in_one_line(target, reason):
  workers, found = Workers(1, target, lambda *_: ()), []
  try:
    with pytest.raises(WorkersError) as error:
      wait_until(lambda: found.extend(workers.poll()))
  finally:
    workers.close()
  assert len(found) == MOST_LOSSES - 1
  assert str(error.value) == (
    f"worker 0 was lost {MOST_LOSSES} times in a row, each after less than 300 s of work, the last "
    f"time because {reason}; workers=0 steps the task in the training process")


def test_losses_after_a_recovery_do_not_add_up():
  workers, found = Workers(1, targets.dying, lambda *_: (), recovery_s=0.0), []
  try:
    wait_until(lambda: found.extend(workers.poll()) or len(found) > MOST_LOSSES)
  finally:
    workers.close()


def test_stalls_of_workers_that_never_worked_add_up():
  workers = Workers(1, targets.idle, lambda *_: (), recovery_s=0.0, stalled_s=1e9)
  try:
    for _ in range(MOST_LOSSES - 1):
      assert workers.poll(stalled=[0]) == [0]
    with pytest.raises(WorkersError, match="because it has made no step for 1e\\+09 s"):
      workers.poll(stalled=[0])
  finally:
    workers.close()


def test_cpu_time_counts_running_and_ended_workers():
  workers = Workers(2, targets.computing, lambda *_: ())
  try:
    assert [got(workers, number) for number in range(2)] == ["done"] * 2
    running = workers.cpu_seconds()
    assert running >= 0.95  # four numbers in ticks of 10 ms
  finally:
    workers.close()
  assert workers.cpu_seconds() >= running - 0.04


PARENT = """
import sys, time
from starleague.companions.workers.processes import Workers
from tests.companions.workers import targets
if __name__ == "__main__":
  workers = Workers(2, targets.deaf, lambda *_: ())
  for led in workers._processes:
    assert led.connection.recv_bytes() == b"ready"
  print(*workers.pids(), flush=True)
  time.sleep(3600)
"""


def test_workers_end_with_a_killed_parent(tmp_path):
  """Also those that neither read nor write."""
  (tmp_path / "parent.py").write_text(PARENT)
  parent = subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE,
                            text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
  pids = [int(word) for word in parent.stdout.readline().split()]
  assert len(pids) == 2 and all(map(runs, pids))
  parent.kill()
  parent.wait()
  parent.stdout.close()
  wait_until(lambda: not any(map(runs, pids)))
