"""Demonstrators: scripted players with a skill and with variation between games, as humans have.

In each game a demonstrator plays one of its tier's strategies with a variation drawn from the seed
of that game. Pairs of the build order swap; numbers of workers and fighters, the time of the attack
and the army mix are noisy. Weaker demonstrators vary more. `scripts` states their skills and MMR.
"""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.bots.scripts import Parameters
from starleague.environments.skirmish.rules.state.arrays import Array, look_up
from starleague.environments.skirmish.rules.tables import tables

SWAPS = 2  # neighbours of a build order that may swap, each with probability `jitter`
# Standard deviations at jitter 1.
WORKERS, FIGHTERS = 1.0, 2.0  # of counts
ATTACK, SHARE = 0.2, 0.4  # of logarithms
_SKILL = Parameters._fields.index("delays")  # fields from here on do not depend on the race


def variation(rules: tables.Rules, own: Parameters, name_index: Array, seed: Array,
              race: Array) -> Parameters:
  """Returns the parameters that a scripted player uses in one game.

  A demonstrator draws one of its tier's strategies; the others keep their own plan.

  Args:
    rules: the game's constants.
    own: the player's parameters, with plans for all races [N, ...].
    name_index: [] int32, the player's index.
    seed: [] uint32, the seed of this game's variation.
    race: [] int32, index of constants.RACES.

  Returns:
    Parameters without their first axis.
  """
  all_scripts = scripts.parameters(rules)
  strategies = np.array(scripts.strategies_of(rules.tier.name), np.int32)
  drawn = look_up(strategies, seed % len(strategies))
  index = jnp.where(own.drawn, drawn, name_index)
  plan = Parameters(*(
    jnp.asarray(values)[index, race] if i < _SKILL else mine
    for i, (values, mine) in enumerate(zip(all_scripts, own, strict=True))))
  return vary(rules, plan, jax.random.key(seed))


def vary(rules: tables.Rules, plan: Parameters, key: jax.Array) -> Parameters:
  """Returns a plan with noise of size `plan.jitter`; without jitter, the same plan.

  Args:
    rules: the game's constants.
    plan: parameters for one race, without the axes of players and races.
    key: random key.
  """
  keys = jax.random.split(key, 7)
  amount = plan.jitter

  def noisy_count(index: int, count: Array, deviation: Array) -> Array:
    noise = deviation * amount * jax.random.normal(keys[index], jnp.shape(count))
    return jnp.maximum(count + jnp.round(noise).astype(jnp.int32), 0)

  def factor(index: int, like: Array, deviation: float) -> Array:
    return jnp.exp(deviation * amount * jax.random.normal(keys[index], jnp.shape(like)))

  order = _swapped_order(plan, keys[0], keys[1])
  place = jnp.arange(plan.building.shape[0])
  building = plan.building[order]
  same = (building[:, None] == building) & (place <= place[:, None])
  total = jnp.sum(same, axis=1) + look_up(rules.types.townhall, building)
  varies = amount > 0
  return plan._replace(
    workers=noisy_count(2, plan.workers, WORKERS * (plan.workers > 0)),
    most_workers=noisy_count(3, plan.most_workers, WORKERS * (plan.most_workers > 0)),
    attack=jnp.where(varies, jnp.maximum(jnp.round(
      plan.attack * factor(4, plan.attack, ATTACK)).astype(jnp.int32), 1), plan.attack),
    building=building, total=jnp.where(varies, total, plan.total),
    at_workers=plan.at_workers[order],
    at_fighters=noisy_count(
      5, plan.at_fighters[order], FIGHTERS * (plan.at_fighters[order] > 0)),
    share=plan.share * factor(6, plan.share, SHARE))


def _swapped_order(plan: Parameters, place_key: jax.Array, swap_key: jax.Array) -> Array:
  """Returns a permutation [B] of the build order in which some neighbours are swapped."""
  length = plan.building.shape[0]
  place = jnp.arange(length)
  order = place
  listed = jnp.sum(plan.building > 0)
  at = jax.random.randint(place_key, (SWAPS,), 0, jnp.maximum(listed - 1, 1))
  swaps = jax.random.bernoulli(swap_key, plan.jitter, (SWAPS,)) & (listed > 1)
  for i in range(SWAPS):
    other = jnp.where(place == at[i], place + 1, jnp.where(place == at[i] + 1, place - 1, place))
    order = order[jnp.where(swaps[i], other, place) % length]
  return order
