"""First states of single games, computed without a compiled program."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.environments import base
from starleague.environments.skirmish.rules.state import initial_state


def first(rules, races=(1, 1), ground=0, swap_sides=False, seed=0):
  """The first state of a game, of writable numpy arrays; nothing is seen yet."""
  state = initial_state.initial_state(
    rules, jax.random.key(seed), base.make_match_up(np.array(races), ground, swap_sides))
  return jax.tree.map(np.array, state)


def on_device(state):
  """The same state of JAX arrays, for functions that update them by index."""
  return jax.tree.map(jnp.asarray, state)
