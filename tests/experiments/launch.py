"""Runs launch files in the tests' process."""

import signal
import sys

import pytest
from absl.testing import flagsaver

from starleague.common import stopping
from starleague.experiments.run.config import entry


def launch(module, *words):
  """Runs a launch file with a command line; returns None, or its error text."""
  handlers = {number: signal.getsignal(number) for number in stopping.SIGNALS}
  with pytest.MonkeyPatch.context() as patch, flagsaver.flagsaver():
    patch.setattr(sys, "argv", [module.__name__, *map(str, words)])
    with pytest.raises(SystemExit) as ended:
      entry.run(module.main, arguments=getattr(module, "ARGUMENTS", ((),)))
  for number, handler in handlers.items():  # launch files replace them
    signal.signal(number, handler)
  return ended.value.code


def refusal(module, *words):
  """Runs a launch file that refuses its command line; returns its error, which is one line."""
  error = launch(module, *words)
  assert error is not None and error.startswith("error: ") and "\n" not in error
  return error
