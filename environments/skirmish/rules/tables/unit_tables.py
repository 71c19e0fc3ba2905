"""Tables of unit types and upgrades, read from `units.csv` and `upgrades.csv`.

The files hold StarCraft II's numbers as python-sc2 publishes them in its `data.json` (MIT licence).
`python -m starleague.experiments.generate.skirmish_tables` writes them and lists every deviation.
Health, armour, damage, range and speed are in the game's units, times in game loops, and weapon
cooldowns and speeds per second at "normal" speed (16 loops).

A type has a local index in its tier, 0 for an empty slot.
"""

import csv
import dataclasses
import pathlib
from collections.abc import Container

import numpy as np

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.tables.constants import (
  ATTRIBUTES,
  EFFECTS,
  HALLUCINATIONS,
  LOOPS_PER_SECOND,
  LOOPS_PER_TICK,
  NO_ADD_ON,
  RACES,
  REACTOR,
  TECH_LAB,
)
from starleague.environments.skirmish.rules.tables.tiers import Tier

Row = dict[str, str]
# Types that satisfy the requirements of another one.
_COUNTS_AS = {"OrbitalCommand": "CommandCenter", "Lair": "Hatchery", "WarpGate": "Gateway"}
_TOWNHALLS = ("CommandCenter", "OrbitalCommand", "Nexus", "Hatchery", "Lair")
_GAS_STRUCTURES = ("Refinery", "Assimilator", "Extractor")
_ALWAYS_CLOAKED = ("Observer", "DarkTemplar")


@dataclasses.dataclass(frozen=True, eq=False)
class Weapon:
  """A weapon against ground or air targets, by local type [Y]; all zero where there is none."""

  damage: np.ndarray  # of a hit, before armour
  attacks: np.ndarray  # hits a volley
  bonus: np.ndarray  # added to a hit on targets with the attribute
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
  value: np.ndarray  # int32: minerals plus vespene, with those of the type it morphed from
  health: np.ndarray
  shield: np.ndarray
  energy: np.ndarray  # maximum
  armour: np.ndarray
  sight: np.ndarray  # scaled for the tier
  speed: np.ndarray  # a tick
  radius: np.ndarray
  attributes: np.ndarray  # int32: one bit an attribute
  flying: np.ndarray  # bool
  ground: Weapon
  air: Weapon
  line: np.ndarray  # bool: the weapon hits everything along a line
  splash: np.ndarray  # radius, 0 for none
  structure: np.ndarray  # bool
  worker: np.ndarray  # bool
  fighter: np.ndarray  # bool: armed and not a worker
  townhall: np.ndarray  # bool
  gas: np.ndarray  # bool: built on a geyser
  larvae: np.ndarray  # bool: has larvae, and makes several products in parallel
  counts_as: np.ndarray  # int32: the local type whose requirements it satisfies
  add_on: np.ndarray  # int32: constants.TECH_LAB or REACTOR for add-ons, else NO_ADD_ON
  cloaked: np.ndarray  # bool: always cloaked
  detects: np.ndarray  # bool: sees cloaked units, as far as it sees
  cargo_size: np.ndarray  # int32: the space that it takes in a transport, 0 if it cannot board
  cargo_space: np.ndarray  # int32: the space that it has for passengers, 0 for most
  hallucinations: np.ndarray  # int32: number that a Sentry makes at a time, 0 for the others

  @property
  def morphed(self) -> np.ndarray:
    """Types that structures of another type morph into: [Y] bool."""
    return self.counts_as != np.arange(len(self.names))

  @property
  def warp_gate(self) -> int:
    """The local type WarpGate, 0 if the tier does not have it."""
    return self.local("WarpGate")

  def local(self, name: str) -> int:
    """The local index of a type, 0 if the tier does not have it."""
    return self.names.index(name) if name in self.names else 0


@dataclasses.dataclass(frozen=True, eq=False)
class Upgrades:
  """Levels of upgrades [U], those of a line in consecutive rows."""

  names: tuple[str, ...]
  index: np.ndarray  # [U] dense indices of vocabulary.UPGRADES
  effects: np.ndarray  # [U, Z, Y]: added to each of EFFECTS of each type; levels add up


def read_rows(name: str) -> list[Row]:
  """Reads a CSV file of this folder."""
  with pathlib.Path(__file__).with_name(name).open(newline="") as file:
    return list(csv.DictReader(file))


def unit_rows(tier: Tier) -> list[Row]:
  """The rows of units.csv for a tier's types.

  Raises:
    ValueError: units.csv lacks a type.
  """
  table = {row["name"]: row for row in read_rows("units.csv")}
  missing = [name for name in tier.types if name not in table]
  if missing:
    raise ValueError(f"tier {tier.name}: units.csv has no rows for {missing}; run "
                     "starleague.experiments.generate.skirmish_tables")
  return [_of_tier(tier, table[name]) for name in tier.types]


def upgrade_rows(tier: Tier) -> list[Row]:
  """The rows of upgrades.csv that a tier's structures research."""
  ids = {row["id"] for row in unit_rows(tier)}
  if tier.minerals_only:
    return []
  rows = [_of_tier(tier, row) for row in read_rows("upgrades.csv")]
  return [row for row in rows if row["producer"] in ids]


def _of_tier(tier: Tier, row: Row) -> Row:
  """A row with the producer, requirements, warp-in, detection and cargo of a tier."""
  if tier.technology:
    return row
  return {**row, "producer": row.get("plain_producer", row["producer"]),
          "requirement": row["plain_requirement"], "add_on": "0", "upgrade": "0",
          "warp_cooldown": "0", "detection": "0", "cargo_size": "0", "cargo_space": "0"}


def _column(rows: list[Row], name: str, dtype: type = np.float32) -> np.ndarray:
  return np.array([0, *(float(row[name] or 0) for row in rows)]).astype(dtype)


def _has(rows: list[Row], attribute: str) -> np.ndarray:
  return np.array([False, *(attribute in row["attributes"].split() for row in rows)])


def _is_one_of(rows: list[Row], column: str, values: Container[str]) -> np.ndarray:
  return np.array([False, *(row[column] in values for row in rows)])


def _weapon(rows: list[Row], target: str) -> Weapon:
  """The weapon against `target`, "ground" or "air"."""
  against = [-1, *(ATTRIBUTES.index(row[f"{target}_bonus_against"])
                   if row[f"{target}_bonus_against"] else -1 for row in rows)]
  return Weapon(
    damage=_column(rows, f"{target}_damage"), attacks=_column(rows, f"{target}_attacks"),
    bonus=_column(rows, f"{target}_bonus"), against=np.array(against, np.int32),
    range=_column(rows, f"{target}_range"),
    cooldown=_column(rows, f"{target}_cooldown") * np.float32(LOOPS_PER_SECOND))


def _value(rows: list[Row], counts_as: np.ndarray) -> np.ndarray:
  """Minerals plus vespene of one unit; a morphed type includes the price of its original."""
  cost = _column(rows, "minerals") + _column(rows, "vespene")
  value = (cost / np.maximum(_column(rows, "brood"), 1)).astype(np.int32)
  return value + value[counts_as] * (counts_as != np.arange(len(counts_as)))


def _add_on(name: str) -> int:
  """The kind of add-on of a type."""
  kinds = {"TechLab": TECH_LAB, "Reactor": REACTOR}
  return next((kind for ending, kind in kinds.items() if name.endswith(ending)), NO_ADD_ON)


def make_types(tier: Tier) -> Types:
  """Makes the statistics of a tier's types."""
  rows = unit_rows(tier)
  food, structure = (2 * _column(rows, "food")).astype(np.int32), _has(rows, "Structure")
  builders = {row["producer"] for row in rows if "Structure" in row["attributes"].split()}
  worker = _is_one_of(rows, "id", builders) & ~structure
  townhall = _is_one_of(rows, "name", _TOWNHALLS)
  gives_food = np.maximum(-food, 0)
  if tier.townhall_food:
    gives_food = np.where(townhall, 2 * tier.townhall_food, 0)
  counts_as = np.array([0, *(tier.types.index(_COUNTS_AS.get(row["name"], row["name"])) + 1
                             for row in rows)], np.int32)
  ground, air = _weapon(rows, "ground"), _weapon(rows, "air")
  larvae = _is_one_of(rows, "id", {row["producer"] for row in rows if int(row["larva"])})
  return Types(
    names=("", *tier.types),
    index=np.array([0, *(vocabulary.UNIT_TYPES.from_id(int(r["id"])) for r in rows)], np.int32),
    race=np.array([0, *(RACES.index(row["race"]) for row in rows)], np.int32),
    takes_food=np.maximum(food, 0), gives_food=gives_food.astype(np.int32),
    value=_value(rows, counts_as), health=_column(rows, "health"), shield=_column(rows, "shield"),
    energy=_column(rows, "energy"), armour=_column(rows, "armor"),
    sight=_column(rows, "sight") * np.float32(tier.sight_scale),
    speed=_column(rows, "speed") * np.float32(LOOPS_PER_TICK / LOOPS_PER_SECOND),
    radius=_column(rows, "radius"),
    attributes=np.sum([_has(rows, name).astype(np.int32) << i
                       for i, name in enumerate(ATTRIBUTES)], axis=0, dtype=np.int32),
    flying=_column(rows, "flying", bool), ground=ground, air=air, line=_column(rows, "line", bool),
    splash=_column(rows, "splash"), structure=structure, worker=worker,
    fighter=((ground.damage > 0) | (air.damage > 0)) & ~worker, townhall=townhall,
    gas=_is_one_of(rows, "name", _GAS_STRUCTURES), larvae=larvae[counts_as], counts_as=counts_as,
    add_on=np.array([NO_ADD_ON, *(_add_on(row["name"]) for row in rows)], np.int32),
    cloaked=_is_one_of(rows, "name", _ALWAYS_CLOAKED), detects=_column(rows, "detection", bool),
    cargo_size=_column(rows, "cargo_size", np.int32),
    cargo_space=_column(rows, "cargo_space", np.int32),
    hallucinations=np.array([0, *(
      HALLUCINATIONS.get(row["name"], 0) * ("Sentry" in tier.types) for row in rows)], np.int32))


def make_upgrades(tier: Tier, types: Types) -> Upgrades:
  """Makes the effects of a tier's upgrades; a level adds to the levels before it."""
  rows = upgrade_rows(tier)
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
