"""An actor of a run: plays batches of games, writes trajectories, reports results.

  python -m starleague.experiments.actor --run_dir runs/mini --address localhost:7000

It may be killed at any time. It then loses its unfinished games, and the results of up to 5 s and
two calls of the program. Up to 8 trajectories on their way to the data server are lost, too.
"""

import pathlib

from absl import flags

from starleague.actor.loops import league_connection
from starleague.actor.loops.options import ActorProcess
from starleague.common import errors
from starleague.common.errors import UserError
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import joined_runs, z_source
from starleague.experiments.run.parts.actor_options import actor_options
from starleague.league.run_copy import RunCopy

for _name in ("run_dir", "address", "parameters", "league", "origin"):
  flags.declare_key_flag(_name)
_INDEX = flags.DEFINE_integer("index", 0, "Index of this actor.", lower_bound=0)


def main() -> None:
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  coordinator = run_flags.LEAGUE.value
  client = (None if coordinator is None
            else league_connection.connect(coordinator, f"actor-{_INDEX.value}"))
  config = joined_runs.load_config(RunCopy(run_dir, client))
  address = run_flags.given(run_flags.ADDRESS)
  process = ActorProcess(
    run_dir, address, run_flags.PARAMETERS.value or address, run_flags.origin(), _INDEX.value)
  game = registry.game_of(config)
  parts = registry.make_parts(config)
  with errors.final(UserError):  # a restart would read the same z
    conditioning = z_source.of_games(parts, config, run_dir)
  game.engine.play(parts, actor_options(config), process, conditioning, client)


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "address"])
