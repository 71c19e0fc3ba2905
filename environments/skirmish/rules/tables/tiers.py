"""The tiers of Skirmish: size, pace and content of a game."""

import csv
import dataclasses
import pathlib

from starleague.environments.skirmish.rules.tables import maps
from starleague.environments.skirmish.rules.tables.constants import (
  ATTACK,
  ATTACK_UNIT,
  BOOST,
  CANCEL,
  CANCEL_LAST,
  CLOAK,
  DECLOAK,
  FORCE_FIELD,
  GATHER,
  GUARD,
  HALLUCINATE,
  HALLUCINATIONS,
  HOLD,
  IDLE,
  INJECT,
  LOAD,
  MOVE,
  PATROL,
  PHASE,
  RALLY,
  REPAIR,
  RETURN,
  SCAN,
  SIEGE,
  STIM,
  UNLOAD,
  UNPHASE,
  UNSIEGE,
)

# Functions that order units about, and the verb each gives them.
COMMANDS = {
  "Smart_pt": MOVE, "Smart_unit": MOVE, "Attack_pt": ATTACK, "Attack_unit": ATTACK_UNIT,
  "Move_pt": MOVE, "Move_unit": MOVE, "Stop_quick": IDLE, "HoldPosition_quick": HOLD,
  "Harvest_Gather_unit": GATHER, "Harvest_Return_quick": RETURN, "Patrol_pt": PATROL,
  "Effect_Repair_unit": REPAIR, "Load_unit": LOAD, "UnloadAll_quick": UNLOAD,
  "UnloadAllAt_pt": UNLOAD, "UnloadAllAt_unit": UNLOAD, "UnloadUnit_quick": UNLOAD}
# Functions with an immediate effect, and the ability each uses.
ABILITIES = {
  "Effect_Stim_quick": STIM, "Morph_SiegeMode_quick": SIEGE, "Morph_Unsiege_quick": UNSIEGE,
  "Effect_Scan_pt": SCAN, "Effect_InjectLarva_unit": INJECT,
  "Effect_ChronoBoostEnergyCost_unit": BOOST, "Rally_Units_pt": RALLY, "Rally_Units_unit": RALLY,
  "Rally_Workers_pt": RALLY, "Rally_Workers_unit": RALLY, "Cancel_quick": CANCEL,
  "Cancel_Last_quick": CANCEL_LAST, "Behavior_CloakOn_quick": CLOAK,
  "Behavior_CloakOff_quick": DECLOAK, "Morph_WarpPrismPhasingMode_quick": PHASE,
  "Morph_WarpPrismTransportMode_quick": UNPHASE, "Effect_GuardianShield_quick": GUARD,
  "Effect_ForceField_pt": FORCE_FIELD,
  **{f"Hallucination_{name}_quick": HALLUCINATE for name in HALLUCINATIONS}}
# Those of tiers with technology only.
_TECHNOLOGY_VERBS = LOAD, UNLOAD
_TECHNOLOGY_ABILITIES = CLOAK, DECLOAK, PHASE, UNPHASE, GUARD, FORCE_FIELD, HALLUCINATE


@dataclasses.dataclass(frozen=True)
class Tier:
  """The sizes and the pace of a game. Distances in map units, times in game loops."""

  name: str
  types: tuple[str, ...]  # unit types: workers first, then fighters, then structures
  commands: tuple[str, ...]  # functions that make nothing
  structures: int  # S, slots for structures, a player
  armed: int  # the last of these, reserved for structures that shoot
  units: int  # M, slots for units
  food_cap: int
  map_size: float  # side of the square map
  homes: tuple[tuple[float, float], ...]  # town hall sites of a player, the starting one first
  patches: tuple[tuple[float, float], ...]  # resources of one half; the other half mirrors them
  geysers: tuple[bool, ...]  # which of the resources are geysers
  patch_minerals: int
  geyser_vespene: int
  workers: int  # at the start
  minerals: int  # at the start
  trip_loops: int  # of a worker from patch to town hall and back, at the real game's pace
  tempo: int  # factor by which mining, construction and training are faster than in the real game
  sight_scale: float  # below 1 on small maps, which would have no fog otherwise
  townhall_food: int  # of a town hall in tiers without supply depots; 0: as the tables say
  minerals_only: bool  # without geysers, vespene costs are paid in minerals; no upgrades
  technology: bool  # the types and abilities of technology, with the real game's requirements
  loop_limit: int  # a game of this length is a draw
  stalemate_loops: int  # a draw after as long without income, production or damage; 0: never
  field_block: int  # side in cells of the blocks that share a flow field; 0: flat open ground

  @property
  def home(self) -> tuple[float, float]:
    """The starting position of player 0, from the map's middle; player 1's is opposite."""
    return self.homes[0]

  @property
  def unarmed(self) -> int:
    """Slots for structures that do not shoot, the first ones of a player."""
    return self.structures - self.armed

  @property
  def slots(self) -> int:
    """n, slots of a player: structures, then units."""
    return self.structures + self.units

  @property
  def resources(self) -> int:
    """R, mineral patches and geysers of the map."""
    return 2 * len(self.patches)


def hallucinated(function: str) -> str:
  """The type of which a function of HALLUCINATE makes hallucinations."""
  return function.split("_")[1]


def _full_tier(name: str, structures: int, armed: int, units: int, food_cap: int, cells: int,
               patches: int, geysers: int, block: int, technology: bool) -> Tier:
  """A tier with all races, on the maps of `maps`; some types are for tiers with technology."""
  places, gas = maps.resources(float(cells), patches, geysers)
  path = pathlib.Path(__file__).with_name("units.csv")
  with path.open(newline="") as file:
    names = tuple(row["name"] for row in csv.DictReader(file)
                  if technology or row["technology"] == "0")
  commands = (each for each, verb in COMMANDS.items()
              if technology or verb not in _TECHNOLOGY_VERBS)
  abilities = (each for each, ability in ABILITIES.items()
               if (technology or ability not in _TECHNOLOGY_ABILITIES)
               and (ability != HALLUCINATE or hallucinated(each) in names))
  return Tier(
    name=name, types=names, commands=(*commands, *abilities),
    structures=structures, armed=armed, units=units, food_cap=food_cap, map_size=float(cells),
    homes=tuple(tuple(place) for place in maps.bases(float(cells)).tolist()),
    patches=tuple(tuple(place) for place in places.tolist()), geysers=tuple(gas.tolist()),
    patch_minerals=900, geyser_vespene=1500, workers=6, minerals=50, trip_loops=120, tempo=3,
    sight_scale=0.9 if cells < 96 else 1.0, townhall_food=0, minerals_only=False,
    technology=technology, loop_limit=12000, stalemate_loops=2000, field_block=block)


TIERS = {
  "mini": Tier(
    name="mini",
    types=("SCV", "Marine", "Marauder", "Hellion", "CommandCenter", "Barracks", "Factory"),
    commands=("Smart_pt", "Smart_unit", "Attack_pt", "Attack_unit", "Move_pt", "Move_unit",
              "Stop_quick", "HoldPosition_quick", "Harvest_Gather_unit", "Harvest_Return_quick"),
    structures=6, armed=0, units=18, food_cap=18, map_size=24.0, homes=((-6.5, -6.5),),
    patches=((-11.25, -7.5), (-11.25, -5.25), (-7.5, -11.25), (-5.25, -11.25),
             (-11.25, 3.75), (-11.25, 6.0)),
    geysers=(False,) * 6, patch_minerals=900, geyser_vespene=0, workers=4, minerals=50,
    trip_loops=120, tempo=3, sight_scale=0.75, townhall_food=18, minerals_only=True,
    technology=False, loop_limit=4480, stalemate_loops=0, field_block=0),
  "default": _full_tier("default", structures=24, armed=6, units=40, food_cap=40, cells=48,
                        patches=4, geysers=1, block=4, technology=False),
  "large": _full_tier("large", structures=36, armed=8, units=92, food_cap=90, cells=96,
                      patches=6, geysers=2, block=8, technology=True),
}
