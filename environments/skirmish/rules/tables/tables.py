"""A tier with its tables, and the sizes of each tier: the constants of a game."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from starleague.agent import types as agent_types
from starleague.agent.config import AgentConfig
from starleague.environments.skirmish.rules.tables import maps
from starleague.environments.skirmish.rules.tables.constants import (
  FORCE_FIELD,
  GUARD,
  HALLUCINATE,
  RACES,
)
from starleague.environments.skirmish.rules.tables.function_tables import (
  Functions,
  Products,
  make_functions,
  make_products,
)
from starleague.environments.skirmish.rules.tables.tiers import TIERS, Tier
from starleague.environments.skirmish.rules.tables.unit_tables import (
  Types,
  Upgrades,
  make_types,
  make_upgrades,
)


class GameConfig(NamedTuple):
  """The arguments of `make_skirmish` and of `make_rules`."""

  tier: str = "mini"
  max_entities: int = 64
  map_size: int = 32
  location_size: int = 32
  max_selected: int = 8


DEFAULT_GAME_CONFIG = GameConfig()
# The sizes of the agent's interface; those of the first are the preset `mini`.
GAME_CONFIGS = {
  "mini": DEFAULT_GAME_CONFIG,
  "default": GameConfig(
    "default", max_entities=192, map_size=64, location_size=128, max_selected=16),
  "large": GameConfig(
    "large", max_entities=384, map_size=128, location_size=256, max_selected=16),
}


def game_config(tier: str, config: AgentConfig) -> GameConfig:
  """The GameConfig of a tier with the sizes of an agent's config."""
  return GameConfig(tier, *(getattr(config, size) for size in GameConfig._fields[1:]))


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
    """Half the side of the map. Positions are relative to its middle, so that a half turn of the
    map is exact."""
    return self.tier.map_size / 2

  # Which rules a tier needs: arrays and operations of the others are left out.

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
    """Whether any type flies."""
    return bool(self.types.flying.any())

  @property
  def has_larvae(self) -> bool:
    """Whether any structure has larvae."""
    return bool(self.types.larvae.any())

  @property
  def has_add_ons(self) -> bool:
    """Whether structures can have add-ons."""
    return bool(self.types.add_on.any())

  @property
  def has_cloaking(self) -> bool:
    """Whether units can be cloaked."""
    return bool(self.types.cloaked.any())

  @property
  def has_hatching_morphs(self) -> bool:
    """Whether structures with larvae morph: a Lair."""
    return bool((self.types.larvae & self.types.morphed).any())

  @property
  def has_warp_gates(self) -> bool:
    """Whether Gateways morph into warp gates."""
    return self.types.warp_gate > 0

  @property
  def has_transports(self) -> bool:
    """Whether units can board other ones."""
    return bool(self.types.cargo_space.any())

  @property
  def has_sentries(self) -> bool:
    """Whether there are Sentries, with all their abilities."""
    return all(self.has(ability) for ability in (GUARD, FORCE_FIELD, HALLUCINATE))

  def has(self, ability: int) -> bool:
    """Whether any function uses an ability."""
    return bool((self.functions.ability == ability).any())

  def has_verb(self, verb: int) -> bool:
    """Whether any function gives units a verb."""
    return bool((self.functions.verb == verb).any())

  @property
  def races(self) -> tuple[int, ...]:
    """Indices of RACES that can be played."""
    return tuple(sorted(set(self.types.race[self.types.worker].tolist())))


def race_index(race: np.ndarray) -> np.ndarray:
  """Indices of RACES from indices of the agent's RACES; none and random count as the first."""
  table = [RACES.index(name.capitalize()) if name.capitalize() in RACES else 0
           for name in agent_types.RACES]
  return np.array(table, np.int32)[race]


def make_terrain(tier: Tier) -> maps.Terrain | None:
  """The maps of a tier, None for flat open ground."""
  return maps.make_terrain(int(tier.map_size), tier.field_block) if tier.field_block else None


def least_entities(tier: Tier) -> int:
  """The fewest rows of an observation: all own slots and half of the opponent's."""
  return tier.slots + tier.slots // 2


@functools.cache
def make_rules(tier: str, max_entities: int, map_size: int, location_size: int,
               max_selected: int) -> Rules:
  """Makes the tables of a tier for an agent's sizes.

  Raises:
    ValueError: an unknown tier, or sizes that the tier does not fit in.
  """
  if tier not in TIERS:
    raise ValueError(f"unknown tier {tier!r}: choose one of {sorted(TIERS)}")
  sizes = TIERS[tier]
  if map_size % 32:
    raise ValueError(f"tier {tier}: map_size is {map_size}, expected a multiple of 32")
  for name, found, (least, most) in (
      ("max_entities", max_entities, (least_entities(sizes), 2048)),
      ("map_size", map_size, (32, 512)),
      ("location_size", location_size, (1, 1024)), ("max_selected", max_selected, (1, 256))):
    if not least <= found <= most:  # four times the paper's sizes at most
      raise ValueError(f"tier {tier}: {name} is {found}, expected {least} to {most}")
  types = make_types(sizes)
  products = make_products(sizes, types)
  return Rules(
    tier=sizes, types=types, products=products, upgrades=make_upgrades(sizes, types),
    functions=make_functions(sizes, types, products), terrain=make_terrain(sizes),
    max_entities=max_entities, map_size=map_size, location_size=location_size,
    max_selected=max_selected)
