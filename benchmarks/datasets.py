"""What a recorded step takes on disk, after Reverb's compression.

  python -m benchmarks.datasets                       # games of random weights
  python -m benchmarks.datasets --run_dir runs/mini   # of a run's newest

Three recordings of the same games of Skirmish: as they are, in `mini`; and embedded in the arrays of
`full`, since nothing here plays games of that size. An embedded observation has the map drawn four
times as wide, and the entities of one game, or of eight at once, which is what fills most of the 512
rows. The peer is the size of the unpacked arrays.
"""

import argparse
import itertools
import pathlib
import tempfile

import jax
import numpy as np

from starleague import agent
from starleague.agent import types, wire
from starleague.experiments import record, settings, wiring
from starleague.learner import checkpoints, recordings

MINI, FULL = agent.mini(), agent.full()


def embed(games: list[types.Trajectory], rng: np.random.Generator) -> types.Trajectory:
  """The first trajectory in arrays of the full preset, with the entities of all.

  Args:
    games: of mini, T alike; at most eight.
    rng: draws the core's state, which does not compress.
  """
  length = len(games[0].steps.weight)
  spec = types.trajectory_spec(FULL, length - 1)
  wide = jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), spec)

  def corner(out, x):
    if out.shape == x.shape:
      return x
    out[tuple(slice(n) for n in x.shape)] = x
    return out

  first = games[0].steps
  steps = jax.tree.map(corner, wide.steps, first)
  factor = FULL.map_size // MINI.map_size
  minimap = first.observation.minimap.repeat(factor, axis=-2).repeat(factor, axis=-1)
  entities = np.zeros_like(wide.steps.observation.entities)
  for t in range(length):
    rows = np.concatenate([
      game.steps.observation.entities[t, :int(game.steps.observation.entity_count[t])]
      for game in games])
    entities[t, :len(rows)] = rows
  count = sum(game.steps.observation.entity_count for game in games).astype(np.int16)
  units = np.full(wide.steps.action.units.shape, FULL.max_entities, np.int16)
  picked = first.action.units
  units[:, :picked.shape[1]] = np.where(picked == MINI.max_entities, FULL.max_entities, picked)
  y, x = np.divmod(first.action.location, MINI.location_size)
  factor = FULL.location_size // MINI.location_size
  action = steps.action._replace(units=units, location=(y * FULL.location_size + x) * factor)
  observation = steps.observation._replace(minimap=minimap, entities=entities, entity_count=count)
  state = jax.tree.map(
    lambda s: rng.normal(scale=0.1, size=s.shape).astype(s.dtype), spec.initial_state)
  return types.Trajectory(steps._replace(observation=observation, action=action), state)


def measure(name: str, config, trajectories: list[types.Trajectory]) -> None:
  """Prints what a recording of these takes."""
  length = len(trajectories[0].steps.weight) - 1
  steps = length * len(trajectories)
  plain = sum(x.nbytes for x in jax.tree.leaves(trajectories[0])) / length
  packed = [wire.pack(trajectory) for trajectory in trajectories]
  wired = sum(x.nbytes for x in packed[0]) / length
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "recording"
    recordings.save(path, packed, config.name, length, len(packed), "a benchmark")
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / steps
  entities = np.mean([x.steps.observation.entity_count.mean() for x in trajectories])
  print(f"{name}: {size / 1e3:.3f} kB a step on disk, {plain / 1e3:.1f} kB as arrays "
        f"(x {plain / size:.0f}), {wired / 1e3:.1f} kB packed; {entities:.0f} entities on average, "
        f"{len(packed)} trajectories of {length} steps", flush=True)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--run_dir", help="a run whose newest weights play; random ones if not given")
  parser.add_argument("--unroll_length", type=int, default=64)
  parser.add_argument("--trajectories", type=int, default=64, help="of mini; full has an eighth")
  options = parser.parse_args()
  config = settings.complete({"unroll_length": options.unroll_length})
  parts = wiring.make_parts(config)
  if options.run_dir is None:
    params = wiring.initial_params(parts, config)
  else:
    params = checkpoints.load_params(
      pathlib.Path(options.run_dir) / wiring.CHECKPOINTS, parts.config)
  unpack = jax.jit(lambda packed: wire.unpack(packed, MINI))
  # Trajectories of one length of game each: those that come late are of long games.
  games = [jax.device_get(unpack(packed)) for packed in itertools.islice(
    record.play(parts, config, params, 0), 4 * options.trajectories)][-options.trajectories:]
  rng = np.random.default_rng(0)
  measure("mini as played", MINI, games)
  measure("full, one game embedded", FULL, [
    embed([game], rng) for game in games[::8]])
  measure("full, eight games' entities", FULL, [
    embed(games[i:i + 8], rng) for i in range(0, len(games) - 7, 8)])


if __name__ == "__main__":
  main()
