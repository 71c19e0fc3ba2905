"""Importing the league is cheap."""

import subprocess
import sys

from tests.processes import HANG_S


def test_import_loads_neither_scipy_nor_grpc():
  """Every process of a run imports the league; few compute ratings or talk to a coordinator."""
  program = ("import sys, starleague.league; "
             "print(sorted(name for name in sys.modules if name.startswith(('scipy', 'grpc'))))")
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                        timeout=HANG_S)
  assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
