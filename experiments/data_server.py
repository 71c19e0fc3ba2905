"""The data server of a run: its player's trajectories and newest parameters.

  python -m starleague.experiments.data_server --run_dir runs/mini --port 7000
"""

import threading

from absl import flags, logging

from starleague.common import run_files, stopping
from starleague.data.reverb.server import make_server, make_tables
from starleague.experiments.run.config import compositions, entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.games import registry

for _name in ("run_dir", "league", "port"):
  flags.declare_key_flag(_name)


def main() -> None:
  stopping.end_at_once()  # nothing here outlives the run
  config = settings.load(run_flags.given(run_flags.RUN_DIR))
  players = compositions.learners(config) if run_flags.LEAGUE.value else [run_files.PLAYER]
  tables = make_tables(
    players, registry.agent_of(config), config.unroll_length,
    samples_per_item=config.data.samples_per_item, min_size=config.data.min_size,
    tolerance=config.data.tolerance)
  server = make_server(tables, port=run_flags.given(run_flags.PORT))
  logging.info("serving port=%d", server.port)
  threading.Event().wait()  # until a stop signal


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "port"])
