"""Batches in order: every decision once, in its game's order, with the padding of assemblers."""

import dataclasses

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.agent import config as agent_config
from starleague.data import wire
from starleague.data.games import ordering
from tests.data.games import recorded_games

TINY = dataclasses.replace(agent_config.mini(), max_entities=2, map_size=4, max_selected=1)
FIELDS = wire.layout(TINY).fields


def all_batches(lengths, batch_size, unroll_length, start=0):
  steps = [recorded_games.episode(TINY, length, number).steps
           for number, length in enumerate(lengths)]
  return list(ordering.batches(lengths, steps.__getitem__, TINY, batch_size, unroll_length,
                                  start))


def values(batch, path):
  """A scalar leaf of a batch, [T + 1, B], with the differences summed."""
  field = FIELDS[path]
  column = getattr(batch, field.column)
  if column.dtype != np.float32:
    column = np.cumsum(column, 0, column.dtype)
  return column[..., field.slice.start]


@hypothesis.given(st.lists(st.integers(0, 13), max_size=12), st.integers(1, 5), st.integers(1, 6))
@hypothesis.settings(max_examples=60, deadline=None)
def test_every_decision_is_learnt_exactly_once_and_in_order(lengths, batch_size, unroll_length):
  found = [[] for _ in range(batch_size)]  # (loop of each decision) by slot
  for batch in all_batches(lengths, batch_size, unroll_length):
    loop, weight = values(batch, "observation.game_loop"), values(batch, "weight")
    assert loop.shape == (unroll_length + 1, batch_size)
    for slot in range(batch_size):
      learnt = loop[:-1, slot][weight[:-1, slot] > 0]
      if batch.first[slot]:
        found[slot].append([])
      found[slot][-1].extend(learnt.tolist())
  played = [game for slot in found for game in slot if game]
  assert sorted(played) == [[1000 * number + i for i in range(length)]
                            for number, length in enumerate(lengths) if length]


def test_batches_hold_the_steps_of_their_games():
  lengths = [7, 2, 5]
  expected = [recorded_games.columns(TINY, length, number) for number, length in enumerate(lengths)]
  batches = all_batches(lengths, 2, 3)
  assert len(batches) == 3
  # Slot 0 plays game 0 in three chunks, slot 1 games 1 and 2.
  chunks = [(0, 0), (0, 3), (0, 6)], [(1, 0), (2, 0), (2, 3)]
  for slot, places in enumerate(chunks):
    for batch, (game, at) in zip(batches, places, strict=True):
      rows = np.minimum(np.arange(at, at + 4), lengths[game])
      assert batch.first[slot] == (at == 0)
      for name in ("bits", "uint8", "int16", "int32"):
        column = getattr(batch, name)[:, slot]
        np.testing.assert_array_equal(
          np.cumsum(column, 0, column.dtype), getattr(expected[game], name)[rows])
      floats = expected[game].float32[rows]
      if at + 3 < lengths[game]:  # the bootstrap step has earned nothing yet
        floats[-1, FIELDS["reward"].slice], floats[-1, FIELDS["discount"].slice] = 0, 1
      np.testing.assert_array_equal(batch.float32[:, slot], floats)
  assert values(batches[2], "weight")[:, 0].tolist() == [1, 0, 0, 0]
  assert values(batches[2], "reward")[:, 0].tolist() == [1, 0, 0, 0]
  assert values(batches[2], "discount")[:, 0].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("start", range(7))
def test_skipped_batches_change_nothing(start):
  lengths = [5, 9, 1, 4, 12, 3]
  every, later = all_batches(lengths, 2, 3), all_batches(lengths, 2, 3, start)
  assert len(later) == max(len(every) - start, 0)
  for a, b in zip(every[start:], later, strict=True):
    for x, y in zip(a, b, strict=True):
      np.testing.assert_array_equal(x, y)


def test_empty_slots_have_no_weight_and_begin_a_game():
  batches = all_batches([3, 9], 3, 3)
  assert [batch.first.tolist() for batch in batches] == [
    [True, True, True], [True, False, True], [True, False, True]]
  for batch in batches[1:]:
    assert not any(x[:, [0, 2]].any() for x in batch[:5])
  assert batches[0].state.shape == (3, 2 * TINY.core_layers * TINY.core_size)


def test_an_epoch_without_decisions_ends_at_once():
  assert all_batches([], 2, 3) == all_batches([0, 0], 2, 3) == []
