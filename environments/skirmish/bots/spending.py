"""How scripted players use workers, minerals and vespene."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.bots import sites
from starleague.environments.skirmish.bots.scripts import Parameters, army_types
from starleague.environments.skirmish.bots.views import (
  Choice,
  View,
  able_structures,
  first_slots,
  make_choice,
  unit_slots,
)
from starleague.environments.skirmish.rules.state import add_ons
from starleague.environments.skirmish.rules.state.arrays import look_up, squared_distance
from starleague.environments.skirmish.rules.state.queries import is_geyser
from starleague.environments.skirmish.rules.state.state import Array
from starleague.environments.skirmish.rules.tables import constants, tables

MOST_QUEUED = 2  # products in the queue of a structure
SUPPLY_MARGIN = 6  # food left, in halves, below which more supply is ordered
SUPPLY_PER_PRODUCER = 3  # added to the margin for each structure that trains units
SUPPLY_FOOD = 16  # food in halves of a supply structure that is on its way
RICH = 300  # minerals beyond the price of the next building
MINERAL_WORKERS = 4  # with no more workers on minerals, none is sent to vespene


def mine(rules: tables.Rules, view: View) -> Choice:
  """Sends idle workers to the mineral patch nearest to the start that is not exhausted."""
  s, n = rules.tier.structures, rules.tier.slots
  idle = look_up(rules.types.worker, view.kind[s:]) & (view.verb == constants.IDLE)
  home_x, home_y = (view.side * place for place in rules.tier.home)
  square = squared_distance(home_x, home_y, view.patch_x, view.patch_y)
  minerals = (view.patches > 0) & ~is_geyser(rules)
  patch = jnp.argmin(jnp.where(minerals, square, jnp.inf))
  return make_choice(
    rules, jnp.any(minerals), "Harvest_Gather_unit",
    unit_slots(rules, first_slots(idle, rules.max_selected)), target=2 * n + patch)


def mine_gas(rules: tables.Rules, view: View) -> list[Choice]:
  """Sends a worker to a gas structure that has fewer than it can employ."""
  if not rules.has_gas:
    return []
  s, n, r = rules.tier.structures, rules.tier.slots, rules.tier.resources
  worker = look_up(rules.types.worker, view.kind[s:])
  gathers = worker & (view.verb == constants.GATHER)
  assigned = jnp.sum(gathers[:, None] & (view.target[:, None] == jnp.arange(r)), axis=0)
  short = view.tapped & (view.patches > 0) & (assigned < constants.WORKERS_PER_GEYSER)
  geyser = jnp.argmax(short)
  on_minerals = gathers & ~look_up(is_geyser(rules), jnp.maximum(view.target, 0))
  enough = jnp.sum(on_minerals) > MINERAL_WORKERS
  nearest = _nearest(rules, view, on_minerals, view.patch_x[geyser], view.patch_y[geyser])
  return [make_choice(
    rules, jnp.any(short) & enough, "Harvest_Gather_unit",
    unit_slots(rules, on_minerals & nearest), target=2 * n + geyser)]


def _nearest(rules: tables.Rules, view: View, units: Array, x: Array, y: Array) -> Array:
  """The one of the units [M] bool that is nearest to a place: [M] bool; slot 0 if there is none."""
  s = rules.tier.structures
  square = squared_distance(x, y, view.x[s:], view.y[s:])
  nearest = jnp.argmin(jnp.where(units, square, jnp.inf))
  return jnp.arange(rules.tier.units) == nearest


class _Assets(NamedTuple):
  """A player's possessions and producers, by local type [Y] and by structure slot [S]."""

  owned: Array  # [Y] int32: existing (or counting as it), ordered and in production
  counts_as: Array  # [S] int32: finished structures, by the type whose requirements they satisfy
  free: Array  # [S] bool: its queue takes another product
  makes: Array  # [S, Y] bool: free structures that make each type
  worker: Array  # [] int32: local type of the race's worker
  can_train_worker: Array  # [] bool


class _Option(NamedTuple):
  """A product to buy; several are [m] each."""

  product: Array  # int32: local product, 0 for none
  wanted: Array  # bool


class _Money(NamedTuple):
  """Minerals and vespene that are not reserved."""

  minerals: Array  # [] int32
  vespene: Array  # [] int32


class _Geyser(NamedTuple):
  """A geyser for the next gas structure."""

  free: Array  # [] bool: there is one
  target: Array  # [] int32, a target of Choice


def _race_type(rules: tables.Rules, flags: np.ndarray, race: Array) -> Array:
  """The first type of a race among those flagged [Y] bool: [] int32, 0 for none."""
  table = [int(np.argmax(flags & (rules.types.race == i))) if (
    flags & (rules.types.race == i)).any() else 0 for i in range(len(constants.RACES))]
  return look_up(np.array(table, np.int32), race)


def _assets(rules: tables.Rules, view: View) -> _Assets:
  types, products = rules.types, rules.products
  y = len(types.names)
  every = np.arange(y)
  ordered = (view.verb == constants.BUILD)[:, None] & (view.product[:, None] == every)
  brood = np.maximum(products.brood[:y], 1)
  in_production = jnp.sum(view.in_training[:, :, None] == every, axis=(0, 1)) * brood
  # A morphed structure is one of its original's kind, too.
  original = look_up(types.counts_as, view.kind)
  present = jnp.sum((view.kind[:, None] == every) | (original[:, None] == every), axis=0)
  free = view.queued < (constants.QUEUE_LENGTH if rules.has_larvae else MOST_QUEUED)
  if rules.has_larvae:
    free = jnp.where(look_up(types.larvae, view.standing), free, view.queued < MOST_QUEUED)
  if rules.has_add_ons:  # an add-on under construction is its structure's only product
    free &= ~add_ons.is_add_on(rules, view.in_training[:, 0])
  if rules.has_warp_gates:  # scripted players train in Gateways only
    free &= (view.standing != types.warp_gate) & (view.in_training[:, 0] != types.warp_gate)
  counts_as = look_up(types.counts_as, view.standing)
  makes = (counts_as[:, None] == products.producer[:y]) & free[:, None]
  worker = _race_type(rules, types.worker, view.race)
  return _Assets(
    owned=present + jnp.sum(ordered, axis=0) + in_production, counts_as=counts_as, free=free,
    makes=makes, worker=worker,
    can_train_worker=jnp.any(jnp.where((jnp.arange(y) == worker), makes, False)))


def _free_geyser(rules: tables.Rules, view: View) -> _Geyser | None:
  if not rules.has_gas:
    return None
  free, index = sites.free_geyser(rules, view)
  return _Geyser(free, 2 * rules.tier.slots + index)


def _missing_buildings(rules: tables.Rules, script: Parameters, view: View, assets: _Assets,
                       geyser: _Geyser | None) -> Array:
  """Entries of the build order [B] bool that are not built yet and have a slot and a geyser."""
  types, unarmed = rules.types, rules.tier.unarmed
  empty = view.kind[:rules.tier.structures] == 0
  room = jnp.where(types.fighter & types.structure,
                   jnp.any(empty[unarmed:]), jnp.any(empty[:unarmed]))
  if geyser is not None:
    room &= geyser.free | ~types.gas
  building = jnp.asarray(script.building)
  return (building > 0) & (assets.owned[building] < script.total) & room[building]


def _next_building(rules: tables.Rules, script: Parameters, key: jax.Array, view: View,
                   assets: _Assets, geyser: _Geyser | None) -> _Option:
  """The next building of the plan. Wanted: enough workers and fighters, and its requirement stands.

  Buildings come in order. A rich player draws any missing one, so that one without a site does not
  block the others.
  """
  types, products, owned = rules.types, rules.products, assets.owned
  missing = _missing_buildings(rules, script, view, assets, geyser)
  in_order = jnp.arange(len(missing), dtype=jnp.float32)
  price = jnp.asarray(products.minerals)[script.building[jnp.argmax(missing)]]
  rank = jnp.where(view.minerals >= price + RICH, jax.random.uniform(key, missing.shape), in_order)
  entry = jnp.argmin(jnp.where(missing, rank, jnp.inf))
  building = script.building[entry]
  # A missing requirement is built first.
  needed = look_up(products.requirement, building)
  absent = (needed > 0) & (owned[needed] == 0) & ~_stands(view, assets, needed)
  base = types.townhall & types.worker[products.producer[:len(types.names)]]
  building = jnp.where(absent & ~look_up(base, needed), needed, building)
  needed = look_up(products.requirement, building)
  stands = (needed == 0) | _stands(view, assets, needed)
  fighters = jnp.sum(owned * (types.fighter & ~types.structure))
  ready = (owned[assets.worker] >= script.at_workers[entry]) & (
    fighters >= script.at_fighters[entry])
  enough_workers = owned[assets.worker] >= script.workers
  return _Option(building, jnp.any(missing) & enough_workers & ready & stands)


def _stands(view: View, assets: _Assets, needed: Array) -> Array:
  """Whether a finished structure is of a type [], or counts as it: [] bool."""
  return jnp.any((view.standing == needed) | (assets.counts_as == needed))


def _supply(rules: tables.Rules, view: View, assets: _Assets) -> _Option:
  """The race's supply type. Wanted: little food is left, including that on its way."""
  types, products = rules.types, rules.products
  if rules.tier.townhall_food:  # a tier without supply types
    return _Option(jnp.int32(0), jnp.array(False))
  s = rules.tier.structures
  supply = _race_type(rules, (types.gives_food > 0) & ~types.townhall, view.race)
  coming = assets.owned[supply] - jnp.sum(view.standing == supply) - jnp.sum(
    view.kind[s:] == supply)
  trains = np.isin(np.arange(len(types.names)), products.producer[products.brood > 0])
  margin = SUPPLY_MARGIN + SUPPLY_PER_PRODUCER * jnp.sum(look_up(trains, view.standing))
  food = coming * SUPPLY_FOOD
  return _Option(supply, (view.food_left + food < margin) & (
    view.food_most + food < 2 * rules.tier.food_cap))


def _spare_money(rules: tables.Rules, view: View, building: _Option, supply: _Option) -> _Money:
  """Money not reserved for ordered buildings, supply and the next building."""
  def spare(money: Array, prices: Array) -> Array:
    ordered: Array | int = jnp.sum(
      jnp.where(view.verb == constants.BUILD, prices[view.product], 0))
    if rules.tier.minerals_only:
      ordered = 0
    return money - ordered - supply.wanted * prices[supply.product] - (
      building.wanted * prices[building.product])

  return _Money(spare(view.minerals, jnp.asarray(rules.products.minerals)),
                spare(view.vespene, jnp.asarray(rules.products.vespene)))


def _affords(rules: tables.Rules, money: _Money, product: Array | np.ndarray) -> Array:
  return (money.minerals >= jnp.asarray(rules.products.minerals)[product]) & (
    money.vespene >= jnp.asarray(rules.products.vespene)[product])


def _fighter(rules: tables.Rules, script: Parameters, view: View, assets: _Assets,
             money: _Money) -> _Option:
  """The affordable fighter that the army lacks most by food. Wanted: it can be trained now."""
  types, y = rules.types, len(rules.types.names)
  weight = np.where(types.takes_food > 0, types.takes_food / 2, 1) * army_types(rules)
  food = assets.owned * weight
  lack = script.share * (jnp.sum(food) + 2.0) - food
  trains = (script.share > 0) & jnp.any(assets.makes, axis=0) & view.can[
    rules.products.function[:y]] & _affords(rules, money, np.arange(y))
  return _Option(jnp.argmax(jnp.where(trains, lack, -jnp.inf)), jnp.any(trains))


def _upgrade(rules: tables.Rules, script: Parameters, view: View, money: _Money) -> _Option:
  """The first upgrade of the plan that is neither researched nor in research."""
  if not rules.has_upgrades:
    return _Option(jnp.int32(0), jnp.array(False))
  level = jnp.maximum(script.upgrade - len(rules.types.names), 0)
  open_ = (script.upgrade > 0) & ~view.upgrades[level] & ~jnp.any(
    view.in_training.reshape(-1) == script.upgrade[:, None], axis=1)
  upgrade = script.upgrade[jnp.argmax(open_)]
  return _Option(upgrade, jnp.any(open_) & _affords(rules, money, upgrade))


def _options(rules: tables.Rules, script: Parameters, view: View, assets: _Assets,
             building: _Option, supply: _Option) -> _Option:
  """All products to consider, most urgent first: [7] each."""
  money = _spare_money(rules, view, building, supply)
  fighter = _fighter(rules, script, view, assets, money)
  upgrade = _upgrade(rules, script, view, money)
  worker, workers, idle = assets.worker, assets.owned[assets.worker], assets.can_train_worker
  # More workers than the bases employ bring nothing.
  patches_per_base = sum(not gas for gas in rules.tier.geysers) // len(rules.tier.homes)
  bases = jnp.sum(look_up(rules.types.townhall, view.kind[:rules.tier.structures]))
  employed = constants.WORKERS_PER_PATCH * patches_per_base * bases + (
    constants.WORKERS_PER_GEYSER * jnp.sum(view.tapped))
  useful = workers < jnp.minimum(employed, script.most_workers)
  options = _Option(*(jnp.stack(values) for values in zip(
    _Option(worker, (workers < script.workers) & idle),
    supply,
    _Option(worker, jnp.asarray(script.greedy) & useful & idle),
    building,
    upgrade,
    _Option(worker, useful & _affords(rules, money, worker) & idle),
    fighter, strict=True)))
  available = view.can[jnp.asarray(rules.products.function)[options.product]]
  return options._replace(wanted=options.wanted & (options.product > 0) & available)


def _site(rules: tables.Rules, key: jax.Array, view: View, product: Array,
          geyser: _Geyser | None) -> tuple[Array, Array, Array, Array]:
  """A site for a structure: whether there is one, x, y, and the target of its command."""
  types, y = rules.types, len(rules.types.names)
  fits, site_x, site_y = sites.site(rules, key, view, jnp.where(product < y, product, 0))
  if geyser is None:
    return fits, site_x, site_y, jnp.int32(0)
  gas = look_up(_of_products(rules, types.gas), product)
  return (jnp.where(gas, geyser.free, fits), site_x, site_y,
          jnp.where(gas, geyser.target, 0))


def _of_products(rules: tables.Rules, flags: np.ndarray) -> np.ndarray:
  """Flags of local types [Y] as flags of products [P], False for upgrades."""
  return np.append(flags, np.zeros(len(rules.products.function) - len(flags), bool))


def _producers(rules: tables.Rules, view: View, assets: _Assets, product: Array, built: Array,
               x: Array, y: Array) -> Array:
  """The producer of a product: one builder, or the structure with the shortest queue. [n] bool."""
  s = rules.tier.structures
  workers = look_up(rules.types.worker, view.kind[s:]) & (
    (view.verb == constants.GATHER) | (view.verb == constants.IDLE))
  trainers = (assets.counts_as == look_up(rules.products.producer, product)) & assets.free
  trainers &= able_structures(rules, view, product)
  shortest = jnp.min(jnp.where(trainers, view.queued, constants.QUEUE_LENGTH))
  if rules.tier.minerals_only:
    builder = first_slots(workers & built, 1)
  else:
    builder = workers & built & _nearest(rules, view, workers, x, y)
  return jnp.concatenate([
    first_slots(trainers & (view.queued == shortest) & ~built, 1), builder])


def spend(rules: tables.Rules, script: Parameters, key: jax.Array, view: View) -> Choice:
  """Buys the most urgent product that is possible.

  In order: the plan's first workers, supply, the next building (after all workers for greedy
  players), an upgrade, further workers, a fighter.
  """
  building_key, site_key = jax.random.split(key)
  assets, geyser = _assets(rules, view), _free_geyser(rules, view)
  building = _next_building(rules, script, building_key, view, assets, geyser)
  supply = _supply(rules, view, assets)
  options = _options(rules, script, view, assets, building, supply)
  product, wanted = options.product[jnp.argmax(options.wanted)], options.wanted
  # Add-ons and morphs are made by structures, all other structures by workers.
  maker = rules.types.worker[rules.products.producer[:len(rules.types.names)]]
  structure = _of_products(rules, rules.types.structure & maker)
  built = look_up(structure, product)
  fits, x, y, target = _site(rules, site_key, view, product, geyser)
  # A structure without a site does not block the rest.
  others = wanted & ~look_up(structure, options.product)
  blocked = built & ~fits
  product = jnp.where(blocked, options.product[jnp.argmax(others)], product)
  built &= fits
  wanted = jnp.where(blocked, others, wanted)
  slots = _producers(rules, view, assets, product, built, x, y)
  return make_choice(rules, jnp.any(wanted), jnp.asarray(rules.products.function)[product], slots,
                     x, y, target)
