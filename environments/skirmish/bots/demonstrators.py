"""Demonstrators: scripted players whose games differ as people's do, and who have a skill.

A demonstrator draws, for each game, one of its tier's strategies and a manner of its own: two
things of its build order may change places, it counts its workers and fighters otherwise, attacks
earlier or later, and mixes its army otherwise. The weaker it is the further it strays. Its MMR is
what its observations say of it; `scripts` has the skills that go with them.
"""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.bots import scripts
from starleague.environments.skirmish.bots.scripts import Parameters
from starleague.environments.skirmish.rules import tables
from starleague.environments.skirmish.rules.arrays import look_up
from starleague.environments.skirmish.rules.state import Array

SWAPS = 2  # pairs of a build order that may change places, each as likely as the jitter
WORKERS, FIGHTERS = 1.0, 2.0  # standard deviations at full jitter, in heads
ATTACK, SHARE = 0.2, 0.4  # likewise, of logarithms
_SKILL = Parameters._fields.index("delays")  # what comes from here on has no race


def variation(rules: tables.Rules, own: Parameters, name_index: Array, luck: Array,
              race: Array) -> Parameters:
  """What a scripted player does in a game: its plan, or the one that it has drawn.

  Args:
    rules: the game's constants.
    own: its parameters, the plans of all races [N, ...].
    name_index: [] int32, its index.
    luck: [] uint32, what this game's manner is drawn from.
    race: [] int32, of constants.RACES.

  Returns:
    Parameters without their first axis.
  """
  every = scripts.parameters(rules)
  strategies = np.array(scripts.strategies_of(rules.tier.name), np.int32)
  drawn = look_up(strategies, luck % len(strategies))
  index = jnp.where(own.drawn, drawn, name_index)
  plan = Parameters(*(
    jnp.asarray(values)[index, race] if i < _SKILL else mine
    for i, (values, mine) in enumerate(zip(every, own, strict=True))))
  return vary(rules, plan, jax.random.key(luck))


def vary(rules: tables.Rules, plan: Parameters, key: Array) -> Parameters:
  """A plan with its jitter; one that has none stays as it is.

  Args:
    rules: the game's constants.
    plan: of one race, without the axes of players and races.
    key: what is drawn from.
  """
  keys = jax.random.split(key, 7)
  amount = plan.jitter
  length = plan.building.shape[0]

  def heads(index, like, deviation):
    by = deviation * amount * jax.random.normal(keys[index], jnp.shape(like))
    return jnp.maximum(like + jnp.round(by).astype(jnp.int32), 0)

  def factor(index, like, deviation):
    return jnp.exp(deviation * amount * jax.random.normal(keys[index], jnp.shape(like)))

  # The places of the build order, of which some neighbours change theirs.
  place = jnp.arange(length)
  order = place
  listed = jnp.sum(plan.building > 0)
  at = jax.random.randint(keys[0], (SWAPS,), 0, jnp.maximum(listed - 1, 1))
  swaps = jax.random.bernoulli(keys[1], amount, (SWAPS,)) & (listed > 1)
  for i in range(SWAPS):
    other = jnp.where(place == at[i], place + 1, jnp.where(place == at[i] + 1, place - 1, place))
    order = order[jnp.where(swaps[i], other, place) % length]
  building = plan.building[order]
  same = (building[:, None] == building) & (place <= place[:, None])
  count = jnp.sum(same, axis=1) + look_up(rules.types.townhall, building)
  strays = amount > 0
  return plan._replace(
    workers=heads(2, plan.workers, WORKERS * (plan.workers > 0)),
    most_workers=heads(3, plan.most_workers, WORKERS * (plan.most_workers > 0)),
    attack=jnp.where(strays, jnp.maximum(jnp.round(
      plan.attack * factor(4, plan.attack, ATTACK)).astype(jnp.int32), 1), plan.attack),
    building=building, count=jnp.where(strays, count, plan.count),
    at_workers=plan.at_workers[order],
    at_fighters=heads(5, plan.at_fighters[order], FIGHTERS * (plan.at_fighters[order] > 0)),
    share=plan.share * factor(6, plan.share, SHARE))
