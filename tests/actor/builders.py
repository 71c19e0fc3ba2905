"""An environment whose actions build types, and policies that follow their z or ignore it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import evaluation
from starleague.agent import types
from starleague.agent.policy import Policy, StepOutput
from starleague.data.z.conditioning import Conditioning
from starleague.environments import base

ACTIONS = types.BUILD_ORDER_LENGTH  # of each player, one a step; then the game is over
GOOD, STUBBORN = 1, 9  # `queued` of a good action; the type that a stubborn policy builds


class Site(NamedTuple):
  """A game: what both players have built, and how many of their actions were good."""

  step: jax.Array
  acted: jax.Array  # [2]: actions so far
  executed: types.Statistics  # [2, ...]
  good: jax.Array  # [2]
  z: types.Statistics  # [2, ...], as shown
  mmr: jax.Array  # [2]


def building() -> base.Environment:
  """Action k builds the type `location` at (repeat, repeat); who acted better wins."""
  observation = types.zeros(types.observation_spec(4, 4))
  privileged = types.zeros(types.privileged_spec())

  def reset(key, match_up):
    del key
    zeros = jax.tree.map(jnp.zeros_like, jax.tree.map(jnp.asarray, match_up.z))
    none = jnp.zeros((2,), jnp.int32)
    return Site(jnp.int32(0), none, zeros, none,
                jax.tree.map(jnp.asarray, match_up.z), jnp.asarray(match_up.mmr))

  def observe(state, player):
    own = jax.tree.map(lambda x: x[player], state.z)
    counts = jnp.zeros((10,), jnp.int32).at[0].set(state.step)
    seen = jax.tree.map(jnp.asarray, observation)._replace(
      game_loop=state.step, player=counts, statistics=own, mmr=state.mmr[player])
    hidden = jax.tree.map(jnp.asarray, privileged)
    return seen, hidden._replace(
      executed=jax.tree.map(lambda x: x[player], state.executed),
      opponent_executed=jax.tree.map(lambda x: x[1 - player], state.executed))

  def act(state, actions, acts):
    row = jnp.arange(2)
    made = jnp.where(acts, actions.location, 0).astype(jnp.uint8)
    order = state.executed.build_order
    order = order.at[row, state.step].set(jnp.where(acts, made, order[row, state.step]))
    places = state.executed.build_order_xy
    place = jnp.where(acts, actions.repeat, places[row, state.step, 0])
    places = places.at[row, state.step].set(place[:, None].astype(jnp.uint8))
    units = state.executed.units.at[row, made].max(made > 0)
    return state._replace(
      executed=state.executed._replace(build_order=order, build_order_xy=places, units=units),
      acted=state.acted + acts, good=state.good + acts * (actions.queued == GOOD))

  def over(state):
    return state.step >= ACTIONS

  def outcome(state):
    lead = jnp.sign(state.good[0] - state.good[1]).astype(jnp.float32)
    return base.Outcome(over(state), jnp.where(over(state), jnp.stack([lead, -lead]), 0.0))

  return base.Environment(
    reset=reset, observe=observe, act=act, outcome=outcome,
    advance=lambda s: s._replace(step=jnp.where(over(s), s.step, s.step + 1)),
    due=lambda s: (s.acted <= s.step) & ~over(s))


def make_policy(follows_z: bool) -> Policy:
  """Returns a policy that builds its z and plays at its MMR, or does neither.

  Its parameter adds to the number of its good actions in a game.
  """
  def step(params, key, observation, state):
    del key
    action = jax.tree.map(jnp.asarray, types.zeros(types.action_spec(2)))
    number = jnp.minimum(observation.player[0], ACTIONS - 1)
    made = observation.statistics.build_order[number] if follows_z else STUBBORN
    place = observation.statistics.build_order_xy[number, 0] if follows_z else 0
    skill = params + (observation.mmr // 1000 if follows_z else 0)
    action = action._replace(
      delay=jnp.int16(1), location=jnp.asarray(made, jnp.int32),
      repeat=jnp.asarray(place, jnp.uint8), queued=(number < skill).astype(jnp.uint8))
    log_prob = types.Arguments(*[jnp.zeros(())] * 7)
    return StepOutput(action=action, log_prob=log_prob, logits=log_prob, state=state)

  def initial_state():
    return types.CoreState(hidden=jnp.zeros((1, 2)), cell=jnp.zeros((1, 2)))

  return Policy(init=lambda key: jnp.zeros((), jnp.int32), initial_state=initial_state, step=step,
                unroll=None, unroll_batch=None, values=None)


def scripted(index, key, state, player):
  """Four good actions of each game, and nothing built."""
  del index, key, player
  action = jax.tree.map(jnp.asarray, types.zeros(types.action_spec(2)))
  return action._replace(delay=jnp.int16(1), queued=(state.step < 4).astype(jnp.uint8))


def make_conditioning(orders: np.ndarray, mmr: int) -> Conditioning:
  """Returns conditioning with build orders [M, 20] on one map for every match-up.

  Entry k of an order is at place (k, k); every z is wholly active.
  """
  count = len(orders)
  empty = jax.tree.map(lambda s: np.zeros((1 + count, *s.shape), s.dtype), types.statistics_spec())
  units = empty.units.copy()
  for row, order in enumerate(orders, 1):
    units[row, order] = True
  units[:, 0] = False
  places = np.zeros_like(empty.build_order_xy)
  places[1:] = np.arange(ACTIONS, dtype=np.uint8)[:, None]
  z = empty._replace(
    build_order=np.concatenate([empty.build_order[:1], orders.astype(np.uint8)]),
    build_order_xy=places, units=units)
  races = len(types.RACES)
  rows = np.broadcast_to(np.arange(1, 1 + count, dtype=np.int32), (1, races, races, 2, count))
  return Conditioning(z, np.array(rows), np.ones(len(types.PSEUDO_REWARDS), np.float32),
                      np.asarray(mmr, np.int16))


def record_races(monkeypatch: pytest.MonkeyPatch) -> list[set[tuple[int, int]]]:
  """Returns a list that gets the races of both players, a set for each later call of `play`."""
  play, found = evaluation.play, []

  def recorded(*args, **kwargs):
    results = play(*args, **kwargs)
    found.append({tuple(pair) for pair in np.asarray(results.race).tolist()})
    return results

  monkeypatch.setattr(evaluation, "play", recorded)
  return found
