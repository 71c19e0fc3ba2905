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

MAIN = league.Player("main", league.MAIN, "zerg")
RIVAL = league.Player("rival", league.MAIN_EXPLOITER, "terran")
BOT = league.Player("protoss:hard", league.SCRIPTED)


class Hosting:
  """Ends a game at the third look: the first player wins against bots, else it is void."""

  def __init__(self, parts, key, params, next_request, conditioning):
    assert (parts.hosted.processes, parts.hosted.inference_batch, params) == (1, 1, {})
    self._next_request, self._looks = next_request, 0
    self.params, self.requests = {}, []
    self.model = modules.SimpleNamespace(set_params=self.params.__setitem__)
    self.processes = modules.SimpleNamespace(resume=self._resume)
    Hosting.newest = self

  def _resume(self):
    self.requests.append(self._next_request())
    self._looks = 0

  def run_once(self):
    self._looks += 1
    if self._looks < 3:
      return []
    request = self.requests[-1]
    if not request.opponent:
      return [Finished(request, Report(None, reason="the game hangs"))]
    with open(request.replay, "w") as file:
      file.write("a replay")
    return [Finished(request, Report(1, 700))]


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


def test_two_agents_have_weights_of_their_own_and_a_void_game_is_an_error(arena):
  play = arena.match([RIVAL, MAIN], ["mine", "yours"])
  with pytest.raises(UserError, match="the game hangs"):
    play(0, lambda: None)
  (request,) = Hosting.newest.requests
  assert (request.opponent, request.races, request.players, request.swap_sides) == (
    "", (1, 2), (0, 1), False)
  assert Hosting.newest.params == {0: "mine", 1: "yours"}
