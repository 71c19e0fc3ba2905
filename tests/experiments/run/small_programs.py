"""Small programs that tests run as processes."""

import sys
import textwrap
import time

from starleague.experiments.run.processes.programs import Process


def python_process(tmp_path, name, code, restarts=0, env=None):
  """Returns a process that runs a script without site packages, which starts fast."""
  script = tmp_path / f"{name}.py"
  script.write_text(textwrap.dedent(code))
  argv = [sys.executable, "-I", "-S", "-u", str(script)]
  return Process(name, argv, env or {}, tmp_path / "logs" / f"{name}.log", restarts)


def until(condition, seconds=20.0):
  """Waits for a condition with a deadline; returns its value."""
  end = time.monotonic() + seconds
  while time.monotonic() < end:
    if value := condition():
      return value
    time.sleep(0.01)
  raise AssertionError(f"no result within {seconds} s: {condition}")


def log_of(process):
  return process.log_path.read_text() if process.log_path.exists() else ""
