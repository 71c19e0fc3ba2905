"""The Lair: a Hatchery morphs into it while its larvae hatch."""

import numpy as np

from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.state import queries
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import LOCAL, RULES, S

POOL = {1: ("SpawningPool", 6.0, 0.0)}
LAIR, HATCHERY = LOCAL["Lair"], LOCAL["Hatchery"]


def test_a_hatchery_morphs_beside_its_larvae_and_keeps_its_share_of_health():
  state = tech.start(tech.ZERG, POOL)
  state.larvae[:, 0], state.health[0, 0] = 3, 750
  state = tech.play(tech.order(state, "Train_Drone_quick", [0]))
  state = tech.play(tech.order(state, "Morph_Lair_quick", [0]))
  assert state.refused[0] == 0
  assert (state.minerals[0], state.vespene[0]) == (1000 - 50 - 150, 900)
  assert state.queue[0, 0, :2].tolist() == [LOCAL["Drone"], LAIR]
  state = tech.play(tech.order(state, "Train_Drone_quick", [0]))
  assert state.refused[0] == 0  # larvae hatch during the morph
  drones = (state.kind[0, S:] == LOCAL["Drone"]).sum()
  state = tech.play(state, tech.steps("Drone"))
  assert (state.kind[0, S:] == LOCAL["Drone"]).sum() == drones + 2
  assert state.kind[0, 0] == HATCHERY
  state = tech.play(state, tech.steps("Lair") - tech.steps("Drone") - 1)
  assert state.kind[0, 0] == LAIR and state.health[0, 0] == 1000
  assert state.kind[1, 0] == HATCHERY


def test_a_lair_does_what_a_hatchery_does():
  state = tech.start(tech.ZERG, POOL)
  state.kind[0, 0], state.larvae[0, 0] = LAIR, 1
  found = queries.finished_types(RULES, state)
  assert set(np.flatnonzero(found[0])) == {LAIR, HATCHERY, LOCAL["SpawningPool"]}
  assert tech.can(state, "Train_Drone_quick") and tech.can(state, "Train_Queen_quick")
  assert not tech.can(state, "Morph_Lair_quick")
  assert tech.can(state, "Morph_Lair_quick", player=1)
  trained = tech.play(tech.order(state, "Train_Drone_quick", [0]))
  assert trained.refused[0] == 0 and trained.queue[0, 0, 0] == LOCAL["Drone"]
  assert RULES.types.larvae[LAIR] and RULES.types.townhall[LAIR]
  assert RULES.types.gives_food[LAIR] == RULES.types.gives_food[HATCHERY] == 12


def test_a_queen_in_production_delays_the_morph():
  state = tech.start(tech.ZERG, POOL)
  state = tech.play(tech.order(state, "Train_Queen_quick", [0]))
  refused = tech.play(tech.order(state, "Morph_Lair_quick", [0]))
  assert refused.refused[0] == action_results.QUEUE_IS_FULL
  # And a second morph is not begun during the first.
  state = tech.play(tech.order(tech.start(tech.ZERG, POOL), "Morph_Lair_quick", [0], repeat=3))
  assert (state.queue[0, 0] == LAIR).sum() == 1
  again = tech.play(tech.order(state, "Morph_Lair_quick", [0]))
  assert again.refused[0] == action_results.QUEUE_IS_FULL and again.vespene[0] == 900


def test_the_hydralisk_den_needs_a_lair():
  state = tech.start(tech.ZERG, POOL)
  assert not tech.can(state, "Build_HydraliskDen_pt")
  state.kind[0, 0] = LAIR
  assert tech.can(state, "Build_HydraliskDen_pt")
  assert not tech.can(state, "Build_HydraliskDen_pt", player=1)


def test_a_lair_without_a_pool_is_refused():
  state = tech.play(tech.order(tech.start(tech.ZERG, {}), "Morph_Lair_quick", [0]))
  assert state.refused[0] == action_results.TECH_REQUIREMENTS_NOT_MET
  assert state.vespene[0] == 1000 and not state.queue[0].any()
  assert constants.RACES[state.race[0]] == "Zerg"
