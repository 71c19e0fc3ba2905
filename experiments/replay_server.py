"""The replay server of a run: its player's trajectories and newest parameters.

  python -m starleague.experiments.replay_server --run_dir runs/mini --port 7000
"""

from collections.abc import Sequence

from absl import app, flags, logging

from starleague.agent import config as agent_config
from starleague.experiments import settings, wiring
from starleague.learner import replay

_RUN_DIR = flags.DEFINE_string("run_dir", None, "Folder of the run.", required=True)
_PORT = flags.DEFINE_integer("port", None, "Port to listen on.", required=True)


def main(argv: Sequence[str]) -> None:
  if len(argv) > 1:
    raise app.UsageError(f"unexpected arguments: {argv[1:]}")
  stop = wiring.stop_event()
  config = settings.load(_RUN_DIR.value)
  tables = replay.make_tables(
    [wiring.PLAYER], agent_config.preset(config.preset), config.unroll_length,
    samples_per_item=config.replay.samples_per_item, min_size=config.replay.min_size,
    tolerance=config.replay.tolerance)
  server = replay.make_server(tables, port=_PORT.value)
  logging.info("serving port=%d", server.port)
  stop.wait()
  server.stop()


if __name__ == "__main__":
  app.run(main)
