"""Options of actors in tests: those of the default config."""

import pathlib

from starleague.actor.loops.options import ActorOptions, ActorProcess
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts.actor_options import actor_options


def options(**changes) -> ActorOptions:
  """Returns the options of the default config with changed keys, `actor__games` for actor.games."""
  return actor_options(settings.complete({}, {
    key.replace("__", "."): value for key, value in changes.items()}))


def process(run_dir: pathlib.Path) -> ActorProcess:
  """Returns an actor whose data server is never asked."""
  return ActorProcess(run_dir, "localhost:1", "localhost:1", 0.0, 0)
