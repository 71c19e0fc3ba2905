"""What Skirmish is made of: unit statistics, upgrades, functions, tiers. Data, read into arrays.

`units.csv` and `upgrades.csv` hold StarCraft II's own numbers as python-sc2 publishes them in its
`data.json` (MIT licence), and are written by `python -m starleague.experiments.generate.skirmish_tables`,
which lists every abridgement: hit points, armour, damage, range and speed in the game's units,
times in game loops, weapon cooldowns and speeds per second of "normal" speed (16 loops).

A type of the tier has a local index, 0 for an empty slot; a function has one too, 0 for `no_op`.
What can be paid for, a product, is a local type or, from Y on, a level of an upgrade.
"""

import csv
import dataclasses
import functools
import pathlib

import numpy as np

from starleague.agent import types as agent_types
from starleague.agent import vocabulary
from starleague.environments.skirmish.rules import maps

LOOPS_PER_TICK = 4
TICKS_PER_STEP = 2
LOOPS_PER_STEP = LOOPS_PER_TICK * TICKS_PER_STEP
LOOPS_PER_SECOND = 16.0  # of "normal" speed, in which speeds and cooldowns are given
QUEUE_LENGTH = 5
LOAD_MINERALS, LOAD_VESPENE = 5, 4  # what a worker carries
PATCH_RADIUS = 1.0
LINE_HALF_WIDTH = 0.55  # of a flame, map units; a unit's radius is added

# What a unit does. A function's verb is what a capable unit then does.
(IDLE, MOVE, ATTACK, ATTACK_UNIT, HOLD, GATHER, BUILD, CONSTRUCT, PATROL, REPAIR,
 RETURN) = range(11)
# What a function's target may be.
NO_TARGET, OWN, ENEMY, RESOURCE = range(4)
# Kinds of functions.
OTHER, COMMAND, BUILDING, TRAINING, ABILITY = range(5)
# What abilities do at once.
(NO_ABILITY, STIM, SIEGE, UNSIEGE, SCAN, INJECT, BOOST, RALLY, CANCEL, CANCEL_LAST) = range(10)

_COMMANDS = (  # name, verb
  ("Smart_pt", MOVE), ("Smart_unit", MOVE), ("Attack_pt", ATTACK), ("Attack_unit", ATTACK_UNIT),
  ("Move_pt", MOVE), ("Move_unit", MOVE), ("Stop_quick", IDLE), ("HoldPosition_quick", HOLD),
  ("Harvest_Gather_unit", GATHER), ("Harvest_Return_quick", RETURN), ("Patrol_pt", PATROL),
  ("Effect_Repair_unit", REPAIR))
_ABILITIES = (  # name, what it does
  ("Effect_Stim_quick", STIM), ("Morph_SiegeMode_quick", SIEGE),
  ("Morph_Unsiege_quick", UNSIEGE), ("Effect_Scan_pt", SCAN),
  ("Effect_InjectLarva_unit", INJECT), ("Effect_ChronoBoostEnergyCost_unit", BOOST),
  ("Rally_Units_pt", RALLY), ("Rally_Units_unit", RALLY), ("Rally_Workers_pt", RALLY),
  ("Rally_Workers_unit", RALLY), ("Cancel_quick", CANCEL), ("Cancel_Last_quick", CANCEL_LAST))
_ABILITY_TYPES = {
  STIM: ("Marine", "Marauder"), SIEGE: ("SiegeTank",), UNSIEGE: ("SiegeTankSieged",),
  SCAN: ("OrbitalCommand",), INJECT: ("Queen",), BOOST: ("Nexus",)}
_COUNTS_AS = {"OrbitalCommand": "CommandCenter"}
_AT_A_FUNCTIONS_END = ("SiegeTankSieged",)  # changed into at once, without a queue

# What an upgrade may add to.
EFFECTS = ("damage", "bonus", "armour", "shield", "speed", "range", "health", "stim")
ATTRIBUTES = ("Light", "Armored", "Biological", "Mechanical")
RACES = ("Terran", "Protoss", "Zerg")
_HALLS = ("CommandCenter", "OrbitalCommand", "Nexus", "Hatchery")
_GAS = ("Refinery", "Assimilator", "Extractor")


@dataclasses.dataclass(frozen=True)
class Tier:
  """The sizes and the pace of a game. Distances in map units, times in game loops."""

  name: str
  types: tuple[str, ...]  # unit types, workers first, then fighters, then structures
  commands: tuple[str, ...]  # functions besides those that make something
  structures: int  # slots for structures, a player
  armed: int  # of these, the last ones: for structures that shoot
  units: int  # slots for all else
  food_cap: int
  map_size: float  # the map is a square
  homes: tuple[tuple[float, float], ...]  # places for a player's town halls, the first one first
  patches: tuple[tuple[float, float], ...]  # one half's resources; the other's are opposite
  geysers: tuple[bool, ...]  # which of them are geysers
  patch_minerals: int
  geyser_vespene: int
  workers: int  # at the start
  minerals: int  # at the start
  trip_loops: int  # a worker's trip to a patch and back, at the pace of the real game
  tempo: int  # how many times faster than the real game a player mines, builds and trains
  sight_scale: float  # a small map would otherwise have no fog
  townhall_food: int  # what one gives where there are no supply depots; 0: what the tables say
  at_par: bool  # vespene is paid in minerals, for a tier without geysers
  loop_limit: int  # a draw from then on
  quiet_loops: int  # a draw after so long without income, production or damage; 0: never
  field_block: int  # cells a side that share a way; 0: flat open ground

  @property
  def home(self) -> tuple[float, float]:
    """Where a player begins, from the middle of the map; the other begins opposite."""
    return self.homes[0]

  @property
  def plain(self) -> int:
    """Slots for structures that do not shoot: a player's first ones."""
    return self.structures - self.armed

  @property
  def slots(self) -> int:
    """n, slots of a player: its structures first."""
    return self.structures + self.units

  @property
  def resources(self) -> int:
    """R, mineral patches and geysers of the map."""
    return 2 * len(self.patches)


def _whole_game(name: str, structures: int, armed: int, units: int, food_cap: int, cells: int,
                patches: int, geysers: int, block: int) -> Tier:
  places, gas = maps.resources(float(cells), patches, geysers)
  path = pathlib.Path(__file__).with_name("units.csv")
  with path.open(newline="") as file:
    names = tuple(row["name"] for row in csv.DictReader(file))
  return Tier(
    name=name, types=names,
    commands=tuple(name for name, _ in _COMMANDS) + tuple(name for name, _ in _ABILITIES),
    structures=structures, armed=armed, units=units, food_cap=food_cap, map_size=float(cells),
    homes=tuple(tuple(place) for place in maps.bases(float(cells)).tolist()),
    patches=tuple(tuple(place) for place in places.tolist()), geysers=tuple(gas.tolist()),
    patch_minerals=900, geyser_vespene=1500, workers=6, minerals=50, trip_loops=120, tempo=3,
    sight_scale=0.9 if cells < 96 else 1.0, townhall_food=0, at_par=False, loop_limit=12000,
    quiet_loops=2000, field_block=block)


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
    trip_loops=120, tempo=3, sight_scale=0.75, townhall_food=18, at_par=True, loop_limit=4480,
    quiet_loops=0, field_block=0),
  "default": _whole_game("default", structures=24, armed=6, units=40, food_cap=40, cells=48,
                         patches=4, geysers=1, block=4),
  "large": _whole_game("large", structures=36, armed=8, units=92, food_cap=90, cells=96,
                       patches=6, geysers=2, block=8),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Weapon:
  """A weapon against the ground or the air, by local type [Y]; all zero where there is none."""

  damage: np.ndarray  # of a hit, before armour
  attacks: np.ndarray  # hits a volley
  bonus: np.ndarray  # added to a hit on what has the attribute
  against: np.ndarray  # int32: index of ATTRIBUTES, -1 for none
  range: np.ndarray
  cooldown: np.ndarray  # loops between volleys


@dataclasses.dataclass(frozen=True, eq=False)
class Types:
  """Statistics by local type [Y]; row 0 is the empty slot, all zero."""

  names: tuple[str, ...]
  index: np.ndarray  # dense indices of vocabulary.UNIT_TYPES
  race: np.ndarray  # int32: index of RACES
  takes_food: np.ndarray  # int32, in halves
  gives_food: np.ndarray  # int32, in halves
  value: np.ndarray  # int32: minerals and vespene of one, and of what it was before
  health: np.ndarray
  shield: np.ndarray
  energy: np.ndarray  # the most
  armour: np.ndarray
  sight: np.ndarray  # scaled for this tier
  speed: np.ndarray  # a tick
  radius: np.ndarray
  attributes: np.ndarray  # int32: a bit an attribute
  flying: np.ndarray  # bool
  ground: Weapon
  air: Weapon
  line: np.ndarray  # bool
  splash: np.ndarray  # radius, 0 for none
  structure: np.ndarray  # bool
  worker: np.ndarray  # bool
  fighter: np.ndarray  # bool: armed, no worker
  townhall: np.ndarray  # bool
  gas: np.ndarray  # bool: stands on a geyser
  larvae: np.ndarray  # bool: has larvae, and makes several at once
  counts_as: np.ndarray  # int32: the local type whose place it takes where one is required

  def local(self, name: str) -> int:
    """The local index of a type, 0 where the tier does not have it."""
    return self.names.index(name) if name in self.names else 0


@dataclasses.dataclass(frozen=True, eq=False)
class Products:
  """What can be paid for [P]: local types, then levels of upgrades; row 0 is nothing."""

  minerals: np.ndarray  # int32
  vespene: np.ndarray  # int32
  takes_food: np.ndarray  # int32, in halves, of all that comes of one
  loops: np.ndarray  # int32: to make one, at this tier's tempo
  brood: np.ndarray  # int32: units that come of one, 0 for structures and upgrades
  larva: np.ndarray  # bool: costs one
  producer: np.ndarray  # int32: the local type that makes it
  requirement: np.ndarray  # int32: the local type that must stand first; 0 is none
  level: np.ndarray  # int32: which of its line, from 1; 0 for types
  function: np.ndarray  # int32: the local function that orders it


@dataclasses.dataclass(frozen=True, eq=False)
class Upgrades:
  """Levels of upgrades [U], those of a line one after the other."""

  names: tuple[str, ...]
  index: np.ndarray  # [U] dense indices of vocabulary.UPGRADES
  effects: np.ndarray  # [U, Z, Y]: what each adds to EFFECTS of each type, summed over levels


@dataclasses.dataclass(frozen=True, eq=False)
class Functions:
  """What can be ordered, by local function [C]; row 0 is no_op."""

  names: tuple[str, ...]
  index: np.ndarray  # dense indices of vocabulary.FUNCTIONS
  local: np.ndarray  # [A] int32: local index of a dense one, 0 where the tier does not have it
  kind: np.ndarray  # OTHER, COMMAND, BUILDING, TRAINING or ABILITY
  verb: np.ndarray
  ability: np.ndarray
  product: np.ndarray  # the first product that it makes, 0 for none
  levels: np.ndarray  # how many there are one after the other; 1 for types
  capable: np.ndarray  # [C, Y] bool: which types can execute it
  takes_point: np.ndarray  # bool
  takes_unit: np.ndarray  # bool


@dataclasses.dataclass(frozen=True, eq=False)
class Rules:
  """A tier with its tables and the sizes of the agent's interface: constants of the game."""

  tier: Tier
  types: Types
  products: Products
  upgrades: Upgrades
  functions: Functions
  terrain: maps.Terrain | None  # None: flat open ground
  max_entities: int  # E
  map_size: int  # H = W of the planes, a multiple of 32
  location_size: int  # L
  max_selected: int  # K

  @property
  def half(self) -> float:
    """Half the map's side: positions are counted from the middle, so that turning it is exact."""
    return self.tier.map_size / 2

  # Which of the whole game's rules a tier needs at all: what it lacks costs nothing.

  @property
  def has_gas(self) -> bool:
    """Whether there are geysers."""
    return any(self.tier.geysers)

  @property
  def has_upgrades(self) -> bool:
    """Whether anything can be researched."""
    return bool(self.upgrades.names)

  @property
  def has_shields(self) -> bool:
    """Whether any type has a shield."""
    return bool(self.types.shield.any())

  @property
  def has_energy(self) -> bool:
    """Whether any type has energy."""
    return bool(self.types.energy.any())

  @property
  def has_flyers(self) -> bool:
    """Whether anything flies."""
    return bool(self.types.flying.any())

  @property
  def has_larvae(self) -> bool:
    """Whether any structure has larvae."""
    return bool(self.types.larvae.any())

  def has(self, ability: int) -> bool:
    """Whether any function does this."""
    return bool((self.functions.ability == ability).any())

  @property
  def races(self) -> tuple[int, ...]:
    """Indices of RACES that can be played."""
    return tuple(sorted(set(self.types.race[self.types.worker].tolist())))


def race_index(race: np.ndarray) -> np.ndarray:
  """Indices of RACES by those of the agent's RACES; none and random count as the first."""
  table = [RACES.index(name.capitalize()) if name.capitalize() in RACES else 0
           for name in agent_types.RACES]
  return np.array(table, np.int32)[race]


def _read(name: str) -> list[dict[str, str]]:
  with pathlib.Path(__file__).with_name(name).open(newline="") as file:
    return list(csv.DictReader(file))


def _rows(tier: Tier) -> list[dict[str, str]]:
  table = {row["name"]: row for row in _read("units.csv")}
  missing = [name for name in tier.types if name not in table]
  if missing:
    raise ValueError(f"tier {tier.name}: units.csv has no rows for {missing}")
  return [table[name] for name in tier.types]


def _upgrade_rows(tier: Tier) -> list[dict[str, str]]:
  """The upgrades of a tier: none for the one whose commands have no abilities."""
  ids = {row["id"] for row in _rows(tier)}
  if tier.at_par:
    return []
  return [row for row in _read("upgrades.csv") if row["producer"] in ids]


def make_types(tier: Tier) -> Types:
  """The statistics of a tier's types, at its tempo."""
  rows = _rows(tier)

  def column(name, kind=np.float32):
    return np.array([0, *(float(row[name] or 0) for row in rows)]).astype(kind)

  def has(attribute):
    return np.array([False, *(attribute in row["attributes"].split() for row in rows)])

  def named(names):
    return np.array([False, *(row["name"] in names for row in rows)])

  def weapon(target):
    against = [-1, *(ATTRIBUTES.index(row[f"{target}_bonus_against"])
                     if row[f"{target}_bonus_against"] else -1 for row in rows)]
    return Weapon(
      damage=column(f"{target}_damage"), attacks=column(f"{target}_attacks"),
      bonus=column(f"{target}_bonus"), against=np.array(against, np.int32),
      range=column(f"{target}_range"),
      cooldown=column(f"{target}_cooldown") * np.float32(LOOPS_PER_SECOND))

  food, structure = (2 * column("food")).astype(np.int32), has("Structure")
  builders = {row["producer"] for row in rows if "Structure" in row["attributes"].split()}
  worker = np.array([False, *(row["id"] in builders and not has_structure for row, has_structure
                              in zip(rows, structure[1:], strict=True))])
  townhall = named(_HALLS)
  given = np.maximum(-food, 0)
  if tier.townhall_food:
    given = np.where(townhall, 2 * tier.townhall_food, 0)
  ground, air = weapon("ground"), weapon("air")
  larvae = {row["producer"] for row in rows if int(row["larva"])}
  counts_as = np.array([0, *(tier.types.index(_COUNTS_AS.get(row["name"], row["name"])) + 1
                             for row in rows)], np.int32)
  value = ((column("minerals") + column("vespene"))
           / np.maximum(column("brood"), 1)).astype(np.int32)
  # What another one turned into was paid twice.
  value += value[counts_as] * (counts_as != np.arange(len(counts_as)))
  return Types(
    names=("", *tier.types),
    index=np.array([0, *(vocabulary.UNIT_TYPES.from_id(int(r["id"])) for r in rows)], np.int32),
    race=np.array([0, *(RACES.index(row["race"]) for row in rows)], np.int32),
    takes_food=np.maximum(food, 0), gives_food=given.astype(np.int32),
    value=value,
    health=column("health"), shield=column("shield"), energy=column("energy"),
    armour=column("armor"), sight=column("sight") * np.float32(tier.sight_scale),
    speed=column("speed") * np.float32(LOOPS_PER_TICK / LOOPS_PER_SECOND),
    radius=column("radius"),
    attributes=sum(has(name).astype(np.int32) << i for i, name in enumerate(ATTRIBUTES)),
    flying=column("flying", bool), ground=ground, air=air, line=column("line", bool),
    splash=column("splash"), structure=structure, worker=worker,
    fighter=((ground.damage > 0) | (air.damage > 0)) & ~worker, townhall=townhall,
    gas=named(_GAS), larvae=np.array([False, *(row["id"] in larvae for row in rows)]),
    counts_as=counts_as)


def make_upgrades(tier: Tier, types: Types) -> Upgrades:
  """What a tier's upgrades add; a level adds to those before it."""
  rows = _upgrade_rows(tier)
  effects = np.zeros((len(rows), len(EFFECTS), len(types.names)), np.float32)
  for u, row in enumerate(rows):
    for entry in row["amounts"].split():
      name, amount = entry.split(":")
      scale = LOOPS_PER_TICK / LOOPS_PER_SECOND if row["effect"] == "speed" else 1.0
      effects[u, EFFECTS.index(row["effect"]), types.local(name)] = float(amount) * scale
  effects[:, :, 0] = 0
  return Upgrades(
    names=tuple(row["name"] for row in rows), effects=effects,
    index=np.array([vocabulary.UPGRADES.from_id(int(row["id"])) for row in rows], np.int32))


def make_functions(tier: Tier, types: Types) -> tuple[Functions, Products]:
  """The functions of a tier, the commands and then what makes things, and all that it makes."""
  rows, upgrades = _rows(tier), _upgrade_rows(tier)
  local = {int(row["id"]): i for i, row in enumerate(rows, 1)}
  verbs, abilities = dict(_COMMANDS), dict(_ABILITIES)
  made: dict[str, list[int]] = {}  # function: its products, a level after the other
  for i, row in enumerate(rows, 1):
    if row["name"] not in _AT_A_FUNCTIONS_END:
      made[row["function"]] = [i]
  for u, row in enumerate(upgrades):
    made.setdefault(row["function"], []).append(len(types.names) + u)
  names = ("no_op", *tier.commands, *made)
  first = 1 + len(tier.commands)
  both = [{}, *rows, *upgrades]
  types_count = len(types.names)

  def column(name, default="0"):
    return np.array([float(row.get(name, default) or 0) for row in both])

  def related(name):
    return np.array([local.get(int(row.get(name, 0)), 0) for row in both], np.int32)

  unit = np.arange(len(both)) < types_count
  unit[:types_count] &= ~types.structure & ~np.isin(types.names, _AT_A_FUNCTIONS_END)
  unit[0] = False
  brood = np.where(unit, column("brood", "0"), 0).astype(np.int32)
  minerals, vespene = column("minerals"), column("vespene")
  if tier.at_par:
    minerals, vespene = minerals + vespene, np.zeros_like(vespene)
  eats = np.zeros(len(both), np.int32)
  eats[:types_count] = types.takes_food * brood[:types_count]
  order = np.zeros(len(both), np.int32)
  for c, products in enumerate(made.values(), first):
    order[products] = c
  makes = Products(
    minerals=minerals.astype(np.int32), vespene=vespene.astype(np.int32), takes_food=eats,
    loops=np.ceil(column("time") / tier.tempo).astype(np.int32), brood=brood,
    larva=column("larva").astype(bool), producer=related("producer"),
    requirement=related("requirement"), level=column("level").astype(np.int32), function=order)

  index = np.array([vocabulary.FUNCTIONS.index(name) for name in names], np.int32)
  dense = np.zeros(vocabulary.NUM_FUNCTIONS, np.int32)
  dense[index] = np.arange(len(names))
  product = np.array([0] * first + [products[0] for products in made.values()], np.int32)
  built = np.array([p < types_count and bool(types.structure[p]) for p in product])
  # A structure that another one turns into is made in its queue, as units are.
  built &= types.worker[makes.producer[product]]
  kind = np.where(built, BUILDING, TRAINING)
  kind[:first] = [OTHER, *(COMMAND if name in verbs else ABILITY for name in tier.commands)]
  verb = np.where(built, BUILD, IDLE)
  verb[:first] = [IDLE, *(verbs.get(name, IDLE) for name in tier.commands)]
  ability = np.array([abilities.get(name, NO_ABILITY) for name in names])
  capable = np.zeros((len(names), types_count), bool)
  mobile = (types.speed > 0) & ~types.structure
  trainers = np.zeros(types_count, bool)
  trainers[makes.producer[unit]] = True
  trains_workers = np.zeros(types_count, bool)
  trains_workers[makes.producer[:types_count][types.worker]] = True
  sieged = np.array([name == "SiegeTankSieged" for name in types.names])
  for c, name in enumerate(names):
    if c >= first:
      capable[c, makes.producer[product[c]]] = True
    elif verbs.get(name) in (GATHER, RETURN):
      capable[c] = types.worker
    elif name == "Effect_Repair_unit":
      capable[c, types.local("SCV")] = True
    elif name in ("Stop_quick", "Attack_pt", "Attack_unit"):
      capable[c] = mobile | sieged
    elif name in verbs:
      capable[c] = mobile
    elif ability[c] == RALLY:
      capable[c] = trains_workers if "Workers" in name else trainers & ~trains_workers
    elif ability[c] == CANCEL:
      capable[c] = types.structure
    elif ability[c] == CANCEL_LAST:
      capable[c, makes.producer[makes.brood > 0]] = True
      capable[c, makes.producer[types_count:]] = True
    else:
      capable[c, [types.local(name) for name in _ABILITY_TYPES.get(int(ability[c]), ())]] = True
    if name in ("Smart_pt", "Smart_unit"):  # a rally point, for a building that trains
      capable[c] |= trainers
  for turned, original in enumerate(types.counts_as):  # it does what it did before, but not turn
    if turned != original:
      capable[:, turned] |= capable[:, original] & (product != turned)
  capable[:, 0] = False
  capable[0] = False
  allowed = vocabulary.CAPABLE[index][:, types.index]
  uses = vocabulary.ARGUMENT_TABLE[index]
  functions = Functions(
    names=names, index=index, local=dense, kind=kind.astype(np.int32), verb=verb.astype(np.int32),
    ability=ability.astype(np.int32), product=product,
    levels=np.array([0] * first + [len(products) for products in made.values()], np.int32),
    capable=capable & allowed, takes_point=uses[:, 6], takes_unit=uses[:, 5])
  return functions, makes


def terrain_of(tier: Tier) -> maps.Terrain | None:
  """The maps of a tier, None for flat open ground."""
  return maps.make_terrain(int(tier.map_size), tier.field_block) if tier.field_block else None


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
  functions, products = make_functions(sizes, types)
  return Rules(
    tier=sizes, types=types, products=products, upgrades=make_upgrades(sizes, types),
    functions=functions, terrain=terrain_of(sizes), max_entities=max_entities, map_size=map_size,
    location_size=location_size, max_selected=max_selected)
