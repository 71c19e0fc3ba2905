"""Plays an agent against itself, conditioned on z of different strategies, and looks for a cycle.

  python -m starleague.experiments.demonstrate --preset small --players rush,macro,defence \
    --dataset data/strategies --games 400
  python -m starleague.experiments.strategies --run_dir runs/small --dataset data/strategies

The z of a strategy are those of the recorded games that the player of its name won. Games are
mirror matches of one race on all maps, from both sides. Prints scores, ratings with 95% intervals,
cycles and the equilibrium, and writes the scores of all pairs to --out as CSV.
"""

import pathlib

import jax
from absl import flags

from starleague import league
from starleague.actor.loops import compiled_evaluation
from starleague.agent import types
from starleague.common import files
from starleague.common.errors import UserError
from starleague.data import games
from starleague.experiments.run.config import entry, settings
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.evaluation import strategies
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import saved_agents
from starleague.experiments.run.progress import bar
from starleague.viewers import standings

for _name in ("run_dir", "agent", "dataset", "match_games", "out", "seed"):
  flags.declare_key_flag(_name)
_NAMES = flags.DEFINE_list(
  "strategies", ["rush", "macro", "defence"], "Scripted players whose games give the strategies.")
_RACE = flags.DEFINE_enum(
  "mirror_race", "terran", list(types.RACES[1:4]), "Race of both players.")


def main() -> None:
  run_dir, names = pathlib.Path(run_flags.given(run_flags.RUN_DIR)), _NAMES.value
  match_games, agent = run_flags.match_games(), run_flags.AGENT.value
  if len(names) < 2 or len(set(names)) < len(names):
    raise UserError(f"--strategies: expected two or more different names, found {','.join(names)}")
  config = settings.load(run_dir)
  parts, race = registry.make_parts(config), types.RACES.index(_RACE.value)
  if race not in parts.races:
    known = ", ".join(types.RACES[each] for each in parts.races)
    raise UserError(f"--mirror_race: expected one of {known}, those of the run's games, found "
                    f"{_RACE.value}")
  dataset = games.read(run_flags.given(run_flags.DATASET), config.preset)
  made = strategies.make(
    strategies.libraries(dataset, names), [spellings[0] for spellings in parts.maps], race,
    parts.mmr, run_flags.SEED.value)
  params, update = saved_agents.load(parts, run_dir, agent)
  match = compiled_evaluation.make_match(parts, match_games)
  run_flags.make_parent(run_flags.OUT)
  with bar.Bar("games", len(names) * (len(names) - 1) // 2 * match_games, "games") as shown:
    fixtures, outcomes = strategies.play(
      made, match, params, jax.random.key(run_flags.SEED.value), shown.update)
  table = standings.standing(names, fixtures, outcomes, run_flags.SEED.value)
  print("\n".join([*standings.lines(f"{agent}, update {update}", table), "",
                   standings.opening_line(names, fixtures, outcomes)]))
  shares = league.nash_averaging(table.score).strategy
  print("equilibrium " + " ".join(f"{name}={share:.2f}"
                                  for name, share in zip(names, shares, strict=True)))
  if run_flags.OUT.value is not None:
    with files.replacing(run_flags.OUT.value) as file:
      file.write(standings.table_csv({agent: table}))


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "dataset"])
