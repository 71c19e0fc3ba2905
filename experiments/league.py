"""Runs a league on Skirmish on this machine, from imitation to main agents and exploiters.

  python -m starleague.experiments.league --run league
  python -m starleague.experiments.league --run small --config.league.seconds=600

All files are written to RUNS_DIR/RUN: those of a run of `train`, league.sqlite with all results,
learners/PLAYER with checkpoints and curves, players/SNAPSHOT with frozen players, and league.html
with its page, at the end or when it is stopped. Ctrl-C stops the league cleanly; the same command
resumes it.
"""

import pathlib
import sys

from absl import flags

from starleague.experiments.run import config_flags, entry, league_run, processes, supervision
from starleague.experiments.run import flags as run_flags
from starleague.viewers.league import page, reading

_CONFIG = config_flags.define(pathlib.Path(__file__).parent / "configs" / "mini.py")
flags.adopt_module_key_flags(config_flags)
for _name in ("run", "runs_dir"):
  flags.declare_key_flag(_name)


def main() -> None:
  processes.interrupt_on_sigterm()
  run_dir = supervision.run_dir_of(run_flags.RUNS_DIR.value, run_flags.RUN.value)
  try:
    config = _CONFIG.value()
    supervision.prepare(config, run_dir, league=True)
    league_run.train(config, run_dir)
  except processes.ProcessFailed as error:
    sys.exit(f"error: {error}")
  except KeyboardInterrupt:
    print(f"stopped; the same command resumes from the last checkpoints in {run_dir}")
  if (run_dir / reading.LEAGUE_NAME).exists():
    print(f"page: {page.write(run_dir)}")


if __name__ == "__main__":
  entry.run(main)
