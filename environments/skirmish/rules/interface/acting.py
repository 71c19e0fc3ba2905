"""From agents' actions to commands: rows of observations become slots, grid cells positions."""

import functools

import jax
import jax.numpy as jnp

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.interface.entities import entity_rows
from starleague.environments.skirmish.rules.state.arrays import look_up
from starleague.environments.skirmish.rules.state.state import Array, Commands, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ENEMY,
  LOOPS_PER_STEP,
  NO_TARGET,
  OWN,
  RESOURCE,
)

_QUEUED, _REPEAT, _UNITS = 2, 3, 4  # columns of vocabulary.ARGUMENT_TABLE


def location_to_place(rules: tables.Rules, location: Array) -> tuple[Array, Array]:
  """The middle of a cell of the L x L grid: x, y in map units from the map's middle."""
  size = rules.location_size
  cell = rules.tier.map_size / size

  def middle(index):
    return (index.astype(jnp.float32) - (size - 1) / 2) * cell

  return middle(location % size), middle(location // size)


def place_to_location(rules: tables.Rules, x: Array, y: Array) -> Array:
  """The cell of the L x L grid that contains a place, clipped to the map."""
  size = rules.location_size

  def index(value):
    cell = jnp.floor((value + rules.half) * (size / rules.tier.map_size))
    return jnp.clip(cell, 0, size - 1).astype(jnp.int32)

  return index(y) * size + index(x)


def act(rules: tables.Rules, state: State, actions: types.Action, acts: Array) -> State:
  """Stores actions as commands of the next step, and starts the players' delays.

  Args:
    rules: the game's constants.
    state: the game; the actions refer to rows of its observations.
    actions: [2, ...]; those of players who do not act are ignored.
    acts: [2] bool.
  """
  dense = actions.function.astype(jnp.int32)
  function = jnp.asarray(rules.functions.local)[dense]
  uses_target = look_up(rules.functions.takes_unit, function) > 0
  selected, target = _picked(rules, state, actions)
  has_target = jnp.any(target, axis=1)
  # Whether a command has an effect shows in `commands.give_orders`.
  refused = action_results.first_failure([
    ((dense == 0) | (function > 0), action_results.NOT_SUPPORTED),
    (~uses_target | has_target, action_results.CANT_TARGET_THAT_UNIT)])
  # An action whose target is not a row gives no command.
  function = jnp.where(uses_target & ~has_target, 0, function)
  commands = _commands(rules, actions, function, selected, target, uses_target)
  uses = jnp.asarray(vocabulary.ARGUMENT_TABLE)[dense].astype(jnp.int32)  # [2, 7]
  # Only commands to units change the selected and targeted slots.
  to_units = acts & (uses[:, _UNITS] > 0)
  delay = jnp.maximum(actions.delay.astype(jnp.int32), 1)
  next_loop = -(-(state.loop + delay) // LOOPS_PER_STEP) * LOOPS_PER_STEP
  return state._replace(
    commands=jax.tree.map(functools.partial(_where, acts), commands, state.commands),
    next_loop=jnp.where(acts, next_loop, state.next_loop),
    last_loop=jnp.where(acts, state.loop, state.last_loop),
    last_function=jnp.where(acts, dense, state.last_function),
    last_queued=jnp.where(
      acts, actions.queued.astype(jnp.int32) * uses[:, _QUEUED], state.last_queued),
    last_repeat=jnp.where(
      acts, actions.repeat.astype(jnp.int32) * uses[:, _REPEAT], state.last_repeat),
    refused=jnp.where(acts, refused, state.refused),
    was_selected=_where(to_units, selected, state.was_selected),
    was_targeted=_where(to_units, target & uses_target[:, None], state.was_targeted))


def _where(mask: Array, new: Array, old: Array) -> Array:
  """`jnp.where` with a mask [2] over arrays [2, ...]."""
  return jnp.where(mask.reshape(2, *[1] * (new.ndim - 1)), new, old)


def _picked(rules: tables.Rules, state: State, actions: types.Action) -> tuple[Array, Array]:
  """The own slots selected, [2, n] bool, and the candidate targeted, [2, 2 n + R] bool."""
  rows = entity_rows(rules, state)
  picked = actions.units.astype(jnp.int32)[:, :, None] == rows.row[:, None]
  picked = jnp.any(picked, axis=1) & rows.present
  target = rows.present & (rows.row == actions.target_unit.astype(jnp.int32)[:, None])
  return picked[:, :rules.tier.slots], target


def _commands(rules: tables.Rules, actions: types.Action, function: Array, selected: Array,
              target: Array, uses_target: Array) -> Commands:
  """The commands of actions.

  Args:
    rules: the game's constants.
    actions: [2, ...].
    function: [2] int32, local.
    selected: [2, n] bool.
    target: [2, 2 n + R] bool.
    uses_target: [2] bool, functions whose target is a row.
  """
  n, slot = rules.tier.slots, jnp.argmax(target, axis=1)
  kind = jnp.where(slot < n, OWN, jnp.where(slot < 2 * n, ENEMY, RESOURCE))
  first = jnp.where(slot < n, 0, jnp.where(slot < 2 * n, n, 2 * n))
  x, y = location_to_place(rules, actions.location.astype(jnp.int32))
  return Commands(
    function=function, selected=selected, x=x, y=y,
    target_kind=jnp.where(uses_target, kind, NO_TARGET), target=slot - first,
    queued=actions.queued > 0, repeat=jnp.clip(actions.repeat.astype(jnp.int32) + 1, 1, 3))
