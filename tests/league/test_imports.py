"""Importing the league is cheap."""

import subprocess
import sys


def test_import_does_not_load_scipy():
  """Every process of a run imports the league; few compute ratings."""
  program = ("import sys, starleague.league; "
             "print(sorted(name for name in sys.modules if name.startswith('scipy')))")
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
  assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
