"""Why orders are unavailable, in words for the human player.

Computed from the observation alone, so that the page reveals nothing that the game hides.
"""

from typing import NamedTuple

import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.viewers import catalog

NOT_POSSIBLE = "not possible now"
_VERB_REASONS = {
  constants.ATTACK_UNIT: "no enemy is known", constants.GATHER: "no resource is known",
  constants.RETURN: "no worker carries anything, or no town hall stands",
  constants.REPAIR: "nothing to repair", constants.UNLOAD: "nobody is aboard",
  constants.LOAD: "no transport has room, or no unit can board"}
_ABILITY_REASONS = {
  constants.INJECT: "no hatchery can take an injection",
  constants.GUARD: "every shield is on already",
  constants.HALLUCINATE: "no more of these fit in the game",
  constants.CANCEL: "nothing is under construction",
  constants.CANCEL_LAST: "nothing is in the queue"}


class Own(NamedTuple):
  """The human player's own units and structures [M] in an observation."""

  kind: np.ndarray  # local types
  finished: np.ndarray  # bool
  energy: np.ndarray
  orders: np.ndarray  # [M, 4] dense functions in the queue
  length: np.ndarray  # orders in the queue

  def has(self, rules: tables.Rules, kind: int) -> tuple[bool, bool]:
    """Whether a structure of a local type exists, and whether a finished one does."""
    fits = (self.kind == kind) | (rules.types.counts_as[self.kind] == kind)
    return bool(fits.any()), bool((fits & self.finished).any())


def unavailable(rules: tables.Rules, observation: types.Observation) -> dict[int, str]:
  """Returns the reason for each function that is unavailable, by local function.

  Functions that no unit type of the player can execute are left out.
  """
  functions, own = rules.functions, _own(rules, observation)
  available = np.asarray(observation.available_actions)[functions.index]
  owned = functions.capable[:, own.kind].any(axis=1)
  return {int(function): reason(rules, observation, int(function), own)
          for function in np.flatnonzero(~available & owned)}


def _own(rules: tables.Rules, observation: types.Observation) -> Own:
  entities = np.asarray(observation.entities)[:int(observation.entity_count)]
  entities = entities[entities[:, types.COLUMN["alliance"]] == types.ALLIANCE_SELF]

  def column(name: str) -> np.ndarray:
    return entities[:, types.COLUMN[name]]

  local = np.zeros(vocabulary.NUM_UNIT_TYPES, int)
  local[rules.types.index] = np.arange(len(rules.types.index))
  return Own(
    kind=local[column("unit_type")], finished=column("build_progress") >= 100,
    energy=column("energy"), length=column("order_length"),
    orders=np.stack([column(f"order_id_{k}") for k in range(4)], axis=1))


def reason(rules: tables.Rules, observation: types.Observation, function: int,
           own: Own | None = None) -> str:
  """Returns why a function is unavailable: first what is missing, else what prevents it.

  Args:
    rules: the game's constants.
    observation: the human player's.
    function: local; one that is unavailable.
    own: computed from the observation if None.
  """
  own = _own(rules, observation) if own is None else own
  if rules.functions.product[function]:
    return _product_reason(rules, observation, function, own)
  ability = int(rules.functions.ability[function])
  capable = rules.functions.capable[function][own.kind]
  if ability == constants.STIM:
    if not observation.upgrades[vocabulary.UPGRADES.index("Stimpack")]:
      return "needs Stimpack"
    return "no unit has the health, or all are stimmed"
  if ability in constants.ENERGY_COST:
    best = int(own.energy[capable & own.finished].max(initial=0))
    price = int(constants.ENERGY_COST[ability])
    if best < price:
      return f"needs {price} energy, has {best}"
  if ability in _ABILITY_REASONS:
    return _ABILITY_REASONS[ability]
  return _VERB_REASONS.get(int(rules.functions.verb[function]), NOT_POSSIBLE)


def _product_reason(rules: tables.Rules, observation: types.Observation, function: int,
                    own: Own) -> str:
  """Returns what a product lacks: technology, resources, supply, larvae or a free producer."""
  functions = rules.functions
  product = _next_product(rules, observation, function)
  if product is None:
    return "already researched"
  if product >= len(rules.types.names) and (own.orders == functions.index[function]).any():
    return "research is in progress"
  producers = functions.capable[function][own.kind]
  missing = _missing(rules, observation, product, own)
  if not producers.any():
    producer = rules.types.names[int(rules.products.producer[product])]
    missing.insert(0, _with_article(catalog.unit_name(producer)))
  if missing:
    return f"needs {_listed(missing)}"
  if not (producers & own.finished).any():
    return "still under construction"
  if functions.kind[function] == constants.WARPING:
    pylon = own.has(rules, rules.types.local("Pylon"))[1]
    return "every warp gate cools down" if pylon else "needs a finished Pylon"
  if functions.kind[function] == constants.TRAINING:
    busy = own.length[producers & own.finished].min()
    return "the queue is full" if busy >= constants.QUEUE_LENGTH else "production must end first"
  if rules.types.gas[product]:
    return "no free geyser is known"
  return NOT_POSSIBLE


def _next_product(rules: tables.Rules, observation: types.Observation,
                  function: int) -> int | None:
  """Returns the product that a function makes next; None if all its levels are researched."""
  first, levels = int(rules.functions.product[function]), int(rules.functions.levels[function])
  upgrade = first - len(rules.types.names)
  if upgrade < 0:
    return first
  dense = rules.upgrades.index[upgrade:upgrade + levels]
  owned = int(np.sum(np.asarray(observation.upgrades)[dense]))
  return first + owned if owned < levels else None


def _missing(rules: tables.Rules, observation: types.Observation, product: int,
             own: Own) -> list[str]:
  """Returns the technology, resources, supply and larvae that a product lacks."""
  products = rules.products
  player = dict(zip(types.PLAYER_COLUMNS, np.asarray(observation.player).tolist(), strict=True))
  missing = []
  needed = int(products.requirement[product])
  if needed:
    name = catalog.unit_name(rules.types.names[needed])
    exists, finished = own.has(rules, needed)
    if not finished:
      missing.append(f"the {name} to be finished" if exists else _with_article(name))
  upgrade = int(products.upgrade[product]) - len(rules.types.names)
  if upgrade >= 0 and not observation.upgrades[rules.upgrades.index[upgrade]]:
    missing.append(catalog.upgrade_name(rules.upgrades.names[upgrade]))
  for name, price in (("minerals", int(products.minerals[product])),
                      ("vespene", int(products.vespene[product]))):
    if player[name] < price:
      missing.append(f"{price - player[name]} more {name}")
  food = int(products.takes_food[product]) / 2 - (player["food_cap"] - player["food_used"])
  if products.takes_food[product] and food > 0:
    missing.append(f"{food:g} more supply")
  if products.larva[product] and not player["larva_count"]:
    missing.append("a larva")
  return missing


def _with_article(name: str) -> str:
  return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _listed(parts: list[str]) -> str:
  """Joins parts to `a, b and c`."""
  return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
