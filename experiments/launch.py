"""Runs a league, or the training of one agent, on this machine or on a Ray cluster.

  python -m starleague.experiments.launch --cluster=local --run league
  python -m starleague.experiments.launch --cluster=auto --run league --config.actor.processes=16
  python -m starleague.experiments.launch --cluster=ray://head:10001 --kind=train --run small \
    --config=experiments/configs/small.py --config.cluster.learner=TPU:4

The processes are those of `league` and `train`. The config group `cluster` has the resources that
each needs of its node. All nodes need this package and RUNS_DIR under the same path. Whatever dies
is started again, on another node if its own is lost. Ctrl-C stops the run cleanly; the same command
resumes it.
"""

import contextlib
import pathlib

from absl import flags

from starleague.experiments.run.config import config_flags, entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.processes import cluster, process_runner, supervision, whole_runs

LOCAL, LEAGUE, TRAIN = "local", "league", "train"

_CONFIG = config_flags.define(pathlib.Path(__file__).parent / "configs" / "mini.py")
flags.adopt_module_key_flags(config_flags)
for _name in ("run", "runs_dir"):
  flags.declare_key_flag(_name)
_CLUSTER = flags.DEFINE_string(
  "cluster", LOCAL, "Where processes run: local, this machine without Ray; auto, the Ray cluster "
  "of RAY_ADDRESS or of this machine; or ray://HOST:PORT, a Ray Client server.")
flags.register_validator(
  _CLUSTER, lambda value: value in (LOCAL, cluster.AUTO) or (
    value.startswith("ray://") and run_flags.is_address(value.removeprefix("ray://"))),
  message="expected local, auto or ray://HOST:PORT")
_KIND = flags.DEFINE_enum("kind", LEAGUE, [LEAGUE, TRAIN], "What to run.")


def main() -> None:
  process_runner.interrupt_on_sigterm()
  name = run_flags.RUN.value
  run_dir = supervision.run_dir_of(run_flags.RUNS_DIR.value, name).absolute()
  config = _CONFIG.value()
  with contextlib.ExitStack() as stack:
    place = (None if _CLUSTER.value == LOCAL
             else stack.enter_context(cluster.connect(_CLUSTER.value, name)))
    whole_runs.execute(config, run_dir, league=_KIND.value == LEAGUE, place=place)


if __name__ == "__main__":
  entry.run(main)
