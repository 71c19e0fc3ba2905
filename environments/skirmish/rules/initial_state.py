"""How a game begins."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.rules import constants, tables
from starleague.environments.skirmish.rules.arrays import look_up
from starleague.environments.skirmish.rules.constants import START_ENERGY, TOWNHALL_REACH
from starleague.environments.skirmish.rules.state import (
  Array,
  Memory,
  Score,
  State,
  idle_orders,
  no_commands,
)


def _full(rules: tables.Rules) -> np.ndarray:
  """What each resource of a half holds at the start: [R / 2]."""
  tier = rules.tier
  return np.where(tier.geysers, tier.geyser_vespene, tier.patch_minerals).astype(np.int32)


def _memory(rules: tables.Rules) -> Memory:
  tier = rules.tier
  bits = jnp.zeros((2, rules.map_size, rules.map_size // 32), jnp.uint32)
  structures = jnp.zeros((2, tier.structures), jnp.float32)
  return Memory(
    seen=jnp.zeros((2, tier.slots), bool), visible=bits, explored=bits,
    kind=structures.astype(jnp.int32), x=structures, y=structures, health=structures,
    patches=jnp.tile(jnp.asarray(_full(rules)), (2, 2)), met=jnp.zeros(2, bool))


def _openings(rules: tables.Rules) -> np.ndarray:
  """What each race begins with: local types [races, n]."""
  tier, types_ = rules.tier, rules.types
  opening = np.zeros((len(constants.RACES), tier.slots), np.int32)
  for race in rules.races:
    own = types_.race == race
    opening[race, 0] = np.argmax(own & types_.townhall)
    first = tier.structures
    opening[race, first:first + tier.workers] = np.argmax(own & types_.worker)
    feeds = own & (types_.gives_food > 0) & ~types_.structure
    if feeds.any():
      opening[race, first + tier.workers] = np.argmax(feeds)
  return opening


def initial_state(rules: tables.Rules, key: Array, match_up: base.MatchUp) -> State:
  """A town hall and workers a player, at opposite places. Nothing is seen yet.

  Args:
    rules: the game's constants.
    key: where the workers stand is drawn from it, the same for both players but for half a turn.
    match_up: who plays where; a race that the tier does not have counts as its first.
  """
  tier, types_, s = rules.tier, rules.types, rules.tier.structures
  first = jnp.where(match_up.swap_sides, -1.0, 1.0)
  side = jnp.stack([first, -first])
  asked = jnp.asarray(tables.race_index(np.arange(len(types.RACES))))[match_up.races]
  has = np.isin(np.arange(len(constants.RACES)), rules.races)
  race = jnp.where(look_up(has, asked), asked, rules.races[0]).astype(jnp.int32)
  kind = look_up(_openings(rules), race)  # [2, n]
  worker = look_up(types_.worker, kind)
  spread = jax.random.uniform(key, (2, tier.slots), minval=-0.5, maxval=0.5)
  places = np.zeros((2, tier.slots), np.float32)
  places[:, 0] = tier.home
  # Units start between the town hall and the patches, which lie outwards from it.
  places[:, s:s + tier.workers + 1] = np.array(tier.home)[:, None] - 1.95
  x, y = side[:, None] * (places[:, None] + spread[:, None] * worker) * (kind > 0)
  structures = jnp.zeros((2, s), jnp.int32)
  idle = idle_orders(rules)
  mining = worker[:, s:]
  minerals = np.flatnonzero(~np.array(tier.geysers))
  apart = [np.hypot(*(np.array(tier.patches[i]) - tier.home)) for i in minerals]
  near = [i for far, i in sorted(zip(apart, minerals, strict=True)) if far < TOWNHALL_REACH]
  target = jnp.asarray(np.resize(near, tier.units), jnp.int32)
  orders = idle._replace(
    verb=jnp.where(mining, constants.GATHER, constants.IDLE), target=jnp.where(mining, target, 0))
  zero = jnp.zeros(2, jnp.int32)
  nowhere = jnp.zeros(2, jnp.float32)
  statistics = jax.tree.map(
    lambda spec: jnp.zeros((2, *spec.shape), spec.dtype), types.statistics_spec())
  energy = jnp.minimum(look_up(types_.energy, kind), START_ENERGY)
  larvae = jnp.where(look_up(types_.larvae, kind[:, :s]), 3, 0)
  wide = tier.slots if rules.has_shields else 0
  hatching = s if rules.has_larvae else 0
  return State(
    loop=jnp.int32(0), side=side, match_up=match_up, race=race, kind=kind, x=x, y=y,
    health=look_up(types_.health, kind), shield=look_up(types_.shield, kind)[:, :wide],
    energy=energy if rules.has_energy else energy[:, :0], hurt=jnp.zeros((2, tier.slots), bool),
    calm=jnp.zeros((2, wide), jnp.int32), unfinished=structures,
    queue=jnp.zeros((2, s, constants.QUEUE_LENGTH), jnp.int32),
    timers=jnp.zeros((2, s, constants.QUEUE_LENGTH), jnp.int32), rally=structures > 0,
    rally_x=structures.astype(jnp.float32), rally_y=structures.astype(jnp.float32),
    larvae=larvae[:, :hatching], larva_loops=structures[:, :hatching],
    injected=structures[:, :hatching],
    boosted=structures[:, :s if rules.has(constants.BOOST) else 0], orders=orders, next_orders=idle,
    cooldown=jnp.zeros((2, tier.armed + tier.units), jnp.float32),
    trip=jnp.zeros((2, tier.units), jnp.int32), cargo=jnp.zeros((2, tier.units), jnp.int32),
    cargo_gas=jnp.zeros((2, tier.units if rules.has_gas else 0), bool),
    stimmed=jnp.zeros((2, tier.units if rules.has(constants.STIM) else 0), jnp.int32),
    minerals=jnp.full(2, tier.minerals, jnp.int32), vespene=zero,
    upgrades=jnp.zeros((2, len(rules.upgrades.names)), bool), repair_debt=nowhere,
    scan_x=nowhere, scan_y=nowhere, scan_loops=zero,
    patches=jnp.tile(jnp.asarray(_full(rules)), (2, 1)), commands=no_commands(rules),
    next_loop=zero, last_loop=zero, last_function=zero, last_queued=zero, last_repeat=zero, refused=zero,
    was_selected=jnp.zeros((2, tier.slots), bool),
    was_targeted=jnp.zeros((2, 2 * tier.slots + tier.resources), bool), memory=_memory(rules),
    score=Score(*[zero] * len(Score._fields)), executed=statistics, last_event=jnp.int32(0),
    seed=jax.random.bits(jax.random.fold_in(key, 1), (2,)), winner=jnp.int32(-1))
