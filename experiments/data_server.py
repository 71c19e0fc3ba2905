"""The data server of a run: its player's trajectories and newest parameters.

  python -m starleague.experiments.data_server --run_dir runs/mini --port 7000

That of a league (`--league`) serves all learning players. It copies the config from the
coordinator, so its node may lack the run's directory.
"""

import pathlib
import threading

from absl import flags, logging

from starleague.actor.loops import league_connection
from starleague.common import run_files, stopping
from starleague.data.reverb.server import make_server, make_tables
from starleague.experiments.run.config import compositions, entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import joined_runs
from starleague.league.run_copy import RunCopy

for _name in ("run_dir", "league", "port"):
  flags.declare_key_flag(_name)


def main() -> None:
  stopping.end_at_once()  # nothing here outlives the run
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  coordinator = run_flags.LEAGUE.value
  client = None if coordinator is None else league_connection.connect(coordinator, "data_server")
  config = joined_runs.load_config(RunCopy(run_dir, client))
  players = [run_files.PLAYER] if client is None else compositions.learners(config)
  tables = make_tables(
    players, registry.agent_of(config), config.unroll_length,
    samples_per_item=config.data.samples_per_item, min_size=config.data.min_size,
    tolerance=config.data.tolerance)
  server = make_server(tables, port=run_flags.given(run_flags.PORT))
  logging.info("serving port=%d", server.port)
  threading.Event().wait()  # until a stop signal


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "port"])
