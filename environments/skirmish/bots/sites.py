"""Where scripted players build."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.bots.views import View
from starleague.environments.skirmish.rules import constants, placement, tables
from starleague.environments.skirmish.rules.arrays import look_up
from starleague.environments.skirmish.rules.queries import is_geyser
from starleague.environments.skirmish.rules.state import Array

SITES = 24  # places that a builder considers
SPREAD = (-7.0, 9.0)  # around a base, towards the middle of the map; mini's is smaller
MINI_SPREAD = (-4.0, 7.0)
ARMED_SPREAD = 0.85  # of the others', for what shoots
FAR_SITES = 8  # of them, for when a base is full: taken only where none of the others will do
FAR_SPREAD = (-7.0, 16.0)  # beyond a plateau's edge
FROM_MIDDLE = 10.0  # of x + y: how far from the middle line all are, out of the enemy's way
AT_BASE = 5.0  # a town hall this near takes a base's place


def _around_home(rules: tables.Rules, key: Array, see: View) -> tuple[Array, Array]:
  """Places to consider on a map of one base: x, y [SITES]."""
  spread = jax.random.uniform(key, (SITES, 2), minval=MINI_SPREAD[0], maxval=MINI_SPREAD[1])
  x, y = rules.tier.home
  return see.side * (x + spread[:, 0]), see.side * (y + spread[:, 1])


def _around_bases(rules: tables.Rules, key: Array, see: View, product: Array,
                  ) -> tuple[Array, Array]:
  """Places to consider on a map of several bases: x, y [SITES]."""
  types, s = rules.types, rules.tier.structures
  homes = np.array(rules.tier.homes, np.float32)
  hall = look_up(types.townhall, see.kind[:s])
  apart = ((see.side * see.x[:s, None] - homes[:, 0]) ** 2
           + (see.side * see.y[:s, None] - homes[:, 1]) ** 2)
  own = jnp.any(hall[:, None] & (apart < AT_BASE ** 2), axis=0)  # [homes]
  shoots, is_hall = look_up(types.fighter, product), look_up(types.townhall, product)
  far = np.arange(SITES) >= SITES - FAR_SITES
  keys = jax.random.split(key)
  # What shoots goes where the newest base is while there is room, all else to the first or any.
  newest = jnp.max(jnp.where(own, jnp.arange(len(homes)), 0))
  where = jax.random.randint(keys[1], (SITES,), 0, 2 * len(homes))
  where = jnp.where(where < len(homes), look_up(own, where) * where, 0)
  base = jnp.where(shoots & ~far, newest, where)
  spread = jax.random.uniform(keys[0], (SITES, 2), minval=SPREAD[0], maxval=SPREAD[1])
  wider = FAR_SPREAD[0] + (FAR_SPREAD[1] - FAR_SPREAD[0]) / (SPREAD[1] - SPREAD[0]) * (
    spread - SPREAD[0])
  spread = jnp.where(far[:, None], wider, jnp.where(shoots, ARMED_SPREAD * spread, spread))
  # A town hall goes to the next free base.
  free = jnp.argmin(own)
  x, y = (see.side * jnp.where(is_hall, look_up(homes[:, i], free),
                               look_up(homes[:, i], base) + spread[:, i]) for i in range(2))
  return x, y


def site(rules: tables.Rules, key: Array, see: View, product: Array) -> tuple[Array, Array, Array]:
  """A free place for a structure.

  Args:
    rules: the game's constants.
    key: what the places to consider are drawn from.
    see: the game as the player knows it.
    product: [] int32, a local type that is not built on a geyser.

  Returns:
    Whether there is one [] bool, and x, y [] float32.
  """
  types, s, tier = rules.types, rules.tier.structures, rules.tier
  several = len(tier.homes) > 1
  if several:
    x, y = _around_bases(rules, key, see, product)
  else:
    x, y = _around_home(rules, jax.random.split(key)[0], see)
  radius = look_up(types.radius, product)
  # A geyser is kept free for what stands on it.
  ground = np.where(is_geyser(rules), types.radius[types.gas].max(initial=0.0), constants.PATCH_RADIUS)
  blocks = [
    (see.x[:s], see.y[:s],
     jnp.where(see.kind[:s] > 0, look_up(types.radius, see.kind[:s]), placement.ABSENT_RADIUS)),
    (see.patch_x, see.patch_y, jnp.where(see.patches > 0, ground, placement.ABSENT_RADIUS))]
  if several:
    # So is the place of a town hall to come.
    homes = np.array(tier.homes, np.float32)
    kept = np.where(types.townhall, placement.ABSENT_RADIUS, types.radius[types.townhall].max())
    blocks.append((see.side * homes[:, 0], see.side * homes[:, 1],
                   jnp.broadcast_to(look_up(kept, product), len(homes))))
  blocks_x, blocks_y, wide = (jnp.concatenate(values) for values in zip(*blocks, strict=True))
  # The aim is rounded to the location grid: leave a cell's width, and a way through.
  apart = jnp.maximum(radius + wide + 0.25 + tier.map_size / rules.location_size, 0.0)
  square = (x[:, None] - blocks_x) ** 2 + (y[:, None] - blocks_y) ** 2
  fits = jnp.all(square >= apart * apart, axis=1)
  fits &= jnp.maximum(jnp.abs(x), jnp.abs(y)) + radius + 0.5 <= rules.half
  if several:
    fits &= (see.side * (x + y) < -FROM_MIDDLE) | look_up(types.townhall, product)
  if rules.terrain is not None:
    row, column = placement.cell_of(rules, see.side, *placement.footprint(x, y, radius))
    fits &= jnp.all(see.buildable[row, column], axis=1)
  if rules.has_larvae:
    creep = look_up(types.larvae, see.standing)
    on_creep = jnp.any(creep & (square[:, :s] < (constants.CREEP_RADIUS - 0.75) ** 2), axis=1)
    needs = look_up((types.race == constants.RACES.index("Zerg")) & ~types.townhall, product)
    fits &= on_creep | ~needs
  best = jnp.argmax(fits)
  return jnp.any(fits), x[best], y[best]


def geyser(rules: tables.Rules, see: View) -> tuple[Array, Array]:
  """A geyser for a gas structure: whether there is one at an own base, and its index."""
  s = rules.tier.structures
  hall = look_up(rules.types.townhall, see.standing)
  square = (see.patch_x[:, None] - see.x[:s]) ** 2 + (see.patch_y[:, None] - see.y[:s]) ** 2
  near = jnp.any(hall & (square < 49.0), axis=1)
  taken = jnp.any((see.kind[:s] > 0) & (square < 1.0), axis=1)
  free = near & ~taken & is_geyser(rules) & (see.patches > 0)
  return jnp.any(free), jnp.argmax(free)
