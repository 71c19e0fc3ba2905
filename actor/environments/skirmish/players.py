"""Scripted players: opponents of known manners, and the teachers of the first demonstrations.

A player is a row of `SCRIPTS`. At each decision it lists what it might do, in the order of how
pressing it is, and does the first that is possible: it defends, attacks, mines with idle workers,
then spends. It knows what its observation shows and no more, and acts through the same actions as
an agent, one every 32 to 48 game loops.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor.environments.skirmish import observation, orders, tables
from starleague.actor.environments.skirmish.skirmish import place_to_location
from starleague.actor.environments.skirmish.state import (
  Array,
  State,
  finished_kind,
  flip,
  food,
  patch_places,
)
from starleague.agent import types, vocabulary

HOME_RADIUS = 9.0  # an enemy this near to an own structure is a threat
MOST_QUEUED = 2  # in training at once in a building
SITES = 12  # places that a builder considers
DELAYS = (32, 48)  # game loops between two actions
NOISE = 1.0  # of the aim of an attack, map units


@dataclasses.dataclass(frozen=True)
class Script:
  """A manner of playing. Counts are of what a player wants to have."""

  name: str
  workers: int  # before the first building
  most_workers: int
  buildings: tuple[str, ...] = ()  # the order in which they are put up, and put up again
  attack: int = 99  # fighters at home that set out together
  reinforce: int = 99  # fighters at home that follow an attack under way
  army: tuple[tuple[str, float], ...] = ()  # the share of its food for each type


SCRIPTS = (
  Script("passive", workers=12, most_workers=12),
  Script("rusher", workers=6, most_workers=7, buildings=("Barracks", "Barracks"), attack=4,
         reinforce=3, army=(("Marine", 1.0),)),
  Script("builder", workers=6, most_workers=7, buildings=("Barracks", "Factory"), attack=7,
         reinforce=3, army=(("Marine", 0.4), ("Marauder", 0.3), ("Hellion", 0.3))),
  Script("random_player", workers=0, most_workers=0),
)
SCRIPTED = tuple(script.name for script in SCRIPTS)
RANDOM = SCRIPTED.index("random_player")


class Parameters(NamedTuple):
  """The scripts as arrays; P of them, [P, ...]."""

  workers: Array  # int32
  most_workers: Array
  attack: Array
  reinforce: Array
  building: Array  # [P, B] int32, local types in order, 0 past the end
  count: Array  # [P, B] int32: how many of that type there should be by then
  share: Array  # [P, Y] float32


class View(NamedTuple):
  """A game from one player's place: unbatched arrays of what it knows."""

  side: Array  # [] float32
  kind: Array  # [n]
  x: Array  # [n]
  y: Array
  verb: Array  # [M]
  product: Array  # [M]
  standing: Array  # [S] local types of finished structures
  queued: Array  # [S] how many are in training
  in_training: Array  # [S, 5]
  minerals: Array  # []
  food_left: Array  # []
  can: Array  # [C] bool
  row: Array  # [2 n + R]
  present: Array  # [2 n + R] bool
  enemy: Array  # [n] bool: in sight
  enemy_x: Array
  enemy_y: Array
  known: Array  # [S] bool: enemy structures remembered or in sight
  known_x: Array
  known_y: Array
  home_seen: Array  # [] bool: the enemy's home is in sight
  patch_x: Array  # [R]
  patch_y: Array
  patches: Array  # [R]


class Choice(NamedTuple):
  """An order in slots, to be written as an action."""

  wanted: Array  # [] bool
  function: Array  # [] local
  slots: Array  # [n] bool
  x: Array
  y: Array
  target: Array  # [] int32, of the 2 n + R candidates for rows
  repeat: Array  # [] 1 to 3


def view(rules: tables.Rules, state: State, player: Array) -> View:
  """What a player knows, as slots rather than rows."""
  tier, memory = rules.tier, state.memory
  used, most = food(rules, state)
  sight = observation.rows_of(rules, state)
  patch_x, patch_y = patch_places(rules, state.side)
  home = state.side[:, None] * np.array(tier.home, np.float32)
  sees = jnp.any(
    ((state.x + home[:, :1]) ** 2 + (state.y + home[:, 1:]) ** 2 < 16.0) & (state.kind > 0), axis=1)
  both = View(
    side=state.side, kind=state.kind, x=state.x, y=state.y, verb=state.orders.verb,
    product=state.orders.product, standing=finished_kind(rules, state),
    queued=jnp.sum(state.queue > 0, axis=2), in_training=state.queue, minerals=state.minerals,
    food_left=most - used, can=orders.available(rules, state), row=sight.row,
    present=sight.present, enemy=memory.seen, enemy_x=flip(state.x), enemy_y=flip(state.y),
    known=memory.kind > 0, known_x=memory.x, known_y=memory.y, home_seen=sees, patch_x=patch_x,
    patch_y=patch_y, patches=memory.patches)
  return jax.tree.map(lambda values: jnp.where(player == 0, values[0], values[1]), both)


def _first(slots: Array, most: int) -> Array:
  return slots & (jnp.cumsum(slots) <= most)


def _choice(rules, wanted, function, slots, x=0.0, y=0.0, target=0, repeat=1) -> Choice:
  local = rules.functions.names.index(function) if isinstance(function, str) else function
  return Choice(
    jnp.asarray(wanted, bool) & jnp.any(slots), jnp.asarray(local, jnp.int32), slots,
    jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.asarray(target, jnp.int32),
    jnp.asarray(repeat, jnp.int32))


def parameters(rules: tables.Rules) -> Parameters:
  """SCRIPTS as arrays over a tier's local types."""
  names = rules.types.names
  longest = max(len(script.buildings) for script in SCRIPTS)
  shape = (len(SCRIPTS), longest)
  building, count = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
  share = np.zeros((len(SCRIPTS), len(names)), np.float32)
  for i, script in enumerate(SCRIPTS):
    for b, name in enumerate(script.buildings):
      building[i, b] = names.index(name)
      count[i, b] = script.buildings[:b + 1].count(name)
    for name, value in script.army:
      share[i, names.index(name)] = value

  def column(field):
    return np.array([getattr(script, field) for script in SCRIPTS], np.int32)

  return Parameters(
    column("workers"), column("most_workers"), column("attack"), column("reinforce"), building,
    count, share)


def _is(kind: Array, chosen: np.ndarray) -> Array:
  """Whether each local type is one of those flagged."""
  return jnp.any((kind[..., None] == jnp.arange(len(chosen))) & jnp.asarray(chosen), axis=-1)


def _fight(rules: tables.Rules, script: Parameters, key: Array, see: View) -> list[Choice]:
  """Defence, then attack, then more for the attack."""
  s, k = rules.tier.structures, rules.max_selected
  units = see.kind[s:]
  army = _is(units, rules.types.fighter)
  busy = (see.verb == tables.ATTACK) | (see.verb == tables.ATTACK_UNIT)
  own = see.kind[:s] > 0
  near = ((see.enemy_x[:, None] - see.x[:s]) ** 2 + (see.enemy_y[:, None] - see.y[:s]) ** 2
          < HOME_RADIUS ** 2) & own & see.enemy[:, None]
  threat = jnp.any(near, axis=1)
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
  guess = jnp.where(see.home_seen, see.side * anywhere, -jnp.stack([home_x, home_y]))
  aim = jnp.where(jnp.any(see.known), jnp.stack([see.known_x[nearest], see.known_y[nearest]]),
                  guess)
  aim = aim + see.side * jax.random.uniform(keys[1], (2,), minval=-NOISE, maxval=NOISE)
  waiting, under_way = jnp.sum(free), jnp.sum(army & busy)
  goes = (waiting >= script.attack) | (
    (waiting >= script.reinforce) & (under_way >= script.reinforce))
  return [
    _choice(rules, jnp.any(threat), "Attack_pt", slots(free), threat_x, threat_y),
    _choice(rules, goes, "Attack_pt", slots(free), aim[0], aim[1])]


def _gather(rules: tables.Rules, see: View) -> Choice:
  """Idle workers to the nearest patch that has minerals."""
  s, n = rules.tier.structures, rules.tier.slots
  idle = _is(see.kind[s:], rules.types.worker) & (see.verb == tables.IDLE)
  slots = jnp.concatenate([jnp.zeros(s, bool), _first(idle, rules.max_selected)])
  home_x, home_y = (see.side * place for place in rules.tier.home)
  apart = (see.patch_x - home_x) ** 2 + (see.patch_y - home_y) ** 2
  patch = jnp.argmin(jnp.where(see.patches > 0, apart, jnp.inf))
  return _choice(rules, jnp.any(see.patches > 0), "Harvest_Gather_unit", slots,
                 target=2 * n + patch)


def _site(rules: tables.Rules, key: Array, see: View, product: Array) -> tuple[Array, Array, Array]:
  """A free place at home for a structure: whether there is one, and x, y."""
  types_, s = rules.types, rules.tier.structures
  spread = jax.random.uniform(key, (SITES, 2), minval=-4.0, maxval=7.0)
  x = see.side * (rules.tier.home[0] + spread[:, 0])
  y = see.side * (rules.tier.home[1] + spread[:, 1])
  radii = jnp.asarray(types_.radius)
  radius = radii[product]
  blocks_x = jnp.concatenate([see.x[:s], see.patch_x])
  blocks_y = jnp.concatenate([see.y[:s], see.patch_y])
  wide = jnp.concatenate([
    jnp.where(see.kind[:s] > 0, radii[see.kind[:s]], orders.NOWHERE),
    jnp.where(see.patches > 0, tables.PATCH_RADIUS, orders.NOWHERE)])
  # The aim is rounded to the location grid: leave a cell's width.
  apart = jnp.maximum(radius + wide + 1.0, 0.0)
  square = (x[:, None] - blocks_x) ** 2 + (y[:, None] - blocks_y) ** 2
  fits = jnp.all(square >= apart * apart, axis=1)
  fits &= jnp.maximum(jnp.abs(x), jnp.abs(y)) + radius + 0.5 <= rules.half
  best = jnp.argmax(fits)
  return jnp.any(fits), x[best], y[best]


def _spend(rules: tables.Rules, script: Parameters, key: Array, see: View) -> Choice:
  """Some workers, then the next building, then more workers, then the army."""
  types_, s = rules.types, rules.tier.structures
  every = np.arange(len(types_.names))
  maker = np.zeros(len(every), np.int32)  # the function that makes a type
  maker[rules.functions.product] = np.arange(len(rules.functions.names))
  maker[0] = 0
  on_the_way = (see.verb == tables.BUILD)[:, None] & (see.product[:, None] == every)
  have = (jnp.sum(see.kind[:, None] == every, axis=0) + jnp.sum(on_the_way, axis=0)
          + jnp.sum(see.in_training[:, :, None] == every, axis=(0, 1)))
  makes = (see.standing[:, None] == types_.producer) & (see.queued < MOST_QUEUED)[:, None]
  cost = jnp.asarray(types_.cost)

  worker = jnp.int32(types_.worker.argmax())
  missing = (script.building > 0) & (have[script.building] < script.count)
  building = script.building[jnp.argmax(missing)]
  needed = jnp.asarray(types_.requirement)[building]
  saves = jnp.any(missing) & (have[worker] >= script.workers) & (
    (needed == 0) | jnp.any(see.standing == needed))
  spare = see.minerals - saves * cost[building]  # the next building goes before what follows
  # The fighter that the army lacks most, of those that can be trained at once.
  eaten = have * types_.takes_food * types_.fighter
  lack = script.share * (jnp.sum(eaten) + 2.0) - eaten
  trains = (script.share > 0) & jnp.any(makes, axis=0) & see.can[maker] & (spare >= cost)
  fighter = jnp.argmax(jnp.where(trains, lack, -jnp.inf))

  products = jnp.stack([worker, building, worker, fighter])
  idle_hall = jnp.any(makes[:, worker])
  wanted = jnp.stack([
    (have[worker] < script.workers) & idle_hall, saves,
    (have[worker] < script.most_workers) & (spare >= cost[worker]) & idle_hall, jnp.any(trains)])
  wanted &= see.can[jnp.asarray(maker)[products]]
  product = products[jnp.argmax(wanted)]
  fits, x, y = _site(rules, key, see, product)
  built = jnp.asarray(types_.structure)[product]
  mining = _is(see.kind[s:], types_.worker) & (
    (see.verb == tables.GATHER) | (see.verb == tables.IDLE))
  trainers = makes[:, product]
  least = jnp.min(jnp.where(trainers, see.queued, tables.QUEUE_LENGTH))
  slots = jnp.concatenate([
    _first(trainers & (see.queued == least) & ~built, 1), _first(mining & built, 1)])
  return _choice(rules, jnp.any(wanted) & (fits | ~built), jnp.asarray(maker)[product], slots, x, y)


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
  capable = jnp.asarray(functions.capable)[function][kind]
  wanted = capable & jax.random.bernoulli(keys[1], 0.5, capable.shape)
  one = jnp.argmax(jnp.where(capable, jax.random.uniform(keys[2], capable.shape), -1.0))
  wanted |= capable & (jnp.arange(tier.slots) == one)
  candidates = see.present
  enemy = (jnp.arange(candidates.shape[0]) >= tier.slots) & (
    jnp.arange(candidates.shape[0]) < 2 * tier.slots)
  verb = jnp.asarray(functions.verb)[function]
  patch = jnp.arange(candidates.shape[0]) >= 2 * tier.slots
  candidates &= jnp.where(verb == tables.ATTACK_UNIT, enemy,
                          jnp.where(verb == tables.GATHER, patch, True))
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
    name_index: [] int32, an index of SCRIPTED.
    key: what its noise is drawn from.
    state: the game; only what the player may know of it is used.
    player: [] int32, 0 or 1.
  """
  see = view(rules, state, player)
  script = jax.tree.map(lambda values: jnp.asarray(values)[name_index], parameters(rules))
  keys = jax.random.split(key, 4)
  choices = [*_fight(rules, script, keys[0], see), _gather(rules, see),
             _spend(rules, script, keys[1], see)]
  stacked = jax.tree.map(lambda *values: jnp.stack(values), *choices)
  possible = stacked.wanted & see.can[stacked.function]
  chosen = jax.tree.map(lambda values: values[jnp.argmax(possible)], stacked)
  chosen = chosen._replace(wanted=jnp.any(possible))
  wild = _random(rules, keys[2], see)
  chosen = jax.tree.map(
    lambda a, b: jnp.where(name_index == RANDOM, a, b), wild, chosen)
  delay = jax.random.randint(keys[3], (), DELAYS[0], DELAYS[1] + 1)
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
