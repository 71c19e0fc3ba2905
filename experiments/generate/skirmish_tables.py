"""Writes Skirmish's tables, `units.csv` and `upgrades.csv`, from a technology tree.

  python -m starleague.experiments.generate.skirmish_tables --statistics data.json.xz

The numbers are StarCraft II's as python-sc2 publishes them in its `data.json` (MIT licence). All
deviations of Skirmish are listed here, in OVERRIDES and the tables below it. The CSV files are
committed, so the game does not need the source; a test compares them with it where it is available.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

from absl import flags

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.tables import tables
from starleague.experiments.generate.vocabulary import (
  TechnologyTreeError,
  read_tree,
  write_csv,
)
from starleague.experiments.run.config import entry
from starleague.experiments.run.config import flags as run_flags

_STATISTICS = flags.DEFINE_string(
  "statistics", None, "data.json or data.json.xz of the technology tree.")
_FOLDER = flags.DEFINE_string(
  "folder", str(pathlib.Path(tables.__file__).parent), "Folder the tables are written to.")

UNITS = {
  "Terran": (
    "SCV", "Marine", "Marauder", "Reaper", "Hellion", "SiegeTank", "SiegeTankSieged", "Medivac",
    "VikingFighter", "Banshee", "CommandCenter", "OrbitalCommand", "SupplyDepot", "Refinery",
    "Barracks", "Factory", "Starport", "EngineeringBay", "Bunker", "MissileTurret", "Armory"),
  "Protoss": (
    "Probe", "Zealot", "Stalker", "Immortal", "VoidRay", "Phoenix", "Nexus", "Pylon",
    "Assimilator", "Gateway", "CyberneticsCore", "RoboticsFacility", "Stargate", "Forge",
    "PhotonCannon"),
  "Zerg": (
    "Drone", "Zergling", "Roach", "Hydralisk", "Mutalisk", "Queen", "Overlord", "Hatchery",
    "Extractor", "SpawningPool", "RoachWarren", "HydraliskDen", "Spire", "EvolutionChamber",
    "SpineCrawler", "SporeCrawler"),
}
# Types of tiers with technology only.
TECHNOLOGY = {
  "Terran": (
    "BarracksTechLab", "FactoryTechLab", "StarportTechLab", "BarracksReactor", "FactoryReactor",
    "StarportReactor"),
  "Protoss": ("Observer", "DarkTemplar", "TwilightCouncil", "DarkShrine", "WarpGate", "WarpPrism",
              "WarpPrismPhasing", "Sentry"),
  "Zerg": ("Lair",),
}
WORKERS = {"Terran": "SCV", "Protoss": "Probe", "Zerg": "Drone"}
TRAINERS = {
  "SCV": "CommandCenter", "Marine": "Barracks", "Marauder": "Barracks", "Reaper": "Barracks",
  "Hellion": "Factory", "SiegeTank": "Factory", "Medivac": "Starport",
  "VikingFighter": "Starport", "Banshee": "Starport", "Probe": "Nexus", "Zealot": "Gateway",
  "Stalker": "Gateway", "Immortal": "RoboticsFacility", "VoidRay": "Stargate",
  "Phoenix": "Stargate", "Observer": "RoboticsFacility", "DarkTemplar": "Gateway",
  "WarpPrism": "RoboticsFacility", "Sentry": "Gateway",
  "Queen": "Hatchery",
  **dict.fromkeys(("Drone", "Zergling", "Roach", "Hydralisk", "Mutalisk", "Overlord"), "Hatchery")}
LARVAE_BECOME = ("Drone", "Zergling", "Roach", "Hydralisk", "Mutalisk", "Overlord")
MORPHS = {  # by type, the type it morphs from and the function
  "OrbitalCommand": ("CommandCenter", "Morph_OrbitalCommand_quick"),
  "SiegeTankSieged": ("SiegeTank", "Morph_SiegeMode_quick"),
  "Lair": ("Hatchery", "Morph_Lair_quick"),
  "WarpGate": ("Gateway", "Morph_WarpGate_quick"),
  "WarpPrismPhasing": ("WarpPrism", "Morph_WarpPrismPhasingMode_quick"),
  **{f"{producer}{name}": (producer, f"Build_{name}_quick")
     for name in ("TechLab", "Reactor") for producer in ("Barracks", "Factory", "Starport")},
}

# Deviations from the real game, and numbers that the source lacks.
OVERRIDES: Mapping[str, Mapping[str, object]] = {
  # The source lacks the beam; damage to armoured targets is that of patch 4.10.
  "VoidRay": {"ground": (6, 1, 4, "Armored", 6, 0.5), "air": (6, 1, 4, "Armored", 6, 0.5)},
  # The source lacks the beam of Sentries, too.
  "Sentry": {"ground": (6, 1, 0, "", 5, 1), "air": (6, 1, 0, "", 5, 1), "warp_cooldown": 512},
  # A bunker has a crew: it fires like three Marines, with one more range.
  "Bunker": {"ground": (6, 3, 0, "", 6, 0.86), "air": (6, 3, 0, "", 6, 0.86)},
  # The price of the morph alone.
  "OrbitalCommand": {"minerals": 150}, "Lair": {"minerals": 150}, "WarpGate": {"minerals": 0},
  # A larva gives two, which are paid, fed and spawned together.
  "Zergling": {"minerals": 50, "brood": 2},
  # In place of the Lair and of add-ons, in tiers without technology.
  "HydraliskDen": {"plain_requirement": "SpawningPool"},
  "Spire": {"plain_requirement": "HydraliskDen"},
  "SiegeTank": {"plain_requirement": "EngineeringBay"}, "Banshee": {"plain_requirement": "Armory"},
  # A circle of the real radius, 1.125, would overlap the structure that has the add-on.
  **dict.fromkeys(TECHNOLOGY["Terran"], {"radius": 0.7}),
  "Hellion": {"line": 1},
  "SiegeTankSieged": {"splash": 1.25},
  # The source lacks the cooldowns of warp gates. 28, 32 and 45 s at "normal" speed have not
  # been compared with another one.
  "Zealot": {"warp_cooldown": 448}, "Stalker": {"warp_cooldown": 512},
  "DarkTemplar": {"warp_cooldown": 720},
}

# Line of upgrades, its producer, the requirement from the second level on, effect, amounts by type.
LEVELS = (
  ("TerranInfantryWeapons", "EngineeringBay", "Armory", "damage",
   "Marine:1 Marauder:1 Reaper:1 Bunker:1"),
  ("TerranInfantryArmors", "EngineeringBay", "Armory", "armour",
   "SCV:1 Marine:1 Marauder:1 Reaper:1"),
  ("TerranVehicleWeapons", "Armory", "Armory", "damage",
   "Hellion:1 SiegeTank:2 SiegeTankSieged:4"),
  ("TerranShipWeapons", "Armory", "Armory", "damage", "VikingFighter:1 Banshee:1"),
  ("TerranVehicleAndShipArmors", "Armory", "Armory", "armour",
   "Hellion:1 SiegeTank:1 SiegeTankSieged:1 Medivac:1 VikingFighter:1 Banshee:1"),
  ("ProtossGroundWeapons", "Forge", "Forge", "damage",
   "Zealot:1 Stalker:1 Immortal:2 DarkTemplar:5 Sentry:1"),
  ("ProtossGroundArmors", "Forge", "Forge", "armour",
   "Probe:1 Zealot:1 Stalker:1 Immortal:1 DarkTemplar:1 Sentry:1"),
  ("ProtossShields", "Forge", "Forge", "shield",
   " ".join(f"{name}:1" for name in (*UNITS["Protoss"], *TECHNOLOGY["Protoss"]))),
  ("ProtossAirWeapons", "CyberneticsCore", "Stargate", "damage", "VoidRay:1 Phoenix:1"),
  ("ProtossAirArmors", "CyberneticsCore", "Stargate", "armour",
   "VoidRay:1 Phoenix:1 Observer:1 WarpPrism:1 WarpPrismPhasing:1"),
  ("ZergMeleeWeapons", "EvolutionChamber", "EvolutionChamber", "damage", "Zergling:1"),
  ("ZergMissileWeapons", "EvolutionChamber", "EvolutionChamber", "damage",
   "Roach:2 Hydralisk:1 Queen:1"),
  ("ZergGroundArmors", "EvolutionChamber", "EvolutionChamber", "armour",
   "Drone:1 Zergling:1 Roach:1 Hydralisk:1 Queen:1"),
  ("ZergFlyerWeapons", "Spire", "Spire", "damage", "Mutalisk:1"),
  ("ZergFlyerArmors", "Spire", "Spire", "armour", "Mutalisk:1 Overlord:1"),
)
SINGLE = (
  ("Stimpack", "Barracks", "", "stim", "Marine:1 Marauder:1"),
  ("CombatShield", "Barracks", "", "health", "Marine:10"),
  ("InfernalPreigniter", "Factory", "Armory", "bonus", "Hellion:5"),
  ("CloakingField", "StarportTechLab", "", "", ""),
  ("WarpGateResearch", "CyberneticsCore", "", "", ""),
  ("MetabolicBoost", "SpawningPool", "", "speed", "Zergling:1.745"),
  ("GlialReconstitution", "RoachWarren", "HydraliskDen", "speed", "Roach:0.75"),
  ("GroovedSpines", "HydraliskDen", "", "range", "Hydralisk:1"),
  ("MuscularAugments", "HydraliskDen", "", "speed", "Hydralisk:0.79"),
)
# Producers and requirements of tiers with technology, where they differ.
TECHNOLOGY_PRODUCERS = {
  "Stimpack": "BarracksTechLab", "CombatShield": "BarracksTechLab",
  "InfernalPreigniter": "FactoryTechLab"}
TECHNOLOGY_REQUIREMENTS = {
  "GlialReconstitution": "Lair",
  # From the second level on. The real game's third level requires a Hive.
  **dict.fromkeys((line for line, *_ in LEVELS if line.startswith("Zerg")), "Lair")}
# Upgrades of tiers with technology only.
TECHNOLOGY_UPGRADES = ("WarpGateResearch",)
LEVELLED = frozenset(line for line, *_ in LEVELS)
_SOURCE_NAMES = {
  "InfernalPreigniter": "HighCapacityBarrels", "CloakingField": "BansheeCloak",
  "CombatShield": "ShieldWall",
  "MetabolicBoost": "zerglingmovementspeed", "GroovedSpines": "EvolveGroovedSpines",
  "MuscularAugments": "EvolveMuscularAugments"}
_FUNCTIONS = {
  "TerranInfantryArmors": "TerranInfantryArmor", "ProtossGroundArmors": "ProtossGroundArmor",
  "ProtossAirArmors": "ProtossAirArmor", "ZergGroundArmors": "ZergGroundArmor",
  "ZergFlyerArmors": "ZergFlyerArmor", "ZergFlyerWeapons": "ZergFlyerAttack",
  "TerranVehicleAndShipArmors": "TerranVehicleAndShipPlating",
  "CloakingField": "BansheeCloakingField", "WarpGateResearch": "WarpGate",
  "GlialReconstitution": "GlialRegeneration", "MetabolicBoost": "ZerglingMetabolicBoost"}

UNIT_COLUMNS = (
  "id", "name", "race", "minerals", "vespene", "food", "time", "health", "shield", "energy",
  "armor", "sight", "speed", "radius", "attributes", "flying",
  *(f"{target}_{column}" for target in ("ground", "air")
    for column in ("damage", "attacks", "bonus", "bonus_against", "range", "cooldown")),
  "line", "splash", "brood", "larva", "function", "producer", "requirement",
  "add_on", "upgrade", "warp_cooldown", "detection", "cargo_size", "cargo_space",
  "plain_requirement", "technology")
UPGRADE_COLUMNS = ("id", "name", "race", "line", "level", "minerals", "vespene", "time",
                   "function", "producer", "requirement", "effect", "amounts",
                   "plain_producer", "plain_requirement")


def _number(value: Any) -> str:
  return f"{round(float(value), 4):g}"


def _weapon(unit: Mapping, target: str) -> tuple:
  """damage, attacks, bonus, bonus_against, range, cooldown; zeros where there is none."""
  for weapon in unit["weapons"]:
    if weapon["target_type"] in (target, "Any"):
      bonus = weapon["bonuses"][0] if weapon["bonuses"] else {"damage": 0, "against": ""}
      return (weapon["damage_per_hit"], weapon["attacks"], bonus["damage"], bonus["against"],
              round(weapon["range"], 1), round(weapon["cooldown"], 2))
  return (0, 0, 0, "", 0, 0)


def _required(tree: Mapping, maker: str, product: int, what: str) -> int:
  """The id of the "building", "addon" or "upgrade" that a product of `maker` requires, or 0."""
  makes = {ability["id"] for ability in tree["Ability"] if isinstance(ability["target"], dict)
           and any(way.get("produces") == product for way in ability["target"].values())}
  entries = next(unit for unit in tree["Unit"] if unit["name"] == maker)["abilities"]
  needed = [requirement[what] for entry in entries if entry["ability"] in makes
            for requirement in entry.get("requirements", ()) if what in requirement]
  return needed[0] if needed else 0


def unit_rows(tree: Mapping) -> list[list]:
  """Makes the rows of units.csv, by race.

  Raises:
    TechnologyTreeError: the tree lacks a unit; names it.
  """
  units = {unit["name"]: unit for unit in tree["Unit"]}
  for name in ("Larva", *(name for race in UNITS for name in (*UNITS[race], *TECHNOLOGY[race]))):
    if name not in units:
      raise TechnologyTreeError(f"technology tree: expected the unit {name!r}, found none; "
                                "download python-sc2's data.json")
  rows = []
  for race, names in UNITS.items():
    for name in (*names, *TECHNOLOGY[race]):
      unit, changed = units[name], OVERRIDES.get(name, {})
      builder = WORKERS[race] if unit["is_structure"] else TRAINERS.get(name, "")
      producer, morph = MORPHS.get(name, (builder, ""))
      source = "Larva" if name in LARVAE_BECOME else producer
      requirement = _required(tree, source, unit["id"], "building")
      plain = (units[str(changed["plain_requirement"])]["id"] if "plain_requirement" in changed
               else requirement)
      # The source names the kind of add-on; types are named after their producer.
      add_on = _required(tree, source, unit["id"], "addon")
      equipped = units[f"{producer}TechLab"]["id"] if add_on else 0
      function = morph or next(
        f for f in (f"Train_{name}_quick", f"Build_{name}_pt", f"Build_{name}_unit")
        if f in vocabulary.FUNCTIONS.names)
      # The source includes the Drone in the price of a structure.
      drone = units["Drone"]["minerals"] if builder == "Drone" else 0
      weapons = [changed.get(target.lower(), _weapon(unit, target)) for target in ("Ground", "Air")]
      rows.append([
        unit["id"], name, race, changed.get("minerals", unit["minerals"] - drone), unit["gas"],
        _number(unit["supply"]), _number(round(unit["time"])), _number(unit["max_health"]),
        _number(unit.get("max_shield", 0)), _number(unit.get("max_energy", 0)),
        _number(unit["armor"]), _number(unit["sight"]), _number(unit.get("speed") or 0),
        _number(changed.get("radius", unit["radius"])), " ".join(unit["attributes"]),
        int(unit["is_flying"]),
        *(part if isinstance(part, str) else _number(part)
          for weapon in weapons for part in weapon),  # type: ignore[attr-defined]
        changed.get("line", 0), changed.get("splash", 0), changed.get("brood", 1),
        int(name in LARVAE_BECOME), function, units[producer]["id"], requirement, equipped,
        _required(tree, source, unit["id"], "upgrade"), changed.get("warp_cooldown", 0),
        _number(unit.get("detection_range", 0)), unit.get("cargo_size", 0),
        0 if unit["is_structure"] else unit.get("cargo_capacity", 0), plain,
        int(name in TECHNOLOGY[race])])
  return rows


def upgrade_rows(tree: Mapping) -> list[list]:
  """Makes the rows of upgrades.csv, the levels of each line in order.

  Raises:
    TechnologyTreeError: the tree lacks an upgrade; names it.
  """
  known = {upgrade["name"]: upgrade for upgrade in tree["Upgrade"]}
  ids = {unit["name"]: unit["id"] for unit in tree["Unit"]}
  race_of = {name: race for race, names in UNITS.items() for name in (*names, *TECHNOLOGY[race])}
  rows = []
  for line, producer, requirement, effect, amounts in (*LEVELS, *SINGLE):
    names = [f"{line}Level{level}" for level in (1, 2, 3)] if line in LEVELLED else [line]
    for level, name in enumerate(names, 1):
      source = _SOURCE_NAMES.get(name, name)
      if source not in known:
        raise TechnologyTreeError(f"technology tree: expected the upgrade {source!r}, found none; "
                                  "download python-sc2's data.json")
      upgrade = known[source]
      cost = upgrade["cost"]
      later = level > 1 or len(names) == 1
      plain = requirement if later else ""
      needs = TECHNOLOGY_REQUIREMENTS.get(line, requirement) if later else ""
      rows.append([
        int(vocabulary.UPGRADES.ids[vocabulary.UPGRADES.index(name)]), name, race_of[producer],
        line, level, cost["minerals"], cost["gas"], _number(cost["time"]),
        f"Research_{_FUNCTIONS.get(line, line)}_quick",
        ids[TECHNOLOGY_PRODUCERS.get(line, producer)], ids[needs] if needs else 0, effect, amounts,
        0 if line in TECHNOLOGY_UPGRADES else ids[producer], ids[plain] if plain else 0])
  return rows


def main() -> None:
  tree = read_tree(pathlib.Path(run_flags.given(_STATISTICS)))
  folder = pathlib.Path(_FOLDER.value)
  units, upgrades = unit_rows(tree), upgrade_rows(tree)
  write_csv(folder / "units.csv", UNIT_COLUMNS, units)
  write_csv(folder / "upgrades.csv", UPGRADE_COLUMNS, upgrades)


if __name__ == "__main__":
  entry.run(main, required=["statistics"])
