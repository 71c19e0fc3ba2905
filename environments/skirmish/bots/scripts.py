"""Scripted players as data: their names, plans and skills.

A script has a plan for each race of its tier, and a skill: its delays, its aim, and its share of
idle decisions.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.bots import plans
from starleague.environments.skirmish.bots.plans import Plan
from starleague.environments.skirmish.rules.state.arrays import Array
from starleague.environments.skirmish.rules.tables import constants, tables

LEAST_MMR, MOST_MMR = 2000, 7000  # of demonstrators
# Part of the way from the weakest to the strongest skill, by MMR. Those of `default` were chosen
# for nearly equal steps of Elo, which docs/skirmish.md has.
_MINI_PARTS = {mmr: (mmr - LEAST_MMR) / (MOST_MMR - LEAST_MMR)
               for mmr in range(LEAST_MMR, MOST_MMR + 1, 1000)}
_PARTS = {2000: 0.0, 3000: 0.082, 4000: 0.168, 5000: 0.254, 6000: 0.389, 7000: 1.0}


@dataclasses.dataclass(frozen=True)
class Skill:
  """The skill of a script."""

  delays: tuple[int, int]  # least and greatest delay of an action, game loops
  noise: float  # of an attack's aim, map units
  mistakes: float = 0.0  # share of decisions replaced by no_op
  abilities: bool = False  # uses stim, siege mode, larva injection, chrono boost and scan
  vision: bool = False  # sees everything, as the real game's cheating levels do
  income: int = 100  # percent
  mmr: int = base.AGENT_MMR  # in its observations; a demonstrator's stands for its skill
  jitter: float = 0.0  # variation between games, see `demonstrators`


@dataclasses.dataclass(frozen=True)
class Script:
  """A scripted player."""

  name: str
  plans: dict[str, Plan]  # by race
  skill: Skill
  random: bool = False  # gives random legal actions
  drawn: bool = False  # draws one of the tier's strategies for each game
  # Players whose plans it follows, by sight, own and opponent's race; see `answers`.
  answers: Callable[[int, str, str], str] | None = None


def _demonstrator_skill(mmr: int, part: float) -> Skill:
  """The skill of a demonstrator, a part of the way from the weakest to the strongest."""
  lacks = 1.0 - part
  return Skill(
    delays=(round(96 * 0.125 ** part), round(124 * 0.125 ** part)), noise=1.0 + 1.5 * lacks,
    mistakes=0.4 * lacks, abilities=part >= 0.3, mmr=mmr, jitter=0.4 + 0.6 * lacks)


def _demonstrators(races: Iterable[str], parts: Mapping[int, float]) -> tuple[Script, ...]:
  return tuple(
    Script(f"demo_{mmr}", dict.fromkeys(races, plans.IDLE), _demonstrator_skill(mmr, part),
           drawn=True) for mmr, part in parts.items())


# What a player has seen of its opponent's plan.
SIGHTS = NOTHING, TECHNOLOGY, DEFENCE = range(3)


def _adaptive(sight: int, own: str, away: str) -> str:
  """The player whose plan `adaptive` follows; tournaments chose these, see docs/skirmish.md."""
  shielded = own == "Terran" or (own == "Protoss" and away != "Terran")
  answer = "safe_siege" if own == "Terran" else "macro"
  return {NOTHING: "defence" if shielded else "rush", TECHNOLOGY: "rush", DEFENCE: answer}[sight]


def _aggressive(sight: int, own: str, away: str) -> str:
  """The player whose plan `aggressive` follows: it rushes wherever a rush can hold one."""
  opening = "defence" if (own, away) == ("Protoss", "Zerg") else "rush"
  return {NOTHING: opening, TECHNOLOGY: "rush", DEFENCE: "macro"}[sight]


_MINI_SKILL = Skill(delays=(32, 48), noise=1.0)
_MINI = (
  Script("passive", {"Terran": plans.PASSIVE}, _MINI_SKILL),
  Script("rusher", {"Terran": plans.RUSHER}, _MINI_SKILL),
  Script("builder", {"Terran": plans.BUILDER}, _MINI_SKILL),
  Script("random_player", {"Terran": plans.IDLE}, _MINI_SKILL, random=True),
  *_demonstrators(("Terran",), _MINI_PARTS),
  *(Script(name, {"Terran": plan}, _MINI_SKILL) for name, plan in plans.MINI_STRATEGIES.items()),
)

FULL = Skill(delays=(16, 24), noise=1.0, abilities=True)
HALF = Skill(delays=(32, 48), noise=1.5, mistakes=0.25, abilities=True)
QUARTER = Skill(delays=(64, 96), noise=2.0, mistakes=0.3)
_FAST = dataclasses.replace(FULL, delays=(8, 12))
_BEGINNER = Skill(delays=(110, types.MAX_DELAY), noise=3.0, mistakes=0.6)
_LEARNER = Skill(delays=(90, 120), noise=3.0, mistakes=0.4)
_AVERAGE = Skill(delays=(48, 72), noise=2.0, mistakes=0.3, abilities=True)
_GOOD = Skill(delays=(40, 56), noise=1.5, mistakes=0.3, abilities=True)
_CHEAT = dataclasses.replace(_FAST, income=150)

# A ladder: each level beats the one two below in nearly all games. L4 to L8 play the same opening,
# so that only skill differs; L9 and L10 cheat.
LEVELS = (
  Script("L0", dict.fromkeys(constants.RACES, plans.IDLE), FULL, random=True),
  Script("L1", plans.ECONOMY, QUARTER),
  Script("L2", plans.WEAK, _BEGINNER),
  Script("L3", plans.WEAK, _LEARNER),
  Script("L4", plans.RUSH, QUARTER),
  Script("L5", plans.RUSH, _AVERAGE),
  Script("L6", plans.RUSH, _GOOD),
  Script("L7", plans.RUSH, FULL),
  Script("L8", plans.RUSH, _FAST),
  Script("L9", plans.RUSH, _CHEAT),
  Script("L10", plans.RUSH, dataclasses.replace(_CHEAT, delays=(8, 8), vision=True)),
)
_ALL_RACES = (
  *LEVELS,
  *(Script(f"{name}{suffix}", by_race, skill)
    for suffix, skill in (("", FULL), ("_half", HALF), ("_quarter", QUARTER))
    for name, by_race in plans.STRATEGIES.items()),
  *_demonstrators(constants.RACES, _PARTS),
  *(Script(f"safe_{name}", by_race, FULL) for name, by_race in plans.SAFE.items()),
  Script("adaptive", plans.RUSH, FULL, answers=_adaptive),
  Script("aggressive", plans.RUSH, FULL, answers=_aggressive),
)


def scripts_of(tier: str) -> tuple[Script, ...]:
  """Returns the scripted players of a tier."""
  return _MINI if tier == "mini" else _ALL_RACES


def names_of(tier: str) -> tuple[str, ...]:
  """Returns the names of a tier's players; `players.decide` takes an index into these."""
  return tuple(script.name for script in scripts_of(tier))


def check_names(names: Iterable[str], tier: str, known: Sequence[str] | None = None) -> None:
  """Checks names of players.

  Args:
    names: to be checked.
    tier: where they play.
    known: names that are allowed; all scripted players of the tier if not given.

  Raises:
    ValueError: a name that is not allowed.
  """
  allowed = names_of(tier) if known is None else known
  for name in names:
    if name not in allowed:
      raise ValueError(
        f"player {name!r}: expected one of {', '.join(allowed)} in tier {tier}")


def indices_of(names: Sequence[str], tier: str) -> np.ndarray:
  """Returns the indices of scripted players [len(names)] int32.

  Raises:
    ValueError: the tier has no player of a name.
  """
  check_names(names, tier)
  return np.array([names_of(tier).index(name) for name in names], np.int32)


def strategies_of(tier: str) -> tuple[int, ...]:
  """Returns the indices of the scripts that demonstrators draw from."""
  safe = [f"safe_{name}" if name in plans.SAFE else name for name in plans.STRATEGIES]
  chosen = plans.MINI_STRATEGIES if tier == "mini" else safe
  return tuple(names_of(tier).index(name) for name in chosen)


def _followed(script: Script, sight: int, own: str, away: str) -> str:
  return script.name if script.answers is None else script.answers(sight, own, away)


class Parameters(NamedTuple):
  """Scripts as arrays. P scripts with a plan for each of N races; B entries of a build order.

  Fields up to `greedy` are [P, N, ...], the others [P, ...].
  """

  workers: Array  # [P, N] int32
  most_workers: Array  # [P, N] int32
  attack: Array  # [P, N] int32
  reinforce: Array  # [P, N] int32
  building: Array  # [P, N, B] int32: local types in order, 0 past the end
  total: Array  # [P, N, B] int32: number of that type once the entry is built
  at_workers: Array  # [P, N, B] int32: workers needed first
  at_fighters: Array  # [P, N, B] int32: fighters needed first, static defence not counted
  share: Array  # [P, N, Y] float32
  upgrade: Array  # [P, N, G] int32: products in order, 0 past the end
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
  answers: Array  # [P] bool: players with an answer
  follows: Array  # [P, sights, N, N] int32: index of the script whose plan it follows


def _with_tech_labs(rules: tables.Rules, plan: Plan) -> Plan:
  """A plan with the TechLabs that its army and its upgrades need, once it has gas.

  The share of structures with a TechLab is that of the army's types that need one.
  """
  if not rules.has_add_ons:
    return plan
  products, names = rules.products, rules.types.names
  army = {names.index(name): share for name, share in plan.army}
  labs = set(products.producer[[_upgrade_product(rules, name) for name in plan.upgrades]].tolist()
             ) if plan.upgrades else set()
  buildings: list[tuple[str, int, int]] = []
  for entry in plan.buildings:
    buildings.append(entry)
    made = [name for name, *_ in buildings]
    if not any(rules.types.gas[names.index(name)] for name in made):
      continue
    for maker in dict.fromkeys(made):
      trained = {i: share for i, share in army.items()
                 if products.producer[i] == names.index(maker)}
      equipped = sum(share for i, share in trained.items() if products.add_on[i])
      lab = f"{maker}TechLab"
      if not equipped and (lab not in names or names.index(lab) not in labs):
        continue
      wanted = math.ceil(made.count(maker) * equipped / max(sum(trained.values()), equipped, 1e-6))
      buildings += [(lab, *entry[1:])] * (max(wanted, 1) - made.count(lab))
  return dataclasses.replace(plan, buildings=tuple(buildings))


def _upgrade_product(rules: tables.Rules, name: str) -> int:
  return len(rules.types.names) + rules.upgrades.names.index(name)


def _building_totals(rules: tables.Rules, plan: Plan) -> list[int]:
  """For each building of a plan, the number of its type once it is built."""
  made = [name for name, *_ in plan.buildings]
  # The first town hall stands from the start.
  return [made[:i + 1].count(name) + bool(rules.types.townhall[rules.types.names.index(name)])
          for i, name in enumerate(made)]


def _army_shares(rules: tables.Rules, plan: Plan) -> np.ndarray:
  """The share of each type [Y] in a plan's army."""
  row = np.zeros(len(rules.types.names), np.float32)
  for name, value in plan.army:
    row[rules.types.names.index(name)] = value
  return row


@functools.cache
def parameters(rules: tables.Rules) -> Parameters:
  """Returns a tier's scripts as numpy arrays over its local types and products."""
  players, names = scripts_of(rules.tier.name), rules.types.names
  races = [constants.RACES[race] for race in range(max(rules.races) + 1)]
  known = names_of(rules.tier.name)
  rows = [[_with_tech_labs(rules, script.plans[race]) for race in races] for script in players]
  every = [plan for row in rows for plan in row]

  def column(get: Callable[[Plan], Any], dtype: Any = np.int32) -> np.ndarray:
    return np.array([[get(plan) for plan in row] for row in rows], dtype)

  def padded(get: Callable[[Plan], list[int]]) -> np.ndarray:
    """Lists of different lengths, padded with zeros."""
    length = max(1, *(len(get(plan)) for plan in every))
    return column(lambda plan: (get(plan) + [0] * length)[:length])

  def of_skill(name: str, dtype: Any) -> np.ndarray:
    return np.array([getattr(script.skill, name) for script in players], dtype)

  return Parameters(
    workers=column(lambda plan: plan.workers), most_workers=column(lambda plan: plan.most_workers),
    attack=column(lambda plan: plan.attack), reinforce=column(lambda plan: plan.reinforce),
    building=padded(lambda plan: [names.index(name) for name, *_ in plan.buildings]),
    total=padded(functools.partial(_building_totals, rules)),
    at_workers=padded(lambda plan: [workers for _, workers, _ in plan.buildings]),
    at_fighters=padded(lambda plan: [fighters for *_, fighters in plan.buildings]),
    share=column(functools.partial(_army_shares, rules), np.float32),
    upgrade=padded(lambda plan: [_upgrade_product(rules, name) for name in plan.upgrades]),
    harass=column(lambda plan: plan.harass, bool), greedy=column(lambda plan: plan.greedy, bool),
    delays=of_skill("delays", np.int32), noise=of_skill("noise", np.float32),
    mistakes=of_skill("mistakes", np.float32), abilities=of_skill("abilities", bool),
    vision=of_skill("vision", bool), random=np.array([script.random for script in players]),
    drawn=np.array([script.drawn for script in players]), jitter=of_skill("jitter", np.float32),
    answers=np.array([script.answers is not None for script in players]),
    follows=np.array([[[[known.index(_followed(script, sight, own, away)) for away in races]
                        for own in races] for sight in SIGHTS] for script in players], np.int32))


def army_types(rules: tables.Rules) -> np.ndarray:
  """Returns the types that attack together, [Y] bool: fighters, and Medivacs that heal them."""
  flags = rules.types.fighter & ~rules.types.structure
  flags[rules.types.local("Medivac")] = True
  flags[0] = False
  return flags
