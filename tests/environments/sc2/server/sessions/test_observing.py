"""An observer watches a game of two computer players: either one's view, or everything."""

import pytest

from starleague.environments.sc2.protocol import raw_pb, sc_pb
from tests.environments.sc2.server import play

WEAK, STRONG = sc_pb.Easy, sc_pb.VeryHard  # demo_2000 and rusher on mini maps
FIRST = sc_pb.RequestJoinGame(observed_player_id=1, options=play.interface())


async def create(session, seed=3):
  """Creates a game of a strong and a weak computer player."""
  response = await play.ask(session, create_game=sc_pb.RequestCreateGame(
    local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"), random_seed=seed, player_setup=[
      sc_pb.PlayerSetup(type=sc_pb.Computer, race=1, difficulty=STRONG),
      sc_pb.PlayerSetup(type=sc_pb.Computer, race=1, difficulty=WEAK),
      sc_pb.PlayerSetup(type=sc_pb.Observer)]))
  assert not response.create_game.HasField("error")


async def watch(session, player):
  """Joins a new game as an observer; returns the id that it gets."""
  await create(session)
  joined = await play.ask(session, join_game=sc_pb.RequestJoinGame(
    observed_player_id=player, options=play.interface()))
  assert joined.status == sc_pb.in_game and not joined.join_game.HasField("error")
  return joined.join_game.player_id


def test_a_game_is_watched_to_its_end():
  async def script(session):
    assert await watch(session, 0) == 3
    info = (await play.ask(session, game_info=sc_pb.RequestGameInfo())).game_info
    for _ in range(400):
      found = await play.step(session, 256)
      if found.player_result:
        return info, found.player_result, session.status
    raise AssertionError("the game does not end")

  info, results, status = play.run(script)
  assert [(player.type, player.difficulty) for player in info.player_info] == [
    (sc_pb.Computer, STRONG), (sc_pb.Computer, WEAK)]
  assert [(result.player_id, result.result) for result in results] == [
    (1, sc_pb.Victory), (2, sc_pb.Defeat)]
  assert status == sc_pb.ended


def test_views_are_those_of_the_players():
  async def script(session):
    seen = []
    for player in (0, 1, 2):
      await watch(session, player)
      found = await play.step(session, 1600)
      units = found.observation.raw_data.units
      seen.append({alliance: {(unit.tag, unit.unit_type, unit.pos.x, unit.pos.y)
                              for unit in units if unit.alliance == alliance}
                   for alliance in (raw_pb.Self, raw_pb.Enemy)})
    return seen

  everything, first, second = play.run(script)
  assert everything[raw_pb.Self] == first[raw_pb.Self]
  assert everything[raw_pb.Enemy] == second[raw_pb.Self]
  assert len(first[raw_pb.Self]) > 4 and len(second[raw_pb.Self]) > 4
  # Those in sight: the strong one attacks the other's base, and its own is unseen.
  assert first[raw_pb.Enemy] and first[raw_pb.Enemy] <= second[raw_pb.Self]
  assert second[raw_pb.Enemy] < first[raw_pb.Self]


@pytest.mark.parametrize("request_", [
  sc_pb.Request(action=sc_pb.RequestAction()), sc_pb.Request(debug=sc_pb.RequestDebug()),
  sc_pb.Request(save_replay=sc_pb.RequestSaveReplay())])
def test_an_observer_gives_no_commands(request_):
  async def script(session):
    await watch(session, 1)
    return (await session.respond(request_)).error

  assert play.run(script) == [f"{request_.WhichOneof('request')} is not possible for an observer"]


@pytest.mark.parametrize("join, error", [
  (sc_pb.RequestJoinGame(observed_player_id=3), "InvalidObservedPlayerId"),
  (sc_pb.RequestJoinGame(observed_player_id=1, options=play.interface(99999, 64)), "OtherError"),
  (sc_pb.RequestJoinGame(race=1), "GameFull")])
def test_who_cannot_watch_is_told_why(join, error):
  async def script(session):
    await create(session)
    refused = (await play.ask(session, join_game=join)).join_game
    again = await play.ask(session, join_game=FIRST)
    return refused, again

  refused, again = play.run(script)
  assert sc_pb.ResponseJoinGame.Error.Name(refused.error) == error
  assert again.status == sc_pb.in_game


def test_a_watched_game_is_not_restarted_but_left():
  async def script(session):
    await watch(session, 2)
    refused = (await play.ask(session, restart_game=sc_pb.RequestRestartGame())).restart_game
    left = await play.ask(session, leave_game=sc_pb.RequestLeaveGame())
    return refused, left

  refused, left = play.run(script)
  assert refused.error == sc_pb.ResponseRestartGame.LaunchError
  assert left.status == sc_pb.launched
