"""Scripted players: opponents of known manners, and the teachers of the first demonstrations.

A player is one of `scripts.scripts_of(tier)`. At each decision it lists what it might do, in the
order of how pressing it is, and does the first that is possible: it defends, attacks, uses what its
units can do, mines with idle workers, then spends. It knows what its observation shows and no more
(but for those that are said to cheat), and acts through the same actions as an agent.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor.environments.skirmish import (
  economy,
  observation,
  orders,
  scripts,
  tables,
)
from starleague.actor.environments.skirmish.skirmish import place_to_location
from starleague.actor.environments.skirmish.state import (
  Array,
  State,
  finished_kind,
  flip,
  food,
  geyser_taps,
  geysers,
  look_up,
  resource_places,
)
from starleague.agent import types, vocabulary

HOME_RADIUS = 9.0  # an enemy this near to an own structure is a threat
MOST_QUEUED = 2  # in the making at once in a building
SITES = 24  # places that a builder considers
SITE_SPREAD = (-7.0, 9.0)  # around a base, towards the middle of the map; mini's is smaller
MINI_SPREAD = (-4.0, 7.0)
SIEGE_RANGE, SIEGE_GIVES_UP = 12.0, 15.0  # an enemy this near, none this near
IN_COMBAT = 7.0  # an enemy this near: time for a dose
SUPPLY_MARGIN = 6  # food in halves that is left when the next supply is ordered
SUPPLY_PER_PRODUCER = 3  # and more of it for each structure that trains
AT_BASE = 5.0  # a town hall this near takes a base's place

SCRIPTED = scripts.names_of("mini")
RANDOM = SCRIPTED.index("random_player")


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


class View(NamedTuple):
  """A game from one player's place: unbatched arrays of what it knows."""

  side: Array  # [] float32
  race: Array  # [] int32
  kind: Array  # [n]
  x: Array  # [n]
  y: Array
  health: Array  # [n]
  energy: Array  # [n] or [0]
  verb: Array  # [M]
  target: Array  # [M]
  product: Array  # [M]
  standing: Array  # [S] local types of finished structures
  queued: Array  # [S] how many are in the making
  in_training: Array  # [S, 5] products
  injected: Array  # [S] or [0]
  boosted: Array  # [S] or [0]
  stimmed: Array  # [M] or [0]
  minerals: Array  # []
  vespene: Array  # []
  food_left: Array  # [] halves
  food_most: Array  # [] halves
  upgrades: Array  # [U] bool
  can: Array  # [C] bool
  row: Array  # [2 n + R]
  present: Array  # [2 n + R] bool
  enemy: Array  # [n] bool: in sight
  enemy_kind: Array  # [n]
  enemy_x: Array
  enemy_y: Array
  known: Array  # [S] bool: enemy structures remembered or in sight
  known_x: Array
  known_y: Array
  home_seen: Array  # [] bool: the enemy's home is in sight
  patch_x: Array  # [R]
  patch_y: Array
  patches: Array  # [R]
  tapped: Array  # [R] bool: geysers with an own gas structure
  buildable: Array  # [G, G] bool in its own frame; [0, 0] on flat open maps


class Choice(NamedTuple):
  """An order in slots, to be written as an action."""

  wanted: Array  # [] bool
  function: Array  # [] local
  slots: Array  # [n] bool
  x: Array
  y: Array
  target: Array  # [] int32, of the 2 n + R candidates for rows
  repeat: Array  # [] 1 to 3


def view(rules: tables.Rules, state: State, player: Array, vision: Array | bool = False) -> View:
  """What a player knows, as slots rather than rows.

  Args:
    rules: the game's constants.
    state: the game.
    player: [] int32, 0 or 1.
    vision: [] bool: sees all of the enemy.
  """
  tier, memory = rules.tier, state.memory
  used, most = food(rules, state)
  sight = observation.rows_of(rules, state)
  patch_x, patch_y = resource_places(rules, state.side)
  home = state.side[:, None] * np.array(tier.home, np.float32)
  sees = jnp.any(
    ((state.x + home[:, :1]) ** 2 + (state.y + home[:, 1:]) ** 2 < 16.0) & (state.kind > 0), axis=1)
  their_kind, their_x, their_y = flip(state.kind), flip(state.x), flip(state.y)
  s = tier.structures
  all_structures = (their_kind[:, :s] > 0) & vision
  ground = np.zeros((1, 0, 0), bool) if rules.terrain is None else rules.terrain.buildable
  buildable = jnp.asarray(ground)[state.match_up.map_index % len(ground)]
  tapped = geyser_taps(rules, state) if rules.has_gas else jnp.zeros(patch_x.shape, bool)
  both = View(
    side=state.side, race=state.race, kind=state.kind, x=state.x, y=state.y, health=state.health,
    energy=state.energy, verb=state.orders.verb, target=state.orders.target,
    product=state.orders.product, standing=finished_kind(rules, state),
    queued=jnp.sum(state.queue > 0, axis=2), in_training=state.queue, injected=state.injected,
    boosted=state.boosted, stimmed=state.stimmed, minerals=state.minerals,
    vespene=state.vespene, food_left=most - used, food_most=most, upgrades=state.upgrades,
    can=orders.available(rules, state), row=sight.row, present=sight.present,
    enemy=memory.seen | ((their_kind > 0) & vision), enemy_kind=their_kind, enemy_x=their_x,
    enemy_y=their_y, known=(memory.kind > 0) | all_structures,
    known_x=jnp.where(all_structures, their_x[:, :s], memory.x),
    known_y=jnp.where(all_structures, their_y[:, :s], memory.y), home_seen=sees, patch_x=patch_x,
    patch_y=patch_y, patches=memory.patches, tapped=tapped,
    buildable=jnp.broadcast_to(buildable, (2, *buildable.shape)))
  return jax.tree.map(lambda values: jnp.where(player == 0, values[0], values[1]), both)


def _first(slots: Array, most: Array | int) -> Array:
  return slots & (jnp.cumsum(slots) <= most)


def _choice(rules, wanted, function, slots, x=0.0, y=0.0, target=0, repeat=1) -> Choice:
  local = rules.functions.names.index(function) if isinstance(function, str) else function
  return Choice(
    jnp.asarray(wanted, bool) & jnp.any(slots), jnp.asarray(local, jnp.int32), slots,
    jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.asarray(target, jnp.int32),
    jnp.asarray(repeat, jnp.int32))


@functools.cache
def parameters(rules: tables.Rules) -> Parameters:
  """A tier's scripts as arrays over its local types and products."""
  players, names = scripts.scripts_of(rules.tier.name), rules.types.names
  races = max(rules.races) + 1
  plans = [[dict(script.plans).get(tables.RACES[race]) for race in range(races)]
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
    random=np.array([script.random for script in players]))


def incomes(tier: str) -> np.ndarray:
  """Percent of what is mined that each scripted player gets: [P] int32, for `State.income`."""
  return np.array([script.skill.income for script in scripts.scripts_of(tier)], np.int32)


def _army(rules: tables.Rules, kind: Array) -> Array:
  """Units [M] that attack together: those that fight, and those that heal them."""
  flags = rules.types.fighter & ~rules.types.structure
  flags[rules.types.local("Medivac")] = True
  flags[0] = False
  return look_up(flags, kind)


def _near_enemy(see: View, x: Array, y: Array, radius: float, chosen: Array | None = None) -> Array:
  """Whether an enemy in sight (or one of those chosen) is near each place: [m] bool."""
  enemy = see.enemy if chosen is None else see.enemy & chosen
  square = (see.enemy_x[:, None] - x) ** 2 + (see.enemy_y[:, None] - y) ** 2
  return jnp.any(enemy[:, None] & (square < radius ** 2), axis=0)


def _fight(rules: tables.Rules, script: Parameters, key: Array, see: View) -> list[Choice]:
  """Defence, then attack, then more for the attack."""
  s, k = rules.tier.structures, rules.max_selected
  units = see.kind[s:]
  army = _army(rules, units)
  busy = (see.verb == tables.ATTACK) | (see.verb == tables.ATTACK_UNIT)
  own = see.kind[:s] > 0
  near = ((see.enemy_x[:, None] - see.x[:s]) ** 2 + (see.enemy_y[:, None] - see.y[:s]) ** 2
          < HOME_RADIUS ** 2) & own & see.enemy[:, None]
  threat = jnp.any(near, axis=1)
  if rules.has_flyers:  # whoever only looks is no threat
    threat &= look_up(rules.types.fighter | rules.types.worker, see.enemy_kind)
  weight = threat / jnp.maximum(jnp.sum(threat), 1)
  threat_x = jnp.sum(weight * see.enemy_x)
  threat_y = jnp.sum(weight * see.enemy_y)
  free = army & ~busy
  none = jnp.zeros(s, bool)

  def slots(chosen):
    return jnp.concatenate([none, _first(chosen, k)])

  # The nearest structure that is known of, else the enemy's home, else anywhere.
  home_x, home_y = (see.side * place for place in rules.tier.home)
  apart = jnp.where(see.known, (see.known_x - home_x) ** 2 + (see.known_y - home_y) ** 2, jnp.inf)
  nearest = jnp.argmin(apart)
  keys = jax.random.split(key, 2)
  anywhere = jax.random.uniform(keys[0], (2,), minval=-rules.half + 1, maxval=rules.half - 1)
  if len(rules.tier.homes) > 1:  # one of the places where there may be a base
    bases = jnp.asarray(np.array(rules.tier.homes, np.float32))
    anywhere = -bases[jax.random.randint(keys[0], (), 0, len(rules.tier.homes))]
  guess = jnp.where(see.home_seen, see.side * anywhere, -jnp.stack([home_x, home_y]))
  aim = jnp.where(jnp.any(see.known), jnp.stack([see.known_x[nearest], see.known_y[nearest]]),
                  guess)
  # Behind the enemy's home its workers mine.
  behind = -jnp.stack([home_x, home_y]) * (1 + 4.0 / abs(rules.tier.home[0]))
  aim = jnp.where(script.harass & ~see.home_seen, behind, aim)
  aim = aim + see.side * script.noise * jax.random.uniform(keys[1], (2,), minval=-1.0, maxval=1.0)
  waiting, under_way = jnp.sum(free), jnp.sum(army & busy)
  goes = (waiting >= script.attack) | (
    (waiting >= script.reinforce) & (under_way >= script.reinforce))
  # At the most food that there is, waiting longer gains nothing.
  if not rules.tier.at_par:
    full = (see.food_left < 4) & (see.food_most >= 2 * rules.tier.food_cap)
    goes |= full & (waiting >= jnp.minimum(script.reinforce, script.attack // 2 + 1)) & (
      script.attack < scripts.NEVER)
  return [
    _choice(rules, jnp.any(threat), "Attack_pt", slots(free), threat_x, threat_y),
    _choice(rules, goes, "Attack_pt", slots(free), aim[0], aim[1])]


def _abilities(rules: tables.Rules, script: Parameters, see: View) -> list[Choice]:
  """Doses, sieges, larvae, boosts and scans, of whoever knows how."""
  s, k = rules.tier.structures, rules.max_selected
  local = rules.types.local
  units, x, y = see.kind[s:], see.x[s:], see.y[s:]
  none = jnp.zeros(s, bool)
  found = []

  def add(function, chosen, x=0.0, y=0.0, target=0, most=k):
    found.append(_choice(rules, script.abilities, function, _first(chosen, most), x, y, target))

  if rules.has(tables.STIM):
    fresh = (see.stimmed == 0) & (see.health[s:] > 25.0) & _near_enemy(see, x, y, IN_COMBAT)
    takes = look_up(np.array([name in orders.STIM_COST for name in rules.types.names]), units)
    add("Effect_Stim_quick", jnp.concatenate([none, fresh & takes]))
  if rules.has(tables.SIEGE):
    ground = look_up(~rules.types.flying, see.enemy_kind)
    near = _near_enemy(see, x, y, SIEGE_RANGE, ground)
    far = ~_near_enemy(see, x, y, SIEGE_GIVES_UP, ground)
    add("Morph_SiegeMode_quick",
        jnp.concatenate([none, near & (units == local("SiegeTank"))]))
    add("Morph_Unsiege_quick",
        jnp.concatenate([none, far & (units == local("SiegeTankSieged"))]))
  if rules.has(tables.INJECT):
    waits = look_up(rules.types.larvae, see.standing) & (see.injected == 0)
    queens = jnp.concatenate([none, units == local("Queen")]) & (
      see.energy >= orders.INJECT_ENERGY)
    add("Effect_InjectLarva_unit", queens & jnp.any(waits), target=jnp.argmax(waits), most=1)
  if rules.has(tables.BOOST):
    works = (see.queued > 0) & (see.boosted == 0) & (see.standing > 0)
    halls = jnp.pad(see.standing == local("Nexus"), (0, rules.tier.units)) & (
      see.energy >= orders.BOOST_ENERGY)
    add("Effect_ChronoBoostEnergyCost_unit", halls & jnp.any(works), target=jnp.argmax(
      works * see.queued), most=1)
  if rules.has(tables.SCAN):
    orbital = jnp.pad(see.standing == local("OrbitalCommand"), (0, rules.tier.units)) & (
      see.energy >= 2 * orders.SCAN_ENERGY)
    add("Effect_Scan_pt", orbital & ~see.home_seen, -see.side * rules.tier.home[0],
        -see.side * rules.tier.home[1], most=1)
  return found


def _gather(rules: tables.Rules, see: View) -> Choice:
  """Idle workers to the nearest patch that has minerals."""
  s, n = rules.tier.structures, rules.tier.slots
  idle = look_up(rules.types.worker, see.kind[s:]) & (see.verb == tables.IDLE)
  slots = jnp.concatenate([jnp.zeros(s, bool), _first(idle, rules.max_selected)])
  home_x, home_y = (see.side * place for place in rules.tier.home)
  apart = (see.patch_x - home_x) ** 2 + (see.patch_y - home_y) ** 2
  mineral = (see.patches > 0) & ~geysers(rules)
  patch = jnp.argmin(jnp.where(mineral, apart, jnp.inf))
  return _choice(rules, jnp.any(mineral), "Harvest_Gather_unit", slots, target=2 * n + patch)


def _gas(rules: tables.Rules, see: View) -> list[Choice]:
  """A worker to a gas structure that has room for one."""
  if not rules.has_gas:
    return []
  s, n, r = rules.tier.structures, rules.tier.slots, rules.tier.resources
  worker = look_up(rules.types.worker, see.kind[s:])
  gathers = worker & (see.verb == tables.GATHER)
  at = gathers[:, None] & (see.target[:, None] == jnp.arange(r))
  assigned = jnp.sum(at, axis=0)
  short = see.tapped & (see.patches > 0) & (assigned < economy.FULL_GEYSER)
  geyser = jnp.argmax(short)
  on_minerals = gathers & ~look_up(geysers(rules), jnp.maximum(see.target, 0))
  # At least as many go on mining minerals.
  enough = jnp.sum(on_minerals) > 4
  square = (see.x[s:] - see.patch_x[geyser]) ** 2 + (see.y[s:] - see.patch_y[geyser]) ** 2
  nearest = jnp.argmin(jnp.where(on_minerals, square, jnp.inf))
  one = on_minerals & (jnp.arange(rules.tier.units) == nearest)
  slots = jnp.concatenate([jnp.zeros(s, bool), one])
  return [_choice(rules, jnp.any(short) & enough, "Harvest_Gather_unit", slots,
                  target=2 * n + geyser)]


def _site(rules: tables.Rules, key: Array, see: View, product: Array) -> tuple[Array, Array, Array]:
  """A free place for a structure: whether there is one, and x, y."""
  types_, s, tier = rules.types, rules.tier.structures, rules.tier
  low, high = SITE_SPREAD if len(tier.homes) > 1 else MINI_SPREAD
  keys = jax.random.split(key)
  spread = jax.random.uniform(keys[0], (SITES, 2), minval=low, maxval=high)
  around_x, around_y = tier.home
  if len(tier.homes) > 1:
    homes = np.array(tier.homes, np.float32)
    hall = look_up(types_.townhall, see.kind[:s])
    apart = ((see.side * see.x[:s, None] - homes[:, 0]) ** 2
             + (see.side * see.y[:s, None] - homes[:, 1]) ** 2)
    own = jnp.any((hall[:, None]) & (apart < AT_BASE ** 2), axis=0)  # [homes]
    # What shoots goes where the newest base is, all else to the first or any.
    newest = jnp.max(jnp.where(own, jnp.arange(len(homes)), 0))
    shoots = look_up(types_.fighter, product)
    where = jax.random.randint(keys[1], (SITES,), 0, 2 * len(homes))
    where = jnp.where(where < len(homes), look_up(own, where) * where, 0)
    base = jnp.where(shoots, newest, where)
    around_x, around_y = look_up(homes[:, 0], base), look_up(homes[:, 1], base)
    spread = jnp.where(shoots, 0.85 * spread, spread)
  x = see.side * (around_x + spread[:, 0])
  y = see.side * (around_y + spread[:, 1])
  if len(tier.homes) > 1:
    # A town hall goes to the next free base.
    free = jnp.argmin(own)
    is_hall = look_up(types_.townhall, product)
    x = jnp.where(is_hall, see.side * jnp.asarray(homes)[free, 0], x)
    y = jnp.where(is_hall, see.side * jnp.asarray(homes)[free, 1], y)
  radius = look_up(types_.radius, product)
  # A geyser is kept free for what stands on it.
  ground = np.where(geysers(rules), types_.radius[types_.gas].max(initial=0.0), tables.PATCH_RADIUS)
  blocks_x = jnp.concatenate([see.x[:s], see.patch_x])
  blocks_y = jnp.concatenate([see.y[:s], see.patch_y])
  wide = jnp.concatenate([
    jnp.where(see.kind[:s] > 0, look_up(types_.radius, see.kind[:s]), orders.NOWHERE),
    jnp.where(see.patches > 0, ground, orders.NOWHERE)])
  # The aim is rounded to the location grid: leave a cell's width, and a way through.
  apart = jnp.maximum(radius + wide + 0.25 + tier.map_size / rules.location_size, 0.0)
  square = (x[:, None] - blocks_x) ** 2 + (y[:, None] - blocks_y) ** 2
  fits = jnp.all(square >= apart * apart, axis=1)
  fits &= jnp.maximum(jnp.abs(x), jnp.abs(y)) + radius + 0.5 <= rules.half
  if rules.terrain is not None:
    corners = 0.8 * np.array([(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)], np.float32)
    corner_x = see.side * (x[:, None] + radius * corners[:, 0])
    corner_y = see.side * (y[:, None] + radius * corners[:, 1])
    most = rules.terrain.cells - 1
    row = jnp.clip(jnp.floor(corner_y + rules.half).astype(jnp.int32), 0, most)
    column = jnp.clip(jnp.floor(corner_x + rules.half).astype(jnp.int32), 0, most)
    fits &= jnp.all(see.buildable[row, column], axis=1)
  if rules.has_larvae:
    creep = look_up(types_.larvae, see.standing)
    on_creep = jnp.any(creep & (square[:, :s] < (orders.CREEP_RADIUS - 0.75) ** 2), axis=1)
    needs = look_up((types_.race == tables.RACES.index("Zerg")) & ~types_.townhall, product)
    fits &= on_creep | ~needs
  best = jnp.argmax(fits)
  return jnp.any(fits), x[best], y[best]


def _geyser(rules: tables.Rules, see: View) -> tuple[Array, Array]:
  """A geyser for a gas structure: whether there is one at an own base, and its index."""
  s = rules.tier.structures
  hall = look_up(rules.types.townhall, see.standing)
  square = (see.patch_x[:, None] - see.x[:s]) ** 2 + (see.patch_y[:, None] - see.y[:s]) ** 2
  near = jnp.any(hall & (square < 49.0), axis=1)
  taken = jnp.any((see.kind[:s] > 0) & (square < 1.0), axis=1)
  free = near & ~taken & geysers(rules) & (see.patches > 0)
  return jnp.any(free), jnp.argmax(free)


def _race_types(rules: tables.Rules, flags: np.ndarray, race: Array) -> Array:
  """The local type flagged of a race: [] int32, 0 for none."""
  table = [int(np.argmax(flags & (rules.types.race == i))) if (
    flags & (rules.types.race == i)).any() else 0 for i in range(len(tables.RACES))]
  return look_up(np.array(table, np.int32), race)


def _spend(rules: tables.Rules, script: Parameters, key: Array, see: View) -> Choice:
  """Some workers, supply, then the next building, upgrades, more workers, then the army."""
  types_, products, s = rules.types, rules.products, rules.tier.structures
  y_, every = len(types_.names), np.arange(len(types_.names))
  makers = products.function  # the function that makes a type
  on_the_way = (see.verb == tables.BUILD)[:, None] & (see.product[:, None] == every)
  brood = np.maximum(products.brood[:y_], 1)
  in_making = jnp.sum(see.in_training[:, :, None] == every, axis=(0, 1)) * brood
  present = jnp.sum(see.kind[:, None] == every, axis=0)
  have = present + jnp.sum(on_the_way, axis=0) + in_making
  free = see.queued < (tables.QUEUE_LENGTH if rules.has_larvae else MOST_QUEUED)
  if rules.has_larvae:
    free = jnp.where(look_up(types_.larvae, see.standing), free, see.queued < MOST_QUEUED)
  counts_as = look_up(types_.counts_as, see.standing)
  makes = (counts_as[:, None] == products.producer[:y_]) & free[:, None]
  minerals, vespene = jnp.asarray(products.minerals), jnp.asarray(products.vespene)

  worker = _race_types(rules, types_.worker, see.race)
  missing = (script.building > 0) & (have[script.building] < script.count)
  building = script.building[jnp.argmax(missing)]
  # What must stand first comes first.
  needed = look_up(products.requirement, building)
  absent = (needed > 0) & (have[needed] == 0) & ~jnp.any(counts_as == needed)
  building = jnp.where(absent & ~look_up(types_.townhall, needed), needed, building)
  needed = look_up(products.requirement, building)
  mobile = rules.types.fighter & ~rules.types.structure
  ready = (have[worker] >= script.at_workers[jnp.argmax(missing)]) & (
    jnp.sum(have * mobile) >= script.at_fighters[jnp.argmax(missing)])
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
    promised = jnp.sum(jnp.where(see.verb == tables.BUILD, prices[see.product], 0))
    if rules.tier.at_par:
      promised = 0
    return have_ - promised - hungry * prices[supply] - saves * prices[building]

  spare, spare_gas = left(see.minerals, minerals), left(see.vespene, vespene)

  def affords(product):
    return (spare >= minerals[product]) & (spare_gas >= vespene[product])

  # The fighter that the army lacks most, of those that can be trained at once.
  fights = types_.fighter & ~types_.structure
  fights[types_.local("Medivac")] = True
  fights[0] = False
  weight = np.where(types_.takes_food > 0, types_.takes_food / 2, 1) * fights
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
  filled = economy.FULL_PATCH * minerals_per_base * jnp.sum(
    look_up(types_.townhall, see.kind[:s])) + economy.FULL_GEYSER * jnp.sum(see.tapped)
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
  fits, x, y = _site(rules, key, see, jnp.where(product < y_, product, 0))
  target = jnp.int32(0)
  if rules.has_gas:
    gas = look_up(np.append(types_.gas, np.zeros(len(makers) - y_, bool)), product)
    some, geyser = _geyser(rules, see)
    fits = jnp.where(gas, some, fits)
    target = jnp.where(gas, 2 * rules.tier.slots + geyser, 0)
  # What has no place must not keep the rest waiting.
  others = wanted & ~look_up(structure, wanted_products)
  lost = built & ~fits
  product = jnp.where(lost, wanted_products[jnp.argmax(others)], product)
  built &= fits
  wanted = jnp.where(lost, others, wanted)
  mining = look_up(types_.worker, see.kind[s:]) & (
    (see.verb == tables.GATHER) | (see.verb == tables.IDLE))
  producer = look_up(products.producer, product)
  trainers = (counts_as == producer) & free
  least = jnp.min(jnp.where(trainers, see.queued, tables.QUEUE_LENGTH))
  # Among several builders the nearest goes.
  if rules.tier.at_par:
    builders = _first(mining & built, 1)
  else:
    square = (see.x[s:] - x) ** 2 + (see.y[s:] - y) ** 2
    builders = mining & built & (
      jnp.arange(rules.tier.units) == jnp.argmin(jnp.where(mining, square, jnp.inf)))
  slots = jnp.concatenate([
    _first(trainers & (see.queued == least) & ~built, 1), builders])
  return _choice(rules, jnp.any(wanted), jnp.asarray(makers)[product], slots, x, y, target)


def _write(rules: tables.Rules, see: View, choice: Choice, delay: Array) -> types.Action:
  """A choice as an action, its slots as rows."""
  k, e = rules.max_selected, rules.max_entities
  functions = rules.functions
  function = jnp.where(choice.wanted, choice.function, 0)
  picked = jnp.where(function > 0, choice.slots, False)
  order = jnp.cumsum(picked) - 1
  match = picked & (order == jnp.arange(k)[:, None])  # [K, n]
  rows = jnp.where(jnp.any(match, axis=1),
                   jnp.sum(match * see.row[:rules.tier.slots], axis=1), e)
  location = place_to_location(rules, choice.x, choice.y)
  point = jnp.asarray(functions.takes_point)[function]
  unit = jnp.asarray(functions.takes_unit)[function]
  dense = jnp.asarray(functions.index)[function]
  repeats = jnp.asarray(vocabulary.ARGUMENT_TABLE[functions.index, 3])[function]
  return types.Action(
    function=dense.astype(jnp.int16), delay=delay.astype(jnp.int16), queued=jnp.uint8(0),
    repeat=jnp.where(repeats, choice.repeat - 1, 0).astype(jnp.uint8),
    units=rows.astype(jnp.int16),
    target_unit=jnp.where(unit, see.row[choice.target], 0).astype(jnp.int16),
    location=jnp.where(point, location, 0).astype(jnp.int32))


def _random(rules: tables.Rules, key: Array, see: View) -> Choice:
  """Any function that can do something, by some that can do it, at any target."""
  keys = jax.random.split(key, 6)
  functions, tier = rules.functions, rules.tier
  function = jax.random.categorical(keys[0], jnp.where(see.can, 0.0, -jnp.inf))
  kind = jnp.concatenate([see.standing, see.kind[tier.structures:]])
  # What is unfinished can do one thing: be cancelled.
  cancels = jnp.asarray(functions.ability)[function] == tables.CANCEL
  kind = jnp.where(cancels & (jnp.arange(tier.slots) < tier.structures), see.kind, kind)
  capable = jnp.asarray(functions.capable)[function][kind]
  wanted = capable & jax.random.bernoulli(keys[1], 0.5, capable.shape)
  one = jnp.argmax(jnp.where(capable, jax.random.uniform(keys[2], capable.shape), -1.0))
  wanted |= capable & (jnp.arange(tier.slots) == one)
  candidates = see.present
  places = jnp.arange(candidates.shape[0])
  enemy = (places >= tier.slots) & (places < 2 * tier.slots)
  verb = jnp.asarray(functions.verb)[function]
  ability = jnp.asarray(functions.ability)[function]
  patch = places >= 2 * tier.slots
  own = (verb == tables.REPAIR) | (ability == tables.INJECT) | (ability == tables.BOOST)
  on_geyser = (verb == tables.BUILD) & jnp.asarray(functions.takes_unit)[function]
  geyser = patch & jnp.pad(geysers(rules), (2 * tier.slots, 0))
  candidates &= jnp.where(verb == tables.ATTACK_UNIT, enemy, jnp.where(
    verb == tables.GATHER, patch, jnp.where(
      on_geyser, geyser, jnp.where(own, places < tier.slots, True))))
  target = jnp.argmax(jnp.where(candidates, jax.random.uniform(keys[3], candidates.shape), -1.0))
  place = see.side * jax.random.uniform(keys[4], (2,), minval=-rules.half, maxval=rules.half)
  repeat = jax.random.randint(keys[5], (), 1, 4)
  return _choice(rules, True, function, _first(wanted, rules.max_selected), place[0], place[1],
                 target, repeat)


def decide(rules: tables.Rules, name_index: Array, key: Array, state: State,
           player: Array) -> types.Action:
  """The action of a scripted player.

  Args:
    rules: the game's constants.
    name_index: [] int32, an index of `scripts.names_of(tier)`.
    key: what its noise is drawn from.
    state: the game; only what the player may know of it is used.
    player: [] int32, 0 or 1.
  """
  every = parameters(rules)
  script = jax.tree.map(lambda values: jnp.asarray(values)[name_index], every)
  see = view(rules, state, player, script.vision if every.vision.any() else False)
  plans = len(script._fields) - Parameters._fields.index("delays")
  script = script._replace(**{
    name: getattr(script, name)[see.race] for name in script._fields[:-plans]})
  keys = jax.random.split(key, 5)
  choices = _fight(rules, script, keys[0], see)
  if every.abilities.any():
    choices += _abilities(rules, script, see)
  choices += [_gather(rules, see), *_gas(rules, see), _spend(rules, script, keys[1], see)]
  stacked = jax.tree.map(lambda *values: jnp.stack(values), *choices)
  possible = stacked.wanted & see.can[stacked.function]
  chosen = jax.tree.map(lambda values: values[jnp.argmax(possible)], stacked)
  errs = jax.random.uniform(keys[4]) < script.mistakes
  chosen = chosen._replace(wanted=jnp.any(possible) & ~errs)
  wild = _random(rules, keys[2], see)
  chosen = jax.tree.map(lambda a, b: jnp.where(script.random, a, b), wild, chosen)
  delay = jax.random.randint(keys[3], (), script.delays[0], script.delays[1] + 1)
  return _write(rules, see, chosen, delay)


def make_scripted(tier: str = "mini", *, max_entities: int = 64, map_size: int = 32,
                  location_size: int = 32, max_selected: int = 8):
  """The scripted players for an environment of the same arguments.

  Returns:
    (name_index, key, state, player) -> Action, unbatched; see `decide`.
  """
  rules = tables.make_rules(tier, max_entities, map_size, location_size, max_selected)
  return functools.partial(decide, rules)


def scripted_action(name_index: Array, key: Array, state: State, player: Array) -> types.Action:
  """The action of a scripted player in a `mini` game of the default sizes; see `decide`."""
  return make_scripted()(name_index, key, state, player)
