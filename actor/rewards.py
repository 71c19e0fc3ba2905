"""What a player is rewarded for: winning, and doing as the game behind its z did.

Beside the result, four pseudo-rewards make a main agent follow a human strategy statistic z: minus
the edit distance between build orders, and minus the Hamming distances between the units built, the
upgrades researched and the effects used (Vinyals et al. 2019, Methods and detailed architecture).

Everything here is a pure function of one player's step, to be jitted and vmapped by the caller.
"""

from typing import Any

import jax
import jax.numpy as jnp

from starleague.agent import types

Array = Any

# Beyond two three-wide Gateways a building of the right type is in quite another place.
SATURATION_DISTANCE = 6.0
LARGEST_LOCATION_COST = 0.8
ACTIVE_PROBABILITY = 0.25
# Pseudo-rewards on cumulative statistics fade with game time: from 8, 16 and 24 minutes.
_FADE_LOOPS = tuple(round(m * 60 * types.GAME_LOOPS_PER_SECOND) for m in (8, 16, 24))
_FADE_FACTORS = (1.0, 0.5, 0.25)


def _length(build_order: Array) -> Array:
  """How many entries stand before the first empty one."""
  return jnp.cumprod(build_order != 0).sum()


def build_order_distance(target: Array, target_xy: Array, built: Array, built_xy: Array, *,
                         grid_per_unit: float | Array = 1.0,
                         saturation_distance: float = SATURATION_DISTANCE) -> Array:
  """Edit distance between two build orders (Vinyals et al. 2019, Methods).

  Inserting or leaving out an entry costs 1, and so does another type in its place. The same type in
  another place costs 0.8 * min(1, d^2 / saturation_distance^2). The distance is the true minimum
  over all alignments: where types agree, aligning them is not always the cheapest.

  Args:
    target: [M] integer unit types, what should be built; those past the first 0 do not count.
    target_xy: [M, 2] where, on a grid.
    built: [P] integer unit types, what was built.
    built_xy: [P, 2] where.
    grid_per_unit: grid cells in a game unit: 256 / max(map_w, map_h) for places in observations'
      grid, 1 for places in game units.
    saturation_distance: in game units; places further apart cost 0.8.

  Returns:
    [] float32.
  """
  places = jnp.asarray(built_xy, jnp.float32)[:, None] - jnp.asarray(target_xy, jnp.float32)
  squared = (places ** 2).sum(-1) / (grid_per_unit * saturation_distance) ** 2
  same = jnp.asarray(built)[:, None] == jnp.asarray(target)
  substitution = jnp.where(same, LARGEST_LOCATION_COST * jnp.minimum(1.0, squared), 1.0)  # [P, M]
  column = jnp.arange(substitution.shape[1] + 1, dtype=jnp.float32)

  def next_row(row, entry):
    costs, counts = entry
    aligned = jnp.minimum(row[1:] + 1.0, row[:-1] + costs)
    aligned = jnp.concatenate([row[:1] + 1.0, aligned])
    # Leaving target entries out runs along the row, one after the other; a running minimum of
    # what each start costs does all of it at once.
    result = column + jax.lax.cummin(aligned - column)
    return jnp.where(counts, result, row), None

  counted = jnp.arange(substitution.shape[0]) < _length(jnp.asarray(built))
  row, _ = jax.lax.scan(next_row, column, (substitution, counted))
  return jnp.where(column == _length(jnp.asarray(target)), row, 0.0).sum()


def hamming_distance(target: Array, built: Array) -> Array:
  """How many flags differ: [N] bool and [N] bool -> [] int32."""
  return (jnp.asarray(target) != jnp.asarray(built)).sum().astype(jnp.int32)


def time_factor(game_loop: Array) -> Array:
  """1 before 8 minutes of game time, then 0.5, 0.25 from 16 minutes, and 0 from 24.

  Args:
    game_loop: [...] integer, 22.4 a second.

  Returns:
    [...] float32.
  """
  loop = jnp.asarray(game_loop)
  return jnp.select([loop < end for end in _FADE_LOOPS], _FADE_FACTORS, 0.0).astype(jnp.float32)


def winloss_reward(over: Array, result: Array, draw: float = 0.0) -> Array:
  """+1 for a win, -1 for a loss, and nothing while the game goes on.

  Args:
    over: [...] bool.
    result: [...] above 0 for a win, below for a loss, 0 for a draw.
    draw: what a draw is worth; the published text has both 0 and -1.

  Returns:
    [...] float32.
  """
  result = jnp.asarray(result)
  value = jnp.where(result == 0, draw, jnp.sign(result))
  return jnp.where(over, value, 0.0).astype(jnp.float32)


def sample_active(key: Array, probability: float = ACTIVE_PROBABILITY) -> Array:
  """Which pseudo-rewards a game plays for, each drawn for itself: [4] bool, PSEUDO_REWARDS."""
  return jax.random.bernoulli(key, probability, (len(types.PSEUDO_REWARDS),))


def condition(statistics: types.Statistics, active: Array) -> types.Statistics:
  """z as the policy sees it: only the parts whose pseudo-reward is active, the others zero.

  Args:
    statistics: unbatched z, the game's target.
    active: [4] bool, PSEUDO_REWARDS.
  """
  build_order, units, upgrades, effects = jnp.asarray(active, bool)
  def keep(flag, value):
    value = jnp.asarray(value)
    return jnp.where(flag, value, jnp.zeros_like(value))
  return types.Statistics(
    build_order=keep(build_order, statistics.build_order),
    build_order_xy=keep(build_order, statistics.build_order_xy),
    units=keep(units, statistics.units),
    effects=keep(effects, statistics.effects),
    upgrades=keep(upgrades, statistics.upgrades))


def _distances(target: types.Statistics, executed: types.Statistics, game_loop: Array,
               **options) -> Array:
  """Faded distances to the target: [4] float32, PSEUDO_REWARDS."""
  order = build_order_distance(
    target.build_order, target.build_order_xy, executed.build_order, executed.build_order_xy,
    **options)
  flags = [hamming_distance(getattr(target, name), getattr(executed, name))
           for name in ("units", "upgrades", "effects")]
  # The build order is of the opening and does not fade.
  return jnp.stack([order, *(time_factor(game_loop) * flag for flag in flags)])


def pseudo_rewards(previous_executed: types.Statistics, executed: types.Statistics,
                   target: types.Statistics, game_loop: Array, active: Array, *,
                   level: bool = False, scale: float | Array = 1.0,
                   grid_per_unit: float | Array = 1.0,
                   saturation_distance: float = SATURATION_DISTANCE) -> Array:
  """The four pseudo-rewards of one step (Vinyals et al. 2019, detailed architecture).

  The default is the *decrease* of each distance since the previous step, so that a game's rewards
  add up to how much nearer it came to its z (before they fade), whatever the number of steps. The
  text can also be read as minus the distance, given where the executed part changes: `level`.

  Args:
    previous_executed: unbatched, what had been done at the previous step.
    executed: what has been done by now.
    target: z, before `condition`; one that is all zero asks for nothing and is worth nothing.
    game_loop: [] integer, by now.
    active: [4] bool, PSEUDO_REWARDS; the others are 0.
    level: minus the distance where it changes, instead of its decrease.
    scale: [] or [4], multiplies the rewards.
    grid_per_unit, saturation_distance: see build_order_distance.

  Returns:
    [4] float32, PSEUDO_REWARDS.
  """
  both = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]),
                      previous_executed, executed)
  before, now = jax.vmap(lambda done: _distances(
    target, done, game_loop, grid_per_unit=grid_per_unit,
    saturation_distance=saturation_distance))(both)
  value = jnp.where(now != before, -now, 0.0) if level else before - now
  asks = jnp.stack([jnp.any(jnp.asarray(part) != 0) for part in target]).any()
  return jnp.where(jnp.asarray(active, bool) & asks, scale * value, 0.0).astype(jnp.float32)


def rewards(winloss: Array, previous_executed: types.Statistics, executed: types.Statistics,
            target: types.Statistics, game_loop: Array, active: Array, **options) -> Array:
  """All rewards of one step.

  Args:
    winloss: [] what the result is worth, 0 while the game goes on; see winloss_reward.
    previous_executed, executed, target, game_loop, active, options: see pseudo_rewards.

  Returns:
    [5] float32, types.REWARDS.
  """
  pseudo = pseudo_rewards(previous_executed, executed, target, game_loop, active, **options)
  return jnp.concatenate([jnp.asarray(winloss, jnp.float32)[None], pseudo])
