"""Runs of processes that a test waits for and kills."""

import pathlib
import time

DEADLINE_S = 1200


def wait_for(condition, what: str):
  end = time.monotonic() + DEADLINE_S
  while not (found := condition()):
    assert time.monotonic() < end, f"no {what} within {DEADLINE_S} s"
    time.sleep(0.2)
  return found


def pids_of(run_dir: pathlib.Path, module: str) -> list[int]:
  found = []
  for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
      words = path.read_bytes().split(b"\0")
    except OSError:
      continue
    if f"starleague.experiments.{module}".encode() in words and str(run_dir).encode() in words:
      found.append(int(path.parent.name))
  return found
