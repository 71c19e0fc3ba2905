"""Sites for the buildings of scripted players."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.bots.views import View
from starleague.environments.skirmish.rules.interface import acting
from starleague.environments.skirmish.rules.state import add_ons, placement
from starleague.environments.skirmish.rules.state.arrays import (
  look_up,
  pairwise_squared_distance,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import is_geyser
from starleague.environments.skirmish.rules.state.state import Array
from starleague.environments.skirmish.rules.tables import constants, tables

SITES = 24  # candidates per decision
# Candidates lie within these offsets of a base, map units, positive towards the map's middle.
SPREAD = (-7.0, 9.0)
MINI_SPREAD = (-4.0, 7.0)  # on maps with one base
ARMED_SPREAD = 0.85  # factor for structures that shoot
FAR_SITES = 8  # the last candidates, chosen only if none of the others fits
FAR_SPREAD = (-7.0, 16.0)  # of these: beyond a plateau's edge
FROM_MIDDLE = 10.0  # least distance in x + y of all sites from the line between the two sides
AT_BASE = 5.0  # a town hall this near occupies a base
CREEP_MARGIN = 0.75  # sites are at least this far inside the creep's edge
PASSAGE = 0.25  # left free between structures


def _around_home(rules: tables.Rules, key: jax.Array, view: View) -> tuple[Array, Array]:
  """Candidates on a map with one base: x, y [SITES]."""
  spread = jax.random.uniform(key, (SITES, 2), minval=MINI_SPREAD[0], maxval=MINI_SPREAD[1])
  x, y = rules.tier.home
  return view.side * (x + spread[:, 0]), view.side * (y + spread[:, 1])


def _around_bases(rules: tables.Rules, key: jax.Array, view: View,
                  product: Array) -> tuple[Array, Array]:
  """Candidates on a map with several bases: x, y [SITES].

  Armed structures go to the newest base while it has room, all others to any base. A town hall goes
  to the next free base.
  """
  types, s = rules.types, rules.tier.structures
  homes = np.array(rules.tier.homes, np.float32)
  hall = look_up(types.townhall, view.kind[:s])
  square = pairwise_squared_distance(
    view.side * view.x[:s], view.side * view.y[:s], homes[:, 0], homes[:, 1])
  own = jnp.any(hall[:, None] & (square < AT_BASE ** 2), axis=0)  # [homes]
  shoots, is_hall = look_up(types.fighter, product), look_up(types.townhall, product)
  far = np.arange(SITES) >= SITES - FAR_SITES
  keys = jax.random.split(key)
  newest = jnp.max(jnp.where(own, jnp.arange(len(homes)), 0))
  # Half the draws, and those of bases that are not own, mean the first base.
  drawn = jax.random.randint(keys[1], (SITES,), 0, 2 * len(homes))
  drawn = jnp.where(drawn < len(homes), look_up(own, drawn) * drawn, 0)
  base = jnp.where(shoots & ~far, newest, drawn)
  spread = jax.random.uniform(keys[0], (SITES, 2), minval=SPREAD[0], maxval=SPREAD[1])
  wider = FAR_SPREAD[0] + (FAR_SPREAD[1] - FAR_SPREAD[0]) / (SPREAD[1] - SPREAD[0]) * (
    spread - SPREAD[0])
  spread = jnp.where(far[:, None], wider, jnp.where(shoots, ARMED_SPREAD * spread, spread))
  free = jnp.argmin(own)
  x, y = (view.side * jnp.where(is_hall, look_up(homes[:, i], free),
                                look_up(homes[:, i], base) + spread[:, i]) for i in range(2))
  return x, y


def _obstacles(rules: tables.Rules, view: View, product: Array) -> tuple[Array, Array, Array]:
  """Circles that sites avoid: x, y, radius [m]; the first S are the own structures.

  They are structures, resources (a geyser with the room of its gas structure), room for add-ons
  and, except for town halls, free bases.
  """
  types, s = rules.types, rules.tier.structures
  absent = placement.ABSENT_RADIUS
  resource = np.where(
    is_geyser(rules), types.radius[types.gas].max(initial=0.0), constants.PATCH_RADIUS)
  circles = [
    (view.x[:s], view.y[:s],
     jnp.where(view.kind[:s] > 0, look_up(types.radius, view.kind[:s]), absent)),
    (view.patch_x, view.patch_y, jnp.where(view.patches > 0, resource, absent))]
  if len(rules.tier.homes) > 1:
    homes = np.array(rules.tier.homes, np.float32)
    reserved = np.where(types.townhall, absent, types.radius[types.townhall].max())
    circles.append((view.side * homes[:, 0], view.side * homes[:, 1],
                    jnp.broadcast_to(look_up(reserved, product), len(homes))))
  if rules.has_add_ons:
    circles.append((*add_ons.places(view.x[:s], view.y[:s]), jnp.where(
      look_up(add_ons.hosts(rules), view.kind[:s]), _add_on_radius(rules), absent)))
  x, y, radius = (jnp.concatenate(values) for values in zip(*circles, strict=True))
  return x, y, radius


def _add_on_radius(rules: tables.Rules) -> float:
  return float(rules.types.radius[rules.types.add_on > 0].max())


def site(rules: tables.Rules, key: jax.Array, view: View,
         product: Array) -> tuple[Array, Array, Array]:
  """Returns a free site for a structure.

  Args:
    rules: the game's constants.
    key: random key of the candidates.
    view: the game as the player knows it.
    product: [] int32, a local type that is not built on a geyser.

  Returns:
    Whether a candidate fits [] bool, and x, y [] float32.
  """
  types, s, tier = rules.types, rules.tier.structures, rules.tier
  several = len(tier.homes) > 1
  if several:
    x, y = _around_bases(rules, key, view, product)
  else:
    x, y = _around_home(rules, jax.random.split(key)[0], view)
  # An action's location is a cell: what is checked is where the structure will stand.
  x, y = acting.location_to_place(rules, acting.place_to_location(rules, x, y))
  radius = look_up(types.radius, product)
  obstacle_x, obstacle_y, obstacle_radius = _obstacles(rules, view, product)
  square = pairwise_squared_distance(x, y, obstacle_x, obstacle_y)

  def has_room(x, y, square, radius):
    distance = jnp.maximum(radius + obstacle_radius + PASSAGE, 0.0)
    return jnp.all(square >= distance * distance, axis=1) & (
      jnp.maximum(jnp.abs(x), jnp.abs(y)) + radius + 0.5 <= rules.half)

  fits = has_room(x, y, square, radius)
  if rules.has_add_ons:
    right, below = add_ons.places(x, y)
    beside = pairwise_squared_distance(right, below, obstacle_x, obstacle_y)
    fits &= has_room(right, below, beside, _add_on_radius(rules)) | ~look_up(
      add_ons.hosts(rules), product)
  if several:
    fits &= (view.side * (x + y) < -FROM_MIDDLE) | look_up(types.townhall, product)
  if rules.terrain is not None:
    def is_firm(x, y, radius):
      row, column = placement.cell_of(rules, view.side, *placement.footprint(x, y, radius))
      return jnp.all(view.buildable[row, column], axis=1)

    fits &= is_firm(x, y, radius)
    if rules.has_add_ons:
      fits &= is_firm(right, below, jnp.float32(_add_on_radius(rules))) | ~look_up(
        add_ons.hosts(rules), product)
  if rules.has_larvae:
    creep = look_up(types.larvae, view.standing)
    on_creep = jnp.any(
      creep & (square[:, :s] < (constants.CREEP_RADIUS - CREEP_MARGIN) ** 2), axis=1)
    needs_creep = (types.race == constants.RACES.index("Zerg")) & ~types.townhall
    fits &= on_creep | ~look_up(needs_creep, product)
  best = jnp.argmax(fits)
  return jnp.any(fits), x[best], y[best]


def free_geyser(rules: tables.Rules, view: View) -> tuple[Array, Array]:
  """Returns a geyser for a gas structure: whether there is one at an own base, and its index."""
  s = rules.tier.structures
  hall = look_up(rules.types.townhall, view.standing)
  square = squared_distance(
    view.x[:s], view.y[:s], view.patch_x[:, None], view.patch_y[:, None])
  near = jnp.any(hall & (square < constants.TOWNHALL_REACH ** 2), axis=1)
  taken = jnp.any((view.kind[:s] > 0) & (square < constants.SAME_PLACE ** 2), axis=1)
  free = near & ~taken & is_geyser(rules) & (view.patches > 0)
  return jnp.any(free), jnp.argmax(free)
