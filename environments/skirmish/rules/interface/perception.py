"""Fog of war, once a step: the players' sight and memory."""

from typing import NamedTuple

import jax.numpy as jnp

from starleague.environments.skirmish.rules.interface.discs import discs, terrain_bits, union
from starleague.environments.skirmish.rules.state import placement
from starleague.environments.skirmish.rules.state.arrays import (
  flip,
  look_up,
  pairwise_squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import (
  both_halves,
  is_cloaked,
  on_map,
  ready_kind,
  resource_positions,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import SCAN, SCAN_RADIUS


class Viewers(NamedTuple):
  """Own slots and the scan, [2, m] each."""

  x: Array  # float32
  y: Array
  sight: Array  # float32; 0 or less for viewers that see nothing
  above: Array  # bool: sees high ground


def perceive(rules: tables.Rules, state: State) -> State:
  """Updates the players' sight and memory."""
  types, s, memory = rules.types, rules.tier.structures, state.memory
  viewers = _viewers(rules, state)
  kind, x, y, health = flip(state.kind), flip(state.x), flip(state.y), flip(state.health)
  # Flyers over cliffs are visible from below.
  hidden = _on_high_ground(rules, state, x, y) & ~look_up(types.flying, kind)
  seen = _in_sight(rules, viewers, x, y, look_up(types.radius, kind), hidden) & (kind > 0)
  if rules.has_cloaking:
    detected = _in_sight(rules, _detectors(rules, state, viewers), x[:, s:], y[:, s:],
                         look_up(types.radius, kind[:, s:]), hidden[:, s:])
    if rules.has_sentries:
      memory = memory._replace(detected=detected)
    seen &= jnp.pad(detected | ~flip(is_cloaked(rules, state)), ((0, 0), (s, 0)),
                    constant_values=True)
  remembered_place_seen = _in_sight(
    rules, viewers, memory.x, memory.y, look_up(types.radius, memory.kind),
    _on_high_ground(rules, state, memory.x, memory.y))
  patch_x, patch_y = resource_positions(rules, state.side)
  patches_seen = _in_sight(rules, viewers, patch_x, patch_y, jnp.zeros_like(patch_x),
                           _on_high_ground(rules, state, patch_x, patch_y))
  visible, now = _visible_cells(rules, state, viewers), seen[:, :s]
  return state._replace(memory=memory._replace(
    seen=seen, visible=visible, explored=memory.explored | visible,
    # A remembered structure is forgotten when its place is seen without it.
    kind=jnp.where(now, kind[:, :s], jnp.where(remembered_place_seen, 0, memory.kind)),
    x=jnp.where(now, x[:, :s], memory.x), y=jnp.where(now, y[:, :s], memory.y),
    health=jnp.where(now, health[:, :s], memory.health),
    patches=jnp.where(patches_seen, both_halves(state.patches), memory.patches),
    met=memory.met | jnp.any(seen, axis=1)))


def _viewers(rules: tables.Rules, state: State) -> Viewers:
  """The slots of both players, and their scans."""
  types = rules.types
  there = state.kind > 0
  if rules.has_transports:
    there &= on_map(state)
  sight = jnp.where(there, look_up(types.sight, state.kind), 0.0)
  x, y = state.x, state.y
  above = look_up(types.flying, state.kind) | _on_high_ground(rules, state, x, y)
  if rules.has(SCAN):
    radius = jnp.where(state.scan_loops > 0, SCAN_RADIUS * rules.tier.sight_scale, 0.0)
    sight = jnp.concatenate([sight, radius[:, None]], axis=1)
    x = jnp.concatenate([x, state.scan_x[:, None]], axis=1)
    y = jnp.concatenate([y, state.scan_y[:, None]], axis=1)
    above = jnp.pad(above, ((0, 0), (0, 1)), constant_values=True)
  return Viewers(x, y, sight, above)


def _detectors(rules: tables.Rules, state: State, viewers: Viewers) -> Viewers:
  """The viewers that see cloaked units: some units, structures that shoot, and scans."""
  first, types = rules.tier.unarmed, rules.types
  assert not (types.detects & types.structure & ~types.fighter).any()
  detects = look_up(types.detects, ready_kind(rules, state)[:, first:])
  scans = viewers.sight.shape[1] - rules.tier.slots
  detects = jnp.pad(detects, ((0, 0), (0, scans)), constant_values=True)
  found = Viewers(*(values[:, first:] for values in viewers))
  return found._replace(sight=jnp.where(detects, found.sight, 0.0))


def _on_high_ground(rules: tables.Rules, state: State, x: Array, y: Array) -> Array:
  """Whether places [2, m] are invisible from below."""
  if rules.terrain is None:
    return jnp.zeros(x.shape, bool)
  return placement.on_terrain(rules, state, rules.terrain.high, x, y)


def _in_sight(rules: tables.Rules, viewers: Viewers, x: Array, y: Array, radius: Array,
              hidden: Array) -> Array:
  """Whether any viewer sees targets, by exact distances.

  Args:
    rules: the game's constants.
    viewers: of both players.
    x: [2, k] float32.
    y: [2, k].
    radius: [2, k] float32; targets are visible from sight plus radius.
    hidden: [2, k] bool: targets that are visible only from above.

  Returns:
    [2, k] bool.
  """
  square = pairwise_squared_distance(viewers.x, viewers.y, x, y)
  reach = viewers.sight[:, :, None] + radius[:, None]
  sees = (square <= reach * reach) & (viewers.sight > 0)[:, :, None]
  if rules.terrain is not None:
    sees &= viewers.above[:, :, None] | ~hidden[:, None]
  return jnp.any(sees, axis=1)


def _visible_cells(rules: tables.Rules, state: State, viewers: Viewers) -> Array:
  """The cells in sight: [2, H, W / 32] uint32, one bit each."""
  around = discs(rules, state.side, viewers.x, viewers.y, viewers.sight)
  unseen = None
  if rules.terrain is not None:
    high = terrain_bits(rules, state, rules.terrain.high)
    unseen = jnp.where(viewers.above[:, :, None, None], jnp.uint32(0), high)
  return union(around, viewers.sight > 0, unseen)
