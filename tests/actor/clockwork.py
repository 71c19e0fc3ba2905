"""A clockwork environment, policy and scripted player whose numbers are all known."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from starleague.agent import types
from starleague.agent.policy import Policy, StepOutput
from starleague.environments import base

STEP_LOOPS = 8
LENGTH = 400  # loops of a game


class Clock(NamedTuple):
  """A game that counts loops and actions: it ends after LENGTH loops and player 0 wins."""

  loop: jax.Array
  next_loop: jax.Array
  acted: jax.Array
  scripted: jax.Array
  map_index: jax.Array
  mmr: jax.Array
  income: jax.Array


def clockwork() -> base.Environment:
  observation = types.zeros(types.observation_spec(4, 4))
  privileged = types.zeros(types.privileged_spec())

  def over(state):
    return state.loop >= LENGTH

  def reset(key, match_up):
    zeros = jnp.zeros((2,), jnp.int32)
    return Clock(loop=jnp.zeros((), jnp.int32), next_loop=zeros, acted=zeros, scripted=zeros,
                 map_index=jnp.asarray(match_up.map_index), mmr=jnp.asarray(match_up.mmr),
                 income=jnp.asarray(match_up.income))

  def observe(state, player):
    seen = jax.tree.map(jnp.asarray, observation)
    counts = jnp.zeros((10,), jnp.int32).at[0].set(state.acted[player]).at[1].set(player)
    return seen._replace(game_loop=state.loop, player=counts), jax.tree.map(
      jnp.asarray, privileged)

  def act(state, actions, acts):
    delay = actions.delay.astype(jnp.int32)
    steps = -(-delay // STEP_LOOPS)
    return state._replace(
      next_loop=jnp.where(acts, state.loop + steps * STEP_LOOPS, state.next_loop),
      acted=state.acted + acts, scripted=state.scripted + acts * (actions.function == 7))

  def advance(state):
    return state._replace(loop=jnp.where(over(state), state.loop, state.loop + STEP_LOOPS))

  return base.Environment(
    reset=reset, observe=observe, act=act, advance=advance,
    due=lambda s: (s.loop >= s.next_loop) & ~over(s),
    outcome=lambda s: base.Outcome(
      over=over(s), reward=jnp.where(over(s), jnp.array([1.0, -1.0]), jnp.zeros(2))))


def counting_policy() -> Policy:
  """Acts with a random delay; its core state counts the steps of the row."""

  def step(params, key, observation, state):
    action = jax.tree.map(jnp.asarray, types.zeros(types.action_spec(2)))
    delay = jax.random.randint(key, (), 1, 50).astype(jnp.int16)
    log_prob = types.Arguments(*[jnp.zeros(())] * 7)
    return StepOutput(
      action=action._replace(delay=delay), log_prob=log_prob, logits=log_prob,
      state=jax.tree.map(lambda x: x + params, state))

  def initial_state():
    return types.CoreState(hidden=jnp.zeros((1, 2)), cell=jnp.zeros((1, 2)))

  return Policy(init=lambda key: jnp.ones(()), initial_state=initial_state, step=step, unroll=None,
                unroll_batch=None, values=None)


def scripted(index, key, state, player):
  del key, state, player
  action = jax.tree.map(jnp.asarray, types.zeros(types.action_spec(2)))
  return action._replace(function=jnp.int16(7), delay=(16 + 8 * index).astype(jnp.int16))
