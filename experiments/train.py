"""Trains an agent on Skirmish on this machine: data server, actors, learner, progress, report.

  python -m starleague.experiments.train --run mini
  python -m starleague.experiments.train --run fast --config.seconds=120 --config.seed=1

All files are written to RUNS_DIR/RUN: config.json, checkpoints, tensorboard, results.csv,
league.sqlite, logs and report.html. Ctrl-C stops a run cleanly; the same command resumes it.
"""

import pathlib

from absl import flags

from starleague.experiments.run.config import config_flags, entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.processes import process_runner, supervision, whole_runs

_CONFIG = config_flags.define(pathlib.Path(__file__).parent / "configs" / "mini.py")
flags.adopt_module_key_flags(config_flags)
for _name in ("run", "runs_dir"):
  flags.declare_key_flag(_name)
_EVALUATE = flags.DEFINE_bool("evaluate", True, "Play the evaluation games at the end.")


def main() -> None:
  process_runner.interrupt_on_sigterm()
  run_dir = supervision.run_dir_of(run_flags.RUNS_DIR.value, run_flags.RUN.value)
  whole_runs.execute(_CONFIG.value(), run_dir, evaluate=_EVALUATE.value)


if __name__ == "__main__":
  entry.run(main)
