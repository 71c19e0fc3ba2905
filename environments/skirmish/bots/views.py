"""A scripted player's view of a game, and its candidate commands."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.interface import availability
from starleague.environments.skirmish.rules.interface.entities import entity_rows
from starleague.environments.skirmish.rules.state import add_ons
from starleague.environments.skirmish.rules.state.arrays import flip, look_up, squared_distance
from starleague.environments.skirmish.rules.state.queries import (
  finished_kind,
  resource_positions,
  tapped_geysers,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.state.supply import food
from starleague.environments.skirmish.rules.tables import constants, tables

HOME_SEEN = 4.0  # the opponent's start is in sight of units and structures this near, map units


class View(NamedTuple):
  """A game as one player knows it: unbatched arrays.

  n slots: S structures, then M units; R resources; U upgrades; C local functions; Y local types.
  """

  side: Array  # [] float32: +1 for the first starting position, -1 for the opposite one
  race: Array  # [] int32, index of constants.RACES
  away_race: Array  # [] int32: the opponent's
  kind: Array  # [n] int32: own local types, 0 where empty
  x: Array  # [n] float32
  y: Array  # [n] float32
  health: Array  # [n] float32
  energy: Array  # [n] or [0] float32
  verb: Array  # [M] int32, of the current order
  target: Array  # [M] int32
  product: Array  # [M] int32
  standing: Array  # [S] int32: local types of finished structures, else 0
  queued: Array  # [S] int32: number of products in the queue
  in_training: Array  # [S, 5] int32: products in the queue
  has_lab: Array  # [S] or [0] bool: structures with a finished TechLab
  can_attach: Array  # [S] or [0] bool: structures that can begin an add-on
  can_morph: Array  # [S] or [0] bool: structures whose queue allows a morph
  larvae: Array  # [S] or [0] int32
  injected: Array  # [S] or [0] int32
  boosted: Array  # [S] or [0] int32
  stimmed: Array  # [M] or [0] int32
  minerals: Array  # [] int32
  vespene: Array  # [] int32
  food_left: Array  # [] int32, in halves
  food_most: Array  # [] int32, in halves
  upgrades: Array  # [U] bool
  can: Array  # [C] bool: available functions
  row: Array  # [2 n + R] int32: entity row of own slots, the opponent's slots and resources
  present: Array  # [2 n + R] bool: whether it has a row
  enemy: Array  # [n] bool: the opponent's slots in sight
  enemy_kind: Array  # [n] int32
  enemy_x: Array  # [n] float32
  enemy_y: Array  # [n] float32
  known: Array  # [S] bool: enemy structures, in sight or remembered
  known_kind: Array  # [S] int32
  known_x: Array  # [S] float32
  known_y: Array  # [S] float32
  home_seen: Array  # [] bool: the opponent's starting position is in sight
  patch_x: Array  # [R] float32
  patch_y: Array  # [R] float32
  patches: Array  # [R] int32: contents as last seen
  tapped: Array  # [R] bool: geysers with an own finished gas structure
  buildable: Array  # [G, G] bool in the player's own frame; [0, 0] on flat open maps


class Choice(NamedTuple):
  """A command that a player may choose, in slots."""

  wanted: Array  # [] bool
  function: Array  # [] int32, local
  slots: Array  # [n] bool: the executors
  x: Array  # [] float32
  y: Array  # [] float32
  target: Array  # [] int32: own slot, n + the opponent's slot, or 2 n + resource
  repeat: Array  # [] int32, 1 to 3


def make_view(rules: tables.Rules, state: State, player: Array,
              vision: Array | np.ndarray | bool = False) -> View:
  """Returns a player's view of a game.

  Args:
    rules: the game's constants.
    state: the game.
    player: [] int32, 0 or 1.
    vision: [] bool: the player sees everything.
  """
  tier, memory, s = rules.tier, state.memory, rules.tier.structures
  food_used, food_most = food(rules, state)
  rows = entity_rows(rules, state)
  patch_x, patch_y = resource_positions(rules, state.side)
  home = state.side[:, None] * np.array(tier.home, np.float32)
  near_home = squared_distance(-home[:, :1], -home[:, 1:], state.x, state.y) < HOME_SEEN ** 2
  home_seen = jnp.any(near_home & (state.kind > 0), axis=1)
  enemy_kind, enemy_x, enemy_y = flip(state.kind), flip(state.x), flip(state.y)
  all_structures = (enemy_kind[:, :s] > 0) & vision
  ground = np.zeros((1, 0, 0), bool) if rules.terrain is None else rules.terrain.buildable
  buildable = jnp.asarray(ground)[state.match_up.map_index % len(ground)]
  tapped = tapped_geysers(rules, state) if rules.has_gas else jnp.zeros(patch_x.shape, bool)
  both = View(
    side=state.side, race=state.race, away_race=flip(state.race), kind=state.kind, x=state.x,
    y=state.y, health=state.health, energy=state.energy, verb=state.orders.verb,
    target=state.orders.target, product=state.orders.product, standing=finished_kind(rules, state),
    queued=jnp.sum(state.queue > 0, axis=2), in_training=state.queue, larvae=state.larvae,
    injected=state.injected, boosted=state.boosted, stimmed=state.stimmed,
    minerals=state.minerals, vespene=state.vespene, food_left=food_most - food_used,
    food_most=food_most, upgrades=state.upgrades,
    **_technology(rules, state), can=availability.available(rules, state), row=rows.row,
    present=rows.present, enemy=memory.seen | ((enemy_kind > 0) & vision), enemy_kind=enemy_kind,
    enemy_x=enemy_x, enemy_y=enemy_y, known=(memory.kind > 0) | all_structures,
    known_kind=jnp.where(all_structures, enemy_kind[:, :s], memory.kind),
    known_x=jnp.where(all_structures, enemy_x[:, :s], memory.x),
    known_y=jnp.where(all_structures, enemy_y[:, :s], memory.y), home_seen=home_seen,
    patch_x=patch_x, patch_y=patch_y, patches=memory.patches, tapped=tapped,
    buildable=jnp.broadcast_to(buildable, (2, *buildable.shape)))
  return jax.tree.map(lambda values: jnp.where(player == 0, values[0], values[1]), both)


def _technology(rules: tables.Rules, state: State) -> dict[str, Array]:
  """Fields of both players' views about add-ons and morphs, of size zero where there are none."""
  fields = dict.fromkeys(("has_lab", "can_attach", "can_morph"), jnp.zeros((2, 0), bool))
  if rules.has_add_ons:
    found = add_ons.add_ons_of(rules, state)
    fields |= {"has_lab": add_ons.has_finished(rules, found, constants.TECH_LAB),
               "can_attach": add_ons.can_attach(rules, state)}
  if rules.has_hatching_morphs:
    fields["can_morph"] = availability.can_morph(rules, state)
  return fields


def able_structures(rules: tables.Rules, view: View, product: Array) -> Array:
  """Returns the structures that have what a product requires of its producer: [S] bool.

  Some types need a larva, some a TechLab, an add-on needs a structure without one, and a morph a
  free queue. In tiers without larvae and technology all structures qualify.

  Args:
    rules: the game's constants.
    view: the game as the player knows it.
    product: [] int32.
  """
  able = jnp.ones(rules.tier.structures, bool)
  if rules.has_larvae:
    able &= ~look_up(rules.products.larva, product) | (view.larvae > 0)
  if rules.has_add_ons:
    able &= (look_up(rules.products.add_on, product) == 0) | view.has_lab
    able &= ~add_ons.is_add_on(rules, product) | view.can_attach
  if rules.has_hatching_morphs:
    morphs = np.pad(rules.types.morphed,
                    (0, len(rules.products.function) - len(rules.types.names)))
    able &= ~look_up(morphs, product) | (view.can_morph & (view.standing != product))
  return able


def first_slots(slots: Array, most: Array | int) -> Array:
  """Returns at most `most` of the chosen slots, the first ones: [m] bool."""
  return slots & (jnp.cumsum(slots) <= most)


def unit_slots(rules: tables.Rules, units: Array) -> Array:
  """Returns slots [n] bool of which only units [M] bool are chosen."""
  return jnp.concatenate([jnp.zeros(rules.tier.structures, bool), units])


def structure_slots(rules: tables.Rules, structures: Array) -> Array:
  """Returns slots [n] bool of which only structures [S] bool are chosen."""
  return jnp.pad(structures, (0, rules.tier.units))


def make_choice(rules: tables.Rules, wanted: Array | np.ndarray | bool, function: Array | str,
                slots: Array, x: Array | float = 0.0, y: Array | float = 0.0,
                target: Array | int = 0, repeat: Array | int = 1) -> Choice:
  """Returns a command to slots [n] bool, wanted only if any slot is chosen.

  Args:
    rules: the game's constants.
    wanted: [] bool.
    function: a name, or a local index [] int32.
    slots: the executors.
    x, y: a place, map units from the middle of the map.
    target: see Choice.
    repeat: 1 to 3.
  """
  local = rules.functions.names.index(function) if isinstance(function, str) else function
  return Choice(
    jnp.asarray(wanted, bool) & jnp.any(slots), jnp.asarray(local, jnp.int32), slots,
    jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.asarray(target, jnp.int32),
    jnp.asarray(repeat, jnp.int32))
