"""The two players of a game among observers, computers and shuffled lists."""

import pytest

from starleague.data.replays import participants, refusals
from tests.data.replays import games
from tests.data.replays.games import Game


def test_observers_and_shuffled_lobbies():
  """Users of observers come between; the list of players may have another order."""
  players = (Game.players[1], games.player(b"Caster", 2, observe=1), Game.players[0])
  users = ({"m_name": b"Caster"}, *Game.users)
  tracker = (games.setup(1, 1), games.setup(2, 2), *Game.tracker[2:])
  events = tuple((loop, user + 1, *rest) for loop, user, *rest in Game.events)
  found = games.decoded(Game(players=players, users=users, tracker=tracker, events=events))
  expected = games.decoded()
  assert [row._replace(replay="") for row in found.players] == [
    row._replace(replay="") for row in expected.players]
  assert [row[1:] for row in found.commands] == [row[1:] for row in expected.commands]


def test_computer_opponents_have_no_commands():
  players = (Game.players[0], games.player(b"A.I. 1 (Very Easy)", 1, control=3, result=2))
  tracker = (games.setup(1, 0), games.setup(2, None), *Game.tracker[2:])
  found = games.decoded(Game(players=players, users=Game.users[:1], tracker=tracker))
  assert [player.computer for player in found.players] == [False, True]
  assert [player.commands for player in found.players] == [3, 0]
  assert found.players[1].units == ["Lair", "SpawningPool"]


def test_missing_results_follow_from_who_left_first():
  players = tuple({**player, "m_result": 0} for player in Game.players)
  found = games.decoded(Game(players=players))
  assert [player.result for player in found.players] == ["win", "loss"]
  found = games.decoded(Game(players=players, events=Game.events[:-1]))
  assert [player.result for player in found.players] == ["unknown", "unknown"]
  assert found.game.winner == -1
  found = games.decoded(Game(players=({**players[0], "m_result": 2}, players[1])))
  assert [player.result for player in found.players] == ["loss", "win"]


def test_setups_of_observers_are_left_out():
  tracker = (games.setup(3, 2), *Game.tracker)
  assert [row.name for row in games.decoded(Game(tracker=tracker)).players] == ["Ann", "Bob"]


@pytest.mark.parametrize("game, reason, detail", [
  (Game(players=(*Game.players, games.player(b"Cy", 2))), refusals.NOT_ONE_ON_ONE, "found 3"),
  (Game(players=Game.players[:1]), refusals.NOT_ONE_ON_ONE, "found 1"),
  (Game(players=(Game.players[0], games.player(b"Bob", 0))), refusals.NOT_ONE_ON_ONE, "one team"),
  (Game(tracker=Game.tracker[:4]), refusals.NOT_MELEE, "player 1 has none"),
  (Game(size=(1, 176)), refusals.DAMAGED, "a map of 1 x 176")])
def test_other_games_are_refused(game, reason, detail):
  with pytest.raises(refusals.Refusal, match=detail) as error:
    games.decoded(game)
  assert error.value.reason == reason


def test_files_without_tracker_events_are_refused():
  with pytest.raises(refusals.Refusal, match="no replay.tracker.events") as error:
    games.decoded(tracker_events=None)
  assert error.value.reason == refusals.NO_TRACKER


@pytest.mark.parametrize("name, clean", [
  (b"&lt;Clan&gt;<sp/>Ann", "Ann"), (b"Bob", "Bob"), ("저그".encode(), "저그"),
  (b"A&amp;B", "A&B"), (None, "")])
def test_names_without_markup(name, clean):
  assert participants.clean_name(name) == clean


@pytest.mark.parametrize("left, results", [
  ((100, None), ["loss", "win"]), ((100, 90), ["win", "loss"]),
  ((100, 100), ["unknown", "unknown"]), ((None, None), ["unknown", "unknown"])])
def test_who_leaves_first_has_lost(left, results):
  players = [participants.Participant(i + 1, i, "x", "zerg", False, None, "unknown", 0., 0.)
             for i in range(2)]
  found = participants.infer_results(players, dict(enumerate(left)))
  assert [player.result for player in found] == results
