"""The limit on an agent's actions: 22 in any 5 seconds (Vinyals et al. 2019, Methods).

A monitoring layer outside the network; the network learns the limit from its effect. Actions that
repeat the one before, and no_ops, do not count.
"""

from typing import NamedTuple

import numpy as np

from starleague.agent import types
from starleague.environments.sc2.converter.actions import NO_OP

MOST_ACTIONS = 22
WINDOW = round(5 * types.GAME_LOOPS_PER_SECOND)  # game loops: 112


class RateLimit(NamedTuple):
  """The actions of a player that count."""

  loops: tuple[int, ...] = ()  # game loops of those in the newest window
  last: tuple = ()  # the last action, without its delay


def limit(state: RateLimit, action: types.Action, loop: int,
          max_entities: int) -> tuple[RateLimit, types.Action]:
  """Returns the action, or a no_op of the same delay once the limit is reached.

  Args:
    state: before the action.
    action: unbatched.
    loop: the game loop at which it is taken; must not decrease.
    max_entities: E.
  """
  if int(action.function) == NO_OP:
    return state, action
  loops = tuple(old for old in state.loops if old > loop - WINDOW)
  same = tuple(np.asarray(x).tobytes() for x in action._replace(delay=np.int16(0)))
  if same == state.last:
    return RateLimit(loops, same), action
  if len(loops) < MOST_ACTIONS:
    return RateLimit((*loops, loop), same), action
  nothing = types.Action(*(np.zeros_like(x) for x in action))
  return RateLimit(loops, state.last), nothing._replace(
    delay=action.delay, units=np.full_like(action.units, max_entities))
