"""Rows of observations."""

import dataclasses

import jax
import numpy as np

from starleague.agent import types
from starleague.environments.skirmish.rules.interface import entities
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.mini_games import GAMES, RULES, host
from tests.environments.skirmish.states import first


def test_enemies_in_sight_have_rows(game, played):
  column, types_ = types.COLUMN, RULES.types
  for state in played[1::2]:
    observation = host(game.observe(state)[0])
    for g in range(GAMES):
      own, enemy = state.kind[g, 0], state.kind[g, 1]
      distance = np.hypot(state.x[g, 0][:, None] - state.x[g, 1],
                          state.y[g, 0][:, None] - state.y[g, 1])
      reach = types_.sight[own][:, None] + types_.radius[enemy]
      clear = np.abs(distance - reach).min() > 1e-3
      expected = ((distance <= reach) & (own > 0)[:, None] & (enemy > 0)).any(axis=0)
      if clear:
        rows = observation.entities[g, 0, :observation.entity_count[g, 0]]
        shown = (rows[:, column["alliance"]] == 4) & (rows[:, column["display_type"]] == 1)
        np.testing.assert_array_equal(
          rows[shown, column["unit_type"]], types_.index[enemy[expected]])


def test_rows_are_own_slots_then_resources_without_gaps():
  """At the start nothing of the enemy is seen, and all resources are known."""
  state = first(mini.RULES)
  rows = entities.entity_rows(mini.RULES, state)
  np.testing.assert_array_equal(rows.total, [1 + 4 + mini.R] * 2)
  present = np.asarray(rows.present[0])
  n = mini.N
  expected = np.concatenate([state.kind[0] > 0, np.zeros(n, bool), np.ones(mini.R, bool)])
  np.testing.assert_array_equal(present, expected)
  np.testing.assert_array_equal(np.asarray(rows.row[0])[present], np.arange(5 + mini.R))


def test_fewer_rows_show_the_first_ones(played):
  """The last rows are of resources, those of the other half last."""
  few = dataclasses.replace(RULES, max_entities=20)
  dropped = 0
  for state in played[1::2]:
    all_rows, total = jax.vmap(lambda state: entities.entities(RULES, state))(state)
    rows, count = jax.vmap(lambda state: entities.entities(few, state))(state)
    np.testing.assert_array_equal(rows, all_rows[:, :, :20])
    np.testing.assert_array_equal(count, np.minimum(total, 20))
    dropped += int((np.asarray(total) > 20).sum())
    present = jax.vmap(lambda state: entities.entity_rows(few, state))(state).present
    np.testing.assert_array_equal(present.sum(axis=2), count)
  assert dropped
