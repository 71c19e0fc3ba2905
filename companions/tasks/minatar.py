"""MinAtar (Young and Tian 2019), as pgx implements it in JAX.

pgx is under the Apache licence, except its folder `pgx/minatar`: a fork of MinAtar, under version 3
of the GNU General Public License. Nothing of it is copied here.
"""

import pgx

from starleague.companions.tasks.pure import Copy, make_pure_task
from starleague.companions.tasks.task import Task, TaskError

TASKS: dict[str, dict[str, int | float | bool]] = {
  # A good player of Breakout loses no ball: without a limit no episode of it would be counted.
  name: {"limit": 5000, "sticky": 0.1, "minimal": True}
  for name in ("asterix", "breakout", "freeway", "seaquest", "space_invaders")}


def make(name: str, game: str, copies: int, seed: int, *, limit: int, sticky: float,
         minimal: bool) -> Task:
  """Makes a game of MinAtar.

  Args:
    name: the task's full name.
    game: a key of `TASKS`.
    copies: n.
    seed: not used; nothing stays the same over episodes.
    limit: steps of an episode; 0: none.
    sticky: probability that the last action is repeated instead.
    minimal: whether only the actions that have an effect in this game are given.

  Raises:
    TaskError: sticky is no probability.
  """
  del seed
  if not 0 <= sticky <= 1:
    raise TaskError(f"task {name!r}: sticky is {sticky}; expected a probability")
  environment = type(pgx.make(f"minatar-{game}"))(
    use_minimal_action_set=minimal, sticky_action_prob=sticky)

  def step(state, key, action):
    state = environment.step(state, action, key)
    return state, state.rewards[0], state.terminated | state.truncated

  copy = Copy(environment.init, step, lambda state: state.observation)
  return make_pure_task(name, copies, copy, environment.num_actions, limit=limit)
