"""Learns a policy from recorded games or trajectories alone: offline reinforcement learning.

  python -m starleague.experiments.offline --run clone --dataset runs/offline_data/s
  python -m starleague.experiments.offline --run critic --dataset runs/offline_data/s \\
    --config.offline.method=actor_critic --config.offline.behaviour=runs/clone
  python -m starleague.experiments.evaluate --run_dir runs/critic

The dataset is a folder of games (demonstrate), or of trajectories (record). All files are written
to RUNS_DIR/RUN: config.json, initial (the weights that learning starts from, the estimated
behaviour policy), checkpoints, tensorboard, results.csv and report.html. Ctrl-C stops a run
cleanly; the same command resumes it. See docs/offline.md.
"""

import pathlib
import time

from absl import flags

from starleague.common import results, run_files
from starleague.experiments.run.config import config_flags, entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options
from starleague.experiments.run.processes import supervision
from starleague.experiments.run.progress import bar
from starleague.learner.loops import imitation_setup, offline, offline_data
from starleague.viewers.report import page as report_page

_CONFIG = config_flags.define(pathlib.Path(__file__).parent / "configs" / "mini.py")
flags.adopt_module_key_flags(config_flags)
for _name in ("dataset", "run", "runs_dir"):
  flags.declare_key_flag(_name)


def main() -> None:
  run_dir = supervision.run_dir_of(run_flags.RUNS_DIR.value, run_flags.RUN.value)
  config, dataset = _CONFIG.value(), run_flags.given(run_flags.DATASET)
  options = learner_options.offline_options(config)
  data = offline_data.open_data(dataset, options)
  agent = learner_options.offline_agent(registry.make_parts(config), config)
  imitation_setup.check_dataset(run_dir / run_files.CHECKPOINTS, data)
  if config.offline.behaviour and not (run_dir / run_files.INITIAL).exists():
    agent.initial_params()  # missing weights are refused before config.json keeps the run's name
  with supervision.only_one(run_dir), bar.Bar("offline", options.updates, "updates") as shown:
    supervision.prepare(config, run_dir)
    origin = time.time() - results.last_seconds(run_dir / results.FILE_NAME)
    complete = offline.learn(agent, options, run_dir, data, origin, shown.update)
    report_page.write_report(run_dir)
  if not complete:
    print(f"stopped; the same command resumes from the last checkpoint in {run_dir}")
    return
  print(f"updates={options.updates} report={run_dir / 'report.html'}")


if __name__ == "__main__":
  entry.run(main, required=["dataset"])
