"""Match settings from `create_game`: players, races, bots, seeds."""

import pytest

from starleague.environments.sc2.protocol import common_pb, sc_pb
from starleague.environments.sc2.server.game import battlefields
from starleague.environments.sc2.server.game.opponents import make_bot
from starleague.environments.sc2.server.sessions import setups
from tests.environments.sc2.server import play

ALONE = sc_pb.PlayerSetup(type=sc_pb.Participant)
COMPUTER = sc_pb.PlayerSetup(type=sc_pb.Computer, race=1, difficulty=sc_pb.VeryHard)
OBSERVER = sc_pb.PlayerSetup(type=sc_pb.Observer)


def request(*players, **fields):
  return sc_pb.RequestCreateGame(
    local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"), player_setup=players, **fields)


@pytest.mark.parametrize("players, error", [
  ([], "MissingPlayerSetup"), ([2, 2], "InvalidPlayerSetup"), ([1, 1, 1], "InvalidPlayerSetup"),
  ([3], "InvalidPlayerSetup"), ([2, 2, 2, 3], "InvalidPlayerSetup")])
def test_players_that_cannot_play_are_refused(players, error):
  async def script(session):
    return await play.ask(session, create_game=sc_pb.RequestCreateGame(
      local_map=sc_pb.LocalMap(map_path="SkirmishMiniOpen"),
      player_setup=[sc_pb.PlayerSetup(type=kind) for kind in players]))

  response = play.run(script)
  assert sc_pb.ResponseCreateGame.Error.Name(response.create_game.error) == error
  assert response.status == sc_pb.launched


def test_a_request_states_the_match():
  setup = setups.make_setup(request(ALONE, COMPUTER, random_seed=2 ** 32 - 1, realtime=True), {},
                            None)
  assert (setup.battlefield.tier, setup.map_name) == ("mini", "SkirmishMiniOpen")
  assert (setup.seed, setup.realtime, setup.disable_fog) == (2 ** 31 - 1, True, False)
  assert list(setup.bots) == [1] and setup.players == (ALONE, COMPUTER)
  assert setup.bots[1] == make_bot("mini", sc_pb.VeryHard, sc_pb.RandomBuild)


def test_seeds_differ_unless_they_are_given():
  seeds = {setups.make_setup(request(ALONE), {}, None).seed for _ in range(5)}
  assert len(seeds) == 5 and all(0 <= seed < 2 ** 31 for seed in seeds)


def test_a_saved_map_is_found_by_its_path():
  data = battlefields.encode(battlefields.Battlefield("default", "ramps"))
  found = setups.make_setup(sc_pb.RequestCreateGame(
    local_map=sc_pb.LocalMap(map_path="sent.SC2Map"), player_setup=[ALONE]),
    {"sent.SC2Map": data}, None)
  assert (found.battlefield.tier, found.battlefield.map) == ("default", "ramps")


def test_observers_are_no_players():
  setup = setups.make_setup(request(COMPUTER, COMPUTER, OBSERVER), {}, None)
  assert setup.players == (COMPUTER, COMPUTER) and sorted(setup.bots) == [0, 1]
  with pytest.raises(setups.SetupError, match="expected a participant or an observer, found none"):
    setups.make_setup(request(COMPUTER, COMPUTER), {}, None)
  with pytest.raises(setups.SetupError, match="expected 1 or 2 players, found 0"):
    setups.make_setup(request(OBSERVER), {}, None)


def test_random_races_are_drawn_with_the_seed():
  def draw(seed, first, second):
    made = setups.make_setup(request(
      ALONE, sc_pb.PlayerSetup(type=sc_pb.Computer, race=second), random_seed=seed), {}, None)
    return setups.draw_races(made, {0: first})

  zerg, protoss, anything = common_pb.Zerg, common_pb.Protoss, common_pb.Random
  assert draw(1, zerg, protoss) == (2, 3)
  drawn = [draw(seed, anything, anything) for seed in range(60)]
  assert drawn == [draw(seed, anything, anything) for seed in range(60)]
  assert {race for pair in drawn for race in pair} == {1, 2, 3}
  assert len(set(drawn)) == 9  # the races are drawn apart
  # The drawn race of one player does not depend on the other's choice.
  assert [draw(seed, zerg, anything)[1] for seed in range(60)] == [pair[1] for pair in drawn]
