"""A game from one scripted player's place, and what it may choose to do."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules import availability, observation, tables
from starleague.environments.skirmish.rules.arrays import flip
from starleague.environments.skirmish.rules.queries import (
  finished_kind,
  resource_positions,
  tapped_geysers,
)
from starleague.environments.skirmish.rules.state import Array, State
from starleague.environments.skirmish.rules.supply import food


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
  sight = observation.entity_rows(rules, state)
  patch_x, patch_y = resource_positions(rules, state.side)
  home = state.side[:, None] * np.array(tier.home, np.float32)
  sees = jnp.any(
    ((state.x + home[:, :1]) ** 2 + (state.y + home[:, 1:]) ** 2 < 16.0) & (state.kind > 0), axis=1)
  their_kind, their_x, their_y = flip(state.kind), flip(state.x), flip(state.y)
  s = tier.structures
  all_structures = (their_kind[:, :s] > 0) & vision
  ground = np.zeros((1, 0, 0), bool) if rules.terrain is None else rules.terrain.buildable
  buildable = jnp.asarray(ground)[state.match_up.map_index % len(ground)]
  tapped = tapped_geysers(rules, state) if rules.has_gas else jnp.zeros(patch_x.shape, bool)
  both = View(
    side=state.side, race=state.race, kind=state.kind, x=state.x, y=state.y, health=state.health,
    energy=state.energy, verb=state.orders.verb, target=state.orders.target,
    product=state.orders.product, standing=finished_kind(rules, state),
    queued=jnp.sum(state.queue > 0, axis=2), in_training=state.queue, injected=state.injected,
    boosted=state.boosted, stimmed=state.stimmed, minerals=state.minerals,
    vespene=state.vespene, food_left=most - used, food_most=most, upgrades=state.upgrades,
    can=availability.available(rules, state), row=sight.row, present=sight.present,
    enemy=memory.seen | ((their_kind > 0) & vision), enemy_kind=their_kind, enemy_x=their_x,
    enemy_y=their_y, known=(memory.kind > 0) | all_structures,
    known_x=jnp.where(all_structures, their_x[:, :s], memory.x),
    known_y=jnp.where(all_structures, their_y[:, :s], memory.y), home_seen=sees, patch_x=patch_x,
    patch_y=patch_y, patches=memory.patches, tapped=tapped,
    buildable=jnp.broadcast_to(buildable, (2, *buildable.shape)))
  return jax.tree.map(lambda values: jnp.where(player == 0, values[0], values[1]), both)


def first(slots: Array, most: Array | int) -> Array:
  """At most so many of the slots chosen: [m] bool."""
  return slots & (jnp.cumsum(slots) <= most)


def choose(rules: tables.Rules, wanted, function: Array | str, slots: Array, x=0.0, y=0.0, target=0,
           repeat=1) -> Choice:
  """An order to slots [n] bool, which is wanted only if there are any; `function` by name or local."""
  local = rules.functions.names.index(function) if isinstance(function, str) else function
  return Choice(
    jnp.asarray(wanted, bool) & jnp.any(slots), jnp.asarray(local, jnp.int32), slots,
    jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.asarray(target, jnp.int32),
    jnp.asarray(repeat, jnp.int32))
