"""Matches of a league's evaluator in StarCraft II; a stand-in plays the games."""

import types as modules

import numpy as np
import pytest

from starleague import league
from starleague.actor.game_processes import Finished
from starleague.actor.games import Report
from starleague.actor.loops import hosted_arena, hosted_games
from starleague.common.errors import UserError
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.league.ratings.archive import NEVER

MAIN = league.Player("main", league.MAIN, "zerg")
RIVAL = league.Player("rival", league.MAIN_EXPLOITER, "terran")
BOT = league.Player("protoss:hard", league.SCRIPTED)


class Hosting:
  """Ends a game at the third look: the first player wins against bots, else it is void."""

  def __init__(self, parts, key, params, next_request, conditioning):
    assert (parts.hosted.processes, parts.hosted.inference_batch, params) == (1, 1, {})
    self._next_request, self._looks = next_request, 0
    self.params, self.requests = {}, []
    self.model = modules.SimpleNamespace(set_params=self._set_params)
    self.processes = modules.SimpleNamespace(resume=self._resume, busy=lambda: self._playing)
    self._playing = False
    Hosting.newest = self

  def _set_params(self, player, params):
    assert not self._playing, "the weights of a game under way"
    self.params[player] = params

  def _resume(self):
    if not self._playing:
      self._begin()

  def _begin(self):
    request = self._next_request()
    self._playing, self._looks = request is not None, 0
    self.requests += [request] if self._playing else []

  def run_once(self):
    self._looks += 1
    if self._looks < 3:
      return []
    request = self.requests[-1]
    self._begin()
    if request.map_index:  # as if the disk was full
      return [Finished(request, Report(1, 700))]
    if not request.opponent:
      return [Finished(request, Report(None, reason="the game hangs"))]
    with open(request.replay, "w") as file:
      file.write("a replay")
    return [Finished(request, Report(1, 700, behaviours=((0.5, 2.0, 90),)))]


@pytest.fixture
def arena(monkeypatch):
  monkeypatch.setattr(hosted_games, "Hosting", Hosting)
  config = settings.complete({}, {"environment.name": "sc2", "sc2.races": "terran,zerg"})
  return hosted_arena.HostedArena(registry.make_parts(config), np.random.default_rng(0))


def test_a_bot_plays_the_race_of_its_name_and_the_replay_can_be_kept(arena, tmp_path):
  play, looks = arena.match([MAIN, BOT], ["weights", None]), []
  played = play(1, lambda: looks.append(1))
  assert (played.result, played.loops, len(looks)) == (1, 700, 2)
  (request,) = Hosting.newest.requests
  assert (request.opponent, request.races[0], request.swap_sides, request.recorded) == (
    "protoss:hard", 2, True, (False, False))
  assert not any(map(any, request.active))
  played.save(tmp_path / "kept.SC2Replay")
  assert (tmp_path / "kept.SC2Replay").read_text() == "a replay"
  assert Hosting.newest.params == {0: "weights"}


def test_a_bot_that_is_named_first_plays_the_same_game(arena):
  first = arena.match([MAIN, BOT], ["weights", None])(0, lambda: None)
  second = arena.match([BOT, MAIN], [None, "weights"])(0, lambda: None)
  named, reversed_ = Hosting.newest.requests
  for request in (named, reversed_):
    assert (request.opponent, request.races[0], request.swap_sides) == ("protoss:hard", 2, False)
  assert Hosting.newest.params == {0: "weights"}
  assert (first.result, second.result, second.loops) == (1, -1, first.loops)
  assert first.behaviours == ((0.5, 2.0, 90),)
  # Of the home player, then of the away player. Nothing is known of a bot.
  assert second.behaviours == ((0.0, 0.0, NEVER), *first.behaviours)


def break_off():
  raise league.LeagueError("the coordinator is of another version")


def test_a_game_that_broke_off_ends_before_the_next_weights(arena, tmp_path):
  play = arena.match([MAIN, BOT], ["weights", None])
  with pytest.raises(league.LeagueError):
    play(0, break_off)
  hosting = Hosting.newest
  play = arena.match([RIVAL, MAIN], ["mine", "yours"])
  assert not hosting.processes.busy() and len(hosting.requests) == 1
  with pytest.raises(UserError, match="the game hangs"):  # not the older game, which was won
    play(0, lambda: None)
  assert [request.opponent for request in hosting.requests] == ["protoss:hard", ""]


def test_the_report_of_an_older_game_is_not_that_of_the_next_one(arena):
  play = arena.match([MAIN, BOT], ["weights", None])
  with pytest.raises(league.LeagueError):
    play(0, break_off)
  looks = []
  assert play(1, lambda: looks.append(1)).result == 1
  assert [request.swap_sides for request in Hosting.newest.requests] == [False, True]
  assert len(looks) == 3  # one before the end of the older game, two before its own


def test_a_game_whose_replay_was_not_written_has_no_other_ones(arena, monkeypatch):
  play = arena.match([MAIN, BOT], ["weights", None])
  assert play(0, lambda: None).save is not None
  drawn = hosted_games.draw_request
  monkeypatch.setattr(hosted_games, "draw_request",
                      lambda *arguments: drawn(*arguments)._replace(map_index=1))
  played = play(1, lambda: None)
  assert (played.result, played.loops, played.save) == (1, 700, None)


def test_two_agents_have_weights_of_their_own_and_a_void_game_is_an_error(arena):
  play = arena.match([RIVAL, MAIN], ["mine", "yours"])
  with pytest.raises(UserError, match="the game hangs"):
    play(0, lambda: None)
  (request,) = Hosting.newest.requests
  assert (request.opponent, request.races, request.players, request.swap_sides) == (
    "", (1, 2), (0, 1), False)
  assert Hosting.newest.params == {0: "mine", 1: "yours"}
