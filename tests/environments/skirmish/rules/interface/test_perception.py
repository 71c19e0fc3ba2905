"""Sight of the players."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.interface import perception
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.places import UNIT
from tests.environments.skirmish.scenes import put, run, same, scene
from tests.environments.skirmish.states import first, on_device


@pytest.mark.slow
def test_high_ground_is_invisible_from_below(default_game):
  state = scene(default_game, ground=1)
  inside, below = (-9.5, -18.0), (-6.5, -18.0)  # on either side of the plateau's edge
  for g, (mine, where, theirs, there) in enumerate([
      ("Marine", below, "Marine", inside), ("Marine", inside, "Marine", below),
      ("Medivac", below, "Marine", inside), ("Marine", below, "Medivac", inside),
      ("Marine", inside, "Marine", inside), ("Marine", below, "SupplyDepot", inside)]):
    put(state, UNIT, mine, where, games=g)
    put(state, 1 if theirs == "SupplyDepot" else UNIT, theirs, there, player=1, games=g)
    # The town hall on the plateau would see it.
    state.x[g, 0, 0], state.y[g, 0, 0] = 20.0, -20.0
  state.memory.seen[:] = False
  state.cooldown[:] = 100.0
  state = run(default_game, state)
  same(state.memory.seen[:6, 0, UNIT], [False, True, True, True, True, False])
  same(state.memory.seen[5, 0, 1], False)
  same(state.memory.kind[5, 0, 1], 0)


def test_targets_are_visible_from_sight_plus_their_radius():
  types, s = mini.RULES.types, mini.S
  reach = types.sight[mini.MARINE] + types.radius[mini.SCV]
  for distance, visible in ((reach - 0.01, True), (reach + 0.01, False)):
    state = first(mini.RULES)
    state.kind[0, s:] = 0
    state.kind[0, s], state.x[0, s], state.y[0, s] = mini.MARINE, -5.0, 8.0
    state.x[1, s], state.y[1, s] = distance - 5.0, 8.0
    found = perception.perceive(mini.RULES, on_device(state)).memory
    assert bool(found.seen[0, s]) == visible == bool(found.met[0])
    assert not found.seen[0, s + 1:].any()


def test_a_remembered_structure_is_forgotten_once_its_place_is_seen():
  state = first(mini.RULES)
  for slot, place in ((1, -6.5), (2, 6.5)):  # in sight of the town hall, and out of sight
    state.memory.kind[0, slot] = mini.BARRACKS
    state.memory.x[0, slot] = state.memory.y[0, slot] = place
  found = perception.perceive(mini.RULES, on_device(state)).memory
  np.testing.assert_array_equal(found.kind[0, 1:3], [0, mini.BARRACKS])
