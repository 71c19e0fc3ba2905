"""Trains a companion system on a task on this machine: one of those that AlphaStar stands beside.

  python -m starleague.experiments.companion impala
  python -m starleague.experiments.companion impala --run asterix --set.task=minatar-asterix

All files are written to RUNS_DIR/RUN, by default RUNS_DIR/SYSTEM: config.json, checkpoints,
tensorboard, results.csv and report.html. Ctrl-C stops a run cleanly; the same command resumes it.
"""

from absl import flags

from starleague.common import stopping
from starleague.experiments.run.companions import runs, system_flags
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.processes import supervision
from starleague.experiments.run.progress import bar

ARGUMENTS = (("SYSTEM",),)
_CONFIG = system_flags.define()
flags.adopt_module_key_flags(system_flags)
for _name in ("run", "runs_dir"):
  flags.declare_key_flag(_name)


def main(name: str) -> None:
  chosen = _CONFIG.value(name)
  run = run_flags.RUN.value if run_flags.RUN.present else name
  run_dir = supervision.run_dir_of(run_flags.RUNS_DIR.value, run)
  stop = stopping.stop_event()
  with bar.Bar(name, chosen.options.steps, "steps") as shown:
    found = runs.execute(chosen, run_dir, stop, shown.update)
  if found is None:
    print(f"stopped; the same command resumes from the last checkpoint in {run_dir}")
    return
  for part, score in found.items():
    interval = "" if score.low is None else f"[{score.low:.3f}, {score.high:.3f}] "
    print(f"return{part}={score.mean:.3f} {interval}episodes={score.episodes}")
  print(f"report={run_dir / 'report.html'}")


if __name__ == "__main__":
  entry.run(main, arguments=ARGUMENTS)
