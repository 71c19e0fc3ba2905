"""Grid worlds of xminigrid (Nikulin et al. 2023), MiniGrid's tasks in JAX.

XLand's tasks need rule sets that are downloaded; they are left out.
"""

import functools

import xminigrid
from xminigrid.core.constants import NUM_COLORS, NUM_TILES

from starleague.companions.tasks.pure import Copy, make_pure_task
from starleague.companions.tasks.task import Task

_PREFIX = "MiniGrid-"


def _view(task: str) -> int:
  return xminigrid.make(_PREFIX + task)[1].view_size


TASKS = {task: {"limit": 0, "view": _view(task)} for task in (
  name.removeprefix(_PREFIX) for name in xminigrid.registered_environments()
  if name.startswith(_PREFIX))}


def make(name: str, task: str, copies: int, seed: int, *, limit: int, view: int) -> Task:
  """Makes a grid world.

  An observation is the square of cells before the agent, each a tile and a colour; walls do not
  hide cells, and the object that the agent carries is not shown. The reward of the goal falls
  with the steps, from 1 to 0.1 at the task's own time limit.

  Args:
    name: the task's full name.
    task: a key of `TASKS`.
    copies: n.
    seed: not used; nothing stays the same over episodes.
    limit: steps of an episode; 0: the task's own limit.
    view: rows and columns of the observation.
  """
  del seed
  environment, parameters = xminigrid.make(_PREFIX + task)
  parameters = parameters.replace(view_size=view)

  def step(state, key, action):
    del key
    state = environment.step(parameters, state, action)
    return state, state.reward, state.last()

  copy = Copy(functools.partial(environment.reset, parameters), step,
              lambda state: state.observation)
  return make_pure_task(name, copies, copy, environment.num_actions(parameters), limit=limit,
                        cheap_init=False, symbols=(NUM_TILES, NUM_COLORS))
