"""Add-ons: orders, construction, what they allow and make faster, and what they belong to."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starleague.environments.skirmish.rules.interface import action_results, entities
from starleague.environments.skirmish.rules.state import add_ons
from starleague.environments.skirmish.rules.tables import constants, tables
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import LOCAL, PRODUCTS, RULES, TYPES, S

BARRACKS = {1: ("Barracks", 8.0, 0.0), 2: ("Barracks", 8.0, 6.0), 3: ("SupplyDepot", 0.0, 8.0)}
KINDS = ("Barracks", "Factory", "Starport", "BarracksTechLab", "FactoryTechLab", "StarportReactor",
         "SupplyDepot")


def linked(state):
  """The add-ons of a state that was put together."""
  return add_ons.add_ons_of(RULES, add_ons.link(RULES, state))


def with_add_on(name, slot=1, structures=BARRACKS):
  """A start with a finished add-on beside the structure in a slot, of both players."""
  state = tech.start(tech.TERRAN, structures)
  for player in range(2):
    x, y = add_ons.places(state.x[player, slot], state.y[player, slot])
    tech.put(state, player, 9, name, x, y)
  return jax.tree.map(np.array, add_ons.link(RULES, state))


@pytest.mark.parametrize("swap_sides", (False, True))
def test_an_idle_structure_begins_an_add_on_at_its_right(swap_sides):
  state = tech.start(tech.TERRAN, BARRACKS, swap_sides)
  state.queue[0, 1, 0], state.timers[0, 1, 0] = LOCAL["Marine"], 400
  state = tech.play(tech.order(state, "Build_TechLab_quick", [1, 2]))
  lab = LOCAL["BarracksTechLab"]
  assert state.refused[0] == 0
  assert (state.minerals[0], state.vespene[0]) == (950, 975)
  (slot,) = np.flatnonzero(state.kind[0, :S] == lab)
  assert state.unfinished[0, slot] == tech.loops("BarracksTechLab") - constants.LOOPS_PER_STEP
  # The first was busy. The place is the real game's, on whichever side the player starts.
  assert (state.x[0, slot] - state.x[0, 2], state.y[0, slot] - state.y[0, 2]) == (2.5, 0.5)
  assert state.queue[0, 2].tolist() == [lab, 0, 0, 0, 0]
  np.testing.assert_array_equal(state.add_on, add_ons.link(RULES, state).add_on)
  found = add_ons.add_ons_of(RULES, state)
  assert found.kind[0].tolist() == [lab if i == 2 else 0 for i in range(S)]
  assert found.slot[0, 2] == slot and found.loops[0, 2] == state.unfinished[0, slot]


def test_a_structure_makes_nothing_until_its_add_on_is_finished():
  state = tech.start(tech.TERRAN, {1: BARRACKS[1], 3: BARRACKS[3]})
  state = tech.play(tech.order(state, "Build_Reactor_quick", [1]))
  assert not tech.can(state, "Train_Marine_quick") and not tech.can(state, "Cancel_Last_quick")
  refused = tech.play(tech.order(state, "Train_Marine_quick", [1]))
  assert refused.refused[0] == action_results.QUEUE_IS_FULL
  assert refused.minerals[0] == state.minerals[0]
  last = tech.play(state, tech.steps("BarracksReactor") - 2)
  assert last.queue[0, 1, 0] == LOCAL["BarracksReactor"] and last.unfinished[0].max() > 0
  after = tech.play(last, 2)
  assert after.queue[0, 1, 0] == 0 and after.unfinished[0].max() == 0
  assert after.kind[0, 1] == LOCAL["Barracks"]  # it did not morph
  assert tech.can(after, "Train_Marine_quick")
  assert not tech.can(after, "Build_TechLab_quick")  # one add-on each
  found = entities.entities(RULES, states.on_device(after))[0][0]
  column = entities.types.ENTITY_COLUMNS.index("addon_unit_type")
  dense = int(TYPES.index[LOCAL["BarracksReactor"]])
  assert found[:, column].tolist().count(dense) == 1
  assert found[1, column] == dense


def test_types_that_need_a_tech_lab_are_trained_where_one_is():
  without = tech.start(tech.TERRAN, BARRACKS)
  assert tech.can(without, "Train_Marine_quick") and not tech.can(without, "Train_Marauder_quick")
  refused = tech.play(tech.order(without, "Train_Marauder_quick", [1, 2]))
  assert refused.refused[0] == action_results.TECH_REQUIREMENTS_NOT_MET
  state = with_add_on("BarracksTechLab", slot=2)
  assert tech.can(state, "Train_Marauder_quick")
  wrong = tech.play(tech.order(state, "Train_Marauder_quick", [1]))
  assert wrong.refused[0] == action_results.TECH_REQUIREMENTS_NOT_MET
  both = tech.play(tech.order(state, "Train_Marauder_quick", [1, 2], repeat=2))
  assert both.refused[0] == 0
  assert (both.queue[0] == LOCAL["Marauder"]).sum(axis=1).tolist() == [
    2 if i == 2 else 0 for i in range(S)]
  state.unfinished[0, 9] = 100
  assert not tech.can(state, "Train_Marauder_quick")


def test_a_reactor_makes_two_products_at_a_time():
  state = with_add_on("BarracksReactor")
  state = tech.play(tech.order(state, "Train_Marine_quick", [1], repeat=3))
  marine, loops = LOCAL["Marine"], tech.loops("Marine")
  step = constants.LOOPS_PER_STEP
  assert state.timers[0, 1].tolist() == [loops - step, loops - step, loops, 0, 0]
  state = tech.play(state, tech.steps("Marine") - 1)
  # Both are ready. One a step leaves; the third begins with what the first left over.
  assert (state.kind[0, S:] == marine).sum() == 1
  over = loops - step * tech.steps("Marine")
  assert state.timers[0, 1].tolist() == [over, loops + over, 0, 0, 0]
  state = tech.play(state)
  assert (state.kind[0, S:] == marine).sum() == 2
  assert state.timers[0, 1].tolist() == [loops + over - step, 0, 0, 0, 0]


def test_a_tech_lab_researches_while_its_structure_trains():
  state = with_add_on("BarracksTechLab")
  assert not tech.can(tech.start(tech.TERRAN, BARRACKS), "Research_Stimpack_quick")
  state = tech.play(tech.order(state, "Train_Marine_quick", [1]))
  state = tech.play(tech.order(state, "Research_Stimpack_quick", [9]))
  assert state.refused[0] == 0 and state.queue[0, 1, 0] == LOCAL["Marine"]
  assert state.queue[0, 9, 0] == len(TYPES.names) + RULES.upgrades.names.index("Stimpack")
  state = tech.play(state, tech.steps("Stimpack"))
  assert state.upgrades[0, RULES.upgrades.names.index("Stimpack")]
  assert state.queue[0, 1, 0] == 0 and (state.kind[0, S:] == LOCAL["Marine"]).sum() == 1


def test_an_add_on_needs_room_and_is_one_of_the_structures_type():
  structures = {1: ("Factory", 8.0, 0.0), 3: BARRACKS[3]}
  state = tech.start(tech.TERRAN, structures)
  begun = tech.play(tech.order(state, "Build_TechLab_quick", [1]))
  assert LOCAL["FactoryTechLab"] in begun.kind[0] and LOCAL["BarracksTechLab"] not in begun.kind[0]
  tech.put(state, 0, 4, "SupplyDepot", state.x[0, 1] + 3.0, state.y[0, 1])
  blocked = tech.play(tech.order(state, "Build_TechLab_quick", [1]))
  assert blocked.refused[0] == action_results.CANT_BUILD_LOCATION_INVALID
  assert blocked.minerals[0] == 1000 and blocked.queue[0].max() == 0
  poor = tech.start(tech.TERRAN, structures)
  poor.vespene[0] = 24
  poor = tech.play(tech.order(poor, "Build_TechLab_quick", [1]))
  assert poor.refused[0] == action_results.NOT_ENOUGH_VESPENE


def test_a_cancelled_add_on_frees_its_structure_and_pays_three_quarters():
  state = tech.start(tech.TERRAN, {1: BARRACKS[1], 3: BARRACKS[3]})
  state = tech.play(tech.order(state, "Build_TechLab_quick", [1]))
  (slot,) = np.flatnonzero(state.kind[0, :S] == LOCAL["BarracksTechLab"])
  state = tech.play(tech.order(state, "Cancel_quick", [slot]))
  assert state.kind[0, slot] == 0 and state.queue[0, 1, 0] == 0
  assert (state.minerals[0], state.vespene[0]) == (950 + 37, 975 + 18)
  assert tech.can(state, "Build_TechLab_quick")


def test_an_add_on_without_its_structure_waits_for_another_of_its_kind():
  state = with_add_on("BarracksTechLab")
  assert linked(state).kind[0, 1] == LOCAL["BarracksTechLab"]
  state.kind[0, 1] = LOCAL["Factory"]
  assert linked(state).kind[0, 1] == 0
  state.kind[0, 1], state.x[0, 1] = LOCAL["Barracks"], state.x[0, 1] + 1.5
  assert linked(state).kind[0, 1] == 0


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 12), st.integers(0, 4),
                          st.integers(0, 2)), max_size=S))
def test_add_ons_are_found_by_type_and_place(built):
  """Against pairs written out: half units apart, where several structures may match."""
  state = states.first(RULES, races=(tech.TERRAN, tech.TERRAN))
  state.kind[:, :S] = 0
  for slot, (name, x, y, left) in enumerate(built):
    tech.put(state, 0, slot, name, 0.5 * x, 0.5 * y)
    state.unfinished[0, slot] = 8 * left
  found = jax.tree.map(np.asarray, linked(state))
  for host in range(S):
    pairs = [slot for slot in range(S) if TYPES.add_on[state.kind[0, slot]]
             and PRODUCTS.producer[state.kind[0, slot]] == state.kind[0, host]
             and np.hypot(state.x[0, host] + 2.5 - state.x[0, slot],
                          state.y[0, host] + 0.5 - state.y[0, slot]) < constants.SAME_PLACE]
    assert found.kind[0, host] == max((state.kind[0, slot] for slot in pairs), default=0)
    assert found.slot[0, host] == max(pairs, default=-1)
  assert not found.kind[1].any()


def test_other_tiers_have_no_add_ons():
  rules = tables.make_rules(*tables.GAME_CONFIGS["default"])
  products = np.arange(len(rules.products.add_on))
  assert not add_ons.is_add_on(rules, products).any()
  assert np.flatnonzero(add_ons.is_add_on(RULES, np.arange(len(PRODUCTS.add_on)))).tolist() == (
    np.flatnonzero(TYPES.add_on).tolist())
  state = states.first(rules, races=(tech.TERRAN, tech.TERRAN))
  assert not add_ons.add_ons_of(rules, state).kind.any()
  assert (add_ons.add_ons_of(rules, state).slot == -1).all()
