"""Records trajectories of a run's agent, or of a league's players, as a dataset on disk.

  python -m starleague.experiments.record --run_dir runs/mini --dataset data/mini
  python -m starleague.experiments.record --run_dir runs/league --dataset data/league --policies 6

All play without z. A run's newest weights play against themselves and each scripted player in equal
shares. The learning players of a league and its newest snapshots play all pairs in equal shares;
both sides are recorded. `starleague.data.dataset` reads the result: see docs/datasets.md.
"""

import pathlib

from absl import flags

from starleague.common.errors import UserError
from starleague.data.reverb import recordings
from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.datasets import recorded_games
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
  "policies", 8,
  "Maximum number of a league's players: the learning ones, then the newest snapshots.",
  lower_bound=1)


def main() -> None:
  path = pathlib.Path(run_flags.given(run_flags.DATASET))
  recordings.require_new(path)
  run_dir = pathlib.Path(run_flags.given(run_flags.RUN_DIR))
  config = settings.load(run_dir)
  parts = registry.make_parts(config)
  options, seed = actor_options(config), run_flags.SEED.value
  if _WEIGHTS.value == "newest" and saved_agents.main_agent(run_dir) is not None:
    found = recorded_games.load_players(parts, run_dir, _POLICIES.value)
    games = recorded_games.of_league(parts, options, found)
    players = ", ".join(each.player.name for each in found)
  else:
    if _POLICIES.present:
      raise UserError(f"--policies needs the newest weights of a league: the {_WEIGHTS.value} ones "
                      f"of {run_dir} are of one agent")
    agent = saved_agents.TRAINED if _WEIGHTS.value == "newest" else saved_agents.INITIAL
    params, _ = saved_agents.load(parts, run_dir, agent)
    games = recorded_games.of_agent(parts, options, params)
    players = f"{_WEIGHTS.value} weights"
  trajectories = recorded_games.play(games, parts, options, config.unroll_length, seed)
  recording = recordings.save(
    path, trajectories, config.preset, config.unroll_length, _TRAJECTORIES.value,
    f"{players} of {run_dir.name}, seed {seed}", config.agent)
  size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
  steps = recording.trajectories * recording.unroll_length
  print(f"recorded trajectories={recording.trajectories} steps={steps} megabytes={size / 1e6:.1f} "
        f"kilobytes_a_step={size / steps / 1e3:.2f} path={path}")


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "dataset"])
