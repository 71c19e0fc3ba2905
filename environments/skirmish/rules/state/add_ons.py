"""Add-ons: the TechLab or Reactor beside a structure.

An add-on belongs to the structure of its producer's type on its left. As in the real game, left is
that of the map for both players. While it is under construction it is the only product in its
structure's queue.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state.arrays import (
  look_up,
  pairwise_squared_distance,
  pick,
)
from starleague.environments.skirmish.rules.state.queries import finished_kind
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ADD_ON_OFFSET,
  SAME_PLACE,
  TECH_LAB,
)


class AddOns(NamedTuple):
  """The add-on of each structure, [2, S] each."""

  kind: Array  # int32: local type, 0 for none
  slot: Array  # int32: the structure slot that it is in, -1 for none
  loops: Array  # int32: loops of its construction left


def places(x: Array, y: Array) -> tuple[Array, Array]:
  """The places of the add-ons of structures at x, y [...], map units: x, y [...]."""
  return x + ADD_ON_OFFSET[0], y + ADD_ON_OFFSET[1]


def link(rules: tables.Rules, state: State) -> State:
  """Finds the add-on of each structure. Runs once a step."""
  s, types = rules.tier.structures, rules.types
  kind = state.kind[:, :s]
  x, y = state.x[:, :s], state.y[:, :s]
  producer = np.where(types.add_on > 0, rules.products.producer[:len(types.names)], -1)
  belongs = look_up(producer, kind)[:, None] == kind[:, :, None]  # [2, structure, add-on]
  belongs &= pairwise_squared_distance(*places(x, y), x, y) < SAME_PLACE ** 2
  return state._replace(add_on=jnp.max(jnp.where(belongs, 1 + jnp.arange(s), 0), axis=2))


def add_ons_of(rules: tables.Rules, state: State) -> AddOns:
  """The add-ons as `link` found them; those cancelled since are none."""
  s = rules.tier.structures
  if not rules.has_add_ons:
    none = jnp.zeros((2, s), jnp.int32)
    return AddOns(none, none - 1, none)
  slot = state.add_on - 1
  kind = pick(state.kind[:, :s], slot)
  there = (slot >= 0) & is_add_on(rules, kind)
  return AddOns(
    kind=jnp.where(there, kind, 0), slot=jnp.where(there, slot, -1),
    loops=jnp.where(there, pick(state.unfinished, slot), 0))


def hosts(rules: tables.Rules) -> np.ndarray:
  """The types that can have an add-on: [Y] bool."""
  found = np.zeros(len(rules.types.names), bool)
  found[rules.products.producer[np.flatnonzero(rules.types.add_on)]] = True
  return found


def has_finished(rules: tables.Rules, add_ons: AddOns, which: int) -> Array:
  """Structures with a finished add-on of a kind, TECH_LAB or REACTOR: [2, S] bool."""
  return _within(rules.types.add_on == which, add_ons.kind) & (add_ons.loops == 0)


def equipped(rules: tables.Rules, state: State, product: Array) -> Array:
  """Structures with the add-on that a product [2] needs of its producer: [2, S] bool."""
  needs = look_up(rules.products.add_on, product) > 0
  return ~needs[:, None] | has_finished(rules, add_ons_of(rules, state), TECH_LAB)


def is_add_on(rules: tables.Rules, product: Any) -> Any:
  """Whether products [...] are add-ons: [...] bool."""
  return _within(rules.types.add_on > 0, product)


def _within(chosen: np.ndarray, index: Any) -> Any:
  """Whether indices [...] are among the chosen types [Y], which are consecutive; 0 is not.

  Two comparisons take less time than a look-up.
  """
  first, last = int(np.argmax(chosen)), len(chosen) - 1 - int(np.argmax(chosen[::-1]))
  assert chosen[first:last + 1].all() or not chosen.any()
  return (index >= max(first, 1)) & (index <= last) & bool(chosen.any())


def attaching(rules: tables.Rules, state: State) -> Array:
  """Structures whose add-on is under construction: [2, S] bool."""
  return is_add_on(rules, state.queue[:, :, 0])


def can_attach(rules: tables.Rules, state: State) -> Array:
  """Structures that can begin an add-on: finished, without one and idle. [2, S] bool."""
  return _within(hosts(rules), finished_kind(rules, state)) & (
    add_ons_of(rules, state).kind == 0) & (state.queue[:, :, 0] == 0)
