"""The manners of the scripted players: what each builds, trains and researches, and when it attacks.

A plan is for one race. A script has a plan for each race that its tier has, and a skill: how often
it acts, how well it aims, how often it does nothing at all. The names are those of the field: a rush
comes before the other is ready, a timing when its own army is at its best, a macro player later
and with more.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from starleague.environments import base
from starleague.environments.skirmish.rules import constants, tables
from starleague.environments.skirmish.rules.state import Array

NEVER = 99
LEAST_MMR, MOST_MMR = 2000, 7000  # of demonstrators


@dataclasses.dataclass(frozen=True)
class Plan:
  """What a player of one race wants to have. Counts include what is under way."""

  workers: int  # before the first building
  most_workers: int
  # In order: a type, and the workers and fighters to have first.
  buildings: tuple[tuple[str, int, int], ...] = ()
  attack: int = NEVER  # fighters at home that set out together
  reinforce: int = NEVER  # fighters at home that follow an attack under way
  army: tuple[tuple[str, float], ...] = ()  # the share of its food for each type
  upgrades: tuple[str, ...] = ()  # in order
  harass: bool = False  # goes for workers rather than for the nearest structure
  greedy: bool = False  # fills its bases with workers before it builds anything else


@dataclasses.dataclass(frozen=True)
class Skill:
  """How well a script is played."""

  delays: tuple[int, int]  # game loops between two actions
  noise: float  # of the aim of an attack, map units
  mistakes: float = 0.0  # share of decisions that come to nothing
  abilities: bool = False  # doses, sieges, larvae, boosts
  vision: bool = False  # sees everything, as the real game's cheating levels do
  income: int = 100  # percent
  mmr: int = base.AGENT_MMR  # what its observations say; a demonstrator's is what it plays like
  jitter: float = 0.0  # how far each game strays from the plan, see `demonstrators`


@dataclasses.dataclass(frozen=True)
class Script:
  """A scripted player."""

  name: str
  plans: tuple[tuple[str, Plan], ...]  # by race
  skill: Skill
  random: bool = False  # any legal action
  drawn: bool = False  # plays one of the tier's strategies, drawn for each game


def _order(*items: str | tuple[str, int] | tuple[str, int, int],
           ) -> tuple[tuple[str, int, int], ...]:
  filled = [(item,) if isinstance(item, str) else item for item in items]
  return tuple((*item, 0, 0)[:3] for item in filled)  # type: ignore[misc]


def _demonstrator_skill(mmr: int) -> Skill:
  """How well a demonstrator plays: from an action in five seconds, and many mistakes, to the best."""
  part = (mmr - LEAST_MMR) / (MOST_MMR - LEAST_MMR)
  return Skill(
    delays=(round(96 * 0.125 ** part), round(124 * 0.125 ** part)), noise=2.5 - 1.5 * part,
    mistakes=0.4 * (1 - part), abilities=mmr >= 4000, mmr=mmr, jitter=1.0 - 0.6 * part)


def _demonstrators(plans: dict[str, Plan]) -> tuple[Script, ...]:
  return tuple(
    Script(f"demo_{mmr}", tuple(plans.items()), _demonstrator_skill(mmr), drawn=True)
    for mmr in range(LEAST_MMR, MOST_MMR + 1, 1000))


_MINI_SKILL = Skill(delays=(32, 48), noise=1.0)
_MINI = (
  Script("passive", (("Terran", Plan(workers=12, most_workers=12)),), _MINI_SKILL),
  Script("rusher", (("Terran", Plan(
    workers=6, most_workers=7, buildings=_order("Barracks", "Barracks"), attack=4, reinforce=3,
    army=(("Marine", 1.0),))),), _MINI_SKILL),
  Script("builder", (("Terran", Plan(
    workers=6, most_workers=7, buildings=_order("Barracks", "Factory"), attack=7, reinforce=3,
    army=(("Marine", 0.4), ("Marauder", 0.3), ("Hellion", 0.3)))),), _MINI_SKILL),
  Script("random_player", (("Terran", Plan(workers=0, most_workers=0)),), _MINI_SKILL,
         random=True),
  *_demonstrators({"Terran": Plan(workers=0, most_workers=0)}),
)

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
    workers=7, most_workers=8, buildings=_order("Barracks", "Barracks", ("Barracks", 0, 14)), attack=6,
    reinforce=4, army=(("Marine", 1.0),)),
  "Protoss": Plan(
    workers=7, most_workers=8, buildings=_order("Gateway", "Gateway", "Gateway", ("Gateway", 0, 8)), attack=3,
    reinforce=2, army=(("Zealot", 1.0),)),
  "Zerg": Plan(
    workers=7, most_workers=8, buildings=_order("SpawningPool", ("Hatchery", 0, 20)), attack=6, reinforce=4,
    army=(("Zergling", 1.0),)),
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
    reinforce=5, army=(("Queen", 0.1), ("Roach", 0.45), ("Zergling", 0.45)),
    upgrades=("GlialReconstitution",), greedy=True),
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
    # Technology waits for the first army: before it, it loses to whatever comes early.
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

FULL = Skill(delays=(16, 24), noise=1.0, abilities=True)
HALF = Skill(delays=(32, 48), noise=1.5, mistakes=0.25, abilities=True)
QUARTER = Skill(delays=(64, 96), noise=2.0, mistakes=0.3)
_FAST = dataclasses.replace(FULL, delays=(8, 12))
_BEGINNER = Skill(delays=(110, 127), noise=3.0, mistakes=0.6)
_LEARNER = Skill(delays=(90, 120), noise=3.0, mistakes=0.4)
_AVERAGE = Skill(delays=(48, 72), noise=2.0, mistakes=0.3, abilities=True)
_GOOD = Skill(delays=(40, 56), noise=1.5, mistakes=0.3, abilities=True)
_NOTHING = {race: Plan(workers=0, most_workers=0) for race in constants.RACES}


def _script(name: str, plans: dict[str, Plan], skill: Skill, random: bool = False) -> Script:
  return Script(name, tuple(plans.items()), skill, random)


# A ladder: each level is meant to beat the one two below nearly always. From L4 on all play the
# same opening, so that only skill decides, and then only what the cheaters get for nothing.
LEVELS = (
  _script("L0", _NOTHING, FULL, random=True),
  _script("L1", ECONOMY, QUARTER),
  _script("L2", WEAK, _BEGINNER),
  _script("L3", WEAK, _LEARNER),
  _script("L4", RUSH, QUARTER),
  _script("L5", RUSH, _AVERAGE),
  _script("L6", RUSH, _GOOD),
  _script("L7", RUSH, FULL),
  _script("L8", RUSH, _FAST),
  _script("L9", RUSH, dataclasses.replace(_FAST, income=150)),
  _script("L10", RUSH, dataclasses.replace(_FAST, delays=(8, 8), income=150, vision=True)),
)
_WHOLE = (
  *LEVELS,
  *(_script(name, plans, FULL) for name, plans in STRATEGIES.items()),
  *(_script(f"{name}_half", plans, HALF) for name, plans in STRATEGIES.items()),
  *(_script(f"{name}_quarter", plans, QUARTER) for name, plans in STRATEGIES.items()),
  *_demonstrators(_NOTHING),
)


def scripts_of(tier: str) -> tuple[Script, ...]:
  """The scripted players of a tier."""
  return _MINI if tier == "mini" else _WHOLE


def names_of(tier: str) -> tuple[str, ...]:
  """Their names; an index into these is what `players.decide` takes."""
  return tuple(script.name for script in scripts_of(tier))


def strategies_of(tier: str) -> tuple[int, ...]:
  """The scripts that a demonstrator's games are drawn from, as indices of `scripts_of`."""
  chosen = ("rusher", "builder") if tier == "mini" else tuple(STRATEGIES)
  return tuple(names_of(tier).index(name) for name in chosen)


class Parameters(NamedTuple):
  """The scripts as arrays: P of them, each with a plan for N races; [P, N, ...] or [P]."""

  workers: Array  # int32
  most_workers: Array
  attack: Array
  reinforce: Array
  building: Array  # [P, N, B] int32, local types in order, 0 past the end
  count: Array  # [P, N, B] int32: how many of that type there should be by then
  at_workers: Array  # [P, N, B] int32: workers to have first
  at_fighters: Array  # [P, N, B] int32: and fighters, those of static defence left out
  share: Array  # [P, N, Y] float32
  upgrade: Array  # [P, N, G] int32, products in order, 0 past the end
  harass: Array  # [P, N] bool
  greedy: Array  # [P, N] bool
  delays: Array  # [P, 2] int32
  noise: Array  # [P] float32
  mistakes: Array  # [P] float32
  abilities: Array  # [P] bool
  vision: Array  # [P] bool
  random: Array  # [P] bool
  drawn: Array  # [P] bool
  jitter: Array  # [P] float32


@functools.cache
def parameters(rules: tables.Rules) -> Parameters:
  """A tier's scripts as arrays over its local types and products."""
  players, names = scripts_of(rules.tier.name), rules.types.names
  races = max(rules.races) + 1
  plans = [[dict(script.plans).get(constants.RACES[race]) for race in range(races)]
           for script in players]

  def column(get, kind=np.int32):
    return np.array([[get(plan) for plan in row] for row in plans], kind)

  def listed(get, length):
    """Lists of different lengths, padded with zeros."""
    return column(lambda plan: (get(plan) + [0] * length)[:length])

  def local(name):
    return names.index(name)

  def upgrade(name):
    return len(names) + rules.upgrades.names.index(name)

  def count(plan):
    made = [name for name, *_ in plan.buildings]
    # The town hall that a player begins with is one of those it wants.
    return [made[:i + 1].count(name) + bool(rules.types.townhall[local(name)])
            for i, name in enumerate(made)]

  def share(plan):
    row = np.zeros(len(names), np.float32)
    for name, value in plan.army:
      row[local(name)] = value
    return row

  every = [plan for row in plans for plan in row]
  longest = max(1, *(len(plan.buildings) for plan in every))
  most_upgrades = max(1, *(len(plan.upgrades) for plan in every))
  skill = [script.skill for script in players]
  return Parameters(
    workers=column(lambda plan: plan.workers), most_workers=column(lambda plan: plan.most_workers),
    attack=column(lambda plan: plan.attack), reinforce=column(lambda plan: plan.reinforce),
    building=listed(lambda plan: [local(name) for name, *_ in plan.buildings], longest),
    count=listed(count, longest),
    at_workers=listed(lambda plan: [workers for _, workers, _ in plan.buildings], longest),
    at_fighters=listed(lambda plan: [fighters for *_, fighters in plan.buildings], longest),
    share=column(share, np.float32),
    upgrade=listed(lambda plan: [upgrade(name) for name in plan.upgrades], most_upgrades),
    harass=column(lambda plan: plan.harass, bool),
    greedy=column(lambda plan: plan.greedy, bool),
    delays=np.array([s.delays for s in skill], np.int32),
    noise=np.array([s.noise for s in skill], np.float32),
    mistakes=np.array([s.mistakes for s in skill], np.float32),
    abilities=np.array([s.abilities for s in skill]),
    vision=np.array([s.vision for s in skill]),
    random=np.array([script.random for script in players]),
    drawn=np.array([script.drawn for script in players]),
    jitter=np.array([s.jitter for s in skill], np.float32))


def army_types(rules: tables.Rules) -> np.ndarray:
  """Types [Y] bool that attack together: those that fight, and those that heal them."""
  flags = rules.types.fighter & ~rules.types.structure
  flags[rules.types.local("Medivac")] = True
  flags[0] = False
  return flags
