"""Memory tasks of POPGym (Morad et al. 2023), on the host."""

from popgym import envs

from starleague.companions.tasks.gymnasium import GymnasiumEnvironment
from starleague.companions.tasks.host import make_host_task
from starleague.companions.tasks.task import Task

_CLASSES = {made.__name__: made for made in envs.ALL}
TASKS = {name: {"limit": 0} for name in _CLASSES}


def make(name: str, task: str, copies: int, seed: int, *, limit: int) -> Task:
  """Makes a memory task.

  Args:
    name: the task's full name.
    task: a key of `TASKS`.
    copies: n.
    seed: not used; nothing stays the same over episodes.
    limit: steps of an episode; 0: the task's own limit.
  """
  del seed
  return make_host_task(name, copies, lambda copy_seed: GymnasiumEnvironment(
    _CLASSES[task](), copy_seed), limit=limit)
