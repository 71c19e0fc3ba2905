"""Tables of products (cost, producer, requirement) and of functions (verb, arguments, users).

A product is a local type or, from Y on, a level of an upgrade. A function has a local index in its
tier, 0 for `no_op`.
"""

import dataclasses

import numpy as np

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.tables import tiers
from starleague.environments.skirmish.rules.tables.constants import (
  ABILITY,
  ATTACHING,
  BOOST,
  BUILD,
  BUILDING,
  CANCEL,
  CANCEL_LAST,
  CLOAK,
  COMMAND,
  DECLOAK,
  FORCE_FIELD,
  GATHER,
  GUARD,
  HALLUCINATE,
  IDLE,
  INJECT,
  LOAD,
  NO_ABILITY,
  OTHER,
  PHASE,
  RALLY,
  RETURN,
  SCAN,
  SIEGE,
  STIM,
  TRAINING,
  UNLOAD,
  UNPHASE,
  UNSIEGE,
  WARPING,
)
from starleague.environments.skirmish.rules.tables.tiers import Tier
from starleague.environments.skirmish.rules.tables.unit_tables import Types, unit_rows, upgrade_rows

# Types that use an ability.
_ABILITY_USERS = {
  STIM: ("Marine", "Marauder"), SIEGE: ("SiegeTank",), UNSIEGE: ("SiegeTankSieged",),
  SCAN: ("OrbitalCommand",), INJECT: ("Queen",), BOOST: ("Nexus",),
  CLOAK: ("Banshee",), DECLOAK: ("Banshee",), PHASE: ("WarpPrism",),
  UNPHASE: ("WarpPrismPhasing",),
  **dict.fromkeys((GUARD, FORCE_FIELD, HALLUCINATE), ("Sentry",))}
MORPHED_AT_ONCE = ("SiegeTankSieged", "WarpPrismPhasing")  # by an ability, without a queue


@dataclasses.dataclass(frozen=True, eq=False)
class Products:
  """Products [P]: local types, then levels of upgrades; row 0 is none."""

  minerals: np.ndarray  # int32
  vespene: np.ndarray  # int32
  takes_food: np.ndarray  # int32, in halves, of the whole brood
  loops: np.ndarray  # int32: production time at the tier's tempo
  brood: np.ndarray  # int32: units that one product spawns, 0 for structures and upgrades
  larva: np.ndarray  # bool: costs a larva
  producer: np.ndarray  # int32: the local type that makes it
  requirement: np.ndarray  # int32: the local type that must stand first; 0 is none
  add_on: np.ndarray  # int32: the local type of add-on that its producer must have; 0 is none
  upgrade: np.ndarray  # int32: the level of an upgrade that must be researched first; 0 is none
  warp_cooldown: np.ndarray  # int32: game loops between warp-ins of a gate, 0 for the others
  level: np.ndarray  # int32: level in its line of upgrades, from 1; 0 for types
  function: np.ndarray  # int32: the local function that orders it


@dataclasses.dataclass(frozen=True, eq=False)
class Functions:
  """Functions of a tier, by local function [C]; row 0 is no_op."""

  names: tuple[str, ...]
  index: np.ndarray  # dense indices of vocabulary.FUNCTIONS
  local: np.ndarray  # [A] int32: local index of a dense one, 0 if the tier does not have it
  kind: np.ndarray  # OTHER, COMMAND, BUILDING, TRAINING, ABILITY, ATTACHING or WARPING
  verb: np.ndarray
  ability: np.ndarray
  product: np.ndarray  # the first product that it makes, 0 for none
  levels: np.ndarray  # number of levels, or of types by producer, that it makes
  capable: np.ndarray  # [C, Y] bool: types that can execute it
  takes_point: np.ndarray  # bool
  takes_unit: np.ndarray  # bool
  hallucination: np.ndarray  # int32: the local type of the hallucinations that it makes, or 0


def _products_by_function(tier: Tier, types: Types) -> dict[str, list[int]]:
  """The products of each function that makes something: levels, or types by producer."""
  made: dict[str, list[int]] = {}
  for i, row in enumerate(unit_rows(tier), 1):
    if row["name"] not in MORPHED_AT_ONCE:
      made.setdefault(row["function"], []).append(i)
  for u, row in enumerate(upgrade_rows(tier)):
    made.setdefault(row["function"], []).append(len(types.names) + u)
  return made


def _warped(tier: Tier) -> dict[str, int]:
  """The types that warp gates make, by function; a Gateway makes them with another one."""
  return {f"TrainWarp_{row['name']}_pt": i for i, row in enumerate(unit_rows(tier), 1)
          if int(row["warp_cooldown"])}


def _is_unit(types: Types, size: int) -> np.ndarray:
  """A mask of units among `size` products: no structures, upgrades or instant morphs."""
  unit = np.arange(size) < len(types.names)
  unit[:len(types.names)] &= ~types.structure & ~np.isin(types.names, MORPHED_AT_ONCE)
  unit[0] = False
  return unit


def make_products(tier: Tier, types: Types) -> Products:
  """Makes the prices, times and requirements of everything that a tier's functions make."""
  units, upgrades = unit_rows(tier), upgrade_rows(tier)
  rows: list[dict[str, str]] = [{}, *units, *upgrades]
  local = {int(row["id"]): i for i, row in enumerate(units, 1)}
  y = len(types.names)
  levels = {int(row["id"]): y + u for u, row in enumerate(upgrades)}

  def column(name):
    return np.array([float(row.get(name, 0) or 0) for row in rows])

  def related(name):
    return np.array([local.get(int(row.get(name, 0)), 0) for row in rows], np.int32)

  brood = np.where(_is_unit(types, len(rows)), column("brood"), 0).astype(np.int32)
  minerals, vespene = column("minerals"), column("vespene")
  if tier.minerals_only:
    minerals, vespene = minerals + vespene, np.zeros_like(vespene)
  takes_food = np.zeros(len(rows), np.int32)
  takes_food[:y] = types.takes_food * brood[:y]
  function = np.zeros(len(rows), np.int32)
  made = _products_by_function(tier, types)
  for c, products in enumerate(made.values(), 1 + len(tier.commands)):
    function[products] = c
  return Products(
    minerals=minerals.astype(np.int32), vespene=vespene.astype(np.int32), takes_food=takes_food,
    loops=_loops(tier, column("time")), brood=brood,
    larva=column("larva").astype(bool), producer=related("producer"),
    requirement=related("requirement"), add_on=related("add_on"),
    upgrade=np.array([levels.get(int(row.get("upgrade", 0)), 0) for row in rows], np.int32),
    warp_cooldown=_loops(tier, column("warp_cooldown")),
    level=column("level").astype(np.int32), function=function)


def _loops(tier: Tier, time: np.ndarray) -> np.ndarray:
  """Game loops of times in the real game, at the tier's tempo."""
  return np.ceil(time / tier.tempo).astype(np.int32)


def make_functions(tier: Tier, types: Types, products: Products) -> Functions:
  """Makes the functions of a tier: no_op, its commands, then the functions that make products."""
  made, warped = _products_by_function(tier, types), _warped(tier)
  made |= {name: [product] for name, product in warped.items()}
  names, first = ("no_op", *tier.commands, *made), 1 + len(tier.commands)
  index = np.array([vocabulary.FUNCTIONS.index(name) for name in names], np.int32)
  local = np.zeros(vocabulary.NUM_FUNCTIONS, np.int32)
  local[index] = np.arange(len(names))
  product = np.array([0] * first + [levels[0] for levels in made.values()], np.int32)
  # A structure that another structure morphs into is made in a queue, as units are.
  built = np.array([p < len(types.names) and bool(types.structure[p]) for p in product])
  built &= types.worker[products.producer[product]]
  kind, verb = np.where(built, BUILDING, TRAINING), np.where(built, BUILD, IDLE)
  kind[types.add_on[np.where(product < len(types.names), product, 0)] > 0] = ATTACHING
  kind[np.isin(names, list(warped))] = WARPING
  kind[:first] = [OTHER, *(COMMAND if name in tiers.COMMANDS else ABILITY
                           for name in tier.commands)]
  verb[:first] = [IDLE, *(tiers.COMMANDS.get(name, IDLE) for name in tier.commands)]
  ability = np.array([tiers.ABILITIES.get(name, NO_ABILITY) for name in names])
  capable = _capable(names, types, products, product)
  arguments = vocabulary.ARGUMENT_TABLE[index]
  return Functions(
    names=names, index=index, local=local, kind=kind.astype(np.int32), verb=verb.astype(np.int32),
    ability=ability.astype(np.int32), product=product,
    levels=np.array([0] * first + [len(levels) for levels in made.values()], np.int32),
    capable=capable & vocabulary.EXECUTORS[index][:, types.index], takes_point=arguments[:, 6],
    takes_unit=arguments[:, 5], hallucination=np.array([
      types.local(tiers.hallucinated(name)) if ability[c] == HALLUCINATE else 0
      for c, name in enumerate(names)], np.int32))


def _capable(names: tuple[str, ...], types: Types, products: Products,
             product: np.ndarray) -> np.ndarray:
  """The types that can execute each function: [C, Y] bool.

  Args:
    names: [C].
    types: of the tier.
    products: of the tier.
    product: [C], the first product of each function, 0 for none.
  """
  y = len(types.names)
  capable = np.zeros((len(names), y), bool)
  trainers = np.zeros(y, bool)
  trainers[products.producer[_is_unit(types, len(products.producer))]] = True
  for c, name in enumerate(names):
    if product[c]:
      capable[c, products.producer[products.function == c]] = True
      capable[c, types.warp_gate] |= products.function[product[c]] != c
    elif name in tiers.COMMANDS:
      capable[c] = _capable_of_command(name, types, trainers)
    elif name in tiers.ABILITIES:
      capable[c] = _capable_of_ability(name, types, products, trainers)
  # A morphed structure keeps the functions of its original, except that it cannot morph again. A
  # warp gate keeps none: it neither trains nor has a rally point.
  for morphed, original in enumerate(types.counts_as):
    if morphed not in (original, types.warp_gate):
      capable[:, morphed] |= capable[:, original] & (product != morphed)
  capable[:, 0] = False
  return capable


def _capable_of_command(name: str, types: Types, trainers: np.ndarray) -> np.ndarray:
  """The types that can execute a command: [Y] bool."""
  mobile = (types.speed > 0) & ~types.structure
  if tiers.COMMANDS[name] in (GATHER, RETURN):
    return types.worker
  if name == "Effect_Repair_unit":
    return np.array(types.names) == "SCV"
  carries = types.cargo_space > 0
  if tiers.COMMANDS[name] in (LOAD, UNLOAD):
    return carries
  if name in ("Stop_quick", "Attack_pt", "Attack_unit"):
    return mobile | np.isin(types.names, MORPHED_AT_ONCE)
  # For structures that train units, a smart command sets the rally point.
  smart = mobile | trainers if name in ("Smart_pt", "Smart_unit") else mobile
  return smart | carries if name == "Smart_unit" else smart


def _capable_of_ability(name: str, types: Types, products: Products,
                        trainers: np.ndarray) -> np.ndarray:
  """The types that can use an ability: [Y] bool."""
  y, ability = len(types.names), tiers.ABILITIES[name]
  capable = np.zeros(y, bool)
  if ability == RALLY:
    trains_workers = np.zeros(y, bool)
    trains_workers[products.producer[:y][types.worker]] = True
    return trains_workers if "Workers" in name else trainers & ~trains_workers
  if ability == CANCEL:
    return types.structure
  if ability == CANCEL_LAST:
    capable[products.producer[products.brood > 0]] = True
    capable[products.producer[y:]] = True
    return capable
  capable[[types.local(user) for user in _ABILITY_USERS.get(ability, ())]] = True
  return capable
