"""A saved game is played back: the same observations, for either player and for an observer."""

import base64
import dataclasses

import pytest

from starleague.agent import config as agent_config
from starleague.common import mpq
from starleague.environments.sc2.client import setup_requests
from starleague.environments.sc2.protocol import raw_pb, sc_pb
from starleague.environments.sc2.server.game import exported
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.sessions import recordings
from starleague.environments.skirmish.games import exact
from tests.environments.sc2.server import play

ATTACK, MOVE, GATHER, MARINE, SCV = 23, 16, 295, 48, 45
PLAYER = base64.b64encode(
  sc_pb.PlayerInfo(type=sc_pb.Participant, race_actual=1).SerializeToString()).decode()
SETTINGS = {"version": "", "map": "", "seed": 2, "loops": 9, "players": [PLAYER], "results": [],
            "battlefield": dataclasses.asdict(Battlefield("mini", realistic=False)),
            **recordings.rules_of(Battlefield("mini", realistic=False))}
LOOPS = 12  # between two looks; decisions also fall between the game's steps of 8


def shown(response):
  """What an observation shows of the game, without the observer's own actions and view."""
  found = response.observation.observation
  units = sorted((unit.tag, unit.alliance, unit.unit_type, unit.pos.x, unit.pos.y, unit.health,
                  [order.ability_id for order in unit.orders]) for unit in found.raw_data.units)
  return found.game_loop, units, found.player_common.minerals, found.raw_data.event.dead_units


async def watch(session, looks):
  """Looks at a game or replay every `LOOPS`; returns what was shown, and the last response."""
  seen = []
  for _ in range(looks):
    await play.ask(session, step=sc_pb.RequestStep(count=LOOPS))
    last = await play.ask(session, observation=sc_pb.RequestObservation())
    seen.append(shown(last))
  return seen, last


@pytest.fixture(scope="module")
def game():
  """The file of a game that its participant leaves, and what it saw."""
  async def script(session):
    await play.start(session)
    seen = []
    for look in range(20):
      if look == 3:
        await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"create_unit": {
          "unit_type": MARINE, "owner": 1, "quantity": 3, "pos": {"x": 12, "y": 12}}}]))
      if look > 3:
        raw = (await play.ask(session, observation=sc_pb.RequestObservation())
               ).observation.observation.raw_data
        tags = [unit.tag for unit in raw.units
                if unit.alliance == raw_pb.Self and unit.unit_type in (MARINE, SCV)][look % 3:]
        await play.ask(session, action=sc_pb.RequestAction(actions=[{"action_raw": {
          "unit_command": {"ability_id": ATTACK, "unit_tags": tags,
                           "target_world_space_pos": {"x": look, "y": 20}}}}]))
      found, _ = await watch(session, 1)
      seen += found
    data = (await play.ask(session, save_replay=sc_pb.RequestSaveReplay())).save_replay.data
    return data, seen

  return play.run(script)


@pytest.fixture(scope="module")
def whole_game():
  """The file of a game that its participant wins."""
  return play.run(play.win)


def replay(data, player, options=None, **fields):
  return sc_pb.RequestStartReplay(
    replay_data=data, observed_player_id=player, options=options or play.interface(), **fields)


def test_the_player_sees_the_same_game(game):
  data, seen = game

  async def script(session):
    await play.ask(session, start_replay=replay(data, 1))
    assert session.status == sc_pb.in_replay
    found, last = await watch(session, len(seen))
    over = await session.respond(sc_pb.Request(step=sc_pb.RequestStep(count=1)))
    return found, last, over

  found, last, over = play.run(script)
  for one, two in zip(found, seen, strict=True):
    assert one == two
  assert last.status == sc_pb.ended and over.error == ["Game has already ended"]
  assert [(result.player_id, result.result) for result in last.observation.player_result] == [
    (1, sc_pb.Undecided), (2, sc_pb.Undecided)]  # it was saved in the middle of the game


def test_others_see_their_own_side_or_all(game):
  data, seen = game

  async def script(session):
    views = []
    for player in (2, 0):
      started = await play.ask(session, start_replay=replay(data, player))
      assert not started.start_replay.HasField("error")
      found, _ = await watch(session, 10)
      views.append(found[-1][1])
    return views

  other, everything = play.run(script)

  def tags(units, alliance):
    return {unit[0] for unit in units if unit[1] == alliance}

  own = tags(seen[9][1], raw_pb.Self)
  assert tags(everything, raw_pb.Self) == own
  assert tags(everything, raw_pb.Enemy) == tags(other, raw_pb.Self)
  assert tags(other, raw_pb.Enemy) < own  # those in sight


def test_a_replay_takes_no_commands(game):
  async def script(session):
    await play.ask(session, start_replay=replay(game[0], 1))
    return [(await session.respond(request)).error for request in (
      sc_pb.Request(action=sc_pb.RequestAction()), sc_pb.Request(debug=sc_pb.RequestDebug()),
      sc_pb.Request(save_replay=sc_pb.RequestSaveReplay()))]

  assert play.run(script) == [[f"{kind} is not possible for an observer"]
                         for kind in ("action", "debug", "save_replay")]


def on_screen(**action):
  return sc_pb.Action(action_feature_layer=action)


def pick(index):
  return sc_pb.Action(action_ui={"multi_panel": {"type": "SingleSelect", "unit_index": index}})


async def act(session, *actions):
  answer = await play.ask(session, action=sc_pb.RequestAction(actions=actions))
  return list(answer.action.result)


@pytest.fixture(scope="module")
def screen_game():
  """The file of a game that is played by the screen, and its units every `LOOPS`."""
  async def script(session):
    await play.start(session, options=play.interface(84, 64))
    first = await play.step(session)
    whole = {"selection_screen_coord": [{"p0": {"x": 0, "y": 0}, "p1": {"x": 83, "y": 83}}]}
    assert await act(session, on_screen(unit_selection_rect=whole)) == [1]
    listed = [unit.tag for unit in play.units_of(first, SCV)]
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"kill_unit": {"tag": listed[:1]}}]))
    seen, last = await watch(session, 1)
    assert len(last.observation.observation.ui_data.multi.units) == len(listed) - 1 == 3
    assert await act(session, pick(1), on_screen(unit_command={
      "ability_id": MOVE, "target_screen_coord": {"x": 70, "y": 70}})) == [1, 1]
    found, _ = await watch(session, 8)
    data = (await play.ask(session, save_replay=sc_pb.RequestSaveReplay())).save_replay.data
    return data, [look[1] for look in seen + found]

  return play.run(script)


def test_a_game_by_the_screen_is_the_same_for_every_interface(screen_game):
  """The last interface is that of `record_replays`, which observes both players.

  Nobody observes the acting player then: its selection loses the dead all the same.
  """
  data, seen = screen_game
  interfaces = [play.interface(84, 64), play.interface(), play.interface(32, 24),
                setup_requests.interface(agent_config.mini())]

  async def script(session):
    found, sizes = [], []
    for options in interfaces:
      await play.ask(session, start_replay=replay(data, 1, options))
      await play.ask(session, step=sc_pb.RequestStep(count=8))
      looks, last = await watch(session, len(seen))
      found.append([look[1] for look in looks])
      size = last.observation.observation.feature_layer_data.renders.unit_type.size
      sizes.append((size.x, size.y))
    await play.ask(session, start_replay=replay(data, 2, interfaces[-1]))
    await play.ask(session, step=sc_pb.RequestStep(count=8 + LOOPS * len(seen)))
    other = await play.ask(session, observation=sc_pb.RequestObservation(disable_fog=True))
    return found, sizes, places(shown(other)[1], raw_pb.Enemy)

  def places(units, alliance):
    return {unit[0]: unit[3:5] for unit in units if unit[1:3] == (alliance, SCV)}

  found, sizes, other = play.run(script)
  assert found == [seen] * 4
  assert sizes == [(84, 84), (0, 0), (32, 32), (1, 1)]  # the observer's own
  assert other == places(seen[-1], raw_pb.Self) and len(other) == 3
  orders = [unit[6] for unit in seen[3] if unit[1:3] == (raw_pb.Self, SCV)]
  assert orders == [[GATHER], [MOVE], [GATHER]]  # of the living, the one that `pick` has chosen


@pytest.mark.parametrize("interfaces, message", [
  (None, "interfaces: expected 1, found 0"), ([], "interfaces: expected 1, found 0"),
  ([play.interface(9999, 64)], "interfaces: resolution: expected 0 to 1024")])
def test_recorded_interfaces_are_checked(interfaces, message):
  recorded = {} if interfaces is None else {"interfaces": [
    base64.b64encode(each.SerializeToString()).decode() for each in interfaces]}

  async def script(session):
    data = archive(SETTINGS | recorded, [])
    return (await play.ask(session, start_replay=replay(data, 1))).start_replay

  answer = play.run(script)
  assert answer.error == sc_pb.ResponseStartReplay.InvalidReplayData
  assert answer.error_details == message


def archive(settings, entries):
  """An archive that holds a recording alone."""
  return mpq.make_archive({mpq.RECORDING: recordings.record(settings, entries)})


@pytest.mark.parametrize("request_, error", [
  (sc_pb.RequestStartReplay(), "MissingReplay"),
  (sc_pb.RequestStartReplay(replay_data=b"MPQ"), "MissingOptions"),
  (replay(b"MPQ", 1), "InvalidReplayData"),
  (replay(archive({"players": []}, []), 0), "InvalidReplayData"),
  (replay(archive({"players": []}, [("x", 0, b"")]), 0), "InvalidReplayData"),
  (replay(archive({"players": ["", ""]}, []), 3), "InvalidObservedPlayerId"),
  (replay(archive(SETTINGS, [(3, 1, b"")]), 0), "InvalidReplayData"),
  (replay(archive(SETTINGS, [(3, 0, b"\xff")]), 0), "InvalidReplayData"),
  (sc_pb.RequestStartReplay(replay_path="/nowhere", options=play.interface()),
   "InvalidReplayPath"),
  (replay(b"MPQ", 1, play.interface(screen=9999)), "InvalidReplayData")])
def test_other_files_give_the_games_error(request_, error):
  async def script(session):
    return (await play.ask(session, start_replay=request_)).start_replay, session.status

  answer, status = play.run(script)
  assert sc_pb.ResponseStartReplay.Error.Name(answer.error) == error
  assert status == sc_pb.launched


@pytest.mark.parametrize("name, recorded, found", [
  ("rules", "0123456789abcdef", exact.rules_digest("mini")), ("border", 8, 0),
  ("sources", "0123456789abcdef", exported.sources_digest())])
def test_a_game_of_other_rules_is_refused(game, name, recorded, found):
  settings, entries = recordings.decode(game[0])
  assert settings.pop("schema") == recordings.SCHEMA

  async def script(session):
    request = replay(archive(settings | {name: recorded}, entries), 1)
    return (await play.ask(session, start_replay=request)).start_replay, session.status

  answer, status = play.run(script)
  assert answer.error == sc_pb.ResponseStartReplay.InvalidReplayData
  assert answer.error_details == (
    f"{name} of tier 'mini': expected {recorded}, found {found}; the game has changed since this "
    "was recorded: record it again")
  assert status == sc_pb.launched


@pytest.mark.parametrize("kind", ["leave_game", "quit", "start_replay", "create_game"])
def test_a_replay_at_its_natural_end_is_left(whole_game, kind):
  """The game has a winner: the match ends by itself, not by the end of the recording."""
  async def script(session):
    await play.ask(session, start_replay=replay(whole_game, 1))
    await play.ask(session, step=sc_pb.RequestStep(count=1000))
    last = await play.ask(session, observation=sc_pb.RequestObservation())
    request = sc_pb.Request()
    getattr(request, kind).SetInParent()
    if kind == "start_replay":
      request.start_replay.CopyFrom(replay(whole_game, 2))
    if kind == "create_game":
      request.create_game.local_map.map_path = "SkirmishMiniOpen"
      request.create_game.player_setup.add(type=sc_pb.Participant)
    return last, await session.respond(request)

  last, answer = play.run(script)
  assert last.status == sc_pb.ended
  assert [result.result for result in last.observation.player_result] == [
    sc_pb.Victory, sc_pb.Defeat]
  assert list(answer.error) == [] and answer.WhichOneof("response") == kind
  assert answer.status == {"leave_game": sc_pb.launched, "quit": sc_pb.quit,
                           "start_replay": sc_pb.in_replay,
                           "create_game": sc_pb.init_game}[kind]
