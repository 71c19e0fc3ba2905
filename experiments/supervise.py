"""Trains an agent by imitation alone, from recorded games, on this machine.

  python -m starleague.experiments.supervise --run imitator --dataset data/demonstrations
  python -m starleague.experiments.supervise --run quick --dataset D --config.imitation.epochs=2

All files are written to RUNS_DIR/RUN: config.json, imitation (checkpoints), imitation_best (the
parameters of lowest held-out loss), tensorboard, results.csv, logs and report.html. Ctrl-C stops a
run cleanly; the same command resumes it.
"""

import pathlib
import sys

from absl import flags

from starleague.experiments.run.config import config_flags, entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.processes import imitation_checks, process_runner, supervision
from starleague.learner.loops.imitation_setup import Recorded

_CONFIG = config_flags.define(pathlib.Path(__file__).parent / "configs" / "mini.py")
flags.adopt_module_key_flags(config_flags)
for _name in ("dataset", "run", "runs_dir"):
  flags.declare_key_flag(_name)


def main() -> None:
  process_runner.interrupt_on_sigterm()
  run_dir = supervision.run_dir_of(run_flags.RUNS_DIR.value, run_flags.RUN.value)
  try:
    config, dataset = _CONFIG.value(), pathlib.Path(run_flags.given(run_flags.DATASET))
    imitation_checks.check_imitation(config, Recorded(dataset), run_dir)
    with supervision.only_one(run_dir):
      supervision.prepare(config, run_dir)
      supervision.supervise(config, run_dir, dataset)
  except process_runner.ProcessFailed as error:
    sys.exit(f"error: {error}")
  except KeyboardInterrupt:
    print(f"stopped; the same command resumes from the last checkpoint in {run_dir}")
    return
  print(f"report: {run_dir / 'report.html'}")


if __name__ == "__main__":
  entry.run(main, required=["dataset"])
