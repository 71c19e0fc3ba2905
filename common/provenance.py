"""Provenance of results: the commit of the source tree, and the machine."""

import os
import pathlib
import platform
import subprocess

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_CPUS = pathlib.Path("/proc/cpuinfo")


def commit(folder: pathlib.Path = _ROOT) -> str | None:
  """Returns the first 12 digits of the commit of the repository at `folder`; None without one.

  A folder inside a repository is none itself: an installed package may lie inside any other.
  """
  # In a git hook, GIT_DIR names the repository of the hook.
  variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
  try:
    found = subprocess.run(["git", "rev-parse", "--show-toplevel", "--short=12", "HEAD"],
                           capture_output=True, text=True, check=False, cwd=folder, env=variables)
  except FileNotFoundError:  # no git
    return None
  if found.returncode:
    return None
  top, _, short = found.stdout.rstrip("\n").rpartition("\n")
  return short if pathlib.Path(top).resolve() == folder.resolve() else None


def machine(cpus: pathlib.Path = _CPUS) -> str:
  """Returns this machine's processor and the number of cores that this process may use."""
  name = platform.machine()
  if cpus.is_file():
    for line in cpus.read_text(encoding="utf-8", errors="replace").splitlines():
      if line.startswith("model name"):
        name = line.partition(":")[2].strip()
        break
  return f"{name}, {len(os.sched_getaffinity(0))} cores"
