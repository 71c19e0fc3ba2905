"""Runs a league on this machine, from imitation to main agents and exploiters.

  python -m starleague.experiments.league --run league
  python -m starleague.experiments.league --run small --config.league.seconds=600
  python -m starleague.experiments.league --run sc2 --config.environment.name=sc2 \
    --config.init=pretrained

All files are written to RUNS_DIR/RUN: those of a run of `train`, league.sqlite with all results,
learners/PLAYER with checkpoints and curves, players/SNAPSHOT with frozen players, and league.html
with its page, at the end or when it is stopped. Ctrl-C stops the league cleanly; the same command
resumes it.
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


def main() -> None:
  process_runner.interrupt_on_sigterm()
  run_dir = supervision.run_dir_of(run_flags.RUNS_DIR.value, run_flags.RUN.value)
  whole_runs.execute(_CONFIG.value(), run_dir, league=True)


if __name__ == "__main__":
  entry.run(main)
