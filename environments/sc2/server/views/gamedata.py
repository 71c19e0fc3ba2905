"""The game's data as the API lists it, made of Skirmish's tables and the vocabulary.

Types and abilities that Skirmish does not have are listed with their names and ids only, so that
clients can look them up.
"""

import functools

from starleague.agent import vocabulary
from starleague.environments.sc2.protocol import common_pb, data_pb, sc_pb
from starleague.environments.sc2.server.game import catalogue
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.environments.skirmish.rules.tables.unit_tables import Row, read_rows, unit_rows

_RACES = {"Terran": common_pb.Terran, "Protoss": common_pb.Protoss, "Zerg": common_pb.Zerg}
_ATTRIBUTES = dict(data_pb.Attribute.items())
_TARGETS = data_pb.AbilityData.Target
_MINERAL_FIELDS, _GEYSERS = ("MineralField", "MineralPatch"), ("Geyser",)
_EFFECTS = {2: ("GuardianShieldPersistent", constants.GUARD_RADIUS),
            6: ("ScannerSweep", constants.SCAN_RADIUS)}
# Types that the technology tree counts as another one.
_ALIASES = {
  "OrbitalCommand": "CommandCenter", "SiegeTankSieged": "SiegeTank", "Lair": "Hatchery",
  "WarpGate": "Gateway", "WarpPrismPhasing": "WarpPrism",
  **{f"{producer}{kind}": kind for kind in ("TechLab", "Reactor")
     for producer in ("Barracks", "Factory", "Starport")}}
_LARVA_SIGHT = 5.0
# Abilities of earlier versions of the game, which clients still look up, with their general ones.
_FORMER = {144: ("PointDefenseDrone", 0), 169: ("HunterSeekerMissile", 0),
           1974: ("MassRecall_MothershipCore", 3686), 2162: ("PhotonOvercharge", 0),
           3749: ("RepairDrone", 0)}
# Abilities that make types and upgrades whose name is not that of a general function.
_MADE_BY = {
  "SiegeTankSieged": 388, "VikingAssault": 403, "CommandCenterFlying": 417,
  "BarracksTechLab": 421, "BarracksReactor": 422, "BarracksFlying": 452,
  "FactoryTechLab": 454, "FactoryReactor": 455, "FactoryFlying": 485,
  "StarportTechLab": 487, "StarportReactor": 488, "StarportFlying": 518,
  "SupplyDepotLowered": 556, "Hellbat": 596, "BanelingBurrowed": 1374, "DroneBurrowed": 1378,
  "HydraliskBurrowed": 1382, "RoachBurrowed": 1386, "ZerglingBurrowed": 1390,
  "InfestedTerranBurrowed": 1394, "QueenBurrowed": 1433, "InfestorBurrowed": 1444,
  "UltraliskBurrowed": 1512, "OrbitalCommandFlying": 1522, "WarpPrismPhasing": 1528,
  "CreepTumorQueen": 1694, "SpineCrawlerUprooted": 1725, "SporeCrawlerUprooted": 1727,
  "CreepTumor": 1733, "NydusCanal": 1768, "SwarmHostBurrowed": 2014, "WidowMineBurrowed": 2095,
  "LurkerBurrowed": 2108, "RavagerBurrowed": 2340, "ObserverSurveillanceMode": 3741,
  "OverseerOversightMode": 3743}
_RESEARCHED_BY = {
  "AnionPulseCrystals": 46, "TerranStructureArmor": 651, "LockOn": 769, "CloakingField": 790,
  "CorvidReactor": 793, "HyperflightRotors": 799, "AdrenalGlands": 1252,
  "CentrificalHooks": 1482, "WeaponRefit": 1532, "WarpGateResearch": 1568,
  "ResonatingGlaives": 1594}


def make_data(rules: tables.Rules, request: sc_pb.RequestData) -> sc_pb.ResponseData:
  """Returns the tables that a request names."""
  data = sc_pb.ResponseData()
  if request.ability_id:
    data.abilities.extend(_abilities(rules))
  if request.unit_type_id:
    data.units.extend(_units(rules))
  if request.upgrade_id:
    data.upgrades.extend(_upgrades(rules))
  if request.buff_id:
    data.buffs.extend(
      data_pb.BuffData(buff_id=int(i), name=name) for i, name in zip(
        vocabulary.BUFFS.ids[1:], vocabulary.BUFFS.names[1:], strict=True))
  if request.effect_id:
    data.effects.extend(data_pb.EffectData(
      effect_id=i, name=name, friendly_name=name, radius=radius)
      for i, (name, radius) in _EFFECTS.items())
  return data


def _target(functions: set[int]) -> int:
  """Returns the kind of target of an ability that names these dense functions."""
  kinds = {vocabulary.FUNCTION_TYPES[i] for i in functions}
  point, unit = "raw_cmd_pt" in kinds, "raw_cmd_unit" in kinds
  if point and unit:
    return _TARGETS.PointOrUnit
  if point and "raw_cmd" in kinds:
    return _TARGETS.PointOrNone
  return _TARGETS.Point if point else _TARGETS.Unit if unit else getattr(_TARGETS, "None")


@functools.cache
def _abilities(rules: tables.Rules) -> list[data_pb.AbilityData]:
  """All abilities of the vocabulary; those of the tier are available."""
  known = catalogue.make_catalogue(rules).functions
  found = [data_pb.AbilityData(ability_id=0)]  # as in the game; clients index abilities by id
  found += [data_pb.AbilityData(
    ability_id=ability, link_name=name.replace("_", ""), button_name=name, friendly_name=name,
    remaps_to_ability_id=general or None) for ability, (name, general) in _FORMER.items()]
  for ability, functions in sorted(vocabulary.ABILITIES.items()):
    if not ability:  # no_op
      continue
    name = vocabulary.FUNCTIONS.names[min(functions)]
    stem = name.rsplit("_", 1)[0] if "_" in name else name
    row = data_pb.AbilityData(
      ability_id=ability, link_name=stem.replace("_", ""), link_index=0, button_name=stem,
      friendly_name=stem.replace("_", " "), available=True,
      target=_target(functions),  # type: ignore[arg-type]
      allow_minimap=_target(functions) != getattr(_TARGETS, "None"),
      is_building=stem.startswith("Build_"))
    general = int(vocabulary.FUNCTION_ABILITIES[min(functions)])
    if general != ability:
      row.remaps_to_ability_id = general
    built = [rules.functions.product[c] for c in known.get(ability, ())
             if rules.functions.kind[c] == constants.BUILDING]
    if built:
      row.footprint_radius = float(rules.types.radius[built[0]])
    found.append(row)
  return found


@functools.cache
def _creators() -> dict[str, int]:
  """Ability ids by the name of what they make, from the names of the vocabulary's functions."""
  found: dict[str, int] = {}
  for i, name in enumerate(vocabulary.FUNCTIONS.names):
    verb, _, rest = name.partition("_")
    if verb in ("Train", "Build", "Morph", "Research"):
      found.setdefault(rest.rsplit("_", 1)[0], min(catalogue.ids_of(i)))
  return found


@functools.cache
def _units(rules: tables.Rules) -> list[data_pb.UnitTypeData]:
  """All unit types of the vocabulary, and the larva."""
  rows = {int(row["id"]): row for row in unit_rows(rules.tier)}
  found = []
  names = dict(zip(vocabulary.UNIT_TYPES.ids[1:].tolist(), vocabulary.UNIT_TYPES.names[1:],
                   strict=True))
  for unit_id, name in sorted(({catalogue.LARVA: catalogue.LARVA_NAME} | names).items()):
    data = data_pb.UnitTypeData(
      unit_id=unit_id, name=name, available=True,
      has_minerals=any(part in name for part in _MINERAL_FIELDS),
      has_vespene=any(part in name for part in _GEYSERS))
    if unit_id == catalogue.LARVA:
      data.race, data.sight_range = common_pb.Zerg, _LARVA_SIGHT
    elif unit_id in rows:
      _describe(rules, data, rows[unit_id], 1 + list(rows).index(unit_id))
    if not data.ability_id:
      data.ability_id = _MADE_BY.get(name) or _creators().get(name, 0)
    found.append(data)
  return found


def _describe(rules: tables.Rules, data: data_pb.UnitTypeData, row: Row, kind: int) -> None:
  """Adds the statistics of a local type, in the API's conventions."""
  products, types = rules.products, rules.types
  data.mineral_cost, data.vespene_cost = _costs(rules, kind)
  data.cargo_size = int(types.cargo_size[kind])
  data.food_required = float(types.takes_food[kind]) / 2
  data.food_provided = float(types.gives_food[kind]) / 2
  if products.function[kind]:
    data.ability_id = catalogue.make_catalogue(rules).product_ability(kind)
  data.race = _RACES[row["race"]]  # type: ignore[assignment]
  data.build_time = float(products.loops[kind])
  data.sight_range, data.armor = float(types.sight[kind]), float(types.armour[kind])
  data.movement_speed = float(types.speed[kind]) * (
    constants.LOOPS_PER_SECOND / constants.LOOPS_PER_TICK)
  data.attributes.extend(_ATTRIBUTES[name] for name in row["attributes"].split()
                         if name in _ATTRIBUTES)
  attached = int(products.add_on[kind])
  required = attached or int(products.requirement[kind])
  data.require_attached = bool(attached)
  if required:
    data.tech_requirement = int(vocabulary.UNIT_TYPES.ids[types.index[required]])
  alias = _ALIASES.get(types.names[kind])
  if alias:
    original = int(vocabulary.UNIT_TYPES.ids[vocabulary.UNIT_TYPES.index(alias)])
    if types.structure[kind]:
      data.tech_alias.append(original)
    else:
      data.unit_alias = original
  data.weapons.extend(_weapons(rules, kind))


def _costs(rules: tables.Rules, kind: int) -> tuple[int, int]:
  """Minerals and vespene of a local type and, as in the API, of all that it morphed from."""
  products, types = rules.products, rules.types
  brood = max(int(products.brood[kind]), 1)
  minerals, vespene = int(products.minerals[kind]) // brood, int(products.vespene[kind]) // brood
  consumes = types.structure[kind] and types.race[kind] == constants.RACES.index("Zerg")
  if consumes or types.counts_as[kind] != kind:
    before = _costs(rules, int(products.producer[kind]))
    return minerals + before[0], vespene + before[1]
  return minerals, vespene


def _weapons(rules: tables.Rules, kind: int) -> list[data_pb.Weapon]:
  """The weapons of a local type."""
  found = []
  for weapon, target in ((rules.types.ground, data_pb.Weapon.Ground),
                         (rules.types.air, data_pb.Weapon.Air)):
    if weapon.damage[kind] > 0:
      row = data_pb.Weapon(
        type=target, damage=float(weapon.damage[kind]), attacks=int(weapon.attacks[kind]),
        range=float(weapon.range[kind]),
        speed=float(weapon.cooldown[kind]) / constants.LOOPS_PER_SECOND)
      if weapon.bonus[kind] > 0 and weapon.against[kind] >= 0:
        row.damage_bonus.add(
          attribute=_ATTRIBUTES[constants.ATTRIBUTES[weapon.against[kind]]],
          bonus=float(weapon.bonus[kind]))
      found.append(row)
  return found


@functools.cache
def _upgrades(rules: tables.Rules) -> list[data_pb.UpgradeData]:
  """All upgrades of the vocabulary."""
  local = {int(vocabulary.UPGRADES.ids[i]): u for u, i in enumerate(rules.upgrades.index)}
  first = len(rules.types.names)
  lines = {int(row["id"]): row["name"] for row in read_rows("upgrades.csv")}
  found = []
  for upgrade_id, name in zip(vocabulary.UPGRADES.ids[1:].tolist(), vocabulary.UPGRADES.names[1:],
                              strict=True):
    data = data_pb.UpgradeData(upgrade_id=upgrade_id, name=name)
    if upgrade_id in local:
      product = first + local[upgrade_id]
      data.mineral_cost = int(rules.products.minerals[product])
      data.vespene_cost = int(rules.products.vespene[product])
      data.research_time = float(rules.products.loops[product])
      data.ability_id = catalogue.make_catalogue(rules).product_ability(product)
    else:
      data.ability_id = _RESEARCHED_BY.get(name) or _creators().get(lines.get(upgrade_id, name), 0)
    found.append(data)
  return found

