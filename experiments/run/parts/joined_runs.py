"""The run that a process joins, also on a node that does not share the run's directory."""

import ml_collections

from starleague.common import run_files
from starleague.experiments.run.config import settings
from starleague.league.run_copy import RunCopy


def load_config(run: RunCopy) -> ml_collections.ConfigDict:
  """Returns the config of a run. Copies it, and the run's library of z, where they are missing.

  Raises the errors of `settings.load` and `RunCopy.fetch`.
  """
  for name in (run_files.CONFIG, run_files.LIBRARY):
    run.fetch(name)
  return settings.load(run.run_dir)
