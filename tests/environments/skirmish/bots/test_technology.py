"""Scripted players of the large tier: the add-ons and the Lair that plans need; warp gates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish.bots import plans, scripts, sites, spending, views
from starleague.environments.skirmish.rules.state import add_ons
from starleague.environments.skirmish.rules.tables import constants, tables
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import LOCAL, RULES, TYPES, S

DEFAULT = tables.make_rules(*tables.GAME_CONFIGS["default"])
EVERY = scripts.parameters(RULES)
RICH = 3000


def labs_of(strategy):
  """The add-ons in a Terran plan of the large tier, in order."""
  index = scripts.names_of("large").index(strategy)
  building = EVERY.building[index, constants.RACES.index("Terran")]
  return [TYPES.names[i] for i in building if TYPES.add_on[i]]


@pytest.mark.parametrize("strategy, expected", [
  ("rush", []), ("timing", 2 * ["BarracksTechLab"]), ("siege", 2 * ["FactoryTechLab"]),
  ("air", 2 * ["StarportTechLab"]), ("macro", 2 * ["BarracksTechLab"] + ["FactoryTechLab"]),
  ("defence", ["BarracksTechLab"])])
def test_plans_get_the_tech_labs_of_their_army_and_upgrades(strategy, expected):
  assert labs_of(strategy) == expected


def test_plans_of_other_tiers_and_races_stay_as_they_are():
  for by_race in plans.STRATEGIES.values():
    assert all(scripts._with_tech_labs(DEFAULT, plan) is plan for plan in by_race.values())
    assert scripts._with_tech_labs(RULES, by_race["Zerg"]).buildings == by_race["Zerg"].buildings


@functools.cache
def _spend():
  def choose(script, state, key):
    return spending.spend(RULES, script, key, views.make_view(RULES, state, jnp.int32(0)))

  return jax.jit(choose)


def bought(state, strategy, race):
  """The function that player 0 chooses, and the slots that execute it; sites are drawn."""
  index = scripts.names_of("large").index(strategy)
  script = scripts.Parameters(*(
    values[index, constants.RACES.index(race)] if EVERY._fields.index(name) <= EVERY._fields.index(
      "greedy") else values[index] for name, values in zip(EVERY._fields, EVERY, strict=True)))
  choices = (_spend()(jax.tree.map(jnp.asarray, script), state, jax.random.key(seed))
             for seed in range(9))
  choice = next(choice for choice in choices if choice.wanted)
  return RULES.functions.names[int(choice.function)], np.flatnonzero(choice.slots).tolist()


def at_work(race, structures, units):
  """A game in which player 0 has workers, food and riches, so that it buys what its plan lacks."""
  state = tech.start(race, structures)
  state.minerals[:], state.vespene[:] = RICH, RICH
  kinds = [name for name, number in units.items() for _ in range(number)]
  for i, name in enumerate(kinds):
    state.kind[0, S + i], state.health[0, S + i] = LOCAL[name], 40
  state.orders.verb[0, :len(kinds)] = constants.IDLE
  return state


TIMING = {1: ("Barracks", 9.0, 0.0), 2: ("Barracks", 9.0, 5.0), 3: ("Barracks", 9.0, 10.0),
          4: ("Refinery", -5.0, 3.0), 5: ("SupplyDepot", 0.0, 7.0), 6: ("SupplyDepot", 3.0, 7.0),
          7: ("SupplyDepot", 6.0, 7.0)}


def test_terrans_build_a_tech_lab_and_train_marauders_beside_it():
  state = at_work(tech.TERRAN, TIMING, {"SCV": 19, "Marine": 4})
  state.minerals[:] = 150  # too little for the plan's last buildings, which a rich player draws
  assert bought(state, "timing", "Terran") == ("Build_TechLab_quick", [1])
  for slot in (1, 2):
    x, y = add_ons.places(state.x[0, slot], state.y[0, slot])
    tech.put(state, 0, 10 + slot, "BarracksTechLab", x, y)
  state = jax.tree.map(np.array, add_ons.link(RULES, state))
  tech.put(state, 0, 8, "EngineeringBay", -10.0, -10.0)
  tech.put(state, 0, 9, "CommandCenter", -20.0, -20.0)
  state.upgrades[:] = True
  state.queue[0, 1, 0] = LOCAL["Marine"]
  assert bought(state, "timing", "Terran") == ("Train_Marauder_quick", [2])


def test_terrans_order_nothing_from_a_structure_whose_add_on_is_under_construction():
  state = at_work(tech.TERRAN, TIMING, {"SCV": 19, "Marine": 4})
  state.minerals[:], state.vespene[:] = 100, 0
  assert bought(state, "rush", "Terran") == ("Train_Marine_quick", [1])
  state.queue[0, 1, 0] = LOCAL["BarracksTechLab"]
  assert bought(state, "rush", "Terran") == ("Train_Marine_quick", [2])
  state.queue[0, 2:4, 0] = LOCAL["Marine"]
  assert bought(state, "rush", "Terran") == ("Train_Marine_quick", [2])


def test_zerg_order_units_from_a_hatchery_that_has_a_larva():
  structures = {1: ("SpawningPool", 6.0, 0.0), 2: ("Hatchery", 20.0, 0.0)}
  state = at_work(tech.ZERG, structures, {"Drone": 19, "Overlord": 6})
  state.minerals[:], state.vespene[:] = 50, 0
  state.larvae[0, 2] = 1
  for larvae, slot in ((2, 0), (0, 2)):
    state.larvae[0, 0] = larvae
    assert bought(state, "rush", "Zerg") == ("Train_Zergling_quick", [slot])


def test_zerg_morph_the_lair_that_a_den_requires():
  structures = {1: ("SpawningPool", 6.0, 0.0), 2: ("Extractor", -5.0, 3.0),
                3: ("Extractor", 3.0, -5.0), 4: ("SpineCrawler", 0.0, 6.0),
                5: ("Hatchery", 20.0, 0.0)}
  state = at_work(tech.ZERG, structures, {"Drone": 19, "Overlord": 6})
  state.minerals[:] = 200
  assert bought(state, "siege", "Zerg") == ("Morph_Lair_quick", [0])
  state.queue[0, 0, 0] = LOCAL["Queen"]
  assert bought(state, "siege", "Zerg") == ("Morph_Lair_quick", [5])
  state.kind[0, 5] = LOCAL["Lair"]
  assert bought(state, "siege", "Zerg")[0] == "Build_HydraliskDen_pt"


def test_protoss_train_in_gateways_beside_warp_gates():
  structures = {1: ("WarpGate", 9.0, 0.0), 2: ("Gateway", 9.0, 5.0), 3: ("Gateway", 9.0, 10.0),
                4: ("CyberneticsCore", 0.0, 7.0), 5: ("Pylon", 4.0, 9.0), 6: ("Pylon", -9.0, 9.0)}
  state = at_work(tech.PROTOSS, structures, {"Probe": 19, "Zealot": 1})
  state.minerals[:], state.vespene[:] = 250, 0
  state.queue[0, 2, 0] = LOCAL["Zealot"]
  assert bought(state, "rush", "Protoss") == ("Train_Zealot_quick", [3])


def test_sites_of_structures_with_add_ons_leave_room_for_them():
  state = at_work(tech.TERRAN, TIMING, {"SCV": 8})
  view = views.make_view(RULES, states.on_device(state), jnp.int32(0))
  barracks, depot = jnp.int32(LOCAL["Barracks"]), jnp.int32(LOCAL["SupplyDepot"])
  reach = TYPES.radius[LOCAL["BarracksTechLab"]]
  found = 0
  for seed in range(12):
    fits, x, y = sites.site(RULES, jax.random.key(seed), view, barracks)
    if fits:
      found += 1
      right, below = add_ons.places(x, y)
      apart = np.hypot(right - state.x[0, :8], below - state.y[0, :8])
      assert (apart > reach + TYPES.radius[state.kind[0, :8]]).all()
    fits, x, y = sites.site(RULES, jax.random.key(seed), view, depot)
    if fits:
      found += 1
      right, below = add_ons.places(state.x[0, 1:4], state.y[0, 1:4])
      assert (np.hypot(right - x, below - y) > reach + TYPES.radius[LOCAL["SupplyDepot"]]).all()
  assert found >= 12
