"""Runs a program of pysc2 on this Python: its module and its arguments follow.

  python -m starleague.environments.sc2.run pysc2.bin.agent --map Simple64 --norender

`python -m pysc2.bin.agent` fails on Python 3.11, because pysc2 4.0.0 was written for older ones.
Its programs for replays fail on any Python: the package `pysc2.lib.replay` hides their module
`pysc2/lib/replay.py`.
"""

import pathlib
import runpy
import sys

from starleague.common.errors import UserError
from starleague.environments.sc2 import protocol

assert protocol  # makes pysc2 importable

_USAGE = "usage: python -m starleague.environments.sc2.run MODULE [ARGUMENT ...]"


def run(module: str, arguments: list[str]) -> None:
  """Runs a module as `python -m MODULE ARGUMENTS` would.

  Args:
    module: name of a module or of a package with a `__main__`.
    arguments: of the program.

  Raises:
    UserError: there is no such module.
  """
  _repair_replay()
  sys.argv[:] = [module, *arguments]
  try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
  except ImportError as error:
    if error.name is not None:  # a failed import of the program itself
      raise
    raise UserError(f"module: expected one that can be run, such as pysc2.bin.agent, "
                    f"found {module!r}: {error}") from error


def _repair_replay() -> None:
  """Gives the package `pysc2.lib.replay` the function of the module that it hides."""
  from pysc2.lib import replay
  hidden = pathlib.Path(replay.__path__[0]).with_suffix(".py")
  replay.get_replay_version = runpy.run_path(str(hidden))["get_replay_version"]


def main() -> None:
  """Runs the module that the command line names."""
  if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
    sys.exit(_USAGE)
  try:
    run(sys.argv[1], sys.argv[2:])
  except UserError as error:
    sys.exit(f"error: {error}")


if __name__ == "__main__":
  main()
