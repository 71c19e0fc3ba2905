"""Records trajectories of a run's agent, or of a league's players, as a dataset on disk.

  python -m starleague.experiments.record --run_dir runs/mini --dataset data/mini
  python -m starleague.experiments.record --run_dir runs/league --dataset data/league --policies 6

The run's newest weights play without z, against themselves and each scripted player in equal
shares. In a league, its learning players and newest snapshots play each other without z, each pair
in an equal share, and both sides are recorded. `starleague.data.dataset` reads the result: see
docs/datasets.md.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

import jax
import ml_collections
import numpy as np
from absl import flags

from starleague.actor.loops import programs
from starleague.actor.parts import Parts
from starleague.common import run_files
from starleague.data import checkpoints, wire
from starleague.data.assembler import Assembler
from starleague.data.reverb import recordings
from starleague.data.z.conditioning import unconditional
from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.datasets import league_games
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents
from starleague.experiments.run.parts.actor_options import actor_options

for _name in ("run_dir", "dataset", "seed"):
  flags.declare_key_flag(_name)
_TRAJECTORIES = flags.DEFINE_integer(
  "trajectories", 1000, "Number of trajectories.", lower_bound=1)
_WEIGHTS = flags.DEFINE_enum("weights", "newest", ["newest", "initial"],
                             "The run's newest or initial weights.")
_POLICIES = flags.DEFINE_integer(
  "policies", 8, "Most players of a league: the learning ones, then its newest snapshots.",
  lower_bound=1)


def play(parts: Parts, config: ml_collections.ConfigDict, params: Any,
         seed: int) -> Iterator[wire.Packed]:
  """Yields trajectories of an agent's games without end.

  Opponents are the agent itself and each scripted player, with equal shares.
  """
  program = programs.make_single(parts, actor_options(config))
  opponents = 1 + len(parts.opponents)
  conditioning = unconditional(len(parts.maps), parts.mmr)
  state = program.init(
    jax.random.key(seed), np.arange(config.actor.games) % opponents, conditioning)
  probabilities = np.full(opponents, 1 / opponents, np.float32)
  assembler = Assembler(parts.config, config.unroll_length, 2 * config.actor.games)
  while True:
    state, records, _ = program.run(params, state, probabilities, conditioning)
    for cut in assembler.add(records):
      yield cut.packed


def main() -> None:
  path = pathlib.Path(run_flags.given(run_flags.DATASET))
  recordings.require_new(path)
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  config = settings.load(run_dir)
  parts = registry.make_parts(config)
  seed = run_flags.SEED.value
  if _WEIGHTS.value == "newest" and saved_agents.main_agent(run_dir) is not None:
    found = league_games.load(parts, run_dir, _POLICIES.value)
    trajectories = league_games.play(
      parts, actor_options(config), config.unroll_length, found, seed)
    origin = f"{', '.join(each.player.name for each in found)} of {run_dir.name}, seed {seed}"
  else:
    where = run_dir / (run_files.CHECKPOINTS if _WEIGHTS.value == "newest" else run_files.INITIAL)
    trajectories = play(parts, config, checkpoints.load_params(where, parts.config), seed)
    origin = f"{_WEIGHTS.value} weights of {run_dir.name}, seed {seed}"
  recording = recordings.save(
    path, trajectories, config.preset, config.unroll_length, _TRAJECTORIES.value, origin)
  size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
  steps = recording.trajectories * recording.unroll_length
  print(f"recorded trajectories={recording.trajectories} steps={steps} megabytes={size / 1e6:.1f} "
        f"kilobytes_a_step={size / steps / 1e3:.2f} path={path}")


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "dataset"])
