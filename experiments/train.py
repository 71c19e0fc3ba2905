"""Trains an agent on Skirmish on this machine: data server, actors, learner, progress, report.

  python -m starleague.experiments.train --run mini
  python -m starleague.experiments.train --run fast --config.seconds=120 --config.seed=1

All files are written to RUNS_DIR/RUN: config.json, checkpoints, tensorboard, results.csv,
league.sqlite, logs and report.html. Ctrl-C stops a run cleanly; the same command resumes it.
"""

import pathlib
import sys

import ml_collections
from absl import flags

from starleague.experiments.run import entry, processes, settings, supervision

_CONFIG = entry.define_config(pathlib.Path(__file__).parent / "configs" / "mini.py")
flags.declare_key_flag("config")
_RUN = flags.DEFINE_string("run", "mini", "Name of the run: its directory in --runs_dir.")
_RUNS_DIR = flags.DEFINE_string("runs_dir", "runs", "Directory of all runs.")
_EVALUATE = flags.DEFINE_bool("evaluate", True, "Play the evaluation games at the end.")


def chosen_settings() -> ml_collections.ConfigDict:
  """Returns the config that the flags select.

  Raises:
    SettingsError: the config file cannot be read, or holds an invalid value.
  """
  try:
    values = _CONFIG.value.to_dict()
  except OSError as error:
    raise settings.SettingsError(f"--config: {' '.join(str(error).split())}") from error
  return settings.complete(values)


def main() -> None:
  processes.interrupt_on_sigterm()
  run_dir = pathlib.Path(_RUNS_DIR.value) / _RUN.value
  try:
    config = chosen_settings()
    supervision.prepare(config, run_dir)
    supervision.train(config, run_dir, _EVALUATE.value)
  except processes.ProcessFailed as error:
    sys.exit(f"error: {error}")
  except KeyboardInterrupt:
    print(f"stopped; the same command resumes from the last checkpoint in {run_dir}")
    return
  print(f"report: {run_dir / 'report.html'}")


if __name__ == "__main__":
  entry.run(main)
