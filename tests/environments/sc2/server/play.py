"""A session in a game, for tests."""

import asyncio

from starleague.environments.sc2.protocol import debug_pb, raw_pb, sc_pb
from starleague.environments.sc2.server.sessions.session import Session

SCV, COMMAND_CENTER, BARRACKS, MINERALS = 45, 18, 21, 341


def run(script):
  """Runs a coroutine function on a new session."""
  async def go():
    session = Session(wait_seconds=0.05)
    try:
      return await script(session)
    finally:
      await session.drop()
  return asyncio.run(go())


def interface(screen: int = 0, minimap: int = 0) -> sc_pb.InterfaceOptions:
  """Raw and score, and feature layers of these sizes."""
  options = sc_pb.InterfaceOptions(raw=True, score=True)
  if screen:
    options.feature_layer.width = 24
    options.feature_layer.resolution.x = options.feature_layer.resolution.y = screen
    minimap_size = options.feature_layer.minimap_resolution
    minimap_size.x = minimap_size.y = minimap
  return options


async def ask(session: Session, **request) -> sc_pb.Response:
  """The response to a request without errors."""
  response = await session.respond(sc_pb.Request(**request))
  assert not response.error, response.error
  return response


async def start(session: Session, map_name: str = "SkirmishMiniOpen", race: int = 1,
                options: sc_pb.InterfaceOptions | None = None, seed: int = 2,
                opponent: sc_pb.PlayerSetup | None = None, **create) -> None:
  """Creates a game against a computer player and joins it."""
  computer = opponent or sc_pb.PlayerSetup(type=sc_pb.Computer, race=1, difficulty=sc_pb.Easy)
  created = await ask(session, create_game=sc_pb.RequestCreateGame(
    local_map=sc_pb.LocalMap(map_path=map_name), random_seed=seed,
    player_setup=[sc_pb.PlayerSetup(type=sc_pb.Participant), computer], **create))
  assert not created.create_game.HasField("error") and created.status == sc_pb.init_game
  joined = await ask(session, join_game=sc_pb.RequestJoinGame(
    race=race, options=options or interface()))
  assert joined.join_game.player_id == 1 and joined.status == sc_pb.in_game


async def step(session: Session, count: int = 8) -> sc_pb.ResponseObservation:
  """Steps and observes."""
  await ask(session, step=sc_pb.RequestStep(count=count))
  return (await ask(session, observation=sc_pb.RequestObservation())).observation


def units_of(observation: sc_pb.ResponseObservation, unit_type: int,
             alliance: int = raw_pb.Self) -> list[raw_pb.Unit]:
  """The units of a type in an observation."""
  return [unit for unit in observation.observation.raw_data.units
          if unit.unit_type == unit_type and unit.alliance == alliance]


def command(ability: int, *tags: int, **target) -> sc_pb.RequestAction:
  """The request of a raw command."""
  return sc_pb.RequestAction(actions=[sc_pb.Action(action_raw=raw_pb.ActionRaw(
    unit_command=raw_pb.ActionRawUnitCommand(ability_id=ability, unit_tags=tags, **target)))])


async def win(session: Session) -> bytes:
  """Plays a game to its natural end; returns its file."""
  await start(session)
  await ask(session, debug=sc_pb.RequestDebug(debug=[{"game_state": debug_pb.show_map}]))
  seen = await step(session)
  enemies = [unit.tag for unit in seen.observation.raw_data.units if unit.alliance == raw_pb.Enemy]
  await ask(session, debug=sc_pb.RequestDebug(debug=[{"kill_unit": {"tag": enemies}}]))
  last = await step(session, 16)
  assert [result.result for result in last.player_result] == [sc_pb.Victory, sc_pb.Defeat]
  return (await ask(session, save_replay=sc_pb.RequestSaveReplay())).save_replay.data
