"""Plans of scripted players: build orders, armies, upgrades and the size of attacks.

A plan is for one race. The strategies have the usual names: a rush attacks early, a timing attacks
when its army is relatively strongest, and a macro player attacks later with more.
"""

import dataclasses

NEVER = 99  # as `Plan.attack`: more fighters than a player can have


@dataclasses.dataclass(frozen=True)
class Plan:
  """Goals of a player of one race. Counts include what is ordered or in production."""

  workers: int  # before the first building
  most_workers: int
  # In order: a type, and the numbers of workers and fighters needed first.
  buildings: tuple[tuple[str, int, int], ...] = ()
  attack: int = NEVER  # fighters at home that start an attack together
  reinforce: int = NEVER  # fighters at home that follow an attack under way
  army: tuple[tuple[str, float], ...] = ()  # share of the army's food by type
  upgrades: tuple[str, ...] = ()  # in order
  harass: bool = False  # attacks workers rather than the nearest structure
  greedy: bool = False  # fills its bases with workers before the next building


def _order(*items: str | tuple[str, int] | tuple[str, int, int],
           ) -> tuple[tuple[str, int, int], ...]:
  """A build order whose entries may leave out the numbers of fighters and workers."""
  filled = [(item,) if isinstance(item, str) else item for item in items]
  return tuple((*item, 0, 0)[:3] for item in filled)  # type: ignore[misc]


# Plans of `mini`.
IDLE = Plan(workers=0, most_workers=0)
PASSIVE = Plan(workers=12, most_workers=12)
RUSHER = Plan(
  workers=6, most_workers=7, buildings=_order("Barracks", "Barracks"), attack=4, reinforce=3,
  army=(("Marine", 1.0),))
BUILDER = Plan(
  workers=6, most_workers=7, buildings=_order("Barracks", "Factory"), attack=7, reinforce=3,
  army=(("Marine", 0.4), ("Marauder", 0.3), ("Hellion", 0.3)))
# Strategies of `mini`: found by tournaments against the two above, which they beat.
MINI_STRATEGIES = {
  "marines": Plan(
    workers=6, most_workers=6, buildings=_order("Barracks", "Barracks"), attack=6, reinforce=1,
    army=(("Marine", 1.0),), greedy=True),
  "pressure": Plan(
    workers=6, most_workers=6,
    buildings=_order("Barracks", "Barracks", ("Barracks", 0, 4), ("Barracks", 0, 8)), attack=3,
    reinforce=3, army=(("Marine", 0.7), ("Marauder", 0.3))),
  "bio": Plan(
    workers=7, most_workers=7, buildings=_order("Barracks", "Barracks"), attack=7, reinforce=3,
    army=(("Marine", 0.5), ("Marauder", 0.5))),
  "heavy": Plan(
    workers=6, most_workers=6, buildings=_order("Barracks", "Barracks"), attack=4, reinforce=1,
    army=(("Marine", 0.25), ("Marauder", 0.75)), greedy=True),
  "marauders": Plan(
    workers=7, most_workers=7, buildings=_order("Barracks", "Barracks", ("Barracks", 0, 7)),
    attack=5, reinforce=2, army=(("Marauder", 1.0),)),
  "factory": Plan(
    workers=6, most_workers=6, buildings=_order("Barracks", "Barracks", ("Factory", 0, 5)),
    attack=5, reinforce=2, army=(("Marine", 0.45), ("Marauder", 0.4), ("Hellion", 0.15))),
}

# Plans of the other tiers, by race.
ECONOMY = {
  "Terran": Plan(workers=8, most_workers=19, buildings=_order("Refinery", ("CommandCenter", 8))),
  "Protoss": Plan(workers=8, most_workers=19, buildings=_order("Assimilator", ("Nexus", 8))),
  "Zerg": Plan(workers=8, most_workers=19, buildings=_order("Extractor", ("Hatchery", 8))),
}
WEAK = {
  "Terran": Plan(workers=7, most_workers=8, buildings=_order("Barracks"), attack=6, reinforce=6,
                 army=(("Marine", 1.0),)),
  "Protoss": Plan(workers=7, most_workers=8, buildings=_order("Gateway"), attack=4, reinforce=4,
                  army=(("Zealot", 1.0),)),
  "Zerg": Plan(workers=7, most_workers=8, buildings=_order("SpawningPool"), attack=8, reinforce=8,
               army=(("Zergling", 1.0),)),
}
RUSH = {
  "Terran": Plan(
    workers=7, most_workers=8, buildings=_order("Barracks", "Barracks", ("Barracks", 0, 14)),
    attack=6, reinforce=4, army=(("Marine", 1.0),)),
  "Protoss": Plan(
    workers=7, most_workers=8,
    buildings=_order("Gateway", "Gateway", "Gateway", ("Gateway", 0, 8)),
    attack=3, reinforce=2, army=(("Zealot", 1.0),)),
  "Zerg": Plan(
    workers=7, most_workers=8, buildings=_order("SpawningPool", ("Hatchery", 0, 20)),
    attack=6, reinforce=4, army=(("Zergling", 1.0),)),
}
TIMING = {
  "Terran": Plan(
    workers=8, most_workers=19,
    buildings=_order("Barracks", "Refinery", "Barracks", "Barracks", ("EngineeringBay", 0, 8),
                     ("CommandCenter", 10, 14)), attack=12,
    reinforce=6, army=(("Marine", 0.6), ("Marauder", 0.4)), upgrades=("Stimpack", "CombatShield"),
    greedy=True),
  "Protoss": Plan(
    workers=8, most_workers=19,
    buildings=_order("Gateway", "Assimilator", "CyberneticsCore", "Gateway", "Gateway",
                     ("Nexus", 10, 10)), attack=8,
    reinforce=4, army=(("Zealot", 0.4), ("Stalker", 0.6)), greedy=True),
  "Zerg": Plan(
    workers=8, most_workers=19,
    buildings=_order("SpawningPool", "Extractor", "RoachWarren", ("Hatchery", 10)), attack=9,
    reinforce=5, army=(("Queen", 0.1), ("Roach", 0.45), ("Zergling", 0.45)), greedy=True),
}
DEFENCE = {
  "Terran": Plan(
    workers=6, most_workers=16, greedy=True,
    buildings=_order("Barracks", "Bunker", "Bunker", "Bunker", "Bunker", "Bunker",
                     ("CommandCenter", 8, 3),
                     "EngineeringBay", "MissileTurret", "Barracks", "Refinery"),
    attack=18, reinforce=9, army=(("Marine", 0.8), ("Marauder", 0.2))),
  "Protoss": Plan(
    workers=7, most_workers=16, greedy=True,
    buildings=_order("Forge", "PhotonCannon", "PhotonCannon", "PhotonCannon", "Gateway",
                     "PhotonCannon", "PhotonCannon", ("Nexus", 8, 1), "Assimilator",
                     "CyberneticsCore", "PhotonCannon", "Gateway"),
    attack=12, reinforce=6, army=(("Zealot", 0.5), ("Stalker", 0.5))),
  "Zerg": Plan(
    workers=7, most_workers=16, greedy=True,
    buildings=_order("SpawningPool", "SpineCrawler", "SpineCrawler", "SpineCrawler",
                     "SpineCrawler", "SpineCrawler", ("Hatchery", 8, 2), "SporeCrawler"),
    attack=16, reinforce=8, army=(("Queen", 0.2), ("Zergling", 0.8))),
}
MACRO = {
  "Terran": Plan(
    workers=8, most_workers=18, greedy=True,
    # Technology waits for the first army; earlier, it loses to early attacks.
    buildings=_order("CommandCenter", "Barracks", "Barracks", "Refinery", "Barracks", "Barracks",
                     "Barracks", ("EngineeringBay", 0, 12), ("Refinery", 0, 14),
                     ("Factory", 0, 14), ("Starport", 0, 14)),
    attack=16, reinforce=8,
    army=(("Marine", 0.45), ("Marauder", 0.25), ("SiegeTank", 0.25), ("Medivac", 0.05)),
    upgrades=("CombatShield", "Stimpack", "TerranInfantryWeaponsLevel1")),
  "Protoss": Plan(
    workers=8, most_workers=18, greedy=True,
    buildings=_order("Nexus", "Gateway", "Gateway", "Assimilator", "CyberneticsCore", "Gateway",
                     "RoboticsFacility", "Assimilator", ("Forge", 0, 10)),
    attack=9, reinforce=5, army=(("Zealot", 0.3), ("Stalker", 0.35), ("Immortal", 0.35)),
    upgrades=("ProtossGroundWeaponsLevel1", "ProtossGroundArmorsLevel1")),
  "Zerg": Plan(
    workers=8, most_workers=18, greedy=True,
    buildings=_order("Hatchery", "SpawningPool", "Extractor", "RoachWarren", "Extractor",
                     ("Hatchery", 14), "EvolutionChamber", "HydraliskDen"),
    attack=9, reinforce=5, army=(("Roach", 0.5), ("Hydralisk", 0.5)),
    upgrades=("ZergMissileWeaponsLevel1", "GlialReconstitution", "GroovedSpines")),
}
SIEGE = {
  "Terran": Plan(
    workers=8, most_workers=19, greedy=True,
    buildings=_order("Barracks", "Refinery", "Bunker", "Factory", "EngineeringBay",
                     ("CommandCenter", 10), "Factory", "Refinery", "Armory"),
    attack=11, reinforce=6, army=(("Marine", 0.3), ("SiegeTank", 0.7)),
    upgrades=("TerranVehicleWeaponsLevel1",)),
  "Protoss": Plan(
    workers=8, most_workers=19, greedy=True,
    buildings=_order("Gateway", "Assimilator", "CyberneticsCore", "RoboticsFacility",
                     "Assimilator", ("Nexus", 10), "RoboticsFacility", "Forge"),
    attack=9, reinforce=4, army=(("Zealot", 0.25), ("Immortal", 0.75)),
    upgrades=("ProtossGroundWeaponsLevel1",)),
  "Zerg": Plan(
    workers=8, most_workers=19, greedy=True,
    buildings=_order("SpawningPool", "Extractor", "SpineCrawler", ("Hatchery", 10), "Extractor",
                     "HydraliskDen", "SpineCrawler", "EvolutionChamber"),
    attack=14, reinforce=7, army=(("Queen", 0.15), ("Hydralisk", 0.85)),
    upgrades=("GroovedSpines", "ZergMissileWeaponsLevel1")),
}
AIR = {
  "Terran": Plan(
    workers=8, most_workers=19, greedy=True,
    buildings=_order("Barracks", "Refinery", "Bunker", "Factory", "Refinery", "Starport",
                     "Armory", "Starport", ("CommandCenter", 10)),
    attack=4, reinforce=3, army=(("Marine", 0.3), ("Banshee", 0.55), ("VikingFighter", 0.15)),
    upgrades=("TerranShipWeaponsLevel1",), harass=True),
  "Protoss": Plan(
    workers=8, most_workers=19, greedy=True,
    buildings=_order("Gateway", "Assimilator", "CyberneticsCore", "Assimilator", "Stargate",
                     "Forge", "PhotonCannon", "Stargate", ("Nexus", 10)),
    attack=4, reinforce=3, army=(("Zealot", 0.2), ("VoidRay", 0.65), ("Phoenix", 0.15)),
    upgrades=("ProtossAirWeaponsLevel1",), harass=True),
  "Zerg": Plan(
    workers=8, most_workers=19, greedy=True,
    buildings=_order("SpawningPool", "Extractor", "SpineCrawler", "Extractor", "HydraliskDen",
                     ("Hatchery", 10), "Spire"),
    attack=6, reinforce=4, army=(("Queen", 0.1), ("Zergling", 0.1), ("Mutalisk", 0.8)),
    upgrades=("ZergFlyerWeaponsLevel1",), harass=True),
}
STRATEGIES = {"rush": RUSH, "timing": TIMING, "defence": DEFENCE, "macro": MACRO, "siege": SIEGE,
              "air": AIR}
# The strategies that lose to every early attack, as demonstrators play them: static defence and the
# first fighters come before technology. Found by tournaments of 190 variations against fast players
# of a rush, of static defence and of a macro game.
SAFE = {
  "timing": {
    "Terran": Plan(
      workers=8, most_workers=19, greedy=True,
      buildings=_order("Barracks", "Barracks", "Bunker", "Bunker", "Bunker", "Bunker",
                       ("Refinery", 0, 6), ("CommandCenter", 10, 10), ("Barracks", 0, 6),
                       ("EngineeringBay", 0, 8)),
      attack=11, reinforce=9,
      army=(("Marine", 0.6), ("Marauder", 0.4)),
      upgrades=("Stimpack", "CombatShield")),
    "Protoss": Plan(
      workers=6, most_workers=12,
      buildings=_order("Gateway", "Gateway", "Gateway", ("Assimilator", 0, 9),
                       ("CyberneticsCore", 0, 9), ("Nexus", 10, 10)),
      attack=8, reinforce=6,
      army=(("Zealot", 0.4), ("Stalker", 0.6)),
    ),
    "Zerg": Plan(
      workers=8, most_workers=16,
      buildings=_order("SpawningPool", "SpineCrawler", "SpineCrawler", "SpineCrawler",
                       "SpineCrawler", ("Extractor", 0, 3), ("RoachWarren", 0, 3),
                       ("Hatchery", 10, 6)),
      attack=14, reinforce=7,
      army=(("Queen", 0.07), ("Roach", 0.32), ("Zergling", 0.61))),
  },
  "macro": {
    "Terran": Plan(
      workers=7, most_workers=16, greedy=True,
      buildings=_order("Barracks", "Bunker", "Bunker", "Bunker", "Bunker",
                       ("CommandCenter", 0, 3), ("Barracks", 0, 6), ("Refinery", 0, 6),
                       ("EngineeringBay", 0, 12), ("Factory", 0, 14), ("Starport", 0, 14)),
      attack=16, reinforce=13,
      army=(("Marine", 0.73), ("Marauder", 0.12), ("SiegeTank", 0.12), ("Medivac", 0.03)),
      upgrades=("CombatShield", "Stimpack", "TerranInfantryWeaponsLevel1")),
    "Protoss": Plan(
      workers=7, most_workers=12, greedy=True,
      buildings=_order("Gateway", "Gateway", ("Nexus", 0, 10), "Assimilator", "CyberneticsCore",
                       "Gateway", "RoboticsFacility", "Assimilator", ("Forge", 0, 10),
                       "PhotonCannon"),
      attack=14, reinforce=3,
      army=(("Zealot", 0.3), ("Stalker", 0.35), ("Immortal", 0.35)),
      upgrades=("ProtossGroundWeaponsLevel1", "ProtossGroundArmorsLevel1")),
    "Zerg": Plan(
      workers=6, most_workers=18,
      buildings=_order("SpawningPool", "SpineCrawler", "SpineCrawler", "SpineCrawler",
                       "SpineCrawler", ("Hatchery", 16), "Extractor", "RoachWarren", "Extractor",
                       ("Hatchery", 14), "EvolutionChamber", "HydraliskDen"),
      attack=18, reinforce=5,
      army=(("Roach", 0.5), ("Hydralisk", 0.5)),
      upgrades=("ZergMissileWeaponsLevel1", "GlialReconstitution", "GroovedSpines")),
  },
  "siege": {
    "Terran": Plan(
      workers=7, most_workers=16,
      buildings=_order("Barracks", "Refinery", "Bunker", "Factory", "EngineeringBay",
                       ("CommandCenter", 10, 10), "Factory", "Refinery", "Armory"),
      attack=8, reinforce=2,
      army=(("Marine", 0.3), ("SiegeTank", 0.7)),
      upgrades=("TerranVehicleWeaponsLevel1",)),
    "Protoss": Plan(
      workers=7, most_workers=12,
      buildings=_order("Gateway", "Gateway", ("Assimilator", 0, 9), ("CyberneticsCore", 0, 9),
                       ("RoboticsFacility", 0, 9), ("Assimilator", 0, 9), ("Nexus", 10, 6),
                       ("RoboticsFacility", 0, 9), ("Forge", 0, 9)),
      attack=18, reinforce=9,
      army=(("Zealot", 0.25), ("Immortal", 0.75)),
      upgrades=("ProtossGroundWeaponsLevel1",)),
    "Zerg": Plan(
      workers=8, most_workers=12, greedy=True,
      buildings=_order("SpawningPool", "SpineCrawler", "SpineCrawler", ("Extractor", 0, 3),
                       ("Hatchery", 10, 10), ("Extractor", 0, 3), ("HydraliskDen", 0, 3),
                       ("EvolutionChamber", 0, 3)),
      attack=14, reinforce=7,
      army=(("Queen", 0.13), ("Hydralisk", 0.77), ("Zergling", 0.1)),
      upgrades=("GroovedSpines", "ZergMissileWeaponsLevel1")),
  },
  "air": {
    "Terran": Plan(
      workers=7, most_workers=12, greedy=True,
      buildings=_order("Barracks", "Bunker", "Bunker", "Bunker", "Bunker", ("Refinery", 0, 10),
                       ("Factory", 0, 10), ("Refinery", 0, 10), ("Starport", 0, 10),
                       ("Armory", 0, 10), ("Starport", 0, 10), ("CommandCenter", 10, 6)),
      attack=3, reinforce=1,
      army=(("Marine", 0.65), ("Banshee", 0.28), ("VikingFighter", 0.07)),
      upgrades=("TerranShipWeaponsLevel1",), harass=True),
    "Protoss": Plan(
      workers=8, most_workers=12,
      buildings=_order("Gateway", "Gateway", "Forge", "PhotonCannon", ("Assimilator", 0, 10),
                       ("CyberneticsCore", 0, 10), ("Assimilator", 0, 10), ("Stargate", 0, 10),
                       ("Stargate", 0, 10), ("Nexus", 10)),
      attack=4, reinforce=3,
      army=(("Zealot", 0.2), ("VoidRay", 0.65), ("Phoenix", 0.15)),
      upgrades=("ProtossAirWeaponsLevel1",), harass=True),
    "Zerg": Plan(
      workers=9, most_workers=12, greedy=True,
      buildings=_order("SpawningPool", "SpineCrawler", "SpineCrawler", "SpineCrawler",
                       ("Extractor", 0, 3), ("Extractor", 0, 3), ("HydraliskDen", 0, 3),
                       ("Hatchery", 10), ("Spire", 0, 3)),
      attack=4, reinforce=1,
      army=(("Queen", 0.07), ("Zergling", 0.37), ("Mutalisk", 0.56)),
      upgrades=("ZergFlyerWeaponsLevel1",), harass=True),
  },
}
