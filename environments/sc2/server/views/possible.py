"""Abilities that units can use now, as queries and observations list them."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from starleague.environments.sc2.protocol import common_pb
from starleague.environments.sc2.server.game import catalogue, roster
from starleague.environments.sc2.server.game.game import Game
from starleague.environments.skirmish.rules.state import add_ons
from starleague.environments.skirmish.rules.state.state import State
from starleague.environments.skirmish.rules.tables import constants, tables

_MAKING = (constants.BUILDING, constants.TRAINING, constants.ATTACHING, constants.WARPING)


class _Means(NamedTuple):
  """A player's resources and technology."""

  types: frozenset[int]  # local types of finished structures, and those they count as
  minerals: int
  vespene: int
  food: int  # in halves
  upgrades: Any  # [U] bool
  products: Any  # [C] int32: the product that each function makes next


def unit_abilities(game: Game, player: int, tags: Iterable[int],
                   free: bool = False) -> list[list[common_pb.AvailableAbility]]:
  """Returns the abilities that each of some own units can use; none for other units.

  Args:
    game: the game.
    player: 0 or 1.
    tags: of the units.
    free: whether costs, food and energy are ignored.
  """
  means = _means(game, player)
  return [_of_unit(game, player, means, tag, free) for tag in tags]


def is_larva(game: Game, player: int, tag: int) -> bool:
  """Returns whether a tag is that of a larva of an own hatchery that has some.

  Larvae are units on realistic maps only.
  """
  hatchery = roster.larva_structure(game.rules, player, tag)
  return hatchery is not None and game.battlefield.realistic and game.rules.has_larvae and bool(
    game.state.larvae[player, hatchery] > 0)


def _of_unit(game: Game, player: int, means: _Means, tag: int,
             free: bool) -> list[common_pb.AvailableAbility]:
  functions: Iterable[int]
  hatchery = roster.larva_structure(game.rules, player, tag)
  if hatchery is not None:
    hatches = is_larva(game, player, tag) and not game.state.queue[player, hatchery, -1]
    kind = int(game.state.kind[player, hatchery]) if hatches else 0
    functions = _larva_functions(game, means, kind, free)
  else:
    found = np.flatnonzero(game.tags[player] == tag)
    if not tag or not found.size:
      return []
    if roster.is_passenger(game.rules, game.state, player, int(found[0])):
      return []
    kind = int(game.state.kind[player, found[0]])
    functions = _slot_functions(game, player, means, int(found[0]), free)
  return _listed(game, kind, functions, means.products)


def _listed(game: Game, kind: int, functions: Iterable[int],
            products: np.ndarray) -> list[common_pb.AvailableAbility]:
  """The abilities of local functions, each id once."""
  abilities = catalogue.make_catalogue(game.rules)
  found: dict[int, bool] = {}
  for function in functions:
    product = int(products[function])
    several = game.rules.functions.kind[function] in (constants.ATTACHING, constants.WARPING)
    name = (abilities.product_ability(product) if product and not several
            else abilities.ability(function, kind))
    found.setdefault(name, abilities.needs_target(function))
  return [common_pb.AvailableAbility(ability_id=ability, requires_point=point)
          for ability, point in found.items()]


def _means(game: Game, player: int) -> _Means:
  state, rules = game.state, game.rules
  structures = state.kind[player, :rules.tier.structures][state.unfinished[player] == 0]
  standing = {int(kind) for kind in structures} | {
    int(rules.types.counts_as[kind]) for kind in structures}
  report = game.frame().report
  used, most = (2 * int(report.player[player, i]) for i in (2, 3))
  return _Means(
    frozenset(standing), int(state.minerals[player]), int(state.vespene[player]), most - used,
    state.upgrades[player], report.products[player])


def _can_make(rules: tables.Rules, means: _Means, product: int, free: bool) -> bool:
  """Returns whether a product's requirement is met and its cost is covered."""
  products = rules.products
  required = int(products.requirement[product])
  if not product or (required and required not in means.types):
    return False
  upgrade = int(products.upgrade[product]) - len(rules.types.names)
  if upgrade >= 0 and not means.upgrades[upgrade]:
    return False
  return free or bool(
    means.minerals >= products.minerals[product] and means.vespene >= products.vespene[product]
    and (products.takes_food[product] == 0 or means.food >= products.takes_food[product]))


def _larva_functions(game: Game, means: _Means, kind: int, free: bool) -> Iterator[int]:
  """Functions of a larva of a hatchery of a local type."""
  rules = game.rules
  for function in np.flatnonzero(rules.functions.capable[:, kind]):
    product = int(means.products[function])
    if product and rules.products.larva[product] and _can_make(rules, means, product, free):
      yield int(function)


def _slot_functions(game: Game, player: int, means: _Means, slot: int,
                    free: bool) -> Iterator[int]:
  """Functions that an own slot can execute."""
  rules, state = game.rules, game.state
  functions, s = rules.functions, rules.tier.structures
  if slot < s and state.unfinished[player, slot] > 0:
    yield from (int(c) for c in np.flatnonzero(functions.ability == constants.CANCEL))
    return
  kind = int(state.kind[player, slot])
  if slot >= s and rules.has_sentries and state.spell_loops[player, slot - s] < 0:
    kind = rules.types.local("Zealot")  # hallucinations move and attack only
  for function in np.flatnonzero(functions.capable[:, kind]).tolist():
    if functions.kind[function] in _MAKING:
      product = int(means.products[function])
      if not _is_equipped(game, player, slot, product):
        continue
      if rules.products.larva[product] and (
          game.battlefield.realistic or state.larvae[player, slot] == 0):
        continue
      alone = functions.kind[function] == constants.WARPING or _is_morph(rules, product)
      room = slot >= s or _has_room(rules, np.asarray(state.queue[player, slot]), alone)
      if room and _can_make(rules, means, product, free):
        yield function
    elif functions.kind[function] == constants.COMMAND:
      if _has_cargo_for(rules, state, player, slot, int(function)):
        yield function
    elif _can_use(rules, state, player, slot, int(functions.ability[function]), free):
      yield function


def _is_morph(rules: tables.Rules, product: int) -> bool:
  """Whether a product is a type that structures of another type morph into."""
  return product < len(rules.types.names) and bool(rules.types.morphed[product])


def _has_room(rules: tables.Rules, queue: np.ndarray, alone: bool) -> bool:
  """Whether a queue [5] takes another product; `alone`: nothing but larvae may be in work."""
  if queue[-1]:
    return False
  return not alone or not np.any((queue > 0) & ~rules.products.larva[queue])


def _has_cargo_for(rules: tables.Rules, state: State, player: int, slot: int,
                   function: int) -> bool:
  """Whether a worker carries what a command returns, or a transport has passengers or room."""
  verb, unit = rules.functions.verb[function], slot - rules.tier.structures
  if verb == constants.RETURN:
    return bool(state.cargo[player, unit] > 0)
  if verb == constants.LOAD:
    return bool(state.cargo_taken[player, unit] < rules.types.cargo_space.max())
  # The real game unloads at places; one passenger leaves by the panel.
  return verb != constants.UNLOAD or (
    bool(state.cargo_taken[player, unit] > 0)
    and rules.functions.names[function].startswith("UnloadAllAt"))


def _is_equipped(game: Game, player: int, slot: int, product: int) -> bool:
  """Whether a slot has the TechLab that a product needs; for an add-on: is idle and has none.

  A structure whose add-on is under construction, or that becomes a warp gate, makes nothing.
  """
  rules, attached = game.rules, game.frame().report.add_ons
  if slot >= rules.tier.structures or not product:
    return True
  add_on, first = int(attached.kind[player, slot]), int(game.state.queue[player, slot, 0])
  if add_ons.is_add_on(rules, product):
    return not add_on and not first
  if first and first == rules.types.warp_gate:  # a Gateway morphs, or a gate cools down
    return False
  finished = add_on if not attached.loops[player, slot] else 0
  return not add_ons.is_add_on(rules, first) and (
    not rules.products.add_on[product] or rules.types.add_on[finished] == constants.TECH_LAB)


def _can_use(rules: tables.Rules, state: State, player: int, slot: int, ability: int,
             free: bool) -> bool:
  """Whether a slot of a capable type can use an ability."""
  if ability in (constants.CLOAK, constants.DECLOAK):
    cloaked = bool(state.cloaked[player, slot - rules.tier.structures])
    if ability == constants.DECLOAK:
      return cloaked
    researched = state.upgrades[player, rules.upgrades.names.index("CloakingField")]
    return not cloaked and bool(researched) and (
      free or bool(state.energy[player, slot] >= constants.CLOAK_COST))
  if ability == constants.GUARD and state.spell_loops[player, slot - rules.tier.structures]:
    return False
  if ability in constants.ENERGY_COST:
    return free or bool(state.energy[player, slot] >= constants.ENERGY_COST[ability])
  if ability == constants.STIM:
    has = np.array([name == "Stimpack" for name in rules.upgrades.names])
    cost = constants.STIM_COST.get(rules.types.names[state.kind[player, slot]], 0.0)
    return bool(state.upgrades[player][has].any()) and (
      free or bool(state.health[player, slot] > cost))
  if ability == constants.CANCEL:
    return False  # finished
  if ability == constants.CANCEL_LAST:
    first = int(state.queue[player, slot, 0])
    return first > 0 and not add_ons.is_add_on(rules, first)
  return True

