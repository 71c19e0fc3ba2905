"""Regeneration, shields, healing and repair, computed by hand."""

import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import GAMES, give, host
from tests.environments.skirmish.places import PROTOSS, TERRAN, UNIT, ZERG
from tests.environments.skirmish.scenes import close, put, run, same, scene


@pytest.mark.slow
def test_zerg_regenerate(default_game):
  state = scene(default_game, ZERG, TERRAN)
  put(state, UNIT, "Roach", (0.0, 0.0))
  put(state, UNIT, "Marine", (-20.0, 20.0), player=1)
  state.health[:, :, UNIT] = 20.0
  state = run(default_game, state, 10)
  close(state.health[:, :, UNIT], [20 + 10 * 8 * 0.2734 / 16, 20])


@pytest.mark.slow
def test_shields_absorb_damage_and_recover_after_ten_seconds_without_damage(default_game):
  state = scene(default_game, TERRAN, PROTOSS)
  put(state, UNIT, "Marine", (0.0, 0.0), verb=constants.HOLD)
  put(state, UNIT, "Zealot", (5.0, 0.0), player=1, verb=constants.HOLD)
  state.shield[1, 1, UNIT] = 2.0
  state = run(default_game, state)
  # 6 minus armour of 1.
  close(state.shield[:2, 1, UNIT], [45, 0])
  close(state.health[:2, 1, UNIT], [100, 97])
  same(state.hurt[:2, 1, UNIT], True)
  state.kind[:, 0, UNIT] = 0
  state.health[:, 0, UNIT] = 0
  found = []
  run(default_game, state, 25, lambda s: found.append(s.shield[:2, 1, UNIT]))
  # 160 loops are 20 steps; then 2 a second, 1 a step.
  recovered = np.maximum(np.arange(1, 26) - 19, 0)
  close(np.array(found)[:, 0], np.minimum(45 + recovered, 50))
  close(np.array(found)[:, 1], recovered)


@pytest.mark.slow
def test_a_medivac_heals_4_5_a_step_for_1_5_energy(default_game):
  state = scene(default_game)
  put(state, UNIT, "Medivac", (0.0, 0.0))
  put(state, UNIT + 1, "Marine", (3.0, 0.0), verb=constants.HOLD)
  put(state, UNIT + 2, "Marine", (-4.1, 0.0), verb=constants.HOLD)
  put(state, UNIT + 3, "Hellion", (0.0, 3.0), verb=constants.HOLD)
  state.health[:, 0, UNIT + 1:UNIT + 4] = 20.0
  state.energy[:, 0, UNIT] = [50.0, 1.0, 1.3] + [50.0] * (GAMES - 3)
  state.health[3, 0, UNIT + 1] = 43.0
  gain = 8 * 0.5625 / 16
  state = run(default_game, state)
  close(state.health[:4, 0, UNIT + 1], [24.5, 20, 24.5, 45])
  same(state.health[:, 0, UNIT + 2:UNIT + 4], 20)  # out of reach; mechanical
  close(state.energy[:4, 0, UNIT], [50 + gain - 1.5, 1 + gain, 1.3 + gain - 1.5, 50 + gain - 1.5])
  assert (state.energy >= 0).all()


@pytest.mark.slow
def test_a_repair_costs_a_quarter_and_takes_the_production_time(default_game):
  state = scene(default_game)
  state.minerals[:] = 1000
  put(state, 1, "SupplyDepot", (-8.0, -16.0))
  put(state, UNIT, "SCV", (-6.5, -16.0))
  state.health[:, 0, 1] = 200.0
  state = run(default_game, give(
    state, "Effect_Repair_unit", slots=[UNIT], target=1, kind=constants.OWN))
  # 160 loops for 400 hit points: 20 a step.
  close(state.health[:, 0, 1], 220)
  state = run(default_game, state, 8)
  same(state.orders.verb[:, 0, 0], constants.REPAIR)
  state = run(default_game, state)
  close(state.health[:, 0, 1], 400)
  same(state.orders.verb[:, 0, 0], constants.GATHER)
  same(state.score.spent[:, 0], 12)  # half a repair: half of a quarter of 100, rounded down
  close(state.repair_debt[:, 0], 0.5)


@pytest.mark.slow
def test_no_unit_repairs_itself(default_game):
  """One damaged SCV; one that another can repair; two that repair each other."""
  state = scene(default_game)
  state.minerals[:] = 1000
  put(state, UNIT, "SCV", (0.0, 0.0))
  put(state, UNIT + 1, "SCV", (0.8, 0.0), games=[1, 2])
  state.health[:3, 0, UNIT] = 20.0
  state.health[2, 0, UNIT + 1] = 20.0
  repair = vocabulary.FUNCTIONS.index("Effect_Repair_unit")
  can = host(default_game.observe(state)[0].available_actions)[:3, 0, repair]
  same(can, [False, True, True])
  state = run(default_game, give(
    state, "Effect_Repair_unit", slots=[UNIT, UNIT + 1], target=UNIT, kind=constants.OWN))
  same(state.orders.verb[:3, 0, :2], [
    [constants.IDLE, constants.IDLE], [constants.IDLE, constants.REPAIR],
    [constants.IDLE, constants.REPAIR]])
  # 272 loops at tempo 3 are 91, for 45 hit points.
  close(state.health[:3, 0, UNIT], [20, 20 + 45 * 8 / 91, 20 + 45 * 8 / 91])
  found = run(default_game, give(
    state, "Effect_Repair_unit", slots=[UNIT], target=UNIT + 1, kind=constants.OWN))
  same(found.orders.verb[:3, 0, 0], [constants.IDLE, constants.IDLE, constants.REPAIR])


@pytest.mark.slow
def test_a_sieged_tank_takes_the_repair_time_of_a_tank(default_game):
  state = scene(default_game)
  state.minerals[:] = 1000
  for i, name in enumerate(("SiegeTank", "SiegeTankSieged")):
    put(state, UNIT + 2 * i, name, (4.0 * i, 0.0))
    put(state, UNIT + 2 * i + 1, "SCV", (4.0 * i + 1, 0.0), verb=constants.REPAIR,
        target=UNIT + 2 * i)
    state.health[:, 0, UNIT + 2 * i] = 50.0
  state = run(default_game, state)
  close(state.health[:, 0, UNIT:UNIT + 4:2], 50 + 175 * 8 / 240)  # 720 loops at tempo 3


@pytest.mark.slow
def test_dead_structures_are_not_repaired(default_game):
  state = scene(default_game)
  state.minerals[:] = 1000
  put(state, 1, "SupplyDepot", (0.0, 0.0))
  put(state, UNIT, "SCV", (1.5, 0.0), verb=constants.REPAIR, target=1)
  put(state, UNIT, "Marine", (-5.0, 0.0), player=1, verb=constants.HOLD)
  state.health[:, 0, 1] = 3.0  # a volley takes 5; a step of repair would give 20
  state = run(default_game, state)
  same(state.kind[:, 0, 1], 0)
  same(state.score.killed_structures[:, 1], 100)
