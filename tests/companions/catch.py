"""Catch as a task: a ball falls, a paddle moves; small and known by heart."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.companions.tasks.task import Task, TimeStep

ROWS, COLUMNS = 5, 3


def make_catch(copies):
  """Returns the task; the ball's column is the state's second entry, the paddle's the third."""
  def fresh(key):
    column = jax.random.randint(key, (), 0, COLUMNS)
    return jnp.stack([jnp.zeros((), jnp.int32), column, jnp.full((), COLUMNS // 2, jnp.int32)])

  def observe(state):
    board = jnp.zeros((ROWS, COLUMNS, 1), bool).at[state[0], state[1], 0].set(True)
    return board.at[ROWS - 1, state[2], 0].set(True)

  def reset(keys):
    state = jax.vmap(fresh)(keys)
    return state, TimeStep(jax.vmap(observe)(state), jnp.zeros(copies), jnp.ones(copies),
                           jnp.ones(copies, bool))

  def step(state, key, action):
    paddle = jnp.clip(state[2] + action - 1, 0, COLUMNS - 1)
    ended = state[0] + 1 == ROWS - 1
    reward = jnp.where(ended, jnp.where(paddle == state[1], 1.0, -1.0), 0.0)
    after = jnp.where(ended, fresh(key), jnp.stack([state[0] + 1, state[1], paddle]))
    return after, TimeStep(observe(after), reward, 1.0 - ended, ended)

  return Task("catch", copies, jax.ShapeDtypeStruct((ROWS, COLUMNS, 1), np.bool_), 3, (), reset,
              jax.vmap(step))
