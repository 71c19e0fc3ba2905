"""Matches: steps, results, chat, debug requests and real time, in games of `mini`."""

import asyncio
import threading

import numpy as np
import pytest

from starleague.environments.sc2.protocol import debug_pb, raw_pb, sc_pb
from starleague.environments.sc2.server.game import debugging, engine
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.opponents import make_bot
from starleague.environments.sc2.server.sessions import recordings
from starleague.environments.sc2.server.sessions.match import MatchSetup, Refused, ServerMatch
from starleague.environments.sc2.server.views.seats import ServerSeat
from starleague.environments.skirmish.games import exact
from tests.environments.sc2.server import play
from tests.environments.sc2.server.play import COMMAND_CENTER, SCV


def test_commands_show_at_the_next_loop_and_leave_the_game_the_same():
  async def script(session, counts):
    await play.start(session)
    first = await play.step(session)
    home, = play.units_of(first, COMMAND_CENTER)
    workers = [unit.tag for unit in play.units_of(first, SCV)]
    results = [list((await play.ask(session, action=given)).action.result) for given in (
      play.command(524, home.tag),
      play.command(16, *workers, target_world_space_pos={"x": 12, "y": 12}))]
    return first, results, [await play.step(session, count) for count in counts]

  first, results, (between, late) = play.run(lambda session: script(session, (4, 60)))
  _, _, (direct,) = play.run(lambda session: script(session, (64,)))
  assert results == [[1], [1]]
  home, = play.units_of(between, COMMAND_CENTER)
  assert [order.ability_id for order in home.orders] == [524]
  before, now = (seen.observation.player_common.minerals for seen in (first, between))
  assert before - now == 50
  orders = [[order.ability_id for order in unit.orders] for unit in play.units_of(between, SCV)]
  assert orders == [[16]] * len(orders)
  assert [unit.pos for unit in play.units_of(between, SCV)] == [
    unit.pos for unit in play.units_of(first, SCV)]  # they obey in the next step
  assert late.observation == direct.observation


def test_what_commands_cancel_is_dead_at_the_next_loop():
  async def script(match):
    await asyncio.gather(match.step(0, 8), match.step(1, 8))
    game, gone = match.game, play.units_of(await match.observe(0, sc_pb.RequestObservation()), SCV)
    # As cancelling does, which `mini` lacks: the command clears a slot.
    game._programs = game._programs._replace(command=lambda state, given: debugging.kill(
      game.rules, state, game.tags == gone[0].tag))
    match.act(0, play.command(4, gone[0].tag))
    await asyncio.gather(match.step(0, 4), match.step(1, 4))
    seen = [await match.observe(player, sc_pb.RequestObservation()) for player in (0, 1)]
    await asyncio.gather(match.step(0, 4), match.step(1, 4))
    return gone, seen, await match.observe(0, sc_pb.RequestObservation())

  gone, seen, after = run(script)
  assert len(play.units_of(seen[0], SCV)) == len(gone) - 1
  dead = [list(one.observation.raw_data.event.dead_units) for one in (*seen, after)]
  assert dead == [[gone[0].tag], [], []]  # out of the other player's sight


def test_debug_controls_the_opponents_units():
  controls = sc_pb.RequestDebug(debug=[{"game_state": debug_pb.control_enemy}])

  async def script(session):
    await play.start(session, opponent=sc_pb.PlayerSetup(
      type=sc_pb.Computer, race=1, difficulty=sc_pb.VeryEasy))
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"game_state": debug_pb.show_map}]))
    seen = await play.step(session)
    own, enemy = (play.units_of(seen, SCV, side)[0].tag for side in (raw_pb.Self, raw_pb.Enemy))
    move = play.command(16, own, enemy, target_world_space_pos={"x": 12, "y": 12})
    alone = play.command(16, enemy, target_world_space_pos={"x": 12, "y": 12})
    refused = list((await play.ask(session, action=alone)).action.result)
    await play.ask(session, debug=controls)
    taken = list((await play.ask(session, action=move)).action.result)
    later = await play.step(session, 64)  # later they gather by themselves
    await play.ask(session, debug=controls)
    again = list((await play.ask(session, action=alone)).action.result)
    far = [np.hypot(unit.pos.x - 12, unit.pos.y - 12)
           for unit in later.observation.raw_data.units if unit.tag in (own, enemy)]
    return refused, taken, again, far

  refused, taken, again, far = play.run(script)
  assert (refused, taken, again) == ([88], [1], [88])
  assert len(far) == 2 and max(far) < 1.5


def test_real_time_goes_on_by_itself():
  async def script(session):
    await play.start(session, realtime=True)
    refused = await session.respond(sc_pb.Request(step=sc_pb.RequestStep(count=1)))
    loops = []
    for _ in range(200):  # the wait of a request is short here
      seen = await session.respond(sc_pb.Request(
        observation=sc_pb.RequestObservation(game_loop=10)))
      loops.append(seen.observation.observation.game_loop)
      if loops[-1] >= 10:
        break
    return refused, loops

  refused, loops = play.run(script)
  assert list(refused.error) == ["step is not possible in real time"]
  assert loops[-1] >= 10

SETUP = MatchSetup(
  Battlefield("mini", realistic=False), "SkirmishMiniOpen",
  (sc_pb.PlayerSetup(type=sc_pb.Participant, race=1),) * 2, {}, 2, False, False)


def two_seats():
  return [ServerSeat(player, play.interface(), f"name {player}") for player in (0, 1)]


def run(script, **changes):
  """Runs a coroutine function on a match of two participants."""
  async def go():
    match = ServerMatch(SETUP._replace(**changes), (1, 1), two_seats(), wait_seconds=0.05)
    try:
      return await script(match)
    finally:
      match.close()
  return asyncio.run(go())


def test_the_game_waits_for_the_slower_participant():
  async def script(match):
    with pytest.raises(Refused, match="game loop 16 was not reached within 0 s: the game is at 0"):
      await match.step(0, 16)
    early = await match.step(1, 8)
    waiting = asyncio.create_task(match.step(1, 24))
    await asyncio.sleep(0)
    loops = [await match.step(0, 8) for _ in range(2)]
    return early, loops, await waiting

  assert run(script) == (8, [24, 32], 32)  # a refused step counts once the other has stepped


def results_of(match):
  return [result.result for result in match.results()]


def test_the_first_participant_that_leaves_loses():
  async def script(match):
    before = match.results()
    waiting = asyncio.create_task(match.step(0, 8))
    await asyncio.sleep(0)
    await match.leave(1)
    loop = await waiting
    with pytest.raises(Refused, match="Game has already ended"):
      await match.step(0, 8)
    after = [(result.player_id, result.result) for result in match.results()]
    await match.leave(0)
    return before, loop, after, results_of(match), match.status

  before, loop, after, both, status = run(script)
  assert before == [] and loop < 8
  assert after == [(1, sc_pb.Victory), (2, sc_pb.Defeat)]
  assert both == [sc_pb.Victory, sc_pb.Defeat] and status == sc_pb.ended


def test_a_debug_requests_result_remains():
  def ends(*results):
    return sc_pb.RequestDebug(debug=[{"end_game": {"end_result": result}} for result in results])

  async def script(match):
    surrender, victory = (debug_pb.DebugEndGame.EndResult.Value(name)
                          for name in ("Surrender", "DeclareVictory"))
    match.debug(0, ends(victory, surrender))
    found = [results_of(match)]
    match.debug(1, ends(victory))
    found.append(results_of(match))
    for player in (0, 1):
      await match.leave(player)
      found.append(results_of(match))
    return found

  assert run(script) == [[sc_pb.Victory, sc_pb.Defeat]] * 4


def test_chat_reaches_the_other_unless_it_is_for_the_team():
  async def script(match):
    for channel in (sc_pb.ActionChat.Broadcast, sc_pb.ActionChat.Team):
      match.act(0, sc_pb.RequestAction(actions=[sc_pb.Action(
        action_chat=sc_pb.ActionChat(channel=channel, message=f"to {channel}"))]))
    await asyncio.gather(match.step(0, 8), match.step(1, 8))
    seen = [await match.observe(player, sc_pb.RequestObservation()) for player in (0, 1)]
    return [[(line.player_id, line.message) for line in one.chat] for one in seen]

  assert run(script) == [[(1, "to 1"), (1, "to 2")], [(1, "to 1")]]


def test_players_are_stated_with_names_and_races():
  bot = sc_pb.PlayerSetup(type=sc_pb.Computer, race=4, difficulty=sc_pb.Hard)

  async def script(match):
    return match.player_info()

  first, second = run(script, players=(SETUP.players[0], bot), bots={1: make_bot(
    "mini", sc_pb.Hard, sc_pb.RandomBuild)})
  assert (first.player_name, first.race_actual, first.HasField("difficulty")) == (
    "name 0", 1, False)
  assert (second.player_id, second.race_requested, second.race_actual, second.difficulty) == (
    2, 4, 1, sc_pb.Hard)


def test_the_server_answers_while_the_scripted_players_program_compiles(monkeypatch):
  compiled, make = threading.Event(), engine.make_advance

  def slow(tier, scripted):
    def advance(*arguments):
      assert compiled.wait(10)
      return make(tier, scripted)(*arguments)
    return advance

  monkeypatch.setattr(engine, "make_advance", slow)

  async def script(match):
    left, *kept = (asyncio.ensure_future(match.answer(player, sc_pb.Request(
      step=sc_pb.RequestStep(count=8)))) for player in (0, 0, 1))
    await asyncio.sleep(0)  # they begin
    seen = await match.answer(0, sc_pb.Request(observation=sc_pb.RequestObservation()))
    waits = not left.done()
    left.cancel()  # its client has left: the compilation goes on
    compiled.set()
    loops = [found.step.simulation_loop for found in await asyncio.gather(*kept)]
    return waits, seen.observation.observation.game_loop, loops

  bot = sc_pb.PlayerSetup(type=sc_pb.Computer, race=1, difficulty=sc_pb.Hard)
  assert run(script, players=(SETUP.players[0], bot), bots={1: make_bot(
    "mini", sc_pb.Hard, sc_pb.RandomBuild)}) == (True, 0, [8, 8])


def test_the_whole_map_shows_from_the_next_loop_on():
  """Clients keep what they see of a game loop."""
  async def script(match):
    enemies = []
    for command in (None, "show", None, "show"):
      if command:
        match.debug(0, sc_pb.RequestDebug(debug=[{"game_state": debug_pb.show_map}]))
      now = await match.observe(0, sc_pb.RequestObservation())
      await asyncio.gather(match.step(0, 8), match.step(1, 8))
      later = await match.observe(0, sc_pb.RequestObservation())
      enemies.append([len(play.units_of(seen, 45, raw_pb.Enemy)) for seen in (now, later)])
    return enemies

  assert run(script) == [[0, 0], [0, 4], [4, 4], [0, 0]]


def test_requests_of_a_match_are_recorded_in_order():
  async def script(match):
    for number, player in enumerate((1, 0)):
      await match.answer(player, sc_pb.Request(debug=sc_pb.RequestDebug(), id=number))
    await asyncio.gather(match.step(0, 16), match.step(1, 16))
    await match.answer(0, sc_pb.Request(action=sc_pb.RequestAction()))
    return recordings.decode(await match.recording())

  recording = run(script)
  assert [(loop, player) for loop, player, _ in recording.entries] == [(0, 1), (0, 0), (16, 0)]
  assert recording.settings["loops"] == 16 and recording.settings["results"] == []
  assert recording.settings["seed"] == 2
  assert recording.settings["rules"] == exact.rules_digest("mini")
  assert recording.settings["border"] == 0
