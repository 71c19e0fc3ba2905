"""Compiles the program of a run's later phase into the compilation cache, at low priority.

  python -m starleague.experiments.precompile learner --run_dir runs/mini

PROGRAM is imitator, learner, actor or evaluation. `train` starts this while the phase before works,
so that the later process starts without compiling: its environment must be the same. An actor
needs the run's library of z, which imitation writes when it begins: it is waited for.
"""

import pathlib
import time

import ml_collections
from absl import flags

from starleague.actor import sessions
from starleague.actor.loops import compiled_evaluation, compiled_single
from starleague.actor.parts import Parts
from starleague.common.errors import UserError
from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.evaluation import evaluating
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options, z_source
from starleague.experiments.run.parts.actor_options import actor_options
from starleague.learner.loops import imitation, reinforcement_setup

ARGUMENTS = (("PROGRAM",),)
_LOWEST = 19
_POLL_S = 1.0
flags.declare_key_flag("run_dir")


def _imitator(parts: Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> None:
  del run_dir
  imitation.compile_ahead(learner_options.imitating_agent(parts, config),
                          learner_options.imitation_options(config))


def _learner(parts: Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> None:
  agent = learner_options.learning_agent(parts, config, run_dir)
  options = learner_options.reinforcement_options(config)
  reinforcement_setup.compile_ahead(
    reinforcement_setup.make_learner(agent, options, run_dir, None), agent, options)


def _actor(parts: Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> None:
  library = z_source.library_path(config, run_dir)
  while library is not None and not library.exists():
    time.sleep(_POLL_S)
  conditioning = z_source.of_games(parts, config, run_dir)
  if conditioning is None:
    raise UserError("the games of this run find their z as they are played: expected a library")
  compiled_single.compile_ahead(parts, actor_options(config), conditioning)


def _evaluation(parts: Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path) -> None:
  del run_dir
  compiled_evaluation.compile_ahead(
    parts, evaluating.opponent_indices(parts.opponents, parts.opponents), config.evaluation.games)


PROGRAMS = {"imitator": _imitator, "learner": _learner, "actor": _actor,
            "evaluation": _evaluation}


def main(name: str) -> None:
  if name not in PROGRAMS:
    raise UserError(f"program {name!r} does not exist; expected one of {', '.join(PROGRAMS)}")
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  config = settings.load(run_dir)
  parts = registry.make_parts(config)
  if parts.compiled is None and name in ("actor", "evaluation"):
    raise UserError(f"the games of {str(run_dir)!r} are played outside JAX; expected Skirmish")
  sessions.lower_priority(_LOWEST)
  PROGRAMS[name](parts, config, run_dir)


if __name__ == "__main__":
  entry.run(main, required=["run_dir"], arguments=ARGUMENTS)
