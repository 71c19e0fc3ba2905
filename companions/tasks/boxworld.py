"""Box-World (Zambaldi et al. 2018, Relational Deep Reinforcement Learning), in JAX.

A room has a loose key, boxes and an agent. A box is two cells: its lock on the right, its content
on the left. A key opens one lock of its colour and is used up; the content is then loose. One
sequence of boxes leads from the loose key to the gem; all other boxes are on branches that do not.
"""

import colorsys
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent.types import Array
from starleague.companions.tasks.pure import Copy, make_pure_task
from starleague.companions.tasks.task import Task, TaskError

SIZE = 14  # rows and columns of the paper's room, walls included
COLOURS = 20  # of keys and locks
FLOOR, WALL, AGENT, GEM = range(4)
FIRST_COLOUR = 4
GEM_REWARD = 10.0
NUM_SYMBOLS = FIRST_COLOUR + COLOURS
MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)], np.int32)  # up, down, left, right
TASKS = {"": {"length": 4, "shortest": 1, "branches": 4, "fewest": 0, "branch_length": 1,
              "size": SIZE, "limit": 120, "rgb": False, "sparse": False}}
_TRIES = 50


class Rules(NamedTuple):
  """Ranges of levels, both ends included; drawn uniformly for each episode."""

  length: tuple[int, int]  # boxes to open
  branches: tuple[int, int]
  branch_length: int  # boxes of a branch
  size: int = SIZE  # rows and columns of the room


class Level(NamedTuple):
  """A room during an episode; cells are `FLOOR`, `WALL`, `GEM` or `FIRST_COLOUR` + colour."""

  cells: Array  # [size, size] uint8, without the agent
  wrong: Array  # [size, size] bool: locks of branches
  agent: Array  # [2] int32, row and column
  key: Array  # [] uint8, the cell of the key that is held; FLOOR: none


class _Boxes(NamedTuple):
  used: Array  # [M] bool; M: boxes of the largest level
  lock: Array  # [M] uint8; FLOOR: none
  content: Array  # [M] uint8
  wrong: Array  # [M] bool


def _draw_boxes(key: Array, rules: Rules) -> _Boxes:
  """Draws the boxes of a level: the loose key, those of the solution, those of the branches."""
  longest, most = rules.length[1], rules.branches[1]
  length_key, branches_key, lock_key, colour_key = jax.random.split(key, 4)
  length = jax.random.randint(length_key, (), rules.length[0], longest + 1)
  branches = jax.random.randint(branches_key, (), rules.branches[0], most + 1)
  colours = FIRST_COLOUR + jax.random.permutation(colour_key, COLOURS).astype(jnp.uint8)
  box = jnp.arange(longest + 1)
  solution = _Boxes(
    used=box <= length, lock=jnp.where(box == 0, FLOOR, colours[box - 1]),
    content=jnp.where(box == length, GEM, colours[box]), wrong=jnp.zeros(longest + 1, bool))
  # A branch starts at any colour of the solution; its own colours occur nowhere else.
  content = colours[longest:longest + most * rules.branch_length].reshape(
    most, rules.branch_length)
  start = colours[jax.random.randint(lock_key, (most, 1), 0, length)]
  branch = _Boxes(
    used=jnp.broadcast_to(jnp.arange(most)[:, None] < branches, content.shape),
    lock=jnp.concatenate([start, content[:, :-1]], axis=1), content=content,
    wrong=jnp.ones(content.shape, bool))
  return jax.tree.map(lambda one, more: jnp.concatenate([one, more.reshape(-1)]).astype(one.dtype),
                      solution, branch)


@functools.cache
def places_of(size: int) -> np.ndarray:
  """Returns the rows and columns [N, 2] where contents of boxes may stand.

  A box has free cells on all sides, so that no arrangement cuts the room into two.
  """
  return np.array([(row, column) for row in range(2, size - 2) for column in range(2, size - 3)],
                  np.int32).reshape(-1, 2)


def lattice_of(size: int) -> np.ndarray:
  """Returns indices of places that hold the most boxes of a room, for full rooms."""
  places = places_of(size)
  return np.flatnonzero((places[:, 0] % 2 == 0) & (places[:, 1] % 3 == 2))


def _place(key: Array, used: Array, all_places: np.ndarray) -> tuple[Array, Array]:
  """Places boxes one after the other, uniformly where there is room.

  Returns:
    Indices of places [M], and whether all boxes that are used found room.
  """
  def place(free, inputs):
    key, used = inputs
    place = jnp.argmax(jnp.where(free, jax.random.uniform(key, free.shape), -1.0))
    distance = jnp.abs(all_places - jnp.asarray(all_places)[place])
    taken = used & (distance[:, 0] <= 1) & (distance[:, 1] <= 2)
    return free & ~taken, (place, free.any() | ~used)

  _, (places, fits) = jax.lax.scan(place, jnp.ones(len(all_places), bool),
                                   (jax.random.split(key, used.shape[0]), used))
  return places, fits.all()


def _arrange(key: Array, used: Array, size: int) -> Array:
  """Indices of places [M] of boxes that do not touch; a regular lattice after `_TRIES`."""
  lattice_key, key = jax.random.split(key)
  lattice = jax.random.permutation(lattice_key, lattice_of(size))[:used.shape[0]]

  def again(carry):
    tries, _, fits = carry
    return ~fits & (tries < _TRIES)

  def attempt(carry):
    tries, _, _ = carry
    return tries + 1, *_place(jax.random.fold_in(key, tries), used, places_of(size))

  _, places, fits = jax.lax.while_loop(again, attempt, (0, lattice, jnp.array(False)))
  return jnp.where(fits, places, lattice)


def draw_level(key: Array, rules: Rules) -> Level:
  """Draws a level. Each can be solved, by one sequence of boxes."""
  boxes_key, places_key, agent_key = jax.random.split(key, 3)
  boxes = _draw_boxes(boxes_key, rules)
  size = rules.size
  row, column = jnp.asarray(places_of(size))[_arrange(places_key, boxes.used, size)].T
  row = jnp.where(boxes.used, row, size)  # outside: dropped
  walls = np.pad(np.full((size - 2, size - 2), FLOOR, np.uint8), 1, constant_values=WALL)
  cells = jnp.asarray(walls).at[row, column].set(boxes.content, mode="drop")
  cells = cells.at[row, column + 1].set(boxes.lock, mode="drop")
  wrong = jnp.zeros((size, size), bool).at[row, column + 1].set(boxes.wrong, mode="drop")
  place = jnp.argmax(jnp.where(cells == FLOOR, jax.random.uniform(agent_key, cells.shape), -1.0))
  agent = jnp.stack(jnp.unravel_index(place, cells.shape)).astype(jnp.int32)
  return Level(cells, wrong, agent, jnp.uint8(FLOOR))


def step_level(level: Level, action: Array) -> tuple[Level, Array, Array]:
  """Moves the agent; walking on a lock opens it, walking on a loose key or gem takes it.

  Locks of other colours, contents under lock and walls stop the agent. A key that is taken replaces
  the one that is held.

  Returns:
    The level, the reward (10 for the gem, 1 for a box of the solution, -1 for another box), and
    whether the gem was taken or a wrong box opened.
  """
  row, column = target = level.agent + jnp.asarray(MOVES)[action]
  left, cell, right = (level.cells[row, column + offset] for offset in (-1, 0, 1))
  is_lock = (cell >= FIRST_COLOUR) & (left >= GEM)
  opens = is_lock & (cell == level.key)
  takes = (cell >= GEM) & ~is_lock & (right < FIRST_COLOUR)
  moves = opens | takes | (cell == FLOOR)
  gem, wrong = takes & (cell == GEM), opens & level.wrong[row, column]
  reward = jnp.where(gem, GEM_REWARD, jnp.where(opens, jnp.where(wrong, -1.0, 1.0), 0.0))
  key = jnp.where(opens, FLOOR, jnp.where(takes & ~gem, cell, level.key)).astype(jnp.uint8)
  cells = jnp.asarray(level.cells).at[row, column].set(jnp.where(moves, FLOOR, cell))
  agent = jnp.where(moves, target, level.agent)
  return Level(cells, level.wrong, agent, key), reward, gem | wrong


def observe_symbols(level: Level) -> Array:
  """Cells [size, size] uint8 with the agent; the key that is held is at the top left."""
  row, column = level.agent
  cells = jnp.asarray(level.cells).at[row, column].set(AGENT)
  return cells.at[0, 0].set(jnp.where(level.key == FLOOR, WALL, level.key))


def palette() -> np.ndarray:
  """Colours of the symbols, [NUM_SYMBOLS, 3] uint8: the paper's greys, and equidistant hues."""
  hues = [colorsys.hsv_to_rgb(index / COLOURS, 0.5, 0.7) for index in range(COLOURS)]
  greys = [(0.8,) * 3, (0.0,) * 3, (0.5,) * 3, (1.0,) * 3]  # floor, wall, agent, gem
  return np.round(255 * np.array(greys + hues)).astype(np.uint8)


def make(name: str, task: str, copies: int, seed: int, *, length: int, shortest: int,
         branches: int, fewest: int, branch_length: int, size: int, limit: int,
         rgb: bool, sparse: bool) -> Task:
  """Makes Box-World.

  Args:
    name: the task's full name.
    task: not used; there is one.
    copies: n.
    seed: not used; nothing stays the same over episodes.
    length: boxes of the longest solution.
    shortest: boxes of the shortest solution.
    branches: most branches.
    fewest: fewest branches.
    branch_length: boxes of a branch.
    size: rows and columns of the room, walls included.
    limit: steps of an episode; 0: none.
    rgb: whether to observe colours [size, size, 3] in place of symbols [size, size].
    sparse: whether the gem alone has a reward, 1; the mean return is then the solved share.

  Raises:
    TaskError: an empty range, more boxes than a room holds, or more keys than there are colours.
  """
  del task, seed
  if shortest > length or fewest > branches:
    raise TaskError(f"task {name!r}: the range of shortest={shortest} to length={length}, or of "
                    f"fewest={fewest} to branches={branches}, is empty")
  boxes, most = 1 + length + branches * branch_length, len(lattice_of(size))
  if boxes > most:
    raise TaskError(f"task {name!r}: a level may have {boxes} boxes, the loose key among them; a "
                    f"room of size={size} holds {most}: lower length, branches or branch_length, "
                    "or raise size")
  keys = length + branches * branch_length
  if keys > COLOURS:  # of one colour, several locks would fit a key
    raise TaskError(f"task {name!r}: a level may have keys of {keys} colours, expected at most "
                    f"{COLOURS}: lower length, branches or branch_length")
  rules = Rules((shortest, length), (fewest, branches), branch_length, size)

  def observe(level):
    symbols = observe_symbols(level)
    return jnp.asarray(palette())[symbols] if rgb else symbols

  def step(level, key, action):
    del key
    level, reward, ended = step_level(level, action)
    return level, jnp.where(reward == GEM_REWARD, 1.0, 0.0) if sparse else reward, ended

  copy = Copy(lambda key: draw_level(key, rules), step, observe)
  return make_pure_task(name, copies, copy, len(MOVES), limit=limit, cheap_init=False,
                        symbols=() if rgb else (NUM_SYMBOLS,))
