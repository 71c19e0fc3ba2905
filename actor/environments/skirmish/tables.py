"""What Skirmish is made of: unit statistics, functions, tiers. Data, read once into arrays.

`units.csv` holds StarCraft II's own numbers as python-sc2 publishes them in its `data.json` (MIT
licence): hit points, armour, damage, range and speed in the game's units, times in game loops,
weapon cooldowns and speeds per second of "normal" speed (16 loops). Two columns are ours: `food` is
what a unit takes (negative: what a building gives), and `line` says that a weapon hits everything
along its reach, as the Hellion's flame does.

A type of the tier has a local index, 0 for an empty slot; a function has one too, 0 for `no_op`.
"""

import csv
import dataclasses
import functools
import pathlib

import numpy as np

from starleague.agent import vocabulary

LOOPS_PER_TICK = 4
TICKS_PER_STEP = 2
LOOPS_PER_STEP = LOOPS_PER_TICK * TICKS_PER_STEP
LOOPS_PER_SECOND = 16.0  # of "normal" speed, in which speeds and cooldowns are given
QUEUE_LENGTH = 5
TRIP_MINERALS = 5
PATCH_RADIUS = 1.0
LINE_HALF_WIDTH = 0.55  # of a flame, map units; a unit's radius is added

# What a unit does. A function's verb is what a capable unit then does.
IDLE, MOVE, ATTACK, ATTACK_UNIT, HOLD, GATHER, BUILD, CONSTRUCT = range(8)
# What a function's target may be.
NO_TARGET, OWN, ENEMY, RESOURCE = range(4)
# Kinds of functions.
OTHER, COMMAND, BUILDING, TRAINING = range(4)

_COMMANDS = (  # name, verb, takes a point, takes a unit
  ("Smart_pt", MOVE), ("Smart_unit", MOVE), ("Attack_pt", ATTACK), ("Attack_unit", ATTACK_UNIT),
  ("Move_pt", MOVE), ("Move_unit", MOVE), ("Stop_quick", IDLE), ("HoldPosition_quick", HOLD),
  ("Harvest_Gather_unit", GATHER))


@dataclasses.dataclass(frozen=True)
class Tier:
  """The sizes and the pace of a game. Distances in map units, times in game loops."""

  name: str
  types: tuple[str, ...]  # unit types, workers first, then fighters, then structures
  structures: int  # slots for structures, a player
  units: int  # slots for all else; also the most food, so that they cannot overflow
  map_size: float  # the map is a square
  home: tuple[float, float]  # the first place, from the middle of the map; the other is opposite
  patches: tuple[tuple[float, float], ...]  # one half's mineral patches; the other is opposite
  patch_minerals: int
  workers: int  # at the start
  minerals: int  # at the start
  trip_loops: int  # a worker's trip, at the pace of the real game
  tempo: int  # how many times faster than the real game a player mines, builds and trains
  sight_scale: float  # a small map would otherwise have no fog
  townhall_food: int  # what one gives: without supply depots, all that a tier has
  loop_limit: int  # a draw from then on

  @property
  def slots(self) -> int:
    """n, slots of a player: its structures first."""
    return self.structures + self.units

  @property
  def resources(self) -> int:
    """R, mineral patches of the map."""
    return 2 * len(self.patches)


TIERS = {
  "mini": Tier(
    name="mini",
    types=("SCV", "Marine", "Marauder", "Hellion", "CommandCenter", "Barracks", "Factory"),
    structures=6, units=18, map_size=24.0, home=(-6.5, -6.5),
    patches=((-11.25, -7.5), (-11.25, -5.25), (-7.5, -11.25), (-5.25, -11.25),
             (-11.25, 3.75), (-11.25, 6.0)),
    patch_minerals=900, workers=4, minerals=50, trip_loops=120, tempo=3, sight_scale=0.75,
    townhall_food=18, loop_limit=4480),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Types:
  """Statistics by local type [Y]; row 0 is the empty slot, all zero."""

  names: tuple[str, ...]
  index: np.ndarray  # dense indices of vocabulary.UNIT_TYPES
  cost: np.ndarray  # int32: minerals, and vespene at par, for a tier without refineries
  takes_food: np.ndarray  # int32
  gives_food: np.ndarray  # int32
  loops: np.ndarray  # int32: to make one, at this tier's tempo
  health: np.ndarray
  armour: np.ndarray
  sight: np.ndarray  # scaled for this tier
  speed: np.ndarray  # a tick
  radius: np.ndarray
  damage: np.ndarray  # [Y, Y]: of a volley, by attacker and target, after bonus and armour
  range: np.ndarray
  cooldown: np.ndarray  # loops between volleys
  line: np.ndarray  # bool
  structure: np.ndarray  # bool
  worker: np.ndarray  # bool
  fighter: np.ndarray  # bool
  townhall: np.ndarray  # bool
  producer: np.ndarray  # int32: the local type that makes it
  requirement: np.ndarray  # int32: the local type that must stand first; 0 is none


@dataclasses.dataclass(frozen=True, eq=False)
class Functions:
  """What can be ordered, by local function [C]; row 0 is no_op."""

  names: tuple[str, ...]
  index: np.ndarray  # dense indices of vocabulary.FUNCTIONS
  local: np.ndarray  # [A] int32: local index of a dense one, 0 where the tier does not have it
  kind: np.ndarray  # OTHER, COMMAND, BUILDING or TRAINING
  verb: np.ndarray
  product: np.ndarray  # the local type that it makes, 0 for none
  capable: np.ndarray  # [C, Y] bool: which types can execute it
  takes_point: np.ndarray  # bool
  takes_unit: np.ndarray  # bool


@dataclasses.dataclass(frozen=True, eq=False)
class Rules:
  """A tier with its tables and the sizes of the agent's interface: constants of the game."""

  tier: Tier
  types: Types
  functions: Functions
  max_entities: int  # E
  map_size: int  # H = W of the planes, a multiple of 32
  location_size: int  # L
  max_selected: int  # K

  @property
  def half(self) -> float:
    """Half the map's side: positions are counted from the middle, so that turning it is exact."""
    return self.tier.map_size / 2


def _rows(tier: Tier) -> list[dict[str, str]]:
  path = pathlib.Path(__file__).with_name("units.csv")
  with path.open(newline="") as file:
    table = {row["name"]: row for row in csv.DictReader(file)}
  missing = [name for name in tier.types if name not in table]
  if missing:
    raise ValueError(f"tier {tier.name}: {path.name} has no rows for {missing}")
  return [table[name] for name in tier.types]


def _damage(rows: list[dict[str, str]]) -> np.ndarray:
  damage = np.zeros((len(rows) + 1, len(rows) + 1), np.float32)
  for i, attacker in enumerate(rows, 1):
    for j, target in enumerate(rows, 1):
      bonus = attacker["bonus_against"] in target["attributes"].split()
      hit = float(attacker["damage"]) + bonus * float(attacker["bonus"])
      hit = max(hit - float(target["armor"]), 0.5)  # the real game's least damage
      damage[i, j] = int(attacker["attacks"]) * hit
  return damage


def make_types(tier: Tier) -> Types:
  """The statistics of a tier's types, at its tempo."""
  rows = _rows(tier)
  local = {int(row["id"]): i for i, row in enumerate(rows, 1)}

  def column(name, kind=np.float32):
    return np.array([0, *(float(row[name] or 0) for row in rows)]).astype(kind)

  def related(name):
    return np.array([0, *(local.get(int(row[name]), 0) for row in rows)], np.int32)

  def has(attribute):
    return np.array([False, *(attribute in row["attributes"].split() for row in rows)])

  food, structure = column("food", np.int32), has("Structure")
  townhall = structure & (food < 0)
  builders = {int(row["producer"]) for row in rows if "Structure" in row["attributes"].split()}
  worker = np.array([False, *(int(row["id"]) in builders for row in rows)])
  return Types(
    names=("", *tier.types),
    index=np.array([0, *(vocabulary.UNIT_TYPES.from_id(int(r["id"])) for r in rows)], np.int32),
    cost=column("minerals", np.int32) + column("vespene", np.int32),
    takes_food=np.maximum(food, 0),
    gives_food=np.where(townhall, tier.townhall_food, 0).astype(np.int32),
    loops=np.ceil(column("time") / tier.tempo).astype(np.int32),
    health=column("health"), armour=column("armor"),
    sight=column("sight") * np.float32(tier.sight_scale),
    speed=column("speed") * np.float32(LOOPS_PER_TICK / LOOPS_PER_SECOND),
    radius=column("radius"), damage=_damage(rows), range=column("range"),
    cooldown=column("cooldown") * np.float32(LOOPS_PER_SECOND), line=column("line", bool),
    structure=structure, worker=worker, fighter=(column("damage") > 0) & ~worker,
    townhall=townhall, producer=related("producer"),
    requirement=related("requirement"))


def make_functions(tier: Tier, types: Types) -> Functions:
  """The functions of a tier: the commands, then what makes each of its types."""
  made = [row["function"] for row in _rows(tier)]
  names = ("no_op", *(name for name, _ in _COMMANDS), *made)
  index = np.array([vocabulary.FUNCTIONS.index(name) for name in names], np.int32)
  local = np.zeros(vocabulary.NUM_FUNCTIONS, np.int32)
  local[index] = np.arange(len(names))
  first = 1 + len(_COMMANDS)
  kind = np.array([OTHER] + [COMMAND] * len(_COMMANDS)
                  + [BUILDING if types.structure[i + 1] else TRAINING for i in range(len(made))])
  verb = np.array([IDLE, *(v for _, v in _COMMANDS), *(
    BUILD if types.structure[i + 1] else IDLE for i in range(len(made)))], np.int32)
  product = np.array([0] * first + list(range(1, 1 + len(made))), np.int32)
  mobile = types.speed > 0
  capable = np.zeros((len(names), len(types.names)), bool)
  capable[1:first] = mobile
  capable[names.index("Harvest_Gather_unit")] = types.worker
  for name in ("Smart_pt", "Smart_unit"):  # a rally point, for a building that trains
    capable[names.index(name)] |= np.isin(np.arange(len(types.names)),
                                          types.producer[~types.structure])
  capable[:, 0] = False
  for c in range(first, len(names)):
    capable[c, types.producer[product[c]]] = True
  uses = vocabulary.ARGUMENT_TABLE[index]
  return Functions(
    names=names, index=index, local=local, kind=kind.astype(np.int32), verb=verb, product=product,
    capable=capable, takes_point=uses[:, 6], takes_unit=uses[:, 5])


@functools.cache
def make_rules(tier: str, max_entities: int, map_size: int, location_size: int,
               max_selected: int) -> Rules:
  """A tier's tables for an agent's sizes.

  Raises:
    ValueError: an unknown tier, or sizes that the tier does not fit in.
  """
  if tier not in TIERS:
    raise ValueError(f"unknown tier {tier!r}: choose one of {sorted(TIERS)}")
  sizes = TIERS[tier]
  rows = 2 * sizes.slots + sizes.resources
  if max_entities < rows:
    raise ValueError(f"tier {tier}: max_entities is {max_entities}, but a player may see {rows}")
  if map_size % 32:
    raise ValueError(f"tier {tier}: map_size is {map_size}, expected a multiple of 32")
  types = make_types(sizes)
  return Rules(
    tier=sizes, types=types, functions=make_functions(sizes, types), max_entities=max_entities,
    map_size=map_size, location_size=location_size, max_selected=max_selected)
