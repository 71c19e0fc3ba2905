"""Rewards: the result of the game, and pseudo-rewards for following a strategy statistic z.

Four pseudo-rewards make a main agent follow a z. They are based on the edit distance between build
orders and on the Hamming distances between the units built, the upgrades researched and the effects
used (Vinyals et al. 2019, Methods and detailed architecture).

All functions are pure functions of one player's step, to be jitted and vmapped by the caller.
"""

import jax
import jax.numpy as jnp

from starleague.agent import types
from starleague.agent.types import Array

# The width of two Gateways: a building further away is in another place.
SATURATION_DISTANCE = 6.0
LARGEST_LOCATION_COST = 0.8
# Pseudo-rewards on cumulative statistics decrease at 8, 16 and 24 minutes of game time.
_FADE_LOOPS = tuple(round(m * 60 * types.GAME_LOOPS_PER_SECOND) for m in (8, 16, 24))
_FADE_FACTORS = (1.0, 0.5, 0.25)


def _length(build_order: Array) -> jax.Array:
  """Returns the number of entries before the first empty one."""
  return jnp.cumprod(build_order != 0).sum()


def build_order_distance(target: Array, target_xy: Array, built: Array, built_xy: Array, *,
                         grid_per_unit: float | Array = 1.0,
                         saturation_distance: float = SATURATION_DISTANCE) -> jax.Array:
  """Computes the edit distance between two build orders (Vinyals et al. 2019, Methods).

  An insertion, a deletion and a substitution by another type cost 1 each. The same type at another
  position costs 0.8 * min(1, d^2 / saturation_distance^2). The distance is the exact minimum over
  all alignments; aligning equal types is not always optimal.

  Args:
    target: [M] integer unit types of the target; entries after the first 0 do not count.
    target_xy: [M, 2] positions on a grid.
    built: [P] integer unit types built.
    built_xy: [P, 2] positions.
    grid_per_unit: grid cells per game unit: 256 / max(map_w, map_h) for positions on the
      observations' grid, 1 for positions in game units.
    saturation_distance: in game units; larger distances cost 0.8.

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
    # Deletions of target entries accumulate along the row; a running minimum of the costs minus
    # the column computes all of them at once.
    result = column + jax.lax.cummin(aligned - column)
    return jnp.where(counts, result, row), None

  counted = jnp.arange(substitution.shape[0]) < _length(jnp.asarray(built))
  row, _ = jax.lax.scan(next_row, column, (substitution, counted))
  return jnp.where(column == _length(jnp.asarray(target)), row, 0.0).sum()


def hamming_distance(target: Array, built: Array) -> jax.Array:
  """Computes the number of flags that differ: [N] bool and [N] bool -> [] int32."""
  return (jnp.asarray(target) != jnp.asarray(built)).sum().astype(jnp.int32)


def time_factor(game_loop: Array) -> jax.Array:
  """Computes the factor for game time: 1, 0.5 from 8 minutes, 0.25 from 16, and 0 from 24.

  Args:
    game_loop: [...] integer, 22.4 a second.

  Returns:
    [...] float32.
  """
  loop = jnp.asarray(game_loop)
  return jnp.select([loop < end for end in _FADE_LOOPS], _FADE_FACTORS, 0.0).astype(jnp.float32)


def winloss_reward(over: Array, result: Array, draw: float = 0.0) -> jax.Array:
  """Computes the reward of the result: +1 for a win, -1 for a loss, 0 before the end.

  Args:
    over: [...] bool.
    result: [...] positive for a win, negative for a loss, 0 for a draw.
    draw: reward of a draw; the published text has both 0 and -1.

  Returns:
    [...] float32.
  """
  result = jnp.asarray(result)
  value = jnp.where(result == 0, draw, jnp.sign(result))
  return jnp.where(over, value, 0.0).astype(jnp.float32)


def minimax_reward(before: Array, now: Array, factor: Array | float) -> jax.Array:
  """Computes the reward for a fall of the opponent's win-loss value.

  The opponent's own value of the game is the player's loss (Bairamian et al. 2023, "Minimax
  exploiter"). The reward is its decrease since the player's last observation. With a value of 0
  before the first decision and at the end, a game's rewards sum to 0, so that the best policies
  stay the best (Ng et al. 1999). The paper rewards minus the value itself.

  Args:
    before: [...] value of the opponent at the player's last observation.
    now: [...] value at this one.
    factor: of the reward; 0: none.

  Returns:
    [...] float32.
  """
  fall = jnp.asarray(before) - jnp.asarray(now)
  return jnp.asarray(factor * fall, jnp.float32)


def objective_reward(before: Array, now: Array, rival_before: Array, rival_now: Array,
                     objective: Array) -> jax.Array:
  """Computes the reward of a personal objective: for units built, and for the opponent's losses.

  A unit that changes its type counts as a loss of the old one and as a new one. Source: the reward
  of the first AlphaStar's league, for building units of a type (DeepMind 2019, "AlphaStar:
  mastering the real-time strategy game StarCraft II").

  Args:
    before, now: [types] integer, own units at the player's last observation and at this one.
    rival_before, rival_now: [types] integer, units of the opponent.
    objective: [2, types] rewards for one unit, built and lost by the opponent.

  Returns:
    [] float32.
  """
  def risen(smaller: Array, larger: Array) -> jax.Array:
    change = jnp.asarray(larger, jnp.int32) - jnp.asarray(smaller, jnp.int32)
    return jnp.maximum(change, 0).astype(jnp.float32)

  built, lost = jnp.asarray(objective, jnp.float32)
  return built @ risen(before, now) + lost @ risen(rival_now, rival_before)


def condition(z: types.Statistics, active: Array) -> types.Statistics:
  """Returns z as the policy observes it: parts without an active pseudo-reward are zero.

  Args:
    z: unbatched.
    active: [4] bool, PSEUDO_REWARDS.
  """
  build_order, units, upgrades, effects = jnp.asarray(active, bool)
  def keep(flag, value):
    value = jnp.asarray(value)
    return jnp.where(flag, value, jnp.zeros_like(value))
  return types.Statistics(
    build_order=keep(build_order, z.build_order),
    build_order_xy=keep(build_order, z.build_order_xy),
    units=keep(units, z.units),
    effects=keep(effects, z.effects),
    upgrades=keep(upgrades, z.upgrades))


def _distances(z: types.Statistics, executed: types.Statistics, game_loop: Array,
               **options) -> jax.Array:
  """Distances to z, times the time factor: [4] float32, PSEUDO_REWARDS."""
  order = build_order_distance(
    z.build_order, z.build_order_xy, executed.build_order, executed.build_order_xy,
    **options)
  flags = [hamming_distance(getattr(z, name), getattr(executed, name))
           for name in ("units", "upgrades", "effects")]
  # The build order covers the opening only and has no time factor.
  return jnp.stack([order, *(time_factor(game_loop) * flag for flag in flags)])


def pseudo_rewards(previous_executed: types.Statistics, executed: types.Statistics,
                   z: types.Statistics, game_loop: Array, active: Array, *,
                   level: bool = False, scale: float | Array = 1.0,
                   grid_per_unit: float | Array = 1.0,
                   saturation_distance: float = SATURATION_DISTANCE) -> jax.Array:
  """Computes the four pseudo-rewards of one step (Vinyals et al. 2019, detailed architecture).

  By default this is the *decrease* of each distance since the previous step. Without the time
  factor, a game's rewards then sum to the decrease over the game, for any number of steps. The
  paper can also be read as minus the distance at steps where it changes: `level`.

  Args:
    previous_executed: unbatched, executed statistics at the previous step.
    executed: executed statistics at this step.
    z: before `condition`; an unconditional z (all zero) gives no reward.
    game_loop: [] integer, at this step.
    active: [4] bool, PSEUDO_REWARDS; inactive ones are 0.
    level: minus the distance where it changes, instead of its decrease.
    scale: [] or [4], factor of the rewards; see `learner.weights` for what else multiplies.
    grid_per_unit, saturation_distance: see build_order_distance.

  Returns:
    [4] float32, PSEUDO_REWARDS.
  """
  both = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]),
                      previous_executed, executed)
  before, now = jax.vmap(lambda done: _distances(
    z, done, game_loop, grid_per_unit=grid_per_unit,
    saturation_distance=saturation_distance))(both)
  value = jnp.where(now != before, -now, 0.0) if level else before - now
  conditional = jnp.stack([jnp.any(jnp.asarray(part) != 0) for part in z]).any()
  return jnp.where(jnp.asarray(active, bool) & conditional, scale * value, 0.0).astype(jnp.float32)


def rewards(winloss: Array, previous_executed: types.Statistics, executed: types.Statistics,
            z: types.Statistics, game_loop: Array, active: Array, **options) -> jax.Array:
  """Computes all rewards of one step.

  Args:
    winloss: [] reward of the result, 0 before the end; see winloss_reward.
    previous_executed, executed, z, game_loop, active, options: see pseudo_rewards.

  Returns:
    [5] float32, types.REWARDS.
  """
  pseudo = pseudo_rewards(previous_executed, executed, z, game_loop, active, **options)
  return jnp.concatenate([jnp.asarray(winloss, jnp.float32)[None], pseudo])
