"""Episodes without the decisions that only wait."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import wire
from starleague.data.games import waits
from tests.data.unpacking import unpack

CONFIG = agent_config.mini()
A, B = 3, 7  # functions that do something
LOOPS = 16  # between decisions of the examples


@pytest.mark.parametrize("functions, loops, expected", [
  ([], [16], [0]),
  ([A], [0, 16], [0, 1]),
  ([0, 0, 0], [0, 16, 32, 48], [0, 3]),  # the first decision stays
  ([A, 0, 0, B, 0], [0, 16, 32, 48, 64, 80], [0, 3, 5]),
  # 127 loops at most: the wait at 112 would last until 128.
  ([A, *[0] * 8, B], [*range(0, 160, 16), 160], [0, 7, 9, 10]),
  ([A, 0, A], [0, 100, 127, 130], [0, 2, 3]),
  ([A, 0, A], [0, 100, 128, 130], [0, 1, 2, 3]),
])
def test_waits_within_the_longest_delay_are_dropped(functions, loops, expected):
  np.testing.assert_array_equal(waits.kept(np.array(functions, int), np.array(loops)), expected)


def test_an_episode_without_decisions_stays_as_it_is():
  columns = wire.Columns(*(
    np.ones((1, x.shape[-1]), x.dtype) for x in wire.packed_spec(CONFIG, 0)[:-1]))
  assert waits.merge_waits(columns, CONFIG) is columns


def episode(functions, loops) -> types.Step:
  """Returns numpy steps with consistent "last" fields, and marks in other fields."""
  count = len(functions) + 1
  step = types.zeros(types.step_spec(CONFIG.max_entities, CONFIG.map_size, CONFIG.max_selected))
  steps = jax.tree.map(lambda x: np.stack([x] * count), step)
  o, a = steps.observation, steps.action
  a.function[:-1], a.repeat[:-1], a.queued[:-1] = functions, np.arange(count - 1) % 3, 1
  a.delay[:-1] = np.clip(np.diff(loops), 1, types.MAX_DELAY)
  o.game_loop[:], o.last_delay[1:] = loops, a.delay[:-1]
  o.last_function[1:], o.last_queued[1:] = a.function[:-1], a.queued[:-1]
  o.last_repeat[1:] = a.repeat[:-1]
  o.action_result[:] = np.arange(count) % 200
  o.entities[:, 0, 0] = np.arange(count)
  steps.weight[:-1], steps.discount[:-2] = 1.0, 1.0
  steps.reward[:-1, 1] = np.arange(1, count)
  steps.reward[-2, 0] = 1.0
  return steps


def merged(steps: types.Step) -> types.Step:
  packed = wire.pack_steps(steps)
  columns = wire.Columns(*(
    x if x.dtype == np.float32 else wire.difference(x) for x in packed))
  return unpack(waits.merge_waits(columns, CONFIG), CONFIG, 31)


def test_the_decisions_left_cover_the_time_that_was_merged():
  steps = episode([A, 0, 0, B, 0], np.arange(6) * LOOPS)
  found = merged(steps)
  o, a = found.observation, found.action
  np.testing.assert_array_equal(a.function, [A, B, 0])
  np.testing.assert_array_equal(o.game_loop, [0, 48, 80])
  np.testing.assert_array_equal(a.delay, [48, LOOPS, 0])  # the last decision keeps its own
  np.testing.assert_array_equal(o.last_delay, [0, 48, 32])
  np.testing.assert_array_equal(o.last_function, [0, A, B])
  np.testing.assert_array_equal(o.last_repeat, [0, 0, 0])
  np.testing.assert_array_equal(o.action_result, [0, 1, 4])  # seen first after each action
  np.testing.assert_array_equal(found.reward[:, 1], [1 + 2 + 3, 4 + 5, 0])
  np.testing.assert_array_equal(found.reward[:, 0], [0, 1, 0])
  np.testing.assert_array_equal(found.discount, [1, 0, 0])
  np.testing.assert_array_equal(found.weight, [1, 1, 0])
  np.testing.assert_array_equal(o.entities[:, 0, 0], [0, 3, 5])


def test_an_episode_without_waits_stays_as_it_is():
  packed = wire.pack_steps(episode([A, B, A], np.arange(4) * LOOPS))
  columns = wire.Columns(*(
    x if x.dtype == np.float32 else wire.difference(x) for x in packed))
  assert waits.merge_waits(columns, CONFIG) is columns


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0, 0, A, B]), st.integers(1, 15)), min_size=1,
                max_size=30))
def test_merging_keeps_every_action_and_the_time(decisions):
  functions = np.array([function for function, _ in decisions])
  loops = np.concatenate([[0], np.cumsum([8 * steps for _, steps in decisions])])
  steps = episode(functions, loops)
  found = merged(steps)
  o, a = found.observation, found.action
  kept = waits.kept(functions, loops)
  np.testing.assert_array_equal(o.game_loop, loops[kept])
  np.testing.assert_array_equal(a.function[:-1][a.function[:-1] != 0], functions[functions != 0])
  np.testing.assert_array_equal(a.delay[:-2], np.diff(o.game_loop)[:-1])
  np.testing.assert_array_equal(o.last_function[1:], a.function[:-1])
  np.testing.assert_array_equal(o.last_delay[1:], np.diff(o.game_loop))
  np.testing.assert_array_equal(found.reward.sum(0), steps.reward.sum(0))
  again = waits.kept(a.function[:-1], o.game_loop)
  np.testing.assert_array_equal(again, np.arange(len(again)))  # nothing is left to merge
