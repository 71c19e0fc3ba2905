"""The matches of a league's evaluator in StarCraft II, one game at a time."""

import collections
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from starleague import league
from starleague.actor.game_processes import GamesError
from starleague.actor.games import Order
from starleague.agent import types
from starleague.common import files
from starleague.common.errors import UserError
from starleague.data.z import conditioning
from starleague.experiments.run.actors import hosted_games
from starleague.experiments.run.evaluation import arenas
from starleague.experiments.run.parts import wiring


class Sc2Arena:
  """Matches in StarCraft II; see `arenas.Arena`.

  The game's process ends by itself when this one is killed.
  """

  suffix = ".SC2Replay"
  final_errors: tuple[type[Exception], ...] = (GamesError,)

  def __init__(self, parts: wiring.Parts, random: np.random.Generator):
    """Compiles the programs and starts the process; `random` draws the games."""
    assert parts.sc2 is not None
    alone = parts._replace(sc2=parts.sc2._replace(processes=1, inference_batch=1))
    self._parts, self._random = alone, random
    self._given = conditioning.unconditional(parts.maps, parts.mmr)
    self._orders: collections.deque[Order] = collections.deque()
    self._hosting = hosted_games.Hosting(
      alone, jax.random.key(int(random.integers(2**31))), {}, self._next_order, self._given)
    self._folder = tempfile.TemporaryDirectory(prefix="starleague-")
    self._replay = pathlib.Path(self._folder.name) / f"game{self.suffix}"

  def _next_order(self) -> Order | None:
    return self._orders.popleft() if self._orders else None

  def match(self, players: Sequence[league.Player],
            params: Sequence[Any]) -> arenas.Match:
    """Returns the match of two players, the only one that is played until the next call."""
    bot = "" if params[1] is not None else players[1].name
    home, away = players[0], players[0 if bot else 1]  # a bot's race is in its name
    races = types.RACES.index(home.race), types.RACES.index(away.race)
    for number, found in enumerate(params):
      if found is not None:
        self._hosting.model.set_params(number, found)

    def play(game: int, on_step: Callable[[], object]) -> arenas.Played:
      order = hosted_games.draw_order(self._parts, self._random, bot, self._given, races)
      self._orders.append(order._replace(
        swap_sides=bool(game % 2), players=(0, 1), recorded=(False, False),
        replay=str(self._replay)))
      self._hosting.processes.resume()
      while not (finished := self._hosting.run_once()):
        on_step()
      report = finished[0].report
      if report.result is None:
        raise UserError(report.reason)
      return arenas.Played(report.result, report.loops, self._save)

    return play

  def _save(self, path: pathlib.Path) -> None:
    with files.replacing(path, "wb") as file:
      file.write(self._replay.read_bytes())
