"""Runs of processes that a test waits for and kills."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import jax

from tests import compiling

DEADLINE_S = 1200
# Of whole runs: equal values, so that they share compiled programs. Against these opponents games
# of a beginner end early.
SIZES = ("environment.opponents=rusher,builder",
         "actor.games=16", "actor.inference_batch=16", "actor.iterations=16", "data.min_size=8",
         "learner.batch_size=8", "learner.value_warm_up=2", "imitation.batch_size=8")


def variables(optimised: bool = False) -> dict[str, str]:
  """Returns the environment variables of a run: the tests' compilation cache, one CPU device.

  Args:
    optimised: with XLA's level 1 instead of 0. Programs take two to three times as long to compile,
      and games a fifth of the time.
  """
  cache = jax.config.jax_compilation_cache_dir
  return {**os.environ, "XLA_FLAGS": compiling.level(int(optimised)),
          **({"JAX_COMPILATION_CACHE_DIR": cache} if cache else {})}


@contextlib.contextmanager
def running(module: str, *arguments: str, optimised: bool = False) -> Iterator[subprocess.Popen]:
  """Starts a launch file and yields its process, which is killed at the end.

  Args:
    module: name of the launch file.
    *arguments: its command line.
    optimised: whether its games are compiled with optimisations; see `tests.experiments.optimised`.
  """
  words = (["tests.experiments.optimised", module] if optimised
           else [f"starleague.experiments.{module}"])
  process = subprocess.Popen(
    [sys.executable, "-m", *words, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    text=True, env=variables(optimised))
  try:
    yield process
  finally:
    process.kill()


def output_of(process: subprocess.Popen) -> str:
  """Returns the output of a process once it has ended well."""
  output, _ = process.communicate(timeout=DEADLINE_S)
  assert process.returncode == 0, output
  return output


def kill(run: subprocess.Popen, run_dir: pathlib.Path, module: str) -> None:
  """Sends SIGKILL to the processes of a launch file, once the run has started any."""

  def found() -> list[int]:
    pids = pids_of(run_dir, module)
    assert pids or run.poll() is None, f"the run ended before its {module}:\n{run.stdout.read()}"
    return pids

  for pid in wait_for(found, module):
    os.kill(pid, signal.SIGKILL)


def saved_steps(folder: pathlib.Path) -> list[int]:
  """Returns the updates of the checkpoints in a folder, rising; none if it does not exist."""
  return sorted(int(path.name) for path in folder.glob("[0-9]*")) if folder.exists() else []


def wait_for(condition, what: str):
  end = time.monotonic() + DEADLINE_S
  while not (found := condition()):
    assert time.monotonic() < end, f"no {what} within {DEADLINE_S} s"
    time.sleep(0.2)
  return found


def pids_of(run_dir: pathlib.Path, module: str) -> list[int]:
  """Returns the processes of a launch file whose arguments name a path in a run's directory."""
  found = []
  for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
      words = path.read_bytes().split(b"\0")
    except OSError:
      continue
    if f"starleague.experiments.{module}".encode() in words and any(
        str(run_dir).encode() in word for word in words):
      found.append(int(path.parent.name))
  return found
