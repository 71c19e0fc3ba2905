"""Round robins of scripted players: which games, and their play into a file that resumes."""

import pathlib
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from starleague.common import files
from starleague.common.errors import UserError
from starleague.environments.skirmish.bots import scripts, tournament, tournament_files
from starleague.environments.skirmish.games import dm_environment
from starleague.environments.skirmish.rules.tables import tiers
from starleague.experiments.run.progress import bar
from starleague.viewers import standings

_SAVE_INTERVAL_SECONDS = 10.0
_LOCK = ".lock"  # in the folder of the file, held during the games


class RoundRobin(NamedTuple):
  """The games of a round robin."""

  tier: str
  names: Sequence[str]  # of the entrants
  fixtures: tournament.Fixture  # players are indices of `names`


def make(tier: str, names: Sequence[str], games: int, *, cross: bool, apart: int | None,
         focus: Sequence[str] | None) -> RoundRobin:
  """Returns the games of a round robin.

  Args:
    tier: of the rules.
    names: of the entrants.
    games: of each pair, pair of races, map and side.
    cross: different races instead of mirror matches.
    apart: only pairs as many places apart in `names`; None: all.
    focus: only pairs with one of these entrants; None: all.

  Raises:
    UserError: an unknown tier or player, too few or repeated entrants, or no games.
  """
  if tier not in tiers.TIERS:
    raise UserError(f"--tier: expected one of {', '.join(tiers.TIERS)}, found {tier!r}")
  try:
    scripts.check_names(names, tier)
  except ValueError as error:
    raise UserError(f"--entrants: {error}") from error
  if len(names) < 2 or len(set(names)) < len(names):
    raise UserError(f"--entrants: expected two or more different names, found {','.join(names)}")
  races = tournament.race_pairs(tier, mirrors=not cross)
  if not races:
    raise UserError(f"--cross: tier {tier} has one race only")
  if apart is not None and apart >= len(names):
    raise UserError(f"--apart: expected less than {len(names)}, the number of entrants, found "
                    f"{apart}")
  shown = list(names if focus is None else focus)
  if not shown or not set(shown) <= set(names):
    raise UserError(f"--focus: expected some of --entrants, {','.join(names)}, found "
                    f"{','.join(shown)!r}")
  maps = range(len(dm_environment.map_names(tier)))
  fixtures = tournament.round_robin(len(names), races, maps, games)
  chosen = np.isin(fixtures.players, [names.index(name) for name in shown]).any(axis=1)
  if apart is not None:
    chosen &= fixtures.players[:, 1] - fixtures.players[:, 0] == apart
  return RoundRobin(tier, names, standings.select(fixtures, chosen))


def play(games: RoundRobin, seed: int, path: pathlib.Path, seconds: float | None = None,
         ) -> tuple[tournament.Fixture, tournament.Outcomes]:
  """Plays the games that the file at `path` lacks, and saves them there.

  Args:
    games: of the tournament.
    seed: of the games.
    path: of the file.
    seconds: after which no game begins; those under way end, and another call plays the rest. None:
      no limit.

  Returns:
    The games that are over and their outcomes.

  Raises:
    UserError: the file holds other games, or another process plays in the file's folder.
  """
  with files.locked(path.parent / _LOCK, UserError(
      f"{path.parent}: another process plays games there: wait until it ends, or choose another "
      "--tables_folder")):
    fixtures, outcomes = games.fixtures, _play(games, seed, path, seconds)
  over = outcomes.winner != tournament.UNDER_WAY
  return standings.select(fixtures, over), standings.select(outcomes, over)


def _play(games: RoundRobin, seed: int, path: pathlib.Path,
          seconds: float | None) -> tournament.Outcomes:
  """Plays and saves the games; see `play`. Returns all outcomes."""
  fixtures = games.fixtures
  file = tournament_files.Tournament(path, games.tier, seed, games.names, fixtures)
  players = scripts.indices_of(games.names, games.tier)
  begun = saved_at = time.monotonic()
  with bar.Bar("games", len(fixtures.map_index), "games") as shown:
    def report(found: tournament.Outcomes) -> bool:
      nonlocal saved_at
      shown.update(int((found.winner != tournament.UNDER_WAY).sum()))
      if time.monotonic() > saved_at + _SAVE_INTERVAL_SECONDS:
        file.save(found)
        saved_at = time.monotonic()
      return seconds is None or time.monotonic() < begun + seconds

    outcomes = tournament.play(fixtures._replace(players=players[fixtures.players]), seed,
                               tier=games.tier, played=file.load(), report=report)
  file.save(outcomes)
  return outcomes
