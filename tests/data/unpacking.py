"""Episodes of any length as steps, through one compiled program."""

import functools

import jax
import numpy as np

from starleague.data import wire


@functools.cache
def _program(config):
  return jax.jit(functools.partial(wire.unpack, form=config))


def unpack(columns, config, most):
  """Returns the steps of an episode, numpy arrays [rows, ...].

  Args:
    columns: of the episode, [rows, width].
    config: the AgentConfig of the steps.
    most: at least the rows of every episode of the test, to which zeros are added.
  """
  rows = len(columns.bits)
  padded = (np.pad(x, [(0, most - rows), (0, 0)]) for x in columns)
  state = np.zeros(wire.packed_spec(config, 1).state.shape, np.float32)
  return jax.tree.map(lambda x: np.asarray(x)[:rows],
                      _program(config)(wire.Packed(*padded, state)).steps)
