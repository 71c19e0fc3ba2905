"""The games of a tournament as a file, from which it is resumed.

One line a game, in the order of the fixtures:

    sources,tier,seed,player,opponent,race,opponent_race,map,swap_sides,winner,loops,opening_1,...
    8c1f02d4,default,0,rush,macro,terran,terran,open,0,0,3912,7,...

The sources are a digest of Skirmish's code and tables: games of other rules or players are others.
The winner is 0 for the player, 1 for the opponent, 2 for a draw, -1 for a game that is not over.
The openings are the first unit types of the build orders of the player, then of the opponent.
"""

import csv
import functools
import hashlib
import io
import pathlib
from collections.abc import Sequence

import numpy as np

from starleague.agent import types
from starleague.common import files
from starleague.common.errors import UserError
from starleague.environments.skirmish.bots.tournament import (
  OPENING,
  Fixture,
  Outcomes,
  nothing_played,
)
from starleague.environments.skirmish.rules.tables import maps

_GAME = ("sources", "tier", "seed", "player", "opponent", "race", "opponent_race", "map",
         "swap_sides")
_OUTCOME = ("winner", "loops", *(
  f"{whose}_{entry}" for whose in ("opening", "opponent_opening")
  for entry in range(1, OPENING + 1)))


@functools.cache
def sources() -> str:
  """Returns 8 hex digits that identify the rules, the tables and the scripted players."""
  folder, digest = pathlib.Path(__file__).parents[1], hashlib.sha256()
  for path in sorted(folder.rglob("*")):
    if path.suffix in (".py", ".csv"):
      digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
  return digest.hexdigest()[:8]


class Tournament:
  """A tournament that is saved in a file."""

  def __init__(self, path: pathlib.Path, tier: str, seed: int, names: Sequence[str],
               fixtures: Fixture):
    """States the games.

    Args:
      path: the file; may be missing.
      tier: of the rules.
      seed: of the games.
      names: of the players, whose indices the fixtures have.
      fixtures: N games.
    """
    self._path, self._fixtures = path, fixtures
    self._games = [
      (sources(), tier, str(seed), names[i], names[j], types.RACES[one], types.RACES[other],
       maps.NAMES[map_index], str(int(swap)))
      for (i, j), (one, other), map_index, swap in zip(*fixtures, strict=True)]

  def save(self, outcomes: Outcomes) -> None:
    """Replaces the file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_GAME + _OUTCOME)
    writer.writerows((*game, winner, loops, *openings.reshape(-1))
                     for game, winner, loops, openings in zip(self._games, *outcomes, strict=True))
    with files.replacing(self._path) as file:
      file.write(text.getvalue())

  def load(self) -> Outcomes:
    """Returns the outcomes in the file; without a file, those of games that have not begun.

    Raises:
      UserError: the file has other games, or is none of a tournament.
    """
    if not self._path.exists():
      return nothing_played(self._fixtures)
    text = self._path.read_text(encoding="utf-8", errors="replace").replace("\0", "?")
    try:
      rows = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
      raise UserError(f"{self._path}: expected the games of a tournament, found {error}; remove "
                      "the file to play the games again") from error
    expected = [list(_GAME + _OUTCOME), *map(list, self._games)]
    found = [rows[0] if rows else [], *(row[:len(_GAME)] for row in rows[1:])]
    for line, (one, other) in enumerate(zip(expected, found, strict=False), 1):
      if one != other:
        raise UserError(f"{self._path}: line {line}: expected {','.join(one)}, found "
                        f"{','.join(other)}; remove the file to play the games again")
    if len(expected) != len(found):
      raise UserError(f"{self._path}: expected {len(self._games)} games, found {len(rows) - 1}; "
                      "remove the file to play the games again")
    try:
      values = np.array(
        [[int(value) for value in row[len(_GAME):]] for row in rows[1:]], np.int32)
      valid = values.shape == (len(self._games), len(_OUTCOME)) and (
        (values[:, 0] >= -1) & (values[:, 0] <= 2) & (values[:, 1:] >= 0).all(axis=1)).all()
    except (ValueError, OverflowError):
      valid = False
    if not valid:
      raise UserError(f"{self._path}: expected a winner from -1 to 2, a length and openings "
                      "of each game; remove the file to play the games again")
    return Outcomes(values[:, 0].copy(), values[:, 1].copy(),
                    values[:, 2:].reshape(-1, 2, OPENING).copy())
