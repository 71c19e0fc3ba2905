"""The imitator of a run: recorded games in order, updates of the supervised objective, checkpoints.

  python -m starleague.experiments.imitate --run_dir runs/mini --dataset data/demonstrations

It resumes from its newest checkpoint. SIGTERM and SIGINT save a checkpoint and end it with status
130. It ends with status 0 after the last phase. `supervise` starts it for a run of its own. For
labels of the imitator's own games, `train` starts it twice: with --first_phase, then with
--labelled.
"""

import pathlib
import sys

from absl import flags

from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options
from starleague.learner.loops import imitation
from starleague.learner.loops.imitation_setup import Recorded

for _name in ("run_dir", "dataset", "origin"):
  flags.declare_key_flag(_name)
_LABELLED = flags.DEFINE_string(
  "labelled", None, "Folder of the imitator's own games, which teachers have labelled.")
_FIRST_PHASE = flags.DEFINE_bool(
  "first_phase", False, "Learn the first phase alone, whose imitator is to play games.")


def main() -> None:
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  config = settings.load(run_dir)
  labelled = pathlib.Path(_LABELLED.value) if _LABELLED.value else None
  complete = imitation.imitate(
    learner_options.imitating_agent(registry.make_parts(config), config),
    learner_options.imitation_options(config), run_dir,
    Recorded(pathlib.Path(run_flags.given(run_flags.DATASET)), labelled, _FIRST_PHASE.value),
    run_flags.origin())
  if not complete:
    sys.exit(entry.INTERRUPTED)


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "dataset"])
