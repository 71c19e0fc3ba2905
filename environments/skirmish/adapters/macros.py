"""A small discrete action set: macro actions whose units, sites and targets the game chooses.

Each action is one of these, and its index is the same for all players, races and maps of a tier:

  no_op
  mine, mine_gas: sends idle workers to minerals, or a worker to a gas structure that lacks one
  every function that builds, trains, morphs or researches: by the worker nearest to a free site,
    or by the structure with the shortest queue; no more workers than the bases employ. Warp gates
    are left out: Gateways train
  abilities, where they help: stim, siege mode, injection, chrono boost, scan
  attack: fighters attack the nearest known structure of the opponent, or else its start
  defend: fighters attack the enemies that are near an own structure
  retreat: fighters move to their start
  attack_0 to attack_8: fighters attack-move to a ninth of the map, by rows; the player's own start
    is at the top left

An action that is not in the mask is no_op. Fighters are those that do not yet carry out the action,
at most `max_selected`.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments.skirmish.bots import players, scripts, sites, spending
from starleague.environments.skirmish.bots.views import (
  Choice,
  View,
  able_structures,
  first_slots,
  make_choice,
  make_view,
  structure_slots,
  unit_slots,
)
from starleague.environments.skirmish.rules.interface import acting
from starleague.environments.skirmish.rules.state import placement
from starleague.environments.skirmish.rules.state.arrays import (
  look_up,
  pairwise_squared_distance,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import is_geyser
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.step import arrival
from starleague.environments.skirmish.rules.tables import constants, tables

REGIONS = 3  # rows and columns of attack_0 to attack_8
UNDER_WAY = 1.0  # from a unit's goal to the place of an action
MARGIN = 2.5  # beyond the end of attacks, at which idle fighters are at the place of an action
BUSY = 1e4  # added to the squared distance of builders that neither mine nor idle


class _Army(NamedTuple):
  """A player's fighters [M]."""

  slots: Array  # bool
  x: Array  # float32
  y: Array
  verb: Array  # int32
  to_x: Array  # float32: destination of the order
  to_y: Array
  end: Array  # [] float32: the farthest from a common goal at which their attacks end


def products_of(rules: tables.Rules) -> np.ndarray:
  """Returns the local functions that make something, in order.

  Those of warp gates and Warp Prisms, which other actions would have to use, are left out.
  """
  product, gate = rules.functions.product, rules.types.warp_gate
  unused = (rules.functions.kind == constants.WARPING) | (gate > 0) & (
    (product == gate) | (product == rules.products.upgrade[gate])
    | (product == rules.types.local("WarpPrism")))
  return np.flatnonzero((product > 0) & ~unused)


@functools.cache
def names(rules: tables.Rules) -> tuple[str, ...]:
  """Returns the names of the actions of a tier."""
  gas = ("mine_gas",) if rules.has_gas else ()
  made = tuple(rules.functions.names[c] for c in products_of(rules))
  used = tuple(name for name, ability in (
    ("Effect_Stim_quick", constants.STIM), ("Morph_SiegeMode_quick", constants.SIEGE),
    ("Morph_Unsiege_quick", constants.SIEGE), ("Effect_InjectLarva_unit", constants.INJECT),
    ("Effect_ChronoBoostEnergyCost_unit", constants.BOOST), ("Effect_Scan_pt", constants.SCAN))
    if rules.has(ability))
  regions = tuple(f"attack_{i}" for i in range(REGIONS ** 2))
  return ("no_op", "mine", *gas, *used, "attack", "defend", "retreat", *regions, *made)


def mask(rules: tables.Rules, state: State, player: Array) -> Array:
  """Returns the actions that have an effect now: [len(names(rules))] bool; no_op is always one."""
  view = make_view(rules, state, player)
  fixed = _stack(_fixed_choices(rules, state, player, view))
  made = products_of(rules)
  builds = rules.functions.kind[made] == constants.BUILDING
  ready = view.can[made] & (_employs_more(rules, view) | ~_trains_worker(rules)[made])
  located = jax.vmap(lambda product: _site(rules, state, player, view, product)[0])(
    jnp.asarray(rules.functions.product[made[builds]]))
  ready = ready.at[np.flatnonzero(builds)].min(located)
  return jnp.concatenate([fixed.wanted & view.can[fixed.function], ready]).at[0].set(True)


def action(rules: tables.Rules, state: State, player: Array, index: Array,
           delay: int) -> types.Action:
  """Returns the composite action of a macro action; no_op for one that is not in the mask.

  Args:
    rules: the game's constants.
    state: the game.
    player: [] int32, 0 or 1.
    index: [] int32, of `names(rules)`.
    delay: game loops until the player is due again.
  """
  view = make_view(rules, state, player)
  fixed = _stack(_fixed_choices(rules, state, player, view))
  count = fixed.wanted.shape[0]
  function = look_up(products_of(rules).astype(np.int32), index - count)
  made = _make(rules, state, player, view, function)
  choice = jax.tree.map(
    lambda values, other: jnp.where(index < count, values[jnp.minimum(index, count - 1)], other),
    fixed, made)
  known = (index > 0) & (index < len(names(rules)))
  choice = choice._replace(wanted=choice.wanted & view.can[choice.function] & known)
  return players.to_action(rules, view, choice, jnp.int32(delay))


def _stack(choices: list[Choice]) -> Choice:
  return jax.tree.map(lambda *values: jnp.stack(values), *choices)


def _of(player: Array, values: Array) -> Array:
  """A player's part of [2, ...]."""
  return jnp.where(player == 0, values[0], values[1])


def _fixed_choices(rules: tables.Rules, state: State, player: Array, view: View) -> list[Choice]:
  """The commands of all actions that make nothing, in the order of `names`."""
  nobody = jnp.zeros(rules.tier.slots, bool)
  army = _army(rules, state, player, view)
  home_x, home_y = (view.side * place for place in rules.tier.home)
  square = squared_distance(home_x, home_y, view.known_x, view.known_y)
  nearest, seen = jnp.argmin(jnp.where(view.known, square, jnp.inf)), jnp.any(view.known)
  goal_x = jnp.where(seen, view.known_x[nearest], -home_x)
  goal_y = jnp.where(seen, view.known_y[nearest], -home_y)
  threat, threat_x, threat_y = players.find_threat(rules, view)
  attack = functools.partial(_send, rules, army, "Attack_pt", constants.ATTACK)
  middle = rules.half * (2 * np.arange(REGIONS) + 1 - REGIONS) / REGIONS
  return [
    make_choice(rules, False, "no_op", nobody),
    spending.mine(rules, view), *spending.mine_gas(rules, view),
    *players.abilities(rules, True, view).values(),
    attack(goal_x, goal_y, True), attack(threat_x, threat_y, threat),
    _send(rules, army, "Move_pt", constants.MOVE, home_x, home_y, True),
    *(attack(view.side * x, view.side * y, True) for y in middle for x in middle)]


def _army(rules: tables.Rules, state: State, player: Array, view: View) -> _Army:
  s = rules.tier.structures
  slots = look_up(scripts.army_types(rules), view.kind[s:])
  return _Army(
    slots, view.x[s:], view.y[s:], view.verb, _of(player, state.orders.x),
    _of(player, state.orders.y),
    arrival.end_of_attacks(rules, jnp.where(slots, view.kind[s:], 0)))


def _send(rules: tables.Rules, army: _Army, function: str, verb: int, x: Array, y: Array,
          wanted: Array | bool) -> Choice:
  """Sends fighters to a place, except those on their way to it and idle ones there."""
  under_way = (army.verb == verb) & (
    squared_distance(x, y, army.to_x, army.to_y) < UNDER_WAY ** 2)
  there = (army.verb == constants.IDLE) & (
    squared_distance(x, y, army.x, army.y) < (MARGIN + army.end) ** 2)
  chosen = first_slots(army.slots & ~under_way & ~there, rules.max_selected)
  return make_choice(rules, wanted, function, unit_slots(rules, chosen), x, y)


def _site(rules: tables.Rules, state: State, player: Array, view: View,
          product: Array) -> tuple[Array, Array, Array, Array]:
  """A site for a structure: whether there is one, x, y, and the target of its command."""
  # An action builds where its mask found a site: both draw from the key of the step.
  key = jax.random.fold_in(jax.random.key(_of(player, state.seed)), state.loop)
  fits, x, y = sites.site(rules, key, view, product)
  x, y = acting.location_to_place(rules, acting.place_to_location(rules, x, y))
  target = jnp.int32(0)
  if rules.has_gas:
    free, geyser = sites.free_geyser(rules, view)
    gas = look_up(rules.types.gas, product)
    fits = jnp.where(gas, free, fits)
    x, y = (jnp.where(gas, patch[geyser], place)
            for patch, place in ((view.patch_x, x), (view.patch_y, y)))
    target = jnp.where(gas, 2 * rules.tier.slots + geyser, 0)
  # `sites` does not heed the opponent's structures; the rules do.
  clear = placement.placeable(
    rules, state, placement.known_ground(rules, state), jnp.stack([x, x]), jnp.stack([y, y]),
    jnp.stack([product, product]))
  return fits & _of(player, clear), x, y, target


def _make(rules: tables.Rules, state: State, player: Array, view: View,
          function: Array) -> Choice:
  """The command of a function [] that makes something."""
  s, functions = rules.tier.structures, rules.functions
  product = look_up(functions.product, function)
  builds = look_up(functions.kind, function) == constants.BUILDING
  # Products of functions that build are types; those of others have no site.
  fits, x, y, target = _site(rules, state, player, view, jnp.where(builds, product, 0))
  worker = look_up(rules.types.worker, view.kind[s:]) & (view.verb != constants.CONSTRUCT)
  idle = (view.verb == constants.GATHER) | (view.verb == constants.IDLE)
  far = squared_distance(x, y, view.x[s:], view.y[s:]) + jnp.where(idle, 0.0, BUSY)
  nearest = jnp.argmin(jnp.where(worker, far, jnp.inf))
  builder = worker & (jnp.arange(rules.tier.units) == nearest)
  trainers = _trainers(rules, state, player, view, function, product)
  shortest = jnp.min(jnp.where(trainers, view.queued, constants.QUEUE_LENGTH))
  trainer = first_slots(trainers & (view.queued == shortest), 1)
  slots = jnp.where(builds, unit_slots(rules, builder), structure_slots(rules, trainer))
  wanted = (fits | ~builds) & (
    _employs_more(rules, view) | ~look_up(_trains_worker(rules), function))
  return make_choice(rules, wanted, function, slots, x, y, target)


def _trains_worker(rules: tables.Rules) -> np.ndarray:
  """Local functions that train workers: [C] bool."""
  product = rules.functions.product
  return np.append(rules.types.worker, False)[np.minimum(product, len(rules.types.names))]


def _employs_more(rules: tables.Rules, view: View) -> Array:
  """Whether the bases employ more workers than there are, with those in training: [] bool."""
  types_, s = rules.types, rules.tier.structures
  hall = look_up(types_.townhall, view.standing)
  square = pairwise_squared_distance(view.x[:s], view.y[:s], view.patch_x, view.patch_y)
  near = jnp.any(hall[:, None] & (square < constants.TOWNHALL_REACH ** 2), axis=0)
  minerals = near & (view.patches > 0) & ~is_geyser(rules)
  places = constants.WORKERS_PER_PATCH * jnp.sum(minerals) + (
    constants.WORKERS_PER_GEYSER * jnp.sum(view.tapped))
  worker = np.append(types_.worker, np.zeros(len(rules.products.function), bool))
  return jnp.sum(look_up(worker, view.kind)) + jnp.sum(look_up(worker, view.in_training)) < places


def _trainers(rules: tables.Rules, state: State, player: Array, view: View, function: Array,
              product: Array) -> Array:
  """The structures that can queue a product now: [S] bool."""
  able = look_up(rules.functions.capable, function)[view.standing]
  able &= (view.queued < constants.QUEUE_LENGTH) & able_structures(rules, view, product)
  if rules.has_upgrades:  # structures morph with an empty queue
    morphs = look_up(rules.products.brood, product) == 0
    idle = view.can_morph if rules.has_hatching_morphs else view.queued == 0
    able &= ~morphs | (product >= len(rules.types.names)) | idle
  if rules.has_larvae:
    able &= ~look_up(rules.products.larva, product) | (_of(player, state.larvae) > 0)
  return able
