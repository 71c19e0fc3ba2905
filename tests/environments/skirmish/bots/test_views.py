"""Scripted players' views of a game, and their choices."""

import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish.bots import views
from tests.environments.skirmish.mini_games import FUNCTION, HALL, RULES, SCV, N, S
from tests.environments.skirmish.states import first


@pytest.mark.parametrize("player", [0, 1])
def test_a_view_has_the_own_side_and_only_known_enemies(player):
  state = first(RULES)
  view = views.make_view(RULES, state, jnp.int32(player))
  np.testing.assert_array_equal(view.kind, state.kind[player])
  assert int(view.kind[0]) == HALL and np.sum(np.asarray(view.kind) == SCV) == 4
  assert (int(view.food_most), int(view.food_left)) == (36, 28)  # halves; four workers
  assert not np.any(view.enemy) and not np.any(view.known) and not view.home_seen
  assert int(view.minerals) == 50 and float(view.side) == (1, -1)[player]


def test_vision_shows_every_enemy():
  state = first(RULES)
  view = views.make_view(RULES, state, jnp.int32(0), vision=True)
  np.testing.assert_array_equal(view.enemy, state.kind[1] > 0)
  assert np.flatnonzero(view.known).tolist() == [0]
  assert (float(view.known_x[0]), float(view.known_y[0])) == (6.5, 6.5)


def test_slots_are_chosen_from_the_first():
  slots = jnp.array([False, True, True, False, True])
  np.testing.assert_array_equal(views.first_slots(slots, 2), [0, 1, 1, 0, 0])
  np.testing.assert_array_equal(views.first_slots(slots, 0), [0] * 5)
  units = views.unit_slots(RULES, jnp.ones(N - S, bool))
  structures = views.structure_slots(RULES, jnp.ones(S, bool))
  np.testing.assert_array_equal(units, np.arange(N) >= S)
  np.testing.assert_array_equal(structures, np.arange(N) < S)


def test_a_choice_without_executors_is_not_wanted():
  local = RULES.functions.names.index("Move_pt")
  assert RULES.functions.index[local] == FUNCTION("Move_pt")
  none, some = jnp.zeros(N, bool), jnp.arange(N) == 7
  assert not views.make_choice(RULES, True, "Move_pt", none).wanted
  assert not views.make_choice(RULES, False, "Move_pt", some).wanted
  choice = views.make_choice(RULES, True, "Move_pt", some, x=2.0, target=3)
  assert bool(choice.wanted) and int(choice.function) == local
  assert (float(choice.x), float(choice.y), int(choice.target), int(choice.repeat)) == (2, 0, 3, 1)
