"""A synthetic game of two players, and the folder of real ones."""

import dataclasses
import pathlib

import pytest

from starleague.data.replays import decode, names
from tests.data.replays import encoding

BUILD = 75689
REAL = pathlib.Path(__file__).resolve().parents[4] / "shared" / "data" / "replays"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason=f"needs the replays in {REAL}")


def tag(index):
  return (index << 18) + 1


def born(loop, index, player, name, x, y, event="UnitBorn", **more):
  fields = {"m_unitTagIndex": index, "m_unitTagRecycle": 1, "m_unitTypeName": name.encode(),
            "m_controlPlayerId": player, "m_upkeepPlayerId": player, "m_x": x, "m_y": y, **more}
  return loop, -1, event, fields


def select(loop, user, *indices):
  return loop, user, "SelectionDelta", {"m_controlGroupId": 10, "m_delta": {
    "m_subgroupIndex": 0, "m_removeMask": {"ZeroIndices": []}, "m_addSubgroups": [
      {"m_unitLink": 1, "m_subgroupPriority": 1, "m_intraSubgroupPriority": 1,
       "m_count": len(indices)}], "m_addUnitTags": [tag(i) for i in indices]}}


def command(loop, user, ability, target=None, flags=0x100):
  """An ability is (link name, index), or None for a click with the right mouse button."""
  link = None if ability is None else next(
    link for link, name in names.links_of(BUILD).names.items() if name == ability[0])
  if target is None:
    data = {"None": None}
  elif isinstance(target, tuple):
    x, y = (round(4096 * value) for value in target)
    data = {"TargetPoint": {"x": x, "y": y, "z": 0}}
  else:
    data = {"TargetUnit": {"m_tag": tag(target), "m_snapshotPoint": {"x": 4096, "y": 8192, "z": 0}}}
  return loop, user, "Cmd", {
    "m_cmdFlags": flags, "m_data": data, "m_sequence": 1,
    "m_abil": None if link is None else {"m_abilLink": link, "m_abilCmdIndex": ability[1]}}


def upgrade(loop, player, name):
  return loop, -1, "Upgrade", {"m_playerId": player, "m_upgradeTypeName": name.encode(),
                               "m_count": 1}


def setup(player, user, slot=None):
  return 0, -1, "PlayerSetup", {"m_playerId": player, "m_type": 2 if user is None else 1,
                                "m_userId": user, "m_slotId": player - 1 if slot is None else slot}


def player(name, team, race=b"Protoss", result=1, control=2, observe=0):
  return {"m_name": name, "m_race": race, "m_control": control, "m_teamId": team,
          "m_observe": observe, "m_result": result, "m_workingSetSlotId": team}


TRACKER = [
  setup(1, 0), setup(2, 1),
  upgrade(0, 1, "SprayProtoss"),
  born(0, 1, 0, "MineralField", 20, 30),
  born(0, 10, 1, "Nexus", 40, 30), born(0, 11, 1, "Probe", 41, 33), born(0, 12, 1, "Probe", 42, 33),
  born(0, 20, 2, "Hatchery", 120, 130), born(0, 21, 2, "Drone", 121, 133),
  born(0, 22, 2, "Larva", 119, 128),
  born(300, 13, 1, "Pylon", 44, 36, event="UnitInit"),
  born(448, 14, 1, "Gateway", 48, 30, event="UnitInit"),
  born(600, 23, 2, "SpawningPool", 126, 130, event="UnitInit"),
  born(900, 15, 1, "Zealot", 47, 28, m_creatorAbilityName=b"GatewayTrain"),
  born(950, 16, 1, "Phoenix", 47, 28, m_creatorAbilityName=b"HallucinationPhoenix"),
  (1000, -1, "UnitTypeChange", {"m_unitTagIndex": 14, "m_unitTagRecycle": 1,
                                "m_unitTypeName": b"WarpGate"}),
  (1100, -1, "UnitTypeChange", {"m_unitTagIndex": 14, "m_unitTagRecycle": 1,
                                "m_unitTypeName": b"Gateway"}),
  (1200, -1, "UnitTypeChange", {"m_unitTagIndex": 20, "m_unitTagRecycle": 1,
                                "m_unitTypeName": b"Lair"}),
  upgrade(1300, 1, "BlinkTech"), upgrade(1300, 2, "zerglingmovementspeed")]
EVENTS = [
  (2, 0, "CameraUpdate", {"m_target": {"x": 1, "y": 1}}),
  select(5, 0, 11, 12),
  command(6, 0, None, 1),  # gathers
  select(280, 0, 11),
  command(290, 0, ("ProtossBuild", 1), (44.0, 36.0)),
  (400, 0, "CmdUpdateTargetPoint", {"m_target": {"x": 44 * 4096, "y": 40 * 4096, "z": 0}}),
  (400, 0, "CommandManagerState", {"m_state": 1, "m_sequence": 2}),
  select(500, 1, 22),
  command(510, 1, ("LarvaTrain", 0)),
  (510, 1, "CommandManagerState", {"m_state": 1, "m_sequence": 2}),
  (1990, 1, "GameUserLeave", {"m_leaveReason": 0})]


@dataclasses.dataclass(frozen=True)
class Game:
  """What a synthetic replay says."""

  build: int = BUILD
  players: tuple = (player(b"&lt;Clan&gt;<sp/>Ann", 0), player(b"Bob", 1, "저그".encode(), 2))
  users: tuple = ({"m_name": b"Ann", "m_scaledRating": 4321},
                  {"m_name": b"Bob", "m_scaledRating": -36400})
  tracker: tuple = tuple(TRACKER)
  events: tuple = tuple(EVENTS)
  loops: int = 2000
  size: tuple = (160, 176)
  seed: int = 7
  title: bytes = b"Test LE"
  handles: tuple = (b"s2ma\0\0EU" + bytes(32),)
  checksum: int = 0

  def files(self):
    build = min((b for b in encoding.protocol.builds()), key=lambda b: abs(b - self.build))
    details = {
      "m_playerList": list(self.players), "m_title": self.title, "m_timeUTC": 132 * 10**15,
      "m_cacheHandles": list(self.handles)}
    lobby = {"m_syncLobbyState": {
      "m_userInitialData": list(self.users), "m_gameDescription": {
        "m_randomValue": self.seed, "m_maxTeams": 1, "m_maxRaces": 1, "m_maxControls": 1,
        "m_mapSizeX": self.size[0], "m_mapSizeY": self.size[1],
        "m_mapFileSyncChecksum": self.checksum}}}
    return {
      "replay.details": encoding.encode(build, "game_details", details),
      "replay.initData": encoding.encode(build, "replay_initdata", lobby),
      "replay.tracker.events": encoding.encode_events(build, "tracker", self.tracker),
      "replay.game.events": encoding.encode_events(build, "game", self.events)}

  def header(self):
    latest = encoding.protocol.builds()[-1]
    return encoding.encode(latest, "replay_header", {
      "m_signature": b"StarCraft II replay\x1b11", "m_elapsedGameLoops": self.loops, "m_version": {
        "m_flags": 1, "m_major": 4, "m_minor": 10, "m_revision": 0, "m_build": self.build,
        "m_baseBuild": self.build}})

  def replay(self, sizes=None, **files):
    """Returns the bytes of a .SC2Replay file; keywords replace files, None removes one."""
    found = self.files()
    for name, content in files.items():
      name = f"replay.{name.replace('_', '.')}"
      if content is None:
        del found[name]
      else:
        found[name] = content
    return encoding.archive(found, self.header(), sizes)


def decoded(game=None, **files):
  """Returns the rows of a synthetic game; keywords replace files, see `Game.replay`."""
  return decode.decode((game or Game()).replay(**files), "a.SC2Replay")
