"""Atari games of the Arcade Learning Environment (Bellemare et al. 2013), on the host.

ale-py is under version 2 of the GNU General Public License. It is optional, and nothing of it is
copied here. Its vectorised environment does the preprocessing of Mnih et al. 2015.
"""

import jax
import numpy as np
from ale_py import roms
from ale_py.vector_env import AtariVectorEnv

from starleague.companions.tasks.host import make_batch_task
from starleague.companions.tasks.task import Task, TaskError, TimeStep

_SIZE, _STACK, _FRAME_SKIP = 84, 4, 4
# "ms_pacman" -> "MsPacman"
_ROMS = {"".join(word.capitalize() for word in rom.split("_")): rom
         for rom in roms.get_all_rom_ids()}
TASKS = {game: {"limit": 27000, "sticky": 0.0, "minimal": True, "threads": 0} for game in _ROMS}


class _Games:
  """Games as a batch of environments."""

  def __init__(self, games: AtariVectorEnv):
    self._games = games

  def reset(self, seeds: np.ndarray) -> TimeStep:
    observation, _ = self._games.reset(seed=seeds)
    n = len(seeds)
    return TimeStep(_channels_last(observation), np.zeros(n, np.float32), np.ones(n, np.float32),
                    np.ones(n, bool))

  def step(self, actions: np.ndarray) -> TimeStep:
    observation, reward, terminated, truncated, _ = self._games.step(actions)
    ended = np.asarray(terminated) | np.asarray(truncated)
    return TimeStep(_channels_last(observation), np.asarray(reward, np.float32),
                    1.0 - ended.astype(np.float32), ended)


def _channels_last(frames: np.ndarray) -> np.ndarray:
  return np.ascontiguousarray(np.moveaxis(frames, 1, -1))


def make(name: str, game: str, copies: int, seed: int, *, limit: int, sticky: float,
         minimal: bool, threads: int) -> Task:
  """Makes a game of Atari: the latest four grey frames, 84 x 84, of every fourth frame.

  An episode begins with up to 30 empty actions, and ends when the game is over. Rewards are not
  clipped. Unlike in Mnih et al. 2015, a reset also fires in games with that action.

  Args:
    name: the task's full name.
    game: a key of `TASKS`.
    copies: n.
    seed: not used; nothing stays the same over episodes.
    limit: steps of an episode; 0: none.
    sticky: probability that the last action is repeated instead, at each frame.
    minimal: whether only the actions that have an effect in this game are given.
    threads: of the games; 0: one a processor.

  Raises:
    TaskError: sticky is no probability.
  """
  del seed
  if not 0 <= sticky <= 1:
    raise TaskError(f"task {name!r}: sticky is {sticky}; expected a probability")
  games = AtariVectorEnv(
    _ROMS[game], copies, num_threads=threads, autoreset_mode="SameStep", reward_clipping=False,
    img_height=_SIZE, img_width=_SIZE, stack_num=_STACK, frameskip=_FRAME_SKIP,
    max_num_frames_per_episode=limit * _FRAME_SKIP or 2**31 - 1,
    repeat_action_probability=sticky, full_action_space=not minimal)
  return make_batch_task(name, copies, _Games(games),
                         jax.ShapeDtypeStruct((_SIZE, _SIZE, _STACK), np.uint8),
                         len(games.ale.get_action_set()))
