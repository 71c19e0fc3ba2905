"""Matches: steps, results, chat, debug requests and real time, in games of `mini`."""

import asyncio

import numpy as np
import pytest

from starleague.environments.sc2.protocol import debug_pb, raw_pb, sc_pb
from starleague.environments.sc2.server.game import engine
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.opponents import make_bot
from starleague.environments.sc2.server.sessions import recordings
from starleague.environments.sc2.server.sessions.match import MatchSetup, Refused, ServerMatch
from starleague.environments.sc2.server.views.seats import ServerSeat
from tests.environments.sc2.server import play
from tests.environments.sc2.server.play import BARRACKS, SCV


def test_numbers_that_are_none_change_nothing():
  nan = float("nan")

  async def script(session):
    await play.start(session)
    seen = await play.step(session)
    tag = play.units_of(seen, SCV)[0].tag
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[
      {"create_unit": {"unit_type": 48, "owner": 1, "quantity": 1, "pos": {"x": nan, "y": 2}}},
      {"unit_value": {"unit_value": 2, "value": nan, "unit_tag": tag}}]))
    return seen, await play.step(session)

  before, after = play.run(script)
  assert not play.units_of(after, 48)
  assert [unit.health for unit in play.units_of(after, SCV)] == [
    unit.health for unit in play.units_of(before, SCV)]


def test_debug_money_and_surrender():
  async def script(session):
    await play.start(session)
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"game_state": 5}]))
    rich = (await play.ask(session, observation=sc_pb.RequestObservation())).observation
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"end_game": {"end_result": 1}}]))
    return rich, (await play.ask(session, observation=sc_pb.RequestObservation())).observation

  rich, over = play.run(script)
  assert rich.observation.player_common.minerals == 5050
  assert [(r.player_id, r.result) for r in over.player_result] == [(1, 2), (2, 1)]


def test_debug_creates_and_kills_units():
  marine, depot, zergling = 48, 19, 105  # `mini` has no depots

  def created(unit_type, owner, count):
    return {"create_unit": {"unit_type": unit_type, "owner": owner, "quantity": count,
                            "pos": {"x": 12, "y": 12}}}

  async def script(session):
    await play.start(session)
    seen = []
    for given in ([created(marine, 1, 5), created(SCV, 2, 2), created(BARRACKS, 1, 1),
                   created(depot, 1, 1), created(zergling, 1, 1), created(marine, 16, 1)],
                  [created(marine, 1, 200)], []):
      if not given:
        marines = [unit.tag for unit in seen[0] if unit.unit_type == marine and unit.owner == 1]
        given = [{"kill_unit": {"tag": [*marines[:4], 12345]}},
                 {"unit_value": {"unit_value": 2, "value": 5, "unit_tag": marines[4]}}]
      await play.ask(session, debug=sc_pb.RequestDebug(debug=given))
      # After the first look, less than a step of Skirmish.
      await play.ask(session, step=sc_pb.RequestStep(count=2 if seen else 8))
      raw = (await play.ask(session, observation=sc_pb.RequestObservation())
             ).observation.observation.raw_data
      seen.append(list(raw.units))
    return seen, list(raw.event.dead_units), marines

  (first, second, third), dead, marines = play.run(script)

  def count(units, unit_type, owner=1):
    return sum(unit.unit_type == unit_type and unit.owner == owner for unit in units)

  assert [count(first, kind) for kind in (marine, BARRACKS, depot, zergling)] == [5, 1, 0, 0]
  assert count(first, SCV, owner=2) == 2  # in sight of the Marines
  found = [unit for unit in first if unit.unit_type == marine and unit.owner == 1]
  assert all(unit.health == 45 and unit.build_progress == 1 for unit in found)
  np.testing.assert_allclose(np.mean([(u.pos.x, u.pos.y) for u in found], axis=0), [12, 12], atol=1)
  slots = engine.rules_of("mini").tier.units
  assert count(second, marine) + count(second, SCV) == slots  # as many as there is room for
  assert count(third, marine) == count(second, marine) - 4
  assert set(marines[:4]) == set(dead)
  assert [unit.health for unit in third if unit.tag == marines[4]] == [5]


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


def test_a_participant_that_leaves_loses():
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
    return before, loop, after, [result.result for result in match.results()], match.status

  before, loop, after, both, status = run(script)
  assert before == [] and loop < 8
  assert after == [(1, sc_pb.Victory), (2, sc_pb.Defeat)]
  assert both == [sc_pb.Tie, sc_pb.Tie] and status == sc_pb.ended


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
    return recordings.decode(match.recording())

  recording = run(script)
  assert [(loop, player) for loop, player, _ in recording.entries] == [(0, 1), (0, 0), (16, 0)]
  assert recording.settings["loops"] == 16 and recording.settings["results"] == []
  assert recording.settings["seed"] == 2
