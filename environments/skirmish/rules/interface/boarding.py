"""Commands to transports and passengers: who loads whom, who boards what, and who unloads where."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.state import placement
from starleague.environments.skirmish.rules.state.arrays import look_up, pick
from starleague.environments.skirmish.rules.state.queries import (
  is_transport,
  ready_kind,
  real_kind,
)
from starleague.environments.skirmish.rules.state.state import Array, Orders, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ABOARD,
  ALL_PASSENGERS,
  BOARD,
  CONSTRUCT,
  FIRST_PASSENGER,
  HERE,
  LOAD,
  OWN,
  UNLOAD,
)


class Transfer(NamedTuple):
  """The players' commands as those to transports and passengers; [2] bool unless stated."""

  smart: Array  # a smart command at a target
  loads: Array  # transports are to take an own unit in
  boards: Array  # units are to board an own transport
  unloads: Array
  loadable: Array  # the target can board
  suits: Array  # [2, M] bool: slots of transports that have room for it, or passengers to unload
  some: Array  # a transport suits
  room: Array  # [2, 1] int32: the space left in the transport that is the target
  target: Array  # [2] int32: of the orders
  over_ground: Array  # the ground is passable where the first transport unloads


def resolve(rules: tables.Rules, state: State, function: Array, target_kind: Array, target: Array,
            x: Array, y: Array, asked: Array) -> Transfer:
  """Finds what commands mean to transports and passengers.

  Args:
    rules: the game's constants, of a tier with transports.
    state: the game.
    function: [2] int32, local.
    target_kind: [2] int32.
    target: [2] int32, an index of that kind. To unload one passenger it may be its slot, though
      the kind is that of no target.
    x: [2] float32, the place of the target, or the point.
    y: [2].
    asked: [2, n] bool, the slots that can execute the function.
  """
  types, s, names = rules.types, rules.tier.structures, np.array(rules.functions.names)

  def at(values, slot):
    return pick(values, slot[:, None])[:, 0]

  verb, smart = look_up(rules.functions.verb, function), look_up(names == "Smart_unit", function)
  aim = jnp.where(target_kind == OWN, at(ready_kind(rules, state), target), 0)
  unit_verb = jnp.where(target >= s, at(state.orders.verb, target - s), 0)
  size = jnp.where(unit_verb == CONSTRUCT, 0, look_up(types.cargo_size, aim))
  unloads, space = verb == UNLOAD, int(types.cargo_space.max())  # that of all transports
  suits = asked[:, s:] & is_transport(rules, real_kind(rules, state)) & jnp.where(
    unloads[:, None], state.cargo_taken > 0, state.cargo_taken <= space - size[:, None])
  slots = jnp.arange(s, rules.tier.slots)
  first = jnp.min(jnp.where(suits, slots, rules.tier.slots), axis=1)
  some = first < rules.tier.slots
  # One passenger leaves the first transport, or its own if the command names it.
  single = look_up(names == "UnloadUnit_quick", function)
  named = unit_verb == ABOARD
  which = jnp.where(named, at(state.orders.target, target - s), first)
  suits &= ~single[:, None] | (slots == which[:, None])
  at_place = look_up(np.char.startswith(names, "UnloadAllAt"), function)
  chosen = jnp.where(single, jnp.where(named, target, FIRST_PASSENGER),
                     jnp.where(at_place, ALL_PASSENGERS, HERE))
  first = jnp.minimum(jnp.where(single, which, first), rules.tier.slots - 1)
  return Transfer(
    smart=smart, loads=(verb == LOAD) | (smart & (size > 0) & some),
    boards=smart & is_transport(rules, aim), unloads=unloads, loadable=size > 0, suits=suits,
    some=some, room=space - pick(state.cargo_taken, target[:, None] - s),
    target=jnp.where(unloads, chosen, target),
    over_ground=over_ground(
      rules, state, jnp.where(at_place, x, at(state.x, first)),
      jnp.where(at_place, y, at(state.y, first))))


def over_ground(rules: tables.Rules, state: State, x: Array, y: Array) -> Array:
  """Whether places [2] are passable ground, on which passengers can land: [2] bool."""
  if rules.terrain is None:
    return jnp.ones(2, bool)
  return placement.on_terrain(rules, state, rules.terrain.passable, x[:, None], y[:, None])[:, 0]


def unit_orders(rules: tables.Rules, state: State, transfer: Transfer, units: Array,
                orders: Orders) -> tuple[Array, Orders]:
  """The units that take an order and their orders, with those of a transfer.

  Args:
    rules: the game's constants.
    state: the game.
    transfer: of the commands.
    units: [2, M] bool, those that take an order if there are no transports.
    orders: [2, M], theirs.
  """
  kind = real_kind(rules, state)
  transport, size = is_transport(rules, kind), look_up(rules.types.cargo_size, kind)
  loads = transport & transfer.loads[:, None]
  boards = transfer.boards[:, None] & (size > 0)
  verb = jnp.where(loads, LOAD, jnp.where(boards, BOARD, orders.verb))
  units &= ~(loads | (transport & transfer.unloads[:, None])) | transfer.suits
  units &= ~boards | (size <= transfer.room)
  # A phasing Warp Prism follows nobody.
  phasing = kind == rules.types.local("WarpPrismPhasing")
  units &= ~(phasing & transfer.smart[:, None]) | loads
  target = jnp.broadcast_to(transfer.target[:, None], verb.shape)
  return units, orders._replace(verb=verb, target=target)


def checks(transfer: Transfer) -> list[action_results.Check]:
  """Requirements of a transfer, each with its action result."""
  return [
    (~transfer.loads | transfer.loadable, action_results.CANT_LOAD_THAT_UNIT),
    (~transfer.loads | transfer.some, action_results.NOT_ENOUGH_ROOM_TO_LOAD_UNIT),
    (~transfer.unloads | transfer.some, action_results.NO_CARGO_TO_UNLOAD),
    (~transfer.unloads | transfer.over_ground, action_results.CANT_UNLOAD_UNITS_THERE)]


def own_reasons(transfer: Transfer) -> list[action_results.Check]:
  """Why no unit takes a smart command, each with its action result."""
  return [(~transfer.boards, action_results.NOT_ENOUGH_ROOM_TO_LOAD_UNIT),
          (~transfer.smart, action_results.YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT)]
