"""Replays: where they stop, which action belongs to which observation, and whole games.

The game is played by a stand-in for pysc2's controllers, which answers with recorded observations.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pysc2")

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.environments.sc2 import replays
from starleague.environments.sc2.converter.camera import Camera
from tests.environments.sc2 import recorded
from tests.environments.sc2 import replay_controllers as controllers
from tests.environments.sc2.replay_controllers import command, move_camera

WIDTH, HEIGHT = controllers.WIDTH, controllers.HEIGHT


def play(monkeypatch, loops, actions, end, errors=({}, {})):
  """(schedule, steps, controllers) of a replay that pysc2's own stream plays."""
  from pysc2.lib.replay import replay_observation_stream
  players = [controllers.Controller(player, end, actions[player - 1], errors[player - 1])
             for player in (1, 2)]
  config = recorded.agent_config.mini()
  stream = replays.open_stream(config)
  monkeypatch.setattr(replay_observation_stream, "_get_replay_version", lambda data: None)
  monkeypatch.setattr(stream, "_get_controllers", lambda version: players)
  stream.start_replay_from_data(b"replay", player_id=1)
  settings = [recorded.make_setting(config, stream.game_info(), player) for player in (1, 2)]
  schedule = replays.plan(loops, end)
  found = list(replays.convert(replays.align(replays.play(stream, schedule), schedule), settings))
  return schedule, found, players


def test_each_action_is_on_the_observation_before_it(monkeypatch):
  attack = command("Attack_pt", place=(64.5, 32.5))
  marine = command("Train_Marine_quick")
  actions = ({10: [attack], 20: [marine] * 2, 30: [marine]},
             {10: [marine], 25: [move_camera(9, 9)]})
  schedule, found, players = play(monkeypatch, ([10, 20, 60], [10, 25, 60]), actions, 60)
  assert schedule.frames == (0, 10, 11, 20, 21, 25, 26, 60) == tuple(players[0].stops)
  for player, expected in enumerate((
      [(0, "no_op", 0), (10, "Attack_pt", 0), (20, "Train_Marine_quick", 1), (60, "no_op", 0)],
      [(0, "no_op", 0), (10, "Train_Marine_quick", 0), (25, "raw_move_camera", 0),
       (60, "no_op", 0)])):
    side = [step for step in found if step.player == player]
    steps = [step.step for step in side]
    assert [(int(s.observation.game_loop), v.FUNCTIONS.names[s.action.function],
             int(s.action.repeat)) for s in steps] == expected
    assert [s.first for s in side] == [True, False, False, False]
    assert [s.last for s in side] == [False, False, False, True]
    assert [int(s.discount) for s in steps] == [1, 1, 1, 0]
    assert [s.reward[0] for s in steps] == [0, 0, 0, 2 * player - 1]
    assert [int(s.observation.player[0]) for s in steps] == [
      100 * (player + 1) + loop for loop, _, _ in expected]
    assert [int(s.privileged.opponent_player[0]) for s in steps] == [
      100 * (2 - player) + loop for loop, _, _ in expected]
    names = [v.FUNCTIONS.names[s.observation.last_function] for s in steps]
    assert names == ["no_op", *(name for _, name, _ in expected[:-1])]
    marines = side[-1].executed.units[v.UNIT_TYPES.index("Marine")]
    assert marines and not side[0].executed.units.any()
  first = found[2 if found[2].player == 0 else 3].step.action
  assert int(first.location) == 23 * 32 + 16  # cells of 4 game units, downwards


def test_errors_of_frames_without_a_decision_are_in_the_next_one(monkeypatch):
  """The game reports them one loop after the command, where no player decides, or only one."""
  marine, pairs = command("Train_Marine_quick"), []
  actions = ({10: [marine], 30: [marine]}, {11: [marine], 30: [marine]})
  for errors in (({}, {}), ({11: 4, 12: 5, 31: 6}, {12: 7})):
    _, found, _ = play(monkeypatch, ([10, 30], [11, 30]), actions, 60, errors)
    pairs.append([[(int(step.step.observation.game_loop), int(step.step.observation.action_result))
                   for step in found if step.player == player] for player in (0, 1)])
  assert pairs[0] == [[(0, 0), (10, 0), (30, 0), (60, 0)], [(0, 0), (11, 0), (30, 0), (60, 0)]]
  assert pairs[1] == [[(0, 0), (10, 0), (30, 4), (60, 0)], [(0, 0), (11, 0), (30, 7), (60, 0)]]


def test_a_decision_has_each_of_its_errors_once():
  schedule = replays.plan(([10, 20], [15]), 30)
  players = [controllers.Controller(1, 30, {}, {11: 4, 15: 5}), controllers.Controller(2, 30, {})]

  def frames():
    for loop in schedule.frames:
      for controller in players:
        controller.loop = loop
      yield tuple(controller.observe() for controller in players)

  errors = {(d.player, d.frame[0].observation.game_loop):
            [error.result for error in d.frame[d.player].action_errors]
            for d in replays.align(frames(), schedule)}
  assert errors == {(0, 0): [], (1, 0): [], (0, 10): [], (1, 15): [], (0, 20): [4, 5],
                    (0, 30): [], (1, 30): []}


def test_a_step_has_the_delay_of_the_decision_before(monkeypatch):
  _, found, _ = play(monkeypatch, ([10, 300], [40]), (
    {10: [command("Train_Marine_quick")]}, {40: [command("Stop_quick")]}), 350)
  delays = [[(int(step.step.observation.game_loop), int(step.step.action.delay))
             for step in found if step.player == player] for player in (0, 1)]
  assert delays == [[(0, 1), (10, 10), (137, 127), (264, 127), (300, 36), (350, 50)],
                    [(0, 1), (40, 40), (167, 127), (294, 127), (350, 56)]]


def test_long_waits_are_split(monkeypatch):
  schedule, found, _ = play(monkeypatch, ([300, 400], [400]), ({300: [command(
    "Train_Marine_quick")], 127: [command("Train_Marine_quick")]}, {}), 400)
  loops = [int(s.step.observation.game_loop) for s in found if s.player == 0]
  assert loops == [0, 127, 254, 300, 400]
  functions = [int(s.step.action.function) for s in found if s.player == 0]
  assert [bool(f) for f in functions] == [False, False, False, True, False]  # 127 was filtered out
  assert schedule.frames == (0, 127, 254, 300, 301, 381, 400)


def test_a_camera_move_beside_a_command_moves_the_camera(monkeypatch):
  actions = {4: [move_camera(50, 70), command("Train_Marine_quick")], 8: [command("Stop_quick")]}
  _, found, _ = play(monkeypatch, ([4, 8], []), (actions, {}), 20)
  steps = [s.step for s in found if s.player == 0]
  assert [v.FUNCTIONS.names[s.action.function] for s in steps] == [
    "no_op", "Train_Marine_quick", "Stop_quick", "no_op"]
  shown = [s.observation.camera.tolist() for s in steps]
  assert shown[0] == shown[1] != shown[2] == shown[3]
  from starleague.environments.sc2.converter import camera
  assert shown[2] == camera.rectangle(Camera(50, 70), WIDTH, HEIGHT).tolist()


def test_a_game_that_ends_early_keeps_what_it_had(monkeypatch):
  schedule = replays.plan(([10, 90], [50]), 100)
  players = [controllers.Controller(player, 60, {10: [command("Train_Marine_quick")]})
             for player in (1, 2)]

  def frames():
    for loop in schedule.frames:
      for controller in players:
        controller.loop = min(loop, 60)
      yield tuple(controller.observe() for controller in players)
      if loop >= 60:
        return

  found = list(replays.align(frames(), schedule))
  assert [(d.player, d.frame[0].observation.game_loop, d.terminal) for d in found] == [
    (0, 0, False), (1, 0, False), (0, 10, False), (1, 50, False), (0, 60, True), (1, 60, True)]


@given(st.tuples(*[st.lists(st.integers(0, 2000), max_size=40)] * 2), st.integers(1, 2000))
def test_plans_stop_where_they_must(loops, end):
  schedule = replays.plan(loops, end)
  assert schedule.frames[0] == 0 and schedule.frames[-1] == end
  assert sorted(set(schedule.frames)) == list(schedule.frames)
  for acted, acts, decisions in zip(loops, schedule.acts, schedule.decisions, strict=True):
    assert acts == {loop for loop in acted if loop < end}
    assert acts | {0} <= decisions <= set(schedule.frames) and max(decisions) < end
    assert {loop + 1 for loop in acts} <= set(schedule.frames)
    gaps = np.diff(sorted(decisions | {end}))
    assert gaps.max() <= types.MAX_DELAY
    waits = decisions - acts - {0}
    assert all(loop - 127 in decisions for loop in waits)


def _failures():
  """(error, whether the game did not start or was lost) of a replay's playback."""
  import websocket
  from pysc2.lib import protocol, remote_controller, sc_process
  from pysc2.lib.replay import replay_observation_stream
  not_started = sc_process.SC2LaunchError("Failed to launch: ['SC2_x64']")
  not_started.__context__ = FileNotFoundError(2, "No such file or directory")
  return [
    (not_started, True), (sc_process.SC2LaunchError("No SC2 binary found at: SC2_x64"), False),
    (remote_controller.ConnectError("Failed to connect to the SC2 websocket. Is it up?"), True),
    (protocol.ConnectionError("Websocket timed out."), True),
    (websocket.WebSocketTimeoutException("slow"), True),
    (ConnectionResetError(104, "Connection reset by peer"), True), (TimeoutError("slow"), True),
    (OSError(28, "No space left on device"), True), (OSError("Invalid data stream"), False),
    (protocol.ProtocolError("Got an empty response from SC2."), True),
    (protocol.ProtocolError("Error in RPC response (likely a bug)."), False),
    (remote_controller.RequestError("StartReplay.Error.MissingReplay", None), False),
    (replay_observation_stream.ReplayError("no metadata"), False),
    (ValueError("Map Home not found"), False)]


@pytest.mark.parametrize("error, expected", _failures())
def test_failures_to_start_and_lost_connections_say_nothing_of_the_replay(error, expected):
  assert replays.is_passing(error) is expected
  assert isinstance(error, (OSError, ValueError, *replays.errors()))  # `play_back` catches it
