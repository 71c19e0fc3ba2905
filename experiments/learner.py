"""The learner of a run: batches from the data server, updates, checkpoints, new parameters.

  python -m starleague.experiments.learner --run_dir runs/mini --address localhost:7000

It resumes from its newest checkpoint. SIGTERM and SIGINT save a checkpoint and end it with status
130: the run starts it again, unless the run itself is stopped. After the run's training time it
ends with status 0.

On several hosts the same program runs on each, and all of them end together:

  ... --run_dir runs/big --address localhost:7000 --coordinator host0:8000 --hosts 2 --host 0
  ... --run_dir runs/big --address localhost:7000 --coordinator host0:8000 --hosts 2 --host 1

`--coordinator auto` on each asks the environment instead (Cloud TPU, Slurm). Each host reads its
share of a batch from a data server of its own. Only host 0 restores, saves, publishes and logs.
"""

import os
import pathlib
import sys

import jax
from absl import flags, logging

from starleague.actor.loops import league_connection
from starleague.common.errors import UserError
from starleague.data.reverb import sampler
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import joined_runs, learner_options
from starleague.league.run_copy import RunCopy
from starleague.learner.loops import hosts, league, reinforcement
from starleague.learner.loops.options import LearnerProcess

for _name in ("run_dir", "address", "league", "origin"):
  flags.declare_key_flag(_name)
_COORDINATOR = flags.DEFINE_string(
  "coordinator", None, "host:port of host 0 where the learner runs on several hosts, or 'auto' "
  "to ask the environment (Cloud TPU, Slurm). Default: one host.")
flags.register_validator(
  _COORDINATOR, lambda value: value == "auto" or run_flags.is_address(value),
  message="expected host:port or auto")
_PLAYERS = flags.DEFINE_list(
  "league_players", [], "Players of the league to train, in turns. Default: all that learn.")
_HOSTS = flags.DEFINE_integer("hosts", 1, "Number of hosts.", lower_bound=1)
_HOST = flags.DEFINE_integer("host", 0, "Index of this host.", lower_bound=0)


def main() -> None:
  run_flags.only_with(run_flags.LEAGUE, _PLAYERS)
  for flag in (_COORDINATOR, _HOSTS, _HOST):
    if flag.present and run_flags.LEAGUE.value is not None:
      raise UserError(f"--{flag.name}: expected none with --league, found {flag.value!r}: each "
                      "learning player is trained by one process")
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  hosts.join_hosts(_COORDINATOR.value, _HOSTS.value, _HOST.value)
  coordinator = run_flags.LEAGUE.value
  client = None if coordinator is None else league_connection.connect(coordinator, "learner")
  config = joined_runs.load_config(RunCopy(run_dir, client))
  options = learner_options.reinforcement_options(config)
  hosts.check_hosts(config.to_dict(), options)
  agent = learner_options.learning_agent(registry.make_parts(config), config, run_dir)
  process = LearnerProcess(run_dir, run_flags.given(run_flags.ADDRESS), run_flags.origin())
  if client is not None:
    complete = league.learn(agent, options, process, client, _PLAYERS.value)
  else:
    complete = reinforcement.learn(agent, options, process)
  if _COORDINATOR.value is not None:
    jax.distributed.shutdown()  # waits for all hosts: host 0 must not end before the others
  if sampler.waiting():
    logging.flush()
    os._exit(0 if complete else entry.INTERRUPTED)  # everything is saved and closed
  if not complete:
    sys.exit(entry.INTERRUPTED)


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "address"])
