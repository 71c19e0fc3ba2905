"""Merges waiting into delays: an episode keeps the decisions that do something.

A scripted player that finds nothing to do gives `no_op`, and looks again after its usual delay. A
replay of a human player has no such decisions: the delay of an action lasts until the next one
(Vinyals et al. 2019, Methods). Here a `no_op` lengthens the delay before it, up to the longest.
"""

import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.agent.config import AgentConfig
from starleague.data import wire

NO_OP = v.FUNCTIONS.names.index("no_op")
_ARGUMENTS = ("function", "queued", "repeat")  # that the next observation shows as "last"


def kept(functions: np.ndarray, loops: np.ndarray) -> np.ndarray:
  """Returns the steps of an episode that are kept.

  Args:
    functions: [n] integer, of the decisions; there may be none.
    loops: [n + 1] integer, game loops of the decisions and of the terminal step.

  Returns:
    [m] indices, the first decision and the terminal step among them.
  """
  chosen = [0]
  following = loops.tolist()[1:]
  for i, function in enumerate(functions.tolist()):
    if i and (function != NO_OP or following[i] - loops[chosen[-1]] > types.MAX_DELAY):
      chosen.append(i)
  return np.array([*chosen[:len(functions)], len(functions)])


def merge_waits(steps: wire.Columns, config: AgentConfig) -> wire.Columns:
  """Returns an episode without the decisions that only wait.

  Delays, rewards and discounts of the decisions that are left cover the time that was merged. Their
  observations show the decision before as the last one, and its result. An episode without such
  decisions is returned as it is.

  Args:
    steps: [decisions + 1, width], integers as differences in time.
    config: the AgentConfig of the steps.
  """
  fields = wire.layout(config).fields
  loops = wire.summed(steps, "observation.game_loop", config)[:, 0].astype(np.int64)
  chosen = kept(wire.summed(steps, "action.function", config)[:-1, 0], loops)
  if len(chosen) == len(loops):
    return steps
  rows = wire.Columns(*(
    x if x.dtype == np.float32 else np.cumsum(x, axis=0, dtype=x.dtype) for x in steps))

  def values(path: str, of: wire.Columns = rows) -> np.ndarray:
    """Returns a view of a field, [steps, width]."""
    return getattr(of, fields[path].column)[:, fields[path].slice]

  left = wire.Columns(*(x[chosen] for x in rows))
  delays = np.clip(np.diff(loops[chosen]), 1, types.MAX_DELAY)[:, None]
  # The last decision keeps the delay that was chosen: no decision follows it.
  values("action.delay", left)[:-2] = delays[:-1]
  values("observation.last_delay", left)[1:] = delays
  for name in _ARGUMENTS:
    values(f"observation.last_{name}", left)[1:] = values(f"action.{name}")[chosen[:-1]]
  values("observation.action_result", left)[1:] = values(
    "observation.action_result")[chosen[:-1] + 1]
  for name, merge in (("reward", np.add), ("discount", np.minimum)):
    values(name, left)[:-1] = merge.reduceat(values(name)[:-1], chosen[:-1], axis=0)
  return wire.Columns(*(x if x.dtype == np.float32 else wire.difference(x) for x in left))
