"""Delays, errors, results and restarts of a game whose processes are stand-ins."""

import jax
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.environments import base
from starleague.environments.sc2 import environment
from starleague.environments.sc2.client import installation, processes
from starleague.environments.sc2.converter import actions, rate_limit
from starleague.environments.sc2.protocol import raw_pb, sc_pb
from tests.environments.sc2 import fake_game

CONFIG = agent_config.mini()
CAMERA = actions.MOVE_CAMERA  # needs no unit


def make(participants=2, length=40, **options):
  bot = "" if participants == 2 else "terran:veryeasy"
  games = environment.GameHost(CONFIG, ("Simple64",), bot, **options)
  games.processes = fake_game.Processes(participants, length)
  return games, games.processes.clock


def action(delay, location=0):
  found = types.zeros(types.action_spec(CONFIG.max_selected))
  return found._replace(
    function=np.int16(CAMERA), delay=np.int16(delay), location=np.int32(location),
    units=np.full(CONFIG.max_selected, CONFIG.max_entities, np.int16))


def both(*given):
  return jax.tree.map(lambda *x: np.stack(x), *given)


def test_each_player_acts_at_its_own_loops():
  """Delays 5 and 8: the game moves on by the least that is left."""
  games, clock = make()
  env = games.environment()
  state, due = env.reset(3, base.make_match_up()), []
  while not env.outcome(state).over:
    acts = env.due(state)
    due.append((state.game.loop, *acts.tolist()))
    for player in np.flatnonzero(acts):
      observation, _ = env.observe(state, player)
      assert observation.game_loop == state.game.loop == observation.player[0]
      assert observation.last_delay == (0 if len(due) == 1 else (5, 8)[player])
      assert observation.last_function == (0 if len(due) == 1 else CAMERA)
    state = env.advance(env.act(state, both(action(5), action(8)), acts))
  assert due == [(0, True, True), (5, True, False), (8, False, True), (10, True, False),
                 (15, True, False), (16, False, True), (20, True, False), (24, False, True),
                 (25, True, False), (30, True, False), (32, False, True), (35, True, False)]
  assert clock.steps == [(a, b - a) for (a, *_), (b, *_) in zip(
    due, [*due[1:], (40,)], strict=True)]
  assert [(player, loop) for player, loop, _ in clock.actions] == [
    (player, loop) for loop, *acts in due for player in range(2) if acts[player]]
  np.testing.assert_array_equal(env.outcome(state).reward, [-1, 1])
  assert not env.due(state).any()
  assert games.environment().advance(state) is state and clock.loop == 40


def test_a_bot_needs_no_process_and_gets_the_other_result():
  games, clock = make(participants=1, length=16)
  env = games.environment()
  state = env.reset(4, base.make_match_up())
  assert env.due(state).tolist() == [True, False]
  _, privileged = env.observe(state, 0)
  assert not privileged.opponent_player.any()
  state = env.advance(env.act(state, both(action(16), action(1)), env.due(state)))
  outcome = env.outcome(state)
  assert outcome.over and outcome.reward.tolist() == [-1, 1]
  setup = clock.created[0].player_setup
  assert [info.type for info in setup] == [sc_pb.Participant, sc_pb.Computer]
  assert clock.created[0].local_map.map_data.startswith(b"the map")


def test_two_processes_share_ports_and_save_the_map_first():
  games, clock = make()
  first = games.reset(0, base.make_match_up(races=(3, 2)))
  joined = [controller.joined for controller in games.processes.all]
  assert [request.race for request in joined] == [3, 2]
  assert joined[0].server_ports == joined[1].server_ports
  ports = [joined[0].server_ports.game_port, joined[0].client_ports[0].game_port]
  assert len(set(ports)) == 2 and all(controller.saved for controller in games.processes.all)
  assert not clock.created[0].local_map.map_data
  second = games.reset(0, base.make_match_up())  # leaves the first game before it
  assert second is not first and len(clock.created) == 2


@pytest.mark.parametrize("seed, swap, sent", [(6, False, 6), (7, False, 6), (7, True, 7)])
def test_the_seed_carries_the_sides(seed, swap, sent):
  games, clock = make()
  games.reset(seed, base.make_match_up(swap_sides=swap))
  assert clock.created[0].random_seed == sent
  games.reset(jax.random.key(seed), base.make_match_up(swap_sides=swap))
  assert clock.created[1].random_seed == sent


def test_an_error_is_kept_until_its_player_is_due():
  games, _ = make()
  env = games.environment()
  state = env.reset(0, base.make_match_up())
  state = env.act(state, both(action(4), action(12)), env.due(state))
  games.processes.all[1].errors = [sc_pb.ActionError(result=55)]
  state = env.advance(state)  # to loop 4: player 1 is observed and not due
  assert env.due(state).tolist() == [True, False]
  state = env.advance(env.act(state, both(action(8), action(1)), env.due(state)))
  assert env.due(state).tolist() == [True, True]
  assert [int(env.observe(state, player)[0].action_result) for player in range(2)] == [0, 55]


@pytest.mark.parametrize("ability, executed", [(3675, 0), (23, 1)])
def test_an_effect_that_the_game_refuses_is_not_executed(ability, executed):
  games, clock = make(participants=1)
  env = games.environment()
  state = env.reset(0, base.make_match_up())
  env.observe(state, 0)
  stim = action(4)._replace(function=np.int16(v.FUNCTIONS.index("Effect_Stim_quick")))
  stim.units[0] = 0
  state = env.act(state, both(stim, action(1)), env.due(state))
  assert len(clock.actions) == 1
  games.processes.all[0].errors = [sc_pb.ActionError(ability_id=ability, result=15)]
  state = env.advance(state)
  assert env.observe(state, 0)[1].executed.effects.sum() == executed


def test_no_more_than_22_actions_in_5_seconds_reach_the_game():
  games, clock = make(participants=1, length=500)
  env = games.environment()
  state = env.reset(0, base.make_match_up())
  for number in range(60):
    state = env.advance(env.act(
      state, both(action(2, location=number), action(1)), env.due(state)))
  loops = [loop for _, loop, _ in clock.actions]
  assert loops[:22] == list(range(0, 44, 2))
  assert loops[22] == rate_limit.WINDOW  # the first is 5 seconds old
  window = [sum(loop <= other < loop + rate_limit.WINDOW for other in loops) for loop in loops]
  assert max(window) == rate_limit.MOST_ACTIONS


def test_a_game_that_fails_ends_its_processes():
  games, _ = make()

  def hangs(*arguments):
    raise TimeoutError("Websocket timed out")

  games.processes.all[1].game_info = hangs
  with pytest.raises(processes.GameError, match="game_info failed: Websocket timed out"):
    games.reset(0, base.make_match_up())
  assert games.processes.closed == 1


def test_people_play_by_themselves(tmp_path):
  games, clock = make(length=16, realtime=True, people=(1,))
  env = games.environment()
  state = env.reset(0, base.make_match_up())
  assert env.due(state).tolist() == [True, False]
  state = env.act(state, both(action(9), action(1)), env.due(state))
  clock.loop = 9
  state = env.advance(state)
  assert clock.steps == [] and env.due(state).tolist() == [True, False]
  state.save_replay(tmp_path / "game.SC2Replay")
  assert (tmp_path / "game.SC2Replay").read_bytes() == b"replay"


def test_without_the_game_the_steps_of_its_installation_are_told(monkeypatch, tmp_path):
  monkeypatch.setenv("SC2PATH", str(tmp_path))
  with pytest.raises(installation.InstallationError, match="download.*SC2PATH"):
    environment.GameHost(CONFIG, ("Simple64",)).reset(0, base.make_match_up())


def test_a_stub_at_the_end_leaves_the_last_observation(monkeypatch):
  """Some games end with an observation of the result alone, at game loop 2**32 - 1."""
  games, clock = make(participants=1)
  observe = fake_game.Controller.observe

  def stub(self, target_game_loop=0):
    response = observe(self, target_game_loop)
    if clock.over:
      response.ClearField("observation")
      response.observation.game_loop = 2**32 - 1
    return response

  monkeypatch.setattr(fake_game.Controller, "observe", stub)
  env = games.environment()
  state = env.reset(3, base.make_match_up())
  while not env.outcome(state).over:
    state = env.advance(env.act(state, both(action(30), action(30)), env.due(state)))
  observation, _ = env.observe(state, 0)
  assert observation.game_loop == 30 and observation.entity_count == 2
  assert env.outcome(state).reward.tolist() == [-1, 1]


@pytest.mark.parametrize("own, others, side", [
  ((20.5, 80.5), [(60.5, 10.5)], 0), ((60.5, 10.5), [(20.5, 80.5)], 1),
  ((20.5, 10.5), [(20.5, 80.5)], 0), ((20.5, 80.5), [(20.5, 10.5)], 1), ((20.5, 10.5), [], 0)])
def test_starting_sides_are_ordered_by_x_then_y(own, others, side):
  """The side of `data.replays`: (x, y) of the player's town hall above that of its opponent."""
  info, first = sc_pb.ResponseGameInfo(), sc_pb.ResponseObservation()
  for x, y in others:
    info.start_raw.start_locations.add(x=x, y=y)
  for alliance, kind, place in ((raw_pb.Enemy, 18, (0.0, 0.0)), (raw_pb.Self, 45, (90.0, 90.0)),
                                (raw_pb.Self, 86, own)):
    unit = first.observation.raw_data.units.add(alliance=alliance, unit_type=kind)
    unit.pos.x, unit.pos.y = place
  assert environment.start_side(info, first) == side


def test_z_that_is_shown_after_the_start_is_observed():
  games, _ = make()
  env = games.environment()
  state = env.reset(3, base.make_match_up())
  assert games.grid_per_unit() == 256 / 64
  blank = types.zeros(types.statistics_spec())
  wanted = [blank._replace(build_order=np.full_like(blank.build_order, kind)) for kind in (5, 7)]
  games.show(jax.tree.map(lambda *x: np.stack(x), *wanted))
  for player, kind in enumerate((5, 7)):
    observation, privileged = env.observe(state, player)
    assert set(observation.statistics.build_order.tolist()) == {kind}
    assert set(privileged.opponent_statistics.build_order.tolist()) == {12 - kind}
