"""The limit on actions, against a count of every window."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("s2clientprotocol")

from starleague.agent import types
from starleague.environments.sc2.converter import rate_limit


def make_action(function, location=0, delay=1):
  return types.Action(
    np.int16(function), np.int16(delay), np.uint8(0), np.uint8(0), np.array([1, 9], np.int16),
    np.int16(0), np.int32(location))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 1)), max_size=150))
def test_no_window_has_more_actions(steps):
  state, loop, taken, last = rate_limit.RateLimit(), 0, [], None
  for wait, location, function in steps:
    loop += wait
    state, found = rate_limit.limit(state, make_action(2 * function, location), loop, 9)
    counts = function and location != last
    room = sum(loop - old < rate_limit.WINDOW for old in taken) < rate_limit.MOST_ACTIONS
    assert (found.function == 2) == bool(function and (room or not counts))
    if found.function:
      last = location
      taken += [loop] if counts else []
  for end in taken:
    assert sum(0 <= end - old < rate_limit.WINDOW for old in taken) <= rate_limit.MOST_ACTIONS


def test_an_action_too_many_becomes_a_no_op_of_the_same_delay():
  state = rate_limit.RateLimit()
  for i in range(22):
    state, found = rate_limit.limit(state, make_action(2, i), i, 512)
    assert found.function == 2
  same, found = rate_limit.limit(state, make_action(2, 21), 30, 512)
  assert found.function == 2  # repeats the one before
  _, found = rate_limit.limit(same, make_action(2, 99, delay=5), 111, 512)
  assert found.function == 0 and found.delay == 5 and found.units.tolist() == [512, 512]
  _, found = rate_limit.limit(same, make_action(2, 99), 112, 512)
  assert found.function == 2
