"""Units, structures and upgrades of a game, from its tracker events."""

import bisect
from collections.abc import Iterable
from typing import NamedTuple

from starleague.agent.build_order import BUILT
from starleague.data.replays import names
from starleague.data.replays.protocol import Event, text
from starleague.data.replays.readers import ProtocolError

START, BORN, PLACED, MORPHED = "start", "born", "placed", "morphed"
TOWN_HALLS = {"CommandCenter": "terran", "Hatchery": "zerg", "Nexus": "protoss"}
# Structures of an even width: their centres are at whole coordinates, those of all others between.
_EVEN = frozenset({
  "Pylon", "SupplyDepot", "MissileTurret", "PhotonCannon", "ShieldBattery", "SpineCrawler",
  "SporeCrawler", "Spire", "DarkShrine", "BarracksTechLab", "BarracksReactor", "FactoryTechLab",
  "FactoryReactor", "StarportTechLab", "StarportReactor"})
_MARKERS = "Beacon"  # prefix of the invisible units that mark orders of the computer
_COSMETICS = ("Spray", "Reward")  # prefixes of upgrades without an effect on the game
_ADDONS = ("TechLab", "Reactor")  # change their type when a structure lands beside them
_TAGS = range(2**32)


class Unit(NamedTuple):
  """A unit or structure of a player that was started, or that took a new type."""

  player: int
  tag: int
  loop: int  # game loop of its birth (units), placement (structures) or change of type
  kind: str  # START, BORN, PLACED or MORPHED
  name: str  # in replays
  vocabulary_index: int  # of vocabulary.UNIT_TYPES; 0 if unknown
  x: float  # game coordinates of its centre; where it was born if it was morphed
  y: float


class Upgrade(NamedTuple):
  """A completed upgrade of a player."""

  player: int
  loop: int
  name: str
  vocabulary_index: int  # of vocabulary.UPGRADES; 0 if unknown


class Setup(NamedTuple):
  """A player, as the tracker numbers it."""

  player: int
  user: int  # index of the user in game events; -1 for the computer
  computer: bool


class Tracked(NamedTuple):
  """The content of a game's tracker events."""

  setups: list[Setup]
  units: list[Unit]
  upgrades: list[Upgrade]
  types: "Types"
  births: dict[int, tuple[int, float, float]]  # owner and place of each unit's birth, by tag


class Types:
  """The unit types of all tags over a game, neutral units included."""

  def __init__(self) -> None:
    self._loops: dict[int, list[int]] = {}
    self._names: dict[int, list[str]] = {}

  def add(self, tag: int, loop: int, name: str) -> None:
    """Notes the type that a unit has from a game loop on; loops must not decrease."""
    self._loops.setdefault(tag, []).append(loop)
    self._names.setdefault(tag, []).append(name)

  def at(self, tag: int, loop: int) -> str:
    """Returns the name of a unit's type at a game loop, "" if the tag is unknown."""
    loops = self._loops.get(tag)
    if not loops:
      return ""
    return self._names[tag][max(bisect.bisect_right(loops, loop) - 1, 0)]

  def seen(self, tag: int) -> list[str]:
    """Returns the names of all types that a unit has had."""
    return self._names.get(tag, [])


def unit_tag(index: int, recycle: int) -> int:
  """Returns the tag by which game events name a unit of tracker events.

  Raises:
    ProtocolError: it is none of 32 bits.
  """
  tag = (index << 18) + recycle
  if tag not in _TAGS:
    raise ProtocolError(f"unit {index} {recycle} has no tag of 32 bits")
  return tag


def read(events: Iterable[Event]) -> Tracked:
  """Collects the units and upgrades of a game.

  Hallucinations do not count; before build 55505 they look like other units.

  Raises:
    ProtocolError: the events are damaged or of another build.
  """
  found = Tracked([], [], [], Types(), {})
  for event in events:
    try:
      _add(found, event)
    except (KeyError, TypeError) as error:
      raise ProtocolError(f"{event.name} at game loop {event.loop} lacks {error}") from error
  return found


def _add(found: Tracked, event: Event) -> None:
  fields = event.fields
  if event.name in ("UnitBorn", "UnitInit"):
    _add_birth(found, event)
  elif event.name == "UnitTypeChange":
    _add_morph(found, event)
  elif event.name == "Upgrade":
    name = text(fields["m_upgradeTypeName"])
    if fields["m_count"] > 0 and not name.startswith(_COSMETICS):
      found.upgrades.append(
        Upgrade(fields["m_playerId"], event.loop, name, names.upgrade(name)))
  elif event.name == "PlayerSetup":
    user = fields.get("m_userId")
    found.setups.append(Setup(fields["m_playerId"], -1 if user is None else user,
                              fields["m_type"] == 2))


def _add_birth(found: Tracked, event: Event) -> None:
  fields = event.fields
  name = text(fields["m_unitTypeName"])
  tag = unit_tag(fields["m_unitTagIndex"], fields["m_unitTagRecycle"])
  half = 0.0 if name in _EVEN else 0.5
  place = fields["m_x"] + half, fields["m_y"] + half
  found.types.add(tag, event.loop, name)
  found.births[tag] = fields["m_controlPlayerId"], *place
  hallucinated = text(fields.get("m_creatorAbilityName")).startswith("Hallucination")
  if hallucinated or name.startswith(_MARKERS):
    return
  kind = START if event.loop == 0 else PLACED if event.name == "UnitInit" else BORN
  found.units.append(Unit(fields["m_controlPlayerId"], tag, event.loop, kind, name,
                          names.unit_type(name), *place))


def _add_morph(found: Tracked, event: Event) -> None:
  """Adds a unit that took a type it has not had: a Lair, but no tank that leaves siege mode."""
  fields = event.fields
  name = text(fields["m_unitTypeName"])
  tag = unit_tag(fields["m_unitTagIndex"], fields["m_unitTagRecycle"])
  new = tag in found.births and name not in found.types.seen(tag)
  found.types.add(tag, event.loop, name)
  index = names.unit_type(name)
  if new and is_built(index) and not name.endswith(_ADDONS):
    owner, x, y = found.births[tag]
    found.units.append(Unit(owner, tag, event.loop, MORPHED, name, index, x, y))


def is_built(index: int) -> bool:
  """Returns whether players build units of a type, an index of vocabulary.UNIT_TYPES."""
  return bool(BUILT[index])
