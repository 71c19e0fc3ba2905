"""A joined game over stand-ins for its processes: requests, time, results."""

import pytest

from starleague.agent import config as agent_config
from starleague.environments.sc2.client import lan, processes, setup_requests
from starleague.environments.sc2.client.joined_game import GameSetup, JoinedGame, result_of
from starleague.environments.sc2.protocol import sc_pb
from tests.environments.sc2 import fake_game

CONFIG = agent_config.mini()
MAP = setup_requests.find_map("Simple64")


def join(participants=2, length=20, **options):
  started = fake_game.Processes(participants, length)
  setup = GameSetup(MAP, (1, 3)[:participants], **options)
  return JoinedGame(started, setup, CONFIG), started


def test_participants_join_in_their_order():
  game, started = join(names=("first",), seed=11)
  assert game.player_ids == (1, 2) and game.loop == 0
  assert [info.start_raw.map_size.x for info in game.infos] == [fake_game.SIZE] * 2
  assert [(controller.joined.player_name, controller.joined.race)
          for controller in started.all] == [("first", 1), ("agent", 3)]
  (created,) = started.clock.created
  assert created.random_seed == 11 and not created.realtime
  assert [setup.type for setup in created.player_setup] == [sc_pb.Participant] * 2


def test_one_process_gets_the_map_with_the_request():
  game, started = join(1, bots=(setup_requests.parse_bot("zerg:hard"),))
  (created,) = started.clock.created
  assert created.local_map.map_data == b"the map " + MAP.path.encode()
  assert started.all[0].saved == b"" and not started.all[0].joined.HasField("server_ports")
  assert [(setup.type, setup.race) for setup in created.player_setup] == [
    (sc_pb.Participant, 0), (sc_pb.Computer, 2)]
  assert game.player_ids == (1,)


def test_steps_reach_their_loop_and_actions_their_process():
  game, started = join()
  move = sc_pb.RequestAction(actions=[sc_pb.Action()])
  for loop, player in ((8, 0), (11, 1), (20, 0)):
    game.act(player, move)
    game.act(1 - player, sc_pb.RequestAction())  # without actions nothing is sent
    game.advance(loop)
    found = game.observe()
    assert [one.observation.game_loop for one in found] == [loop, loop] and game.loop == loop
  assert started.clock.steps == [(0, 8), (8, 3), (11, 9)]
  assert [(player, loop) for player, loop, _ in started.clock.actions] == [(0, 0), (1, 8), (0, 11)]
  assert [[result_of(one, number) for number in (1, 2)] for one in found] == [[-1, 1]] * 2
  game.advance(30)  # the game has ended: no step is sent
  assert len(started.clock.steps) == 3


def test_in_real_time_no_step_is_sent():
  game, started = join(realtime=True)
  game.advance(9)
  assert started.clock.steps == [] and game.loop == 9 and started.clock.created[0].realtime


def test_a_guest_joins_with_the_hosts_map_and_ports():
  invitation = lan.Invitation(MAP, b"their map", "4.10", False, (51, 52, 53, 54), lambda: None)
  game, started = join(1, invitation=invitation)
  (controller,) = started.all
  assert started.clock.created == [] and controller.saved == b"their map"
  ports = controller.joined
  assert (ports.server_ports.game_port, ports.server_ports.base_port) == (51, 52)
  assert [(one.game_port, one.base_port) for one in ports.client_ports] == [(53, 54)]
  assert game.setup.invitation is invitation


def test_a_process_that_fails_is_named_with_its_request():
  game, started = join()

  def fails():
    raise ConnectionResetError("reset by peer")

  started.all[0].save_replay = fails
  with pytest.raises(processes.GameError, match="^StarCraft II: saving the replay failed: reset"):
    game.save_replay()
  assert started.all[1].save_replay() == b"replay"


@pytest.mark.parametrize("result, expected", [
  (sc_pb.Victory, 1), (sc_pb.Defeat, -1), (sc_pb.Tie, 0), (sc_pb.Undecided, 0)])
def test_results_are_those_of_the_player(result, expected):
  response = sc_pb.ResponseObservation()
  assert result_of(response, 2) is None
  response.player_result.add(player_id=1, result=sc_pb.Victory)
  assert result_of(response, 2) is None
  response.player_result.add(player_id=2, result=result)
  assert result_of(response, 2) == expected
