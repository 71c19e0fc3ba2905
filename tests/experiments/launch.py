"""Runs launch files in the tests' process."""

import sys

import pytest
from absl.testing import flagsaver

from starleague.experiments.run import entry


def launch(module, *words):
  """Runs a launch file with a command line; returns None, or its error text."""
  with pytest.MonkeyPatch.context() as patch, flagsaver.flagsaver():
    patch.setattr(sys, "argv", [module.__name__, *map(str, words)])
    with pytest.raises(SystemExit) as ended:
      entry.run(module.main, arguments=getattr(module, "ARGUMENTS", ((),)))
  return ended.value.code
