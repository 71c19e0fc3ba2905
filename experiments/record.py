"""Records trajectories of a run's agent as a dataset on disk.

  python -m starleague.experiments.record --run_dir runs/mini --dataset data/mini --trajectories 1000

The run's newest weights play as in training: against themselves and against the scripted players.
`starleague.data.server.dataset` reads what is written: see docs/datasets.md.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from absl import flags

from starleague.actor import rollouts
from starleague.data import recordings, wire
from starleague.data.writer import Assembler
from starleague.experiments.run import entry, settings, wiring
from starleague.experiments.run import flags as run_flags
from starleague.learner import checkpoints

for _name in ("run_dir", "seed"):
  flags.declare_key_flag(_name)
_DATASET = flags.DEFINE_string("dataset", None, "Folder to write; must not exist.")
_TRAJECTORIES = flags.DEFINE_integer("trajectories", 1000, "How many.", lower_bound=1)
_WEIGHTS = flags.DEFINE_enum("weights", "newest", ["newest", "initial"],
                             "The run's newest weights or those that it began with.")


def play(parts: wiring.Parts, config, params: Any, seed: int) -> Iterator[wire.Packed]:
  """Trajectories of an agent's games without end; opponents, itself too, are dealt evenly."""
  program = wiring.make_rollouts(parts, config)
  opponents = 1 + len(parts.opponents)
  targets = rollouts.no_targets()
  state = program.init(
    jax.random.key(seed), np.arange(config.actor.games) % opponents, targets)
  probabilities = np.full(opponents, 1 / opponents, np.float32)
  assembler = Assembler(parts.config, config.unroll_length, 2 * config.actor.games)
  while True:
    state, records, _ = program.run(params, state, probabilities, targets)
    for cut in assembler.add(records):
      yield cut.packed


def main() -> None:
  recordings.require_new(_DATASET.value)
  run_dir = pathlib.Path(run_flags.RUN_DIR.value)
  config = settings.load(run_dir)
  parts = wiring.make_parts(config)
  where = run_dir / (wiring.CHECKPOINTS if _WEIGHTS.value == "newest" else wiring.INITIAL)
  params = checkpoints.load_params(where, parts.config)
  seed = run_flags.SEED.value
  recording = recordings.save(
    _DATASET.value, play(parts, config, params, seed), config.preset, config.unroll_length,
    _TRAJECTORIES.value, f"{_WEIGHTS.value} weights of {run_dir.name}, seed {seed}")
  size = sum(file.stat().st_size
             for file in pathlib.Path(_DATASET.value).rglob("*") if file.is_file())
  steps = recording.trajectories * recording.unroll_length
  print(f"recorded trajectories={recording.trajectories} steps={steps} megabytes={size / 1e6:.1f} "
        f"kilobytes_a_step={size / steps / 1e3:.2f} path={_DATASET.value}")


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "dataset"])
