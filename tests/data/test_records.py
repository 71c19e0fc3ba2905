"""Records of agent steps: steps or columns, at any slot of consecutive moments."""

import jax
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import assembler, wire
from starleague.data.records import Records

CONFIG = agent_config.mini()
UNROLL_LENGTH = 2


@pytest.fixture(scope="module")
def records():
  """A game of 5 steps, one at each of 5 moments, in a slot that changes; other slots are empty."""
  slots = np.array([0, 2, 1, 1, 0])
  shape, moments = (5, 3), np.arange(5)

  def draw(leaf):
    values = np.random.default_rng(0).integers(0, 2, (*shape, *leaf.shape))
    return values.astype(leaf.dtype)

  step, state = jax.tree.map(draw, (
    types.step_spec(CONFIG.max_entities, CONFIG.map_size, CONFIG.max_selected),
    types.core_state_spec(CONFIG)))
  step.observation.game_loop[moments, slots] = 10 + moments
  row = np.full(shape, -1, np.int32)
  first, last = np.zeros(shape, bool), np.zeros(shape, bool)
  row[moments, slots], first[0, 0], last[4, 0] = 1, True, True
  return Records(row=row, first=first, last=last, step=step, core_state=state)


def cuts_of(*parts):
  """Returns the trajectories of consecutive records, packed."""
  made = assembler.Assembler(CONFIG, UNROLL_LENGTH, 2)
  return [cut for part in parts for cut in made.add(part)]


def assert_same(found, expected):
  assert len(found) == len(expected)
  for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
    np.testing.assert_array_equal(a, b)


def test_empty_slots_have_no_row_and_a_row_may_change_its_slot(records):
  cuts = cuts_of(records)
  loops = [wire.unpack(jax.tree.map(lambda x: x[:, None] if x.ndim > 1 else x[None], cut.packed),
                       CONFIG).steps.observation.game_loop[:, 0].tolist() for cut in cuts]
  assert loops == [[10, 11, 12], [12, 13, 14]]
  assert [cut.row for cut in cuts] == [1, 1]


def test_records_of_columns_give_the_trajectories_of_records_of_steps(records):
  columns = records._replace(step=wire.pack_steps(records.step))
  assert all(x.shape[:2] == (5, 3) for x in jax.tree.leaves(columns.step))
  assert_same([cut.packed for cut in cuts_of(columns)], [cut.packed for cut in cuts_of(records)])


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_records_are_one_tree_that_is_split_along_its_moments(records, at):
  parts = [jax.tree.map(lambda x: x[:at], records), jax.tree.map(lambda x: x[at:], records)]
  assert [part.row.shape for part in parts] == [(at, 3), (5 - at, 3)]
  assert_same([cut.packed for cut in cuts_of(*parts)], [cut.packed for cut in cuts_of(records)])
