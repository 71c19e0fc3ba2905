"""Add-ons: the TechLab or Reactor beside a structure.

An add-on belongs to the structure of its producer's type at whose right it stands: the state has no
other record of it. As in the real game, that is the map's right for both players. While it is under
construction it is the only product in its structure's queue.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state.arrays import look_up, pairwise_squared_distance
from starleague.environments.skirmish.rules.state.queries import finished_kind
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ADD_ON_OFFSET,
  SAME_PLACE,
  TECH_LAB,
)


class AddOns(NamedTuple):
  """The add-on of each structure, [2, S] each; 0 for none."""

  kind: Array  # int32: local type
  slot: Array  # int32: the structure slot that it is in
  loops: Array  # int32: loops of its construction left


def places(x: Array, y: Array) -> tuple[Array, Array]:
  """The places of the add-ons of structures at x, y [...], map units: x, y [...]."""
  return x + ADD_ON_OFFSET[0], y + ADD_ON_OFFSET[1]


def find_add_ons(rules: tables.Rules, state: State) -> AddOns:
  """Finds the add-on of each structure, both players'."""
  s, types = rules.tier.structures, rules.types
  kind = state.kind[:, :s]
  x, y = state.x[:, :s], state.y[:, :s]
  producer = np.where(types.add_on > 0, rules.products.producer[:len(types.names)], -1)
  belongs = look_up(producer, kind)[:, None] == kind[:, :, None]  # [2, structure, add-on]
  belongs &= pairwise_squared_distance(*places(x, y), x, y) < SAME_PLACE ** 2

  def of_add_on(values):
    return jnp.max(jnp.where(belongs, values[:, None], 0), axis=2)

  return AddOns(
    kind=of_add_on(kind), slot=of_add_on(jnp.broadcast_to(jnp.arange(s), kind.shape)),
    loops=of_add_on(state.unfinished))


def has_finished(rules: tables.Rules, add_ons: AddOns, which: int) -> Array:
  """Structures with a finished add-on of a kind, TECH_LAB or REACTOR: [2, S] bool."""
  return (look_up(rules.types.add_on, add_ons.kind) == which) & (add_ons.loops == 0)


def equipped(rules: tables.Rules, state: State, product: Array) -> Array:
  """Structures with the add-on that a product [2] needs of its producer: [2, S] bool."""
  needs = look_up(rules.products.add_on, product) > 0
  return ~needs[:, None] | has_finished(rules, find_add_ons(rules, state), TECH_LAB)


def are_products(rules: tables.Rules) -> np.ndarray:
  """The products that are add-ons: [P] bool."""
  return np.pad(rules.types.add_on > 0, (0, len(rules.products.add_on) - len(rules.types.names)))


def attaching(rules: tables.Rules, state: State) -> Array:
  """Structures whose add-on is under construction: [2, S] bool."""
  return look_up(are_products(rules), state.queue[:, :, 0])


def can_attach(rules: tables.Rules, state: State) -> Array:
  """Structures that can begin an add-on: finished, without one and idle. [2, S] bool."""
  return (finished_kind(rules, state) > 0) & (find_add_ons(rules, state).kind == 0) & (
    state.queue[:, :, 0] == 0)
