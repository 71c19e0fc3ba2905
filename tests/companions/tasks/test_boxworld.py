"""Box-World: its rules by hand, and every level solved by a search on the host."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.companions.tasks import boxworld
from starleague.companions.tasks.boxworld import FIRST_COLOUR, FLOOR, GEM, SIZE, WALL
from starleague.companions.tasks.registry import make_task
from starleague.companions.tasks.task import TaskError
from tests.companions.tasks import episodes

UP, DOWN, LEFT, RIGHT = range(4)
RED, BLUE = FIRST_COLOUR, FIRST_COLOUR + 1
STEP = jax.jit(boxworld.step_level)


def room(items, agent, key=FLOOR, wrong=()):
  """A level of items {(row, column): cell}, and locks that are wrong."""
  cells = np.pad(np.full((SIZE - 2, SIZE - 2), FLOOR, np.uint8), 1, constant_values=WALL)
  locks = np.zeros((SIZE, SIZE), bool)
  for place, cell in items.items():
    cells[place] = cell
  for place in wrong:
    locks[place] = True
  return boxworld.Level(jnp.asarray(cells), jnp.asarray(locks), jnp.array(agent, jnp.int32),
                        jnp.uint8(key))


@pytest.mark.parametrize("items, key, wrong, action, moved, reward, ended, then", [
  ({}, RED, (), UP, True, 0, False, RED),
  ({(4, 5): RED}, FLOOR, (), UP, True, 0, False, RED),  # a loose key
  ({(4, 5): RED}, BLUE, (), UP, True, 0, False, RED),  # replaces the one that is held
  ({(4, 5): RED, (4, 6): BLUE}, BLUE, (), UP, False, 0, False, BLUE),  # under lock
  ({(4, 5): RED, (4, 4): BLUE}, BLUE, (), UP, False, 0, False, BLUE),  # a lock of another colour
  ({(4, 5): RED, (4, 4): BLUE}, FLOOR, (), UP, False, 0, False, FLOOR),
  ({(4, 5): RED, (4, 4): BLUE}, RED, (), UP, True, 1, False, FLOOR),  # opens
  ({(4, 5): RED, (4, 4): RED}, RED, (), UP, True, 1, False, FLOOR),
  ({(4, 5): RED, (4, 4): BLUE}, RED, ((4, 5),), UP, True, -1, True, FLOOR),  # a wrong box
  ({(4, 5): RED, (4, 4): GEM}, RED, (), UP, True, 1, False, FLOOR),
  ({(4, 5): GEM}, BLUE, (), UP, True, 10, True, BLUE),
  ({(4, 5): GEM, (4, 6): RED}, RED, (), UP, False, 0, False, RED),
  ({(5, 4): RED, (5, 3): BLUE}, RED, (), LEFT, True, 1, False, FLOOR),
  ({(5, 6): RED, (5, 7): BLUE}, BLUE, (), RIGHT, False, 0, False, BLUE),
  ({(6, 5): WALL}, RED, (), DOWN, False, 0, False, RED)])
def test_one_step(items, key, wrong, action, moved, reward, ended, then):
  before = room(items, (5, 5), key, wrong)
  level, found_reward, found_ended = STEP(before, action)
  target = (5, 5) + boxworld.MOVES[action]
  assert tuple(level.agent) == tuple(target if moved else (5, 5))
  assert (found_reward, found_ended, level.key) == (reward, ended, then)
  expected = np.array(before.cells)
  if moved:
    expected[tuple(target)] = FLOOR
  np.testing.assert_array_equal(level.cells, expected)


def test_the_outer_wall_stops_the_agent():
  for action, agent in ((UP, (1, 3)), (DOWN, (12, 3)), (LEFT, (3, 1)), (RIGHT, (3, 12))):
    level, _, _ = STEP(room({}, agent), action)
    assert tuple(level.agent) == agent


def test_symbols_show_agent_and_key():
  level = room({(4, 5): GEM, (4, 6): RED}, (5, 5))
  symbols = np.array(boxworld.observe_symbols(level))
  assert symbols[5, 5] == boxworld.AGENT and symbols[0, 0] == WALL and symbols[4, 5] == GEM
  held = np.array(boxworld.observe_symbols(level._replace(key=jnp.uint8(BLUE))))
  assert held[0, 0] == BLUE
  np.testing.assert_array_equal(held.ravel()[1:], symbols.ravel()[1:])


def path_to(symbols, start, goal):
  """The shortest actions over free cells to a goal; None if there are none."""
  before = {start: None}
  queue = collections.deque([start])
  while queue:
    place = queue.popleft()
    for action, move in enumerate(boxworld.MOVES):
      new = (place[0] + int(move[0]), place[1] + int(move[1]))
      if new not in before and (new == goal or symbols[new] in (FLOOR, boxworld.AGENT)):
        before[new] = (place, action)
        queue.append(new)
  if goal not in before:
    return None
  actions = []
  while before[goal] is not None:
    goal, action = before[goal]
    actions.append(action)
  return actions[::-1]


def solve(symbols):
  """Searches, from the first observation alone, for actions to the gem; with the boxes opened."""
  is_item = symbols >= GEM
  is_item[0, 0] = False
  contents = [(int(row), int(column)) for row, column in np.argwhere(is_item)
              if not is_item[row, column - 1]]
  boxes = {place: (symbols[place], symbols[place[0], place[1] + 1]) for place in contents}
  # The agent may stand on the right of the loose key.
  loose = [place for place, (_, lock) in boxes.items() if lock < FIRST_COLOUR]
  assert len(loose) == 1

  def order(place, closed):
    """Contents to take from here on, so that the last is the gem."""
    content = boxes[place][0]
    if content == GEM:
      return [place]
    for box in closed:
      if boxes[box][1] == content and (rest := order(box, closed - {box})):
        return [place, *rest]
    return None

  taken = order(loose[0], frozenset(boxes) - {loose[0]})
  grid, agent, actions = np.array(symbols), tuple(map(int, np.argwhere(symbols == 2)[0])), []
  for place in taken:
    lock = (place[0], place[1] + 1)
    for goal in ([lock] if boxes[place][1] >= FIRST_COLOUR else []) + [place]:
      actions += path_to(grid, agent, goal)
      grid[goal] = FLOOR
      agent = goal
  return actions, len(taken) - 1


def levels(rules, count, seed=0):
  drawn = jax.jit(jax.vmap(functools.partial(boxworld.draw_level, rules=rules)))(
    jax.random.split(jax.random.key(seed), count))
  return [jax.tree.map(lambda leaf: leaf[index], drawn) for index in range(count)]  # noqa: B023


@jax.jit
def walk(level, actions):
  """Rewards and ends of actions [T]; -1: none."""
  def step(level, action):
    new, reward, ended = boxworld.step_level(level, action)
    skip = action < 0
    return (jax.tree.map(lambda old, new: jnp.where(skip, old, new), level, new),
            (jnp.where(skip, 0.0, reward), ended & ~skip))
  return jax.lax.scan(step, level, actions)[1]


@pytest.mark.parametrize("rules", [
  boxworld.Rules((1, 4), (0, 4), 1), boxworld.Rules((3, 3), (2, 2), 3),
  boxworld.Rules((14, 14), (0, 0), 1), boxworld.Rules((1, 1), (0, 13), 1),
  boxworld.Rules((1, 3), (0, 2), 1, size=9)])
def test_every_level_is_solved_by_a_search(rules):
  lengths = []
  for level in levels(rules, 60):
    actions, length = solve(np.array(boxworld.observe_symbols(level)))
    padded = np.pad(actions, (0, 512 - len(actions)), constant_values=-1)
    rewards, ended = walk(level, padded)
    assert rewards.sum() == length + 10 and ended.sum() == 1 and ended[len(actions) - 1]
    assert rewards.min() == 0
    lengths.append(length)
  assert set(lengths) == set(range(rules.length[0], rules.length[1] + 1))


def test_boxes_do_not_touch_and_numbers_are_as_asked():
  for level in levels(boxworld.Rules((2, 2), (3, 3), 2), 40):
    cells = np.array(level.cells)
    is_item = cells >= GEM
    assert is_item.sum() == 1 + 2 * (2 + 3 * 2) and level.wrong.sum() == 3 * 2
    assert (cells == GEM).sum() == 1 and cells[tuple(level.agent)] == FLOOR
    for row, column in np.argwhere(is_item & ~np.roll(is_item, 1, 1)):
      width = 2 if is_item[row, column + 1] else 1
      around = is_item[row - 1:row + 2, column - 1:column + width + 1]
      assert around.sum() == width and around.shape == (3, width + 2)
      assert (cells[row - 1:row + 2, column - 1:column + width + 1] != WALL).all()
    assert (np.array(level.wrong) <= is_item).all()


def test_a_full_room_falls_back_to_a_lattice():
  room = boxworld.places_of(SIZE)
  _, fits = boxworld._place(jax.random.key(0), jnp.ones(16, bool), room)
  assert not fits
  arrange = jax.jit(functools.partial(boxworld._arrange, size=SIZE))
  arranged = np.array([arrange(key, jnp.ones(15, bool))
                       for key in jax.random.split(jax.random.key(1), 5)])
  for row in arranged:
    distance = np.abs(room[row][:, None] - room[row][None])
    assert ((distance[..., 0] > 1) | (distance[..., 1] > 2) | np.eye(15, dtype=bool)).all()
  assert [len(boxworld.lattice_of(size)) for size in (4, 6, 9, SIZE)] == [0, 1, 6, 15]


def test_the_task_keeps_to_the_interface():
  task = make_task("boxworld", copies=8)
  assert task.observation == jax.ShapeDtypeStruct((14, 14), np.uint8)
  assert (task.num_actions, task.symbols) == (4, (24,))
  played = episodes.play(task, 250)
  episodes.check(task, played)
  assert played.steps.observation.max() < 24
  starts = [np.flatnonzero(played.steps.first[:, copy]) for copy in range(8)]
  assert max(np.diff(each).max() for each in starts if len(each) > 1) == 120
  episodes.assert_same(played.steps, episodes.play(task, 250).steps)


def test_an_episode_is_its_level_and_its_steps():
  task = make_task("boxworld:length=2,branches=1,limit=15", copies=3)
  played = episodes.play(task, 60)
  draw = jax.jit(functools.partial(boxworld.draw_level, rules=boxworld.Rules((1, 2), (0, 1), 1)))
  level, age = draw(played.keys[0, 1]), 0
  for time in range(60):
    np.testing.assert_array_equal(played.steps.observation[time, 1],
                                  boxworld.observe_symbols(level))
    level, reward, ended = STEP(level, played.actions[time, 1])
    age += 1
    ended = bool(ended) or age == 15
    assert (played.steps.reward[time + 1, 1], played.steps.first[time + 1, 1]) == (reward, ended)
    if ended:
      level, age = draw(jax.random.split(played.keys[time + 1, 1])[1]), 0


def test_sparse_rewards_count_solved_levels():
  dense, sparse = (
    episodes.play(make_task(f"boxworld:size=9,length=1,branches=1,limit=60{more}", copies=32), 400)
    for more in ("", ",sparse=true"))
  np.testing.assert_array_equal(dense.steps.first, sparse.steps.first)
  np.testing.assert_array_equal(
    sparse.steps.reward, (dense.steps.reward == 10.0).astype(np.float32))
  assert sparse.steps.reward.sum() > 0 and (dense.steps.reward == 1.0).any()


def test_colours():
  task = make_task("boxworld:rgb=true", copies=4)
  assert task.observation == jax.ShapeDtypeStruct((14, 14, 3), np.uint8) and task.symbols == ()
  palette = boxworld.palette()
  assert palette[:4].tolist() == [[204] * 3, [0] * 3, [128] * 3, [255] * 3]
  assert len({tuple(colour) for colour in palette}) == 24
  keys = jax.random.split(jax.random.key(0), 4)
  symbols = make_task("boxworld", copies=4).reset(keys)[1].observation
  np.testing.assert_array_equal(task.reset(keys)[1].observation, palette[np.array(symbols)])


@pytest.mark.parametrize("parameters, message", [
  ("shortest=5", r"the range of shortest=5 to length=4, or of fewest=0 to branches=4, is empty"),
  ("length=12", r"a level may have 17 boxes, the loose key among them; a room of size=14 "
                "holds 15: lower length, branches or branch_length, or raise size"),
  ("size=9", r"a level may have 9 boxes, the loose key among them; a room of size=9 holds 6: lower "
             "length, branches or branch_length, or raise size"),
  ("size=1", r"a level may have 9 boxes, the loose key among them; a room of size=1 holds 0: lower "
             "length, branches or branch_length, or raise size"),
  ("size=40,length=21,branches=0", r"a level may have keys of 21 colours, expected at most 20: "
                                   "lower length, branches or branch_length"),
  ("size=40,length=17", r"a level may have keys of 21 colours, expected at most 20: lower length, "
                        "branches or branch_length")])
def test_levels_that_cannot_be_are_refused(parameters, message):
  with pytest.raises(TaskError, match=f"^task 'boxworld:{parameters}': {message}$"):
    make_task(f"boxworld:{parameters}", copies=1)
