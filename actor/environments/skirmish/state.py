"""The state of a game, and how one begins.

Every array is split by player, `[2, ...]`: a fight is then n x n a side. A player's n slots are its
structures' S first, then its units' M. Positions are counted from the middle of the map in map
units, x to the right and y downwards, so that turning the map by half a turn is a change of sign
and a game turned so is the same game to the last bit. Patches are split too, by the half of the map
that they lie in; a player counts its own half's first.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor.environments import base
from starleague.actor.environments.skirmish import tables
from starleague.agent import types

Array = Any


class Orders(NamedTuple):
  """What units do; [2, M] each."""

  verb: Array  # int32, tables.IDLE to tables.CONSTRUCT
  x: Array  # float32: where to
  y: Array
  target: Array  # int32: a slot of the enemy, a patch or an own structure, as the verb says
  product: Array  # int32, local type: what to build


class Commands(NamedTuple):
  """What the players ordered since the last step; [2, ...]."""

  function: Array  # int32, local; 0 is none
  selected: Array  # [2, n] bool
  x: Array  # float32
  y: Array
  target_kind: Array  # int32, tables.NO_TARGET to tables.RESOURCE
  target: Array  # int32, a slot of that kind
  queued: Array  # bool
  repeat: Array  # int32, 1 to 3


class Score(NamedTuple):
  """Cumulative, [2] int32; money in minerals, idle times in game loops."""

  idle_production: Array
  idle_workers: Array
  units: Array
  structures: Array
  killed_units: Array
  killed_structures: Array
  collected: Array
  spent: Array


class Memory(NamedTuple):
  """What each player knows and remembers."""

  seen: Array  # [2, n] bool: the enemy's slots in sight
  visible: Array  # [2, H, W / 32] uint32: cells in sight, a bit each
  explored: Array  # [2, H, W / 32] uint32: cells ever in sight
  kind: Array  # [2, S] int32: the enemy's structures as last seen, 0 for none
  x: Array  # [2, S] float32
  y: Array
  health: Array
  patches: Array  # [2, R] int32: their contents as last seen
  met: Array  # [2] bool: an enemy was ever in sight


class State(NamedTuple):
  """A game. n slots a player, S of them structures, M units; R patches."""

  loop: Array  # [] int32
  side: Array  # [2] float32: +1 for the first place, -1 for the one opposite
  match_up: base.MatchUp
  # Slots.
  kind: Array  # [2, n] int32: local types, 0 where empty
  x: Array  # [2, n] float32
  y: Array
  health: Array  # [2, n] float32, whole numbers and halves
  hurt: Array  # [2, n] bool: in the last step
  # Structures.
  unfinished: Array  # [2, S] int32: loops of construction left
  queue: Array  # [2, S, 5] int32: local types in training, 0 past the end
  training: Array  # [2, S] int32: loops left of the first
  rally: Array  # [2, S] bool: whether the next two count
  rally_x: Array  # [2, S] float32
  rally_y: Array
  # Units.
  orders: Orders
  next_orders: Orders  # verb IDLE where there is none
  cooldown: Array  # [2, M] float32: loops until the weapon is ready
  trip: Array  # [2, M] int32: how far a mining trip is, of trip_length
  # Players.
  minerals: Array  # [2] int32
  patches: Array  # [2, R / 2] int32: contents
  commands: Commands
  next_loop: Array  # [2] int32: when it may act again
  last_loop: Array  # [2] int32: when it acted last
  last_function: Array  # [2] int32, dense
  last_queued: Array  # [2] int32
  last_repeat: Array  # [2] int32, 0 to 2
  was_selected: Array  # [2, n] bool
  was_targeted: Array  # [2, 2 n + R] bool: own slots, the enemy's, patches
  memory: Memory
  score: Score
  executed: types.Statistics  # [2, ...]
  winner: Array  # [] int32: 0 or 1, 2 for a draw, -1 while it goes on


def flip(values: Array) -> Array:
  """The other player's values: [2, ...] swapped along the first axis."""
  return values[::-1]


def look_up(table: np.ndarray, index: Array) -> Array:
  """Rows of a small constant table, as a product of one-hots: a gather is slower on every device.

  Args:
    table: [Y] or [Y, C] numbers that float32 holds exactly.
    index: [...] integers in 0..Y-1.

  Returns:
    [...] or [..., C] float32.
  """
  one_hot = (index[..., None] == jnp.arange(table.shape[0])).astype(jnp.float32)
  return one_hot @ jnp.asarray(table, jnp.float32)


def patch_places(rules: tables.Rules, side: Array) -> tuple[Array, Array]:
  """Where each player's patches lie, its own half's first: x, y [2, R] float32."""
  half = np.array(rules.tier.patches, np.float32)
  both = jnp.asarray(np.concatenate([half, -half]))
  return side[:, None] * both[:, 0], side[:, None] * both[:, 1]


def both_halves(patches: Array) -> Array:
  """Contents [2, R / 2] as each player counts them: [2, R], its own half's first."""
  return jnp.concatenate([patches, flip(patches)], axis=1)


def idle_orders(rules: tables.Rules) -> Orders:
  """No orders at all."""
  shape = (2, rules.tier.units)
  integers, floats = jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.float32)
  return Orders(integers, floats, floats, integers, integers)


def no_commands(rules: tables.Rules) -> Commands:
  """Nobody ordered anything."""
  integers, floats = jnp.zeros(2, jnp.int32), jnp.zeros(2, jnp.float32)
  return Commands(
    function=integers, selected=jnp.zeros((2, rules.tier.slots), bool), x=floats, y=floats,
    target_kind=integers, target=integers, queued=jnp.zeros(2, bool), repeat=integers + 1)


def _memory(rules: tables.Rules) -> Memory:
  tier = rules.tier
  bits = jnp.zeros((2, rules.map_size, rules.map_size // 32), jnp.uint32)
  structures = jnp.zeros((2, tier.structures), jnp.float32)
  return Memory(
    seen=jnp.zeros((2, tier.slots), bool), visible=bits, explored=bits,
    kind=structures.astype(jnp.int32), x=structures, y=structures, health=structures,
    patches=jnp.full((2, tier.resources), tier.patch_minerals, jnp.int32),
    met=jnp.zeros(2, bool))


def initial_state(rules: tables.Rules, key: Array, match_up: base.MatchUp) -> State:
  """A town hall and workers a player, at opposite places. Nothing is seen yet.

  Args:
    rules: the game's constants.
    key: where the workers stand is drawn from it, the same for both players but for half a turn.
    match_up: who plays where; its races must be Terran at the tiers that have no other.
  """
  tier, s = rules.tier, rules.tier.structures
  townhall = rules.types.townhall.argmax()
  worker = rules.types.worker.argmax()
  first = jnp.where(match_up.swap_sides, -1.0, 1.0)
  side = jnp.stack([first, -first])
  kind = np.zeros(tier.slots, np.int32)
  kind[0], kind[s:s + tier.workers] = townhall, worker
  present = jnp.asarray(kind > 0)
  spread = jax.random.uniform(key, (2, tier.slots), minval=-0.5, maxval=0.5)
  places = np.zeros((2, tier.slots), np.float32)
  places[:, 0] = tier.home
  # Workers start between the town hall and the patches, which lie outwards from it.
  places[:, s:s + tier.workers] = np.array(tier.home)[:, None] * 1.3
  x, y = side[:, None] * (places + spread * jnp.asarray(kind == worker))[:, None] * present
  kind = jnp.tile(kind, (2, 1))
  structures = jnp.zeros((2, s), jnp.int32)
  idle = idle_orders(rules)
  mining = kind[:, s:] == worker
  near = np.argsort([np.hypot(*(np.array(p) - tier.home)) for p in tier.patches])[:tier.workers]
  target = jnp.asarray(np.resize(near, tier.units), jnp.int32)
  orders = idle._replace(
    verb=jnp.where(mining, tables.GATHER, tables.IDLE),
    target=jnp.where(mining, target, 0))
  zero = jnp.zeros(2, jnp.int32)
  statistics = jax.tree.map(
    lambda spec: jnp.zeros((2, *spec.shape), spec.dtype), types.statistics_spec())
  return State(
    loop=jnp.int32(0), side=side, match_up=match_up, kind=kind, x=x, y=y,
    health=look_up(rules.types.health, kind), hurt=jnp.zeros((2, tier.slots), bool),
    unfinished=structures, queue=jnp.zeros((2, s, tables.QUEUE_LENGTH), jnp.int32),
    training=structures, rally=structures > 0, rally_x=structures.astype(jnp.float32),
    rally_y=structures.astype(jnp.float32), orders=orders, next_orders=idle,
    cooldown=jnp.zeros((2, tier.units), jnp.float32),
    trip=jnp.zeros((2, tier.units), jnp.int32), minerals=jnp.full(2, tier.minerals, jnp.int32),
    patches=jnp.full((2, tier.resources // 2), tier.patch_minerals, jnp.int32),
    commands=no_commands(rules), next_loop=zero, last_loop=zero, last_function=zero,
    last_queued=zero, last_repeat=zero, was_selected=jnp.zeros((2, tier.slots), bool),
    was_targeted=jnp.zeros((2, 2 * tier.slots + tier.resources), bool), memory=_memory(rules),
    score=Score(*[zero] * len(Score._fields)), executed=statistics, winner=jnp.int32(-1))


def counts(rules: tables.Rules, state: State, *, finished: bool) -> Array:
  """How many of each local type the players have: [2, Y] int32.

  Args:
    rules: the game's constants.
    state: the game.
    finished: leave out structures under construction.
  """
  kind = state.kind
  if finished:
    kind = kind.at[:, :rules.tier.structures].set(
      jnp.where(state.unfinished > 0, 0, kind[:, :rules.tier.structures]))
  every = jnp.arange(len(rules.types.names))
  return jnp.sum((kind[:, :, None] == every) & (every > 0), axis=1, dtype=jnp.int32)


def food(rules: tables.Rules, state: State) -> tuple[Array, Array]:
  """Food taken, with what is in training, and the most: [2] int32 each."""
  whole = look_up(rules.types.takes_food, state.kind).sum(axis=1)
  queued = look_up(rules.types.takes_food, state.queue).sum(axis=(1, 2))
  given = look_up(rules.types.gives_food, finished_kind(rules, state)).sum(axis=1)
  most = jnp.minimum(given, rules.tier.units)
  return (whole + queued).astype(jnp.int32), most.astype(jnp.int32)


def finished_kind(rules: tables.Rules, state: State) -> Array:
  """Local types of the structures that stand, 0 for the others: [2, S]."""
  return jnp.where(state.unfinished > 0, 0, state.kind[:, :rules.tier.structures])


def by_dense(index: np.ndarray, values: Array, size: int) -> Array:
  """Values by local index [2, Y] to values by dense index [2, size], 0 where there is none."""
  place = np.zeros(size, np.int32)
  place[index] = np.arange(len(index))
  place[0] = 0
  return jnp.take(values.at[:, 0].set(jnp.zeros((), values.dtype)), place, axis=1)
