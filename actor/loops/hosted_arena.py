"""The matches of a league's evaluator outside JAX, one game at a time."""

import collections
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from starleague import league
from starleague.actor.game_processes import GamesError
from starleague.actor.games import GameRequest, Report
from starleague.actor.loops import hosted_games, league_evaluator
from starleague.actor.parts import Parts
from starleague.agent import types
from starleague.common import files
from starleague.common.errors import UserError
from starleague.data.z.conditioning import unconditional
from starleague.league.ratings.archive import NEVER

_UNKNOWN = league.Behaviour(0.0, 0.0, NEVER)


class HostedArena:
  """Matches of games in a process of their own; see `league_evaluator.Arena`.

  The game's process ends by itself when this one is killed.
  """

  final_errors: tuple[type[Exception], ...] = (GamesError,)

  def __init__(self, parts: Parts, random: np.random.Generator):
    """Compiles the programs and starts the process; `random` draws the games."""
    hosted = hosted_games.hosted_games(parts)
    self.suffix = hosted.replay_suffix
    self._parts = parts._replace(hosted=hosted._replace(processes=1, inference_batch=1))
    self._random = random
    self._conditioning = unconditional(len(parts.maps), parts.mmr)
    self._requests: collections.deque[GameRequest] = collections.deque()
    self._hosting = hosted_games.Hosting(
      self._parts, jax.random.key(int(random.integers(2**31))), {}, self._next_request,
      self._conditioning)
    self._folder = tempfile.TemporaryDirectory(prefix="starleague-")
    self._replay = pathlib.Path(self._folder.name) / f"game{self.suffix}"

  def _next_request(self) -> GameRequest | None:
    return self._requests.popleft() if self._requests else None

  def match(self, players: Sequence[league.Player],
            params: Sequence[Any]) -> league_evaluator.PlayMatch:
    """Returns the match of two players, the only one that is played until the next call.

    At most one of them is scripted.
    """
    if params[0] is None:  # games have the agent first
      assert params[1] is not None, f"both players are scripted: {players}"
      return _reversed(self.match(players[::-1], params[::-1]))
    bot = "" if params[1] is not None else players[1].name
    home, away = players[0], players[0 if bot else 1]  # a bot's race is in its name
    races = types.RACES.index(home.race), types.RACES.index(away.race)
    self._requests.clear()
    while self._hosting.processes.busy():  # an older game, which needs its weights to its end
      self._hosting.run_once()
    for number, found in enumerate(params):
      if found is not None:
        self._hosting.model.set_params(number, found)

    def play(game: int, on_step: Callable[[], object]) -> league_evaluator.ArenaGame:
      request = hosted_games.draw_request(
        self._parts, self._random, bot, self._conditioning, races)._replace(
          swap_sides=bool(game % 2), players=(0, 1), recorded=(False, False),
          replay=str(self._replay))
      report = self._play(request, on_step)
      if report.result is None:
        raise UserError(report.reason)
      return league_evaluator.ArenaGame(
        report.result, report.loops, self._save if self._replay.exists() else None,
        tuple(league.Behaviour(*each) for each in report.behaviours))

    return play

  def _play(self, request: GameRequest, on_step: Callable[[], object]) -> Report:
    """Plays a game and returns its report; that of an older game, which broke off, is dropped."""
    self._replay.unlink(missing_ok=True)  # of another game
    self._requests.append(request)
    self._hosting.processes.resume()
    while True:
      finished = self._hosting.run_once()
      for found, report in finished:
        if found == request:
          return report
      if not finished:
        on_step()

  def _save(self, path: pathlib.Path) -> None:
    with files.replacing(path, "wb") as file:
      file.write(self._replay.read_bytes())


def _reversed(play: league_evaluator.PlayMatch) -> league_evaluator.PlayMatch:
  """Returns the same match as seen by its second player, which is scripted."""
  def play_reversed(game: int, on_step: Callable[[], object]) -> league_evaluator.ArenaGame:
    played = play(game, on_step)
    # The behaviour of a scripted player is not known; an archive does not count it.
    return played._replace(result=-played.result, behaviours=(_UNKNOWN, *played.behaviours))

  return play_reversed
