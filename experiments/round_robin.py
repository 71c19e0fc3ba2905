"""What Skirmish's scripted players are worth against one another.

  python -m starleague.experiments.round_robin --games_a_kind 2
  python -m starleague.experiments.round_robin --entrants L0,L1,L2,L3,L4,L5,L6,L7,L8 --apart 2

Everyone meets everyone, from both sides, on all maps, in each race's mirror match (or, with
--cross, each pair of different races). Prints the shares of points, the ratings with 95% intervals
and the cycles, and writes them as `round_robin.csv` and a page, `round_robin.html`.
"""

import pathlib
import time

import numpy as np
from absl import flags

from starleague.common import files
from starleague.environments.skirmish.bots import plans, scripts, tournament
from starleague.environments.skirmish.rules import maps
from starleague.experiments.run import entry, settings
from starleague.experiments.run import flags as run_flags
from starleague.viewers import standings

for _name in ("seed", "tier"):
  flags.declare_key_flag(_name)
_ENTRANTS = flags.DEFINE_list("entrants", list(plans.STRATEGIES), "Scripted players.")
_GAMES = flags.DEFINE_integer(
  "games_a_kind", 2, "Games of each pair, races, map and side.", lower_bound=1)
_CROSS = flags.DEFINE_boolean("cross", False, "Different races instead of mirror matches.")
_OUTPUT = flags.DEFINE_string("tables_folder", "runs/round_robin", "Folder of the table and the page.")

_APART = flags.DEFINE_integer(
  "apart", None, "Only pairs so many places apart in --entrants: 2 for a ladder's levels against the "
  "one two below.", lower_bound=1)



def main() -> None:
  tier, names = run_flags.TIER.value or "default", _ENTRANTS.value
  try:
    players = scripts.indices_of(names, tier)
  except ValueError as error:
    raise settings.SettingsError(str(error)) from error
  if len(names) < 2:
    raise settings.SettingsError(f"entrants: expected two or more, found {names}")
  races = tournament.race_pairs(tier, mirrors=not _CROSS.value)
  fixtures = tournament.round_robin(len(names), races, range(len(maps.NAMES)), _GAMES.value)
  if _APART.value is not None:
    kept = fixtures.players[:, 1] - fixtures.players[:, 0] == _APART.value
    fixtures = tournament.Fixture(*(values[kept] for values in fixtures))
    if not len(fixtures.map_index):
      raise settings.SettingsError(f"apart: expected less than {len(names)} entrants, found "
                                   f"{_APART.value}")
  begin = time.perf_counter()
  result = tournament.play(
    fixtures._replace(players=players[fixtures.players]), run_flags.SEED.value, tier=tier)
  seconds = time.perf_counter() - begin
  tables = {"All": standings.standing(names, fixtures, result, run_flags.SEED.value)}
  for pair in races:
    mine = (fixtures.races == pair).all(axis=1)
    tables[standings.title(pair)] = standings.standing(
      names, tournament.Fixture(*(values[mine] for values in fixtures)),
      tournament.Outcomes(*(values[mine] for values in result)), run_flags.SEED.value)
  for title, table in tables.items():
    print("\n".join(standings.lines(title, table)), end="\n\n")
  if _CROSS.value:
    print("\n".join(standings.race_lines(fixtures, result)), end="\n\n")
  print(f"games={len(result.winner)} draws={np.mean(result.winner == 2):.2f} "
        f"game_loops={result.loops.mean():.0f} seconds={seconds:.0f}")
  output = pathlib.Path(_OUTPUT.value)
  output.mkdir(parents=True, exist_ok=True)
  for name, text in (("round_robin.csv", standings.table_csv(tables)), ("round_robin.html", standings.page(tables))):
    with files.replacing(output / name, "w") as file:
      file.write(text)
  print(f"page={output / 'round_robin.html'}")


if __name__ == "__main__":
  entry.run(main)
