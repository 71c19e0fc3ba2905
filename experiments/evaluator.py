"""An evaluator of a league: plays the pairs known least, and keeps replays of telling games.

  python -m starleague.experiments.evaluator --run_dir runs/league --address localhost:7000 \
    --league localhost:7010

It may be killed at any time: only its unfinished game is lost.
"""

import pathlib

from absl import flags

from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.evaluation import league_evaluator
from starleague.experiments.run.parts import wiring

for _name in ("run_dir", "address", "league"):
  flags.declare_key_flag(_name)


def main() -> None:
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  config = settings.load(run_dir)
  league_evaluator.evaluate(
    wiring.make_parts(config), config, run_dir, run_flags.given(run_flags.ADDRESS),
    run_flags.given(run_flags.LEAGUE))


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "address", "league"])
