"""An evaluator of a league: plays the pairs known least, and keeps replays of notable games.

  python -m starleague.experiments.evaluator --run_dir runs/league --address localhost:7000 \
    --league localhost:7010

It may be killed at any time: only its unfinished game is lost.
"""

import pathlib
import time

import numpy as np
from absl import flags

from starleague.actor import sessions
from starleague.actor.loops import league_connection, league_evaluator
from starleague.actor.loops.options import ActorProcess
from starleague.common import stopping
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import joined_runs
from starleague.experiments.run.parts.actor_options import actor_options
from starleague.league.run_copy import RunCopy

for _name in ("run_dir", "address", "league"):
  flags.declare_key_flag(_name)


def main() -> None:
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  client = league_connection.connect(run_flags.given(run_flags.LEAGUE), "evaluator")
  config = joined_runs.load_config(RunCopy(run_dir, client))
  parts, options = registry.make_parts(config), actor_options(config)
  address = run_flags.given(run_flags.ADDRESS)
  stopping.end_at_once()  # only unfinished games are lost: their leases end
  sessions.lower_priority(options.evaluator_niceness)
  arena = registry.game_of(config).make_arena(
    parts, np.random.default_rng((config.seed, time.time_ns())))
  league_evaluator.evaluate(
    parts, options, ActorProcess(run_dir, address, address, time.time(), 0), client, arena)


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "address", "league"])
