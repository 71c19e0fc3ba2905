"""Plays a tournament of Skirmish's scripted players.

  python -m starleague.experiments.round_robin --games_a_kind 2
  python -m starleague.experiments.round_robin --entrants L0,L1,L2,L3,L4,L5,L6,L7,L8 --apart 2

Each pair of entrants plays from both sides, on all maps, in each mirror match of races (with
--cross in each pair of different races). Prints scores, ratings with 95% intervals and cycles, and
writes them as `round_robin.csv` and as a page, `round_robin.html`. `games.csv` has each game;
started again, the command plays the missing ones only, in random order. One command at a time plays
in a folder.
"""

import time

import numpy as np
from absl import flags

from starleague.common import files
from starleague.environments.skirmish.bots import plans, tournament
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.experiments.run.evaluation import round_robins
from starleague.viewers import standings

for _name in ("seed", "tier"):
  flags.declare_key_flag(_name)
_ENTRANTS = flags.DEFINE_list("entrants", list(plans.STRATEGIES), "Scripted players.")
_GAMES = flags.DEFINE_integer(
  "games_a_kind", 2, "Games per pair, races, map and side.", lower_bound=1,
  upper_bound=10_000)
_CROSS = flags.DEFINE_boolean("cross", False, "Different races instead of mirror matches.")
_OUTPUT = flags.DEFINE_string(
  "tables_folder", "runs/round_robin", "Folder for the games, the table and the page.")
_APART = flags.DEFINE_integer(
  "apart", None, "Only pairs this many places apart in --entrants: 2 plays each level of a ladder "
  "against the one two below.", lower_bound=1)
_FOCUS = flags.DEFINE_list(
  "focus", None, "Only pairs with at least one of these entrants. Default: all pairs.")
_SECONDS = flags.DEFINE_float(
  "play_seconds", None, "Seconds after which no game begins; those under way end, and the same "
  "command plays the rest. Default: no limit.",
  lower_bound=0.0)


def main() -> None:
  names, seed = _ENTRANTS.value, run_flags.SEED.value
  tier = "default" if run_flags.TIER.value is None else run_flags.TIER.value
  games = round_robins.make(
    tier, names, _GAMES.value, cross=_CROSS.value, apart=_APART.value, focus=_FOCUS.value)
  output, begin = run_flags.make_folder(_OUTPUT), time.perf_counter()
  fixtures, outcomes = round_robins.play(games, seed, output / "games.csv", _SECONDS.value)
  seconds = time.perf_counter() - begin
  tables = {"All": standings.standing(names, fixtures, outcomes, seed)}
  openings = {"All": standings.opening_line(names, fixtures, outcomes)}
  for pair in tournament.race_pairs(tier, mirrors=not _CROSS.value):
    of_races = (fixtures.races == pair).all(axis=1)
    if of_races.any():
      title = standings.race_title(pair)
      tables[title] = standings.of_races(names, fixtures, outcomes, seed, pair)
      if not _CROSS.value:  # else a player has one race in its row and the other in its column
        openings[title] = standings.opening_line(
          names, standings.select(fixtures, of_races), standings.select(outcomes, of_races))
  for title, table in tables.items():
    print("\n".join([*standings.lines(title, table), "", openings.get(title, "")]).rstrip(),
          end="\n\n")
  if _CROSS.value:
    print("\n".join(standings.race_lines(fixtures, outcomes)), end="\n\n")
  print(f"games={len(outcomes.winner)} of={len(games.fixtures.map_index)} "
        f"draws={np.mean(outcomes.winner == 2):.2f} "
        f"game_loops={outcomes.loops.mean():.0f} seconds={seconds:.0f}")
  for name, text in (("round_robin.csv", standings.table_csv(tables)),
                     ("round_robin.html", standings.page(tables))):
    with files.replacing(output / name) as file:
      file.write(text)
  print(f"page={output / 'round_robin.html'}")


if __name__ == "__main__":
  entry.run(main)
