"""What scripted players do with workers and money."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.bots import sites
from starleague.environments.skirmish.bots.scripts import Parameters, army_types
from starleague.environments.skirmish.bots.views import Choice, View, choose, first
from starleague.environments.skirmish.rules import constants, tables
from starleague.environments.skirmish.rules.arrays import look_up
from starleague.environments.skirmish.rules.queries import is_geyser
from starleague.environments.skirmish.rules.state import Array

MOST_QUEUED = 2  # in the making at once in a building
SUPPLY_MARGIN = 6  # food in halves that is left when the next supply is ordered
SUPPLY_PER_PRODUCER = 3  # and more of it for each structure that trains
MONEY_TO_BURN = 300  # minerals beyond the price of what is next


def mine(rules: tables.Rules, see: View) -> Choice:
  """Idle workers to the nearest patch that has minerals."""
  s, n = rules.tier.structures, rules.tier.slots
  idle = look_up(rules.types.worker, see.kind[s:]) & (see.verb == constants.IDLE)
  slots = jnp.concatenate([jnp.zeros(s, bool), first(idle, rules.max_selected)])
  home_x, home_y = (see.side * place for place in rules.tier.home)
  apart = (see.patch_x - home_x) ** 2 + (see.patch_y - home_y) ** 2
  mineral = (see.patches > 0) & ~is_geyser(rules)
  patch = jnp.argmin(jnp.where(mineral, apart, jnp.inf))
  return choose(rules, jnp.any(mineral), "Harvest_Gather_unit", slots, target=2 * n + patch)


def mine_gas(rules: tables.Rules, see: View) -> list[Choice]:
  """A worker to a gas structure that has room for one."""
  if not rules.has_gas:
    return []
  s, n, r = rules.tier.structures, rules.tier.slots, rules.tier.resources
  worker = look_up(rules.types.worker, see.kind[s:])
  gathers = worker & (see.verb == constants.GATHER)
  at = gathers[:, None] & (see.target[:, None] == jnp.arange(r))
  assigned = jnp.sum(at, axis=0)
  short = see.tapped & (see.patches > 0) & (assigned < constants.WORKERS_PER_GEYSER)
  geyser = jnp.argmax(short)
  on_minerals = gathers & ~look_up(is_geyser(rules), jnp.maximum(see.target, 0))
  # At least as many go on mining minerals.
  enough = jnp.sum(on_minerals) > 4
  square = (see.x[s:] - see.patch_x[geyser]) ** 2 + (see.y[s:] - see.patch_y[geyser]) ** 2
  nearest = jnp.argmin(jnp.where(on_minerals, square, jnp.inf))
  one = on_minerals & (jnp.arange(rules.tier.units) == nearest)
  slots = jnp.concatenate([jnp.zeros(s, bool), one])
  return [choose(rules, jnp.any(short) & enough, "Harvest_Gather_unit", slots,
                  target=2 * n + geyser)]


def _race_types(rules: tables.Rules, flags: np.ndarray, race: Array) -> Array:
  """The local type flagged of a race: [] int32, 0 for none."""
  table = [int(np.argmax(flags & (rules.types.race == i))) if (
    flags & (rules.types.race == i)).any() else 0 for i in range(len(constants.RACES))]
  return look_up(np.array(table, np.int32), race)


def spend(rules: tables.Rules, script: Parameters, key: Array, see: View) -> Choice:
  """Some workers, supply, then the next building, upgrades, more workers, then the army."""
  types_, products, s = rules.types, rules.products, rules.tier.structures
  keys = jax.random.split(key)
  y_, every = len(types_.names), np.arange(len(types_.names))
  makers = products.function  # the function that makes a type
  on_the_way = (see.verb == constants.BUILD)[:, None] & (see.product[:, None] == every)
  brood = np.maximum(products.brood[:y_], 1)
  in_making = jnp.sum(see.in_training[:, :, None] == every, axis=(0, 1)) * brood
  present = jnp.sum(see.kind[:, None] == every, axis=0)
  have = present + jnp.sum(on_the_way, axis=0) + in_making
  free = see.queued < (constants.QUEUE_LENGTH if rules.has_larvae else MOST_QUEUED)
  if rules.has_larvae:
    free = jnp.where(look_up(types_.larvae, see.standing), free, see.queued < MOST_QUEUED)
  counts_as = look_up(types_.counts_as, see.standing)
  makes = (counts_as[:, None] == products.producer[:y_]) & free[:, None]
  minerals, vespene = jnp.asarray(products.minerals), jnp.asarray(products.vespene)

  worker = _race_types(rules, types_.worker, see.race)
  # What has no room is passed over as long as it has none: it must not keep the rest waiting.
  shoots = types_.fighter & types_.structure
  empty = see.kind[:s] == 0
  room = jnp.where(shoots, jnp.any(empty[rules.tier.unarmed:]), jnp.any(empty[:rules.tier.unarmed]))
  target = jnp.int32(0)
  if rules.has_gas:
    vent, geyser = sites.geyser(rules, see)
    target = 2 * rules.tier.slots + geyser
    room &= vent | ~types_.gas
  missing = (script.building > 0) & (have[script.building] < script.count) & room[script.building]
  # In order; but nobody who has money to burn waits for one that finds no place.
  in_turn = jnp.arange(len(missing), dtype=jnp.float32)
  rich = see.minerals >= minerals[script.building[jnp.argmax(missing)]] + MONEY_TO_BURN
  turn = jnp.where(rich, jax.random.uniform(keys[0], missing.shape), in_turn)
  next_ = jnp.argmin(jnp.where(missing, turn, jnp.inf))
  building = script.building[next_]
  # What must stand first comes first.
  needed = look_up(products.requirement, building)
  absent = (needed > 0) & (have[needed] == 0) & ~jnp.any(counts_as == needed)
  building = jnp.where(absent & ~look_up(types_.townhall, needed), needed, building)
  needed = look_up(products.requirement, building)
  mobile = types_.fighter & ~types_.structure
  ready = (have[worker] >= script.at_workers[next_]) & (
    jnp.sum(have * mobile) >= script.at_fighters[next_])
  saves = jnp.any(missing) & (have[worker] >= script.workers) & ready & (
    (needed == 0) | jnp.any(counts_as == needed))
  supply, hungry = jnp.int32(0), jnp.array(False)
  if not rules.tier.townhall_food:
    gives = (types_.gives_food > 0) & ~types_.townhall
    supply = _race_types(rules, gives, see.race)
    coming = (have[supply] - jnp.sum(see.standing == supply) - jnp.sum(see.kind[s:] == supply))
    trainers = jnp.sum(look_up(np.isin(every, products.producer[products.brood > 0]),
                               see.standing))
    margin = SUPPLY_MARGIN + SUPPLY_PER_PRODUCER * trainers
    hungry = (see.food_left + coming * 16 < margin) & (
      see.food_most + coming * 16 < 2 * rules.tier.food_cap)

  def left(have_, prices):
    """What of the money is not promised: to builders on their way, supply, the next building."""
    promised = jnp.sum(jnp.where(see.verb == constants.BUILD, prices[see.product], 0))
    if rules.tier.minerals_only:
      promised = 0
    return have_ - promised - hungry * prices[supply] - saves * prices[building]

  spare, spare_gas = left(see.minerals, minerals), left(see.vespene, vespene)

  def affords(product):
    return (spare >= minerals[product]) & (spare_gas >= vespene[product])

  # The fighter that the army lacks most, of those that can be trained at once.
  weight = np.where(types_.takes_food > 0, types_.takes_food / 2, 1) * army_types(rules)
  eaten = have * weight
  lack = script.share * (jnp.sum(eaten) + 2.0) - eaten
  trains = (script.share > 0) & jnp.any(makes, axis=0) & see.can[makers[:y_]] & (
    affords(every))
  fighter = jnp.argmax(jnp.where(trains, lack, -jnp.inf))
  idle_hall = jnp.any(jnp.where((jnp.arange(y_) == worker), makes, False))
  upgrade, improves = jnp.int32(0), jnp.array(False)
  if rules.has_upgrades:
    level = jnp.maximum(script.upgrade - y_, 0)
    open_ = (script.upgrade > 0) & ~see.upgrades[level] & ~jnp.any(
      see.in_training.reshape(-1) == script.upgrade[:, None], axis=1)
    upgrade = script.upgrade[jnp.argmax(open_)]
    improves = jnp.any(open_) & affords(upgrade)
  # More workers than its bases hold bring nothing; one who thinks of later has those first.
  minerals_per_base = sum(not gas for gas in rules.tier.geysers) // len(rules.tier.homes)
  filled = constants.WORKERS_PER_PATCH * minerals_per_base * jnp.sum(
    look_up(types_.townhall, see.kind[:s])) + constants.WORKERS_PER_GEYSER * jnp.sum(see.tapped)
  useful = have[worker] < jnp.minimum(filled, script.most_workers)
  wanted_products = jnp.stack([worker, supply, worker, building, upgrade, worker, fighter])
  wanted = jnp.stack([
    (have[worker] < script.workers) & idle_hall, hungry, script.greedy & useful & idle_hall, saves,
    improves,
    useful & affords(worker) & idle_hall, jnp.any(trains)])
  wanted &= (wanted_products > 0) & see.can[jnp.asarray(makers)[wanted_products]]
  product = wanted_products[jnp.argmax(wanted)]
  structure = np.append(types_.structure, np.zeros(len(makers) - y_, bool))
  built = look_up(structure, product)
  fits, x, y = sites.site(rules, keys[1], see, jnp.where(product < y_, product, 0))
  if rules.has_gas:
    gas = look_up(np.append(types_.gas, np.zeros(len(makers) - y_, bool)), product)
    fits = jnp.where(gas, vent, fits)
    target = jnp.where(gas, target, 0)
  # What has no place must not keep the rest waiting.
  others = wanted & ~look_up(structure, wanted_products)
  lost = built & ~fits
  product = jnp.where(lost, wanted_products[jnp.argmax(others)], product)
  built &= fits
  wanted = jnp.where(lost, others, wanted)
  miners = look_up(types_.worker, see.kind[s:]) & (
    (see.verb == constants.GATHER) | (see.verb == constants.IDLE))
  producer = look_up(products.producer, product)
  trainers = (counts_as == producer) & free
  least = jnp.min(jnp.where(trainers, see.queued, constants.QUEUE_LENGTH))
  # Among several builders the nearest goes.
  if rules.tier.minerals_only:
    builders = first(miners & built, 1)
  else:
    square = (see.x[s:] - x) ** 2 + (see.y[s:] - y) ** 2
    builders = miners & built & (
      jnp.arange(rules.tier.units) == jnp.argmin(jnp.where(miners, square, jnp.inf)))
  slots = jnp.concatenate([
    first(trainers & (see.queued == least) & ~built, 1), builders])
  return choose(rules, jnp.any(wanted), jnp.asarray(makers)[product], slots, x, y, target)
