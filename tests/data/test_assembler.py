"""The assembler against a naive one that handles each game alone, and against hand-made cases."""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import assembler, wire
from starleague.data.records import Records

CONFIG = agent_config.mini()
STEP_SPEC = types.step_spec(CONFIG.max_entities, CONFIG.map_size, CONFIG.max_selected)


@functools.lru_cache(maxsize=64)
def observed(row: int, game: int, t: int, last: bool):
  """A step as an actor records it, with the reward and discount of arrival, and its core state."""
  random = np.random.default_rng([row, game, t])

  def draw(leaf):
    if leaf.dtype == np.float32:
      return random.normal(size=leaf.shape).astype(np.float32)
    return random.integers(0, 2, leaf.shape).astype(leaf.dtype)

  step, state = jax.tree.map(draw, (STEP_SPEC, types.core_state_spec(CONFIG)))
  step = step._replace(
    observation=step.observation._replace(game_loop=np.array(identity(row, game, t), np.int32)),
    discount=np.array(0 if last else 1, np.float32), weight=np.ones((), np.float32))
  return step, state


def identity(row, game, t):
  return 10_000 * row + 100 * game + t


def make_records(steps, slots: int):
  """[(row, game, t, terminal t)] -> Records: each step at the first moment free for its row."""
  moments: list[list] = []
  earliest: dict[int, int] = {}
  for row, game, t, end in steps:
    at = earliest.get(row, 0)
    while at < len(moments) and len(moments[at]) == slots:
      at += 1
    if at == len(moments):
      moments.append([])
    moments[at].append((row, game, t, end))
    earliest[row] = at + 1
  shape = (len(moments), slots)
  row = np.full(shape, -1, np.int32)
  first, last = np.zeros(shape, bool), np.zeros(shape, bool)
  blank = types.zeros((STEP_SPEC, types.core_state_spec(CONFIG)))
  grid = [[blank] * slots for _ in moments]
  for n, moment in enumerate(moments):
    for c, (which, game, t, end) in enumerate(moment):
      row[n, c], first[n, c], last[n, c] = which, t == 0, t == end
      grid[n][c] = observed(which, game, t, t == end)
  flat = [cell for moment in grid for cell in moment]
  step, state = jax.tree.map(lambda *x: np.stack(x).reshape(*shape, *x[0].shape), *flat)
  return Records(row=row, first=first, last=last, step=step, core_state=state)


def naive_trajectories(row: int, game: int, end: int, known: int, unroll_length: int):
  """Returns [(indices, Packed)] of one game whose steps 0 to `known` - 1 are known."""
  over = known == end + 1
  steps, states = [], []
  for t in range(known):
    step, state = observed(row, game, t, t == end)
    if t == end:
      action = types.zeros(STEP_SPEC.action)
      step = step._replace(
        action=action._replace(units=np.full_like(action.units, CONFIG.max_entities)),
        log_prob=types.zeros(STEP_SPEC.log_prob), weight=np.zeros((), np.float32),
        reward=np.zeros_like(step.reward), discount=np.zeros((), np.float32))
    else:
      after, _ = observed(row, game, t + 1, t + 1 == end)
      step = step._replace(reward=after.reward, discount=after.discount)
    steps.append(step)
    states.append(state)
  starts = [s for s in range(0, known, unroll_length) if s + unroll_length < known]
  if over and end > 0 and end % unroll_length:
    starts.append(max(0, end - unroll_length))
  result = []
  for start in starts:
    indices = [min(start + i, end) for i in range(unroll_length + 1)]
    window = [steps[t] for t in indices]
    if indices[-1] != end:  # the reward of its action is not known yet
      window[-1] = window[-1]._replace(
        reward=np.zeros_like(window[-1].reward), discount=np.ones((), np.float32))
    stacked = jax.tree.map(lambda *x: np.stack(x), *window)
    result.append((indices, wire.pack(types.Trajectory(stacked, states[start]))))
  return result


def game_loops(packed: wire.Packed):
  field = wire.layout(CONFIG).fields["observation.game_loop"]
  return np.cumsum(packed.int32[:, field.slice], dtype=np.int32).tolist()


def column(packed: wire.Packed, path: str):
  field = wire.layout(CONFIG).fields[path]
  values = getattr(packed, field.column)[:, field.slice]
  return values if values.dtype == np.float32 else np.cumsum(values, 0, dtype=values.dtype)


def assert_packed_equal(found, expected):
  for name, x, y in zip(wire.Packed._fields, found, expected, strict=True):
    assert x.dtype == y.dtype, name
    np.testing.assert_array_equal(x, y, err_msg=name)


games = st.lists(st.integers(0, 11), min_size=1, max_size=3)  # terminal index of each


@hypothesis.given(rows=st.lists(games, min_size=1, max_size=3), unroll_length=st.integers(1, 4),
                  slots=st.integers(1, 3), calls=st.integers(1, 4), unfinished=st.integers(0, 3),
                  seed=st.integers(0, 99))
@hypothesis.settings(max_examples=30, deadline=None)
def test_trajectories_equal_those_of_a_naive_assembler(
    rows, unroll_length, slots, calls, unfinished, seed):
  """Interleaved games in several calls give the same as each game alone."""
  queues = [[(row, game, t, end) for game, end in enumerate(ends) for t in range(end + 1)]
            for row, ends in enumerate(rows)]
  queues = [queue[:len(queue) - unfinished] for queue in queues]
  expected = [[] for _ in rows]
  for row, queue in enumerate(queues):
    for game, end in enumerate(rows[row]):
      known = sum(step[1] == game for step in queue)
      expected[row] += naive_trajectories(row, game, end, known, unroll_length)

  random = np.random.default_rng(seed)
  steps = []
  while any(queues):
    steps.append(queues[random.choice([i for i, q in enumerate(queues) if q])].pop(0))
  cutter = assembler.Assembler(CONFIG, unroll_length, num_rows=3)
  found = [[] for _ in rows]
  for part in np.array_split(np.arange(len(steps)), calls):
    if part.size:
      for cut in cutter.add(make_records([steps[i] for i in part], slots)):
        found[cut.row].append(cut.packed)

  for row, (ours, naive) in enumerate(zip(found, expected, strict=True)):
    assert len(ours) == len(naive)
    for packed, (_, reference) in zip(ours, naive, strict=True):
      assert_packed_equal(packed, reference)
    # Each transition of a finished game is trained on: a step before the last, of weight 1.
    learnt = {loop for packed in ours
              for loop, weight in zip(game_loops(packed)[:-1], column(packed, "weight")[:-1],
                                      strict=True) if weight[0]}
    for game, end in enumerate(rows[row]):
      if sum(1 for r, g, *_ in steps if (r, g) == (row, game)) == end + 1:
        assert {identity(row, game, t) for t in range(end)} <= learnt


def cut_one_game(end: int, unroll_length: int):
  steps = [(0, 0, t, end) for t in range(end + 1)]
  cuts = assembler.Assembler(CONFIG, unroll_length, 1).add(make_records(steps, 1))
  return [cut.packed for cut in cuts]


@pytest.mark.parametrize("end, starts", [
  (4, [0]), (8, [0, 4]), (5, [0, 1]), (10, [0, 4, 6]), (2, [0]), (1, [0]), (0, [])])
def test_where_trajectories_start(end, starts):
  """T = 4: consecutive ones share one step; the last is moved back to end with the game."""
  assert [game_loops(packed)[0] for packed in cut_one_game(end, 4)] == starts


def test_rewards_move_to_the_step_that_earned_them():
  first, second = cut_one_game(6, 4)  # starts at 0 and 2
  arriving = [observed(0, 0, t, t == 6)[0].reward for t in range(7)]
  np.testing.assert_array_equal(column(first, "reward")[:4], arriving[1:5])
  np.testing.assert_array_equal(column(first, "reward")[4], np.zeros(5))
  np.testing.assert_array_equal(column(second, "reward")[:4], arriving[3:7])
  np.testing.assert_array_equal(column(first, "discount")[:, 0], [1, 1, 1, 1, 1])
  np.testing.assert_array_equal(column(second, "discount")[:, 0], [1, 1, 1, 0, 0])
  np.testing.assert_array_equal(column(second, "weight")[:, 0], [1, 1, 1, 1, 0])


def test_initial_state_precedes_the_first_step():
  for packed, start in zip(cut_one_game(6, 4), [0, 2], strict=True):
    np.testing.assert_array_equal(packed.state, wire.pack_state(observed(0, 0, start, False)[1]))


def test_a_short_game_is_padded_with_its_terminal_step():
  packed, = cut_one_game(2, 5)
  assert game_loops(packed) == [0, 1, 2, 2, 2, 2]
  np.testing.assert_array_equal(column(packed, "weight")[:, 0], [1, 1, 0, 0, 0, 0])
  np.testing.assert_array_equal(column(packed, "discount")[:, 0], [1, 0, 0, 0, 0, 0])
  assert not column(packed, "reward")[2:].any()
  assert not column(packed, "action.function")[2:].any()
  assert (column(packed, "action.units")[2:] == CONFIG.max_entities).all()  # the end token
  for argument in ("function", "delay", "units", "location"):
    assert not column(packed, f"log_prob.{argument}")[2:].any()


def test_a_time_limit_ends_a_game():
  """A discount of 1 on the terminal step would bootstrap from padding."""
  records = make_records([(0, 0, t, 2) for t in range(3)], 1)
  step = records.step._replace(discount=np.ones_like(records.step.discount))
  cut, = assembler.Assembler(CONFIG, 4, 1).add(records._replace(step=step))
  packed = cut.packed
  np.testing.assert_array_equal(column(packed, "discount")[:, 0], [1, 0, 0, 0, 0])


def test_unrecorded_rows_and_empty_slots_are_skipped():
  steps = [(row, 0, t, 3) for t in range(4) for row in (0, 1)]
  records = make_records(steps, 3)  # the third slot stays empty
  cuts = assembler.Assembler(CONFIG, 3, 2).add(records, record=records.row != 1)
  assert [cut.row for cut in cuts] == [0]
  assert game_loops(cuts[0].packed) == [0, 1, 2, 3]


def test_a_game_without_its_first_step_is_skipped():
  steps = [(0, 0, t, 4) for t in range(2, 5)] + [(0, 1, t, 2) for t in range(3)]
  cuts = assembler.Assembler(CONFIG, 2, 1).add(make_records(steps, 1))
  assert [game_loops(cut.packed) for cut in cuts] == [[100, 101, 102]]


def test_an_abandoned_game_does_not_mix_with_the_next():
  steps = [(0, 0, t, 9) for t in range(4)] + [(0, 1, t, 3) for t in range(4)]
  cuts = assembler.Assembler(CONFIG, 3, 1).add(make_records(steps, 1))
  assert [game_loops(cut.packed) for cut in cuts] == [[0, 1, 2, 3], [100, 101, 102, 103]]


def test_steps_packed_on_the_device_give_the_same():
  records = make_records([(row, 0, t, 4) for t in range(5) for row in (0, 1)], 2)
  packed = records._replace(
    step=jax.jit(wire.pack_steps)(records.step), core_state=jax.device_put(records.core_state))
  plain = assembler.Assembler(CONFIG, 3, 2).add(records)
  device = assembler.Assembler(CONFIG, 3, 2).add(packed)
  assert len(plain) == len(device) == 4
  for x, y in zip(plain, device, strict=True):
    assert x.row == y.row
    assert_packed_equal(x.packed, y.packed)


def test_cuts_stay_unchanged_by_later_steps():
  cutter = assembler.Assembler(CONFIG, 2, 1)
  cut, = cutter.add(make_records([(0, 0, t, 6) for t in range(3)], 1))
  before = [x.copy() for x in cut.packed]
  cutter.add(make_records([(0, 0, t, 6) for t in range(3, 7)], 1))
  assert_packed_equal(cut.packed, before)


def test_steps_of_another_preset_are_refused():
  records = make_records([(0, 0, t, 2) for t in range(3)], 1)
  cutter = assembler.Assembler(agent_config.full(), 2, 1)
  with pytest.raises(ValueError, match=(
      r"'observation.entities' of the steps: found int16\[3, 1, 64, 48\], "
      r"expected int16\[3, 1, 512, 48\].*preset 'full'")):
    cutter.add(records)
