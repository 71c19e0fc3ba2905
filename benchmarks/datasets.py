"""Disk space of a recorded step, after Reverb's compression.

  python -m benchmarks.datasets                       # games of random weights
  python -m benchmarks.datasets --run_dir runs/mini   # games of a run's newest weights

Two recordings: games of the agent `mini`, and games of scripted players at Skirmish's `large` tier
in the sizes of `full` (512 rows, 128 x 128 cells, 64 picks). Scripted players have no log-probs and
no core state; random values, which do not compress, take their place. The peer is the size of the
unpacked arrays.
"""

import argparse
import itertools
import pathlib
import tempfile

import jax
import numpy as np

from starleague import agent
from starleague.agent import types
from starleague.common import run_files
from starleague.data import checkpoints, wire
from starleague.data.reverb import recordings
from starleague.environments.skirmish.bots import plans
from starleague.environments.skirmish.games import dm_environment, live, replays
from starleague.environments.skirmish.rules import environment as skirmish
from starleague.environments.skirmish.rules.tables.tables import game_config
from starleague.experiments.run.config import settings
from starleague.experiments.run.datasets import recorded_games
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents
from starleague.experiments.run.parts.actor_options import actor_options

MINI, FULL = agent.mini(), agent.full()
LARGE = game_config("large", FULL)


def scripted_games(games: int, length: int) -> list[types.Trajectory]:
  """Trajectories of player 0 in games of the six strategies at `large`, of T = `length` steps."""
  rng = np.random.default_rng(0)
  observe = jax.jit(jax.vmap(skirmish.make_skirmish(**LARGE._asdict()).observe, (0, None)))
  names = list(plans.STRATEGIES)
  found = []
  for i in range(games):
    competitors = tuple(replays.scripted_player(names[(i + j) % len(names)], LARGE)
                        for j in (0, 1))
    replay = live.record(competitors, i, game=LARGE, match_up=dm_environment.draw_match_up(
      np.random.default_rng(i), LARGE.tier))
    states, own = replays.resimulate(replay), replay.player == 0
    steps, actions = replay.step[own], jax.tree.map(lambda x, own=own: x[own], replay.actions)
    for first in range(0, len(steps) - length, length):
      part = slice(first, first + length + 1)
      seen = jax.tree.map(lambda x, at=steps[part]: x[at], states)
      found.append(_trajectory(
        jax.device_get(observe(seen, 0)), jax.tree.map(lambda x, part=part: x[part], actions), rng))
    print(f"game {i + 1} of {games}: {' against '.join(replay.players)}, {replay.steps} steps, "
          f"{len(steps)} of them player 0's", flush=True)
  return found


def _trajectory(seen, actions: types.Action, rng: np.random.Generator) -> types.Trajectory:
  observation, privileged = seen
  length = len(actions.function)
  spec = types.trajectory_spec(FULL, length - 1)
  empty = jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), spec.steps)
  log_prob = types.Arguments(*(
    rng.normal(-2.0, size=length).astype(np.float32) for _ in types.Arguments._fields))
  state = jax.tree.map(
    lambda s: rng.normal(scale=0.1, size=s.shape).astype(s.dtype), spec.initial_state)
  return types.Trajectory(empty._replace(
    observation=observation, privileged=privileged, action=actions, log_prob=log_prob,
    discount=np.ones_like(empty.discount), weight=np.ones_like(empty.weight)), state)


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
  parser.add_argument("--trajectories", type=int, default=64, help="of mini")
  parser.add_argument("--games", type=int, default=6, help="of full size")
  options = parser.parse_args()
  config = settings.complete({"unroll_length": options.unroll_length})
  parts = registry.make_parts(config)
  if options.run_dir is None:
    params = saved_agents.initial_params(parts, config)
  else:
    params = checkpoints.load_params(
      pathlib.Path(options.run_dir) / run_files.CHECKPOINTS, parts.config)
  unpack = jax.jit(lambda packed: wire.unpack(packed, MINI))
  # Trajectories of one length of game each: those that come late are of long games.
  playing = actor_options(config)
  played = recorded_games.play(recorded_games.of_agent(parts, playing, params), parts, playing,
                               config.unroll_length, 0)
  games = [jax.device_get(unpack(packed)) for packed in itertools.islice(
    played, 4 * options.trajectories)][-options.trajectories:]
  measure("mini as played", MINI, games)
  measure("full, scripted games at large", FULL,
          scripted_games(options.games, options.unroll_length))


if __name__ == "__main__":
  main()
