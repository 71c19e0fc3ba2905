"""Limits of production: food, free slots, and the next level of an upgrade."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state.arrays import look_up
from starleague.environments.skirmish.rules.state.queries import (
  finished_kind,
  is_hallucination,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables


def food(rules: tables.Rules, state: State) -> tuple[Array, Array]:
  """Food used, with that of units in production, and the maximum: [2] int32 each, in halves."""
  types, s = rules.types, rules.tier.structures
  taken = look_up(types.takes_food, state.kind)
  used = taken.sum(axis=1)
  if rules.has_sentries:
    used -= jnp.sum(jnp.where(is_hallucination(rules, state), taken[:, s:], 0), axis=1)
  queued = look_up(rules.products.takes_food, state.queue).sum(axis=(1, 2))
  supplied = look_up(types.gives_food, finished_kind(rules, state)).sum(axis=1)
  if types.gives_food[~types.structure].any():
    supplied = supplied + look_up(types.gives_food, state.kind[:, s:]).sum(axis=1)
  return used + queued, jnp.minimum(supplied, 2 * rules.tier.food_cap)


def free_unit_slots(rules: tables.Rules, state: State) -> Array:
  """Unit slots that neither units nor units in production take: [2] int32."""
  taken = jnp.sum(state.kind[:, rules.tier.structures:] > 0, axis=1)
  queued = look_up(rules.products.brood, state.queue).sum(axis=(1, 2))
  return rules.tier.units - taken - queued


def next_products(rules: tables.Rules, state: State) -> Array:
  """The local product that each function makes now, 0 for none: [2, C].

  A level of an upgrade requires the level before it. Only one level is researched at a time.
  """
  functions, products = rules.functions, rules.products
  if not rules.has_upgrades:
    return jnp.tile(jnp.asarray(functions.product), (2, 1))
  y = len(rules.types.names)
  line = (functions.product >= y)[:, None] & (
    products.function[None, y:] == np.arange(len(functions.names))[:, None])  # [C, U]
  owned = state.upgrades.astype(jnp.float32) @ jnp.asarray(line.T, jnp.float32)
  researched = look_up(np.where(np.arange(len(products.function)) >= y, products.function, 0),
                       state.queue).reshape(2, -1)
  busy = jnp.zeros((2, len(functions.names)), bool).at[
    jnp.arange(2)[:, None], researched].set(True).at[:, 0].set(False)
  owned = owned.astype(jnp.int32)
  left = (owned < functions.levels) & ~busy
  product = functions.product + owned * (functions.product >= y)
  return jnp.where((functions.product > 0) & (left | (functions.product < y)), product, 0)
