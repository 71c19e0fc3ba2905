"""Plays a tournament of Skirmish's scripted players.

  python -m starleague.experiments.round_robin --games_a_kind 2
  python -m starleague.experiments.round_robin --entrants L0,L1,L2,L3,L4,L5,L6,L7,L8 --apart 2

Each pair of entrants plays from both sides, on all maps, in each mirror match of races (with
--cross in each pair of different races). Prints scores, ratings with 95% intervals and cycles, and
writes them as `round_robin.csv` and as a page, `round_robin.html`.
"""

import time

import numpy as np
from absl import flags

from starleague.common import files
from starleague.common.errors import UserError
from starleague.environments.skirmish.bots import plans, scripts, tournament
from starleague.environments.skirmish.rules.tables import maps, tiers
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags
from starleague.viewers import standings

for _name in ("seed", "tier"):
  flags.declare_key_flag(_name)
_ENTRANTS = flags.DEFINE_list("entrants", list(plans.STRATEGIES), "Scripted players.")
_GAMES = flags.DEFINE_integer(
  "games_a_kind", 2, "Games per pair, races, map and side.", lower_bound=1,
  upper_bound=10_000)
_CROSS = flags.DEFINE_boolean("cross", False, "Different races instead of mirror matches.")
_OUTPUT = flags.DEFINE_string(
  "tables_folder", "runs/round_robin", "Folder for the table and the page.")
_APART = flags.DEFINE_integer(
  "apart", None, "Only pairs this many places apart in --entrants: 2 plays each level of a ladder "
  "against the one two below.", lower_bound=1)


def make_fixtures(tier: str, names: list[str]) -> tournament.Fixture:
  """Returns the tournament's games; players are indices of `names`.

  Raises:
    UserError: too few or repeated entrants, or a tier without games of the kind asked for.
  """
  if len(names) < 2 or len(set(names)) < len(names):
    raise UserError(f"--entrants: expected two or more different names, found {','.join(names)}")
  races = tournament.race_pairs(tier, mirrors=not _CROSS.value)
  if not races:
    raise UserError(f"--cross: tier {tier} has one race only")
  fixtures = tournament.round_robin(len(names), races, range(len(maps.NAMES)), _GAMES.value)
  if _APART.value is None:
    return fixtures
  if _APART.value >= len(names):
    raise UserError(f"--apart: expected less than {len(names)}, the number of entrants, found "
                    f"{_APART.value}")
  apart = fixtures.players[:, 1] - fixtures.players[:, 0]
  return standings.select(fixtures, apart == _APART.value)


def main() -> None:
  names, seed = _ENTRANTS.value, run_flags.SEED.value
  tier = "default" if run_flags.TIER.value is None else run_flags.TIER.value
  if tier not in tiers.TIERS:
    raise UserError(f"--tier: expected one of {', '.join(tiers.TIERS)}, found {tier!r}")
  try:
    players = scripts.indices_of(names, tier)
  except ValueError as error:
    raise UserError(f"--entrants: {error}") from error
  fixtures = make_fixtures(tier, names)
  output = run_flags.make_folder(_OUTPUT)
  begin = time.perf_counter()
  outcomes = tournament.play(fixtures._replace(players=players[fixtures.players]), seed, tier=tier)
  seconds = time.perf_counter() - begin
  tables = {"All": standings.standing(names, fixtures, outcomes, seed)}
  for pair in tournament.race_pairs(tier, mirrors=not _CROSS.value):
    of_races = (fixtures.races == pair).all(axis=1)
    tables[standings.race_title(pair)] = standings.standing(
      names, standings.select(fixtures, of_races), standings.select(outcomes, of_races), seed)
  for title, table in tables.items():
    print("\n".join(standings.lines(title, table)), end="\n\n")
  if _CROSS.value:
    print("\n".join(standings.race_lines(fixtures, outcomes)), end="\n\n")
  print(f"games={len(outcomes.winner)} draws={np.mean(outcomes.winner == 2):.2f} "
        f"game_loops={outcomes.loops.mean():.0f} seconds={seconds:.0f}")
  for name, text in (("round_robin.csv", standings.table_csv(tables)),
                     ("round_robin.html", standings.page(tables))):
    with files.replacing(output / name) as file:
      file.write(text)
  print(f"page={output / 'round_robin.html'}")


if __name__ == "__main__":
  entry.run(main)
