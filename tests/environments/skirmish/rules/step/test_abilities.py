"""Abilities of the default tier against numbers computed by hand."""

import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import GAMES, LOCAL, UPGRADE, S, give, host
from tests.environments.skirmish.scenes import (
  HOME,
  PROTOSS,
  TERRAN,
  UNIT,
  close,
  put,
  run,
  same,
  scene,
)

pytestmark = pytest.mark.slow  # the default tier takes a minute to compile


def test_stim_costs_health_and_multiplies_speed_by_one_and_a_half(default_game):
  state = scene(default_game)
  put(state, UNIT, "Marine", (-22.0, 0.0), verb=constants.MOVE)
  put(state, UNIT + 1, "Marauder", (-4.0, 4.0))
  put(state, UNIT + 2, "Marine", (-4.0, 8.0))
  state.health[:, 0, UNIT + 2] = 10.0  # not enough
  state.orders.x[:, 0, 0] = 20.0
  state.upgrades[0, 0, UPGRADE["Stimpack"]] = True
  state = run(default_game, give(
    state, "Effect_Stim_quick", slots=[UNIT, UNIT + 1, UNIT + 2]))
  close(state.health[:2, 0, UNIT:UNIT + 3], [[35, 105, 10], [45, 125, 10]])
  # 2.25 a second, half a second.
  close(state.x[:2, 0, UNIT], [-22 + 1.5 * 1.125, -22 + 1.125])
  same(state.stimmed[:2, 0, :3], [[168, 168, 0], [0, 0, 0]])
  # 11 seconds are 176 loops, 22 steps.
  state = run(default_game, state, 21)
  close(state.x[0, 0, UNIT], -22 + 22 * 1.5 * 1.125)
  same(state.stimmed[0, 0, 0], 0)
  at = state.x[0, 0, UNIT].item()
  close(run(default_game, state).x[0, 0, UNIT], at + 1.125)


def test_stim_multiplies_attack_speed_by_one_and_a_half(default_game):
  state = scene(default_game)
  put(state, UNIT, "Marine", (0.0, 0.0), verb=constants.HOLD)
  put(state, 1, "SupplyDepot", (4.0, 0.0), player=1)
  state.stimmed[1, 0, 0] = 176
  state = run(default_game, state, 22)
  # 400 hit points, armour of 1; a volley every 13.76 loops, or every 9.173, for 176 loops. The
  # first comes at 0, the others at ticks of four loops: at 0, 13.76, ... rounded up.
  due = [sum(4 * np.ceil(i * period / 4) < 176 for i in range(40))
         for period in (13.76, 13.76 / 1.5)]
  assert due == [13, 19]
  close(state.health[:2, 1, 1], 400 - 5 * np.array(due))


def test_sieged_tanks_deal_half_damage_beside_their_target(default_game):
  state = scene(default_game)
  put(state, UNIT, "SiegeTank", (0.0, 0.0))
  for i, place in enumerate(((10.0, 0.0), (10.0, 1.2), (10.0, -1.3), (10.9, 0.0))):
    put(state, UNIT + i, "Marine", place, player=1, verb=constants.HOLD)
  put(state, UNIT + 4, "VikingFighter", (10.0, 0.1), player=1)
  state = run(default_game, give(state, "Morph_SiegeMode_quick", slots=[UNIT]))
  same(state.kind[:, 0, UNIT], LOCAL["SiegeTankSieged"])
  close(state.health[:, 1, UNIT:UNIT + 4], 45)  # the change of mode takes 43 loops
  state = run(default_game, state, 4)
  close(state.health[:, 1, UNIT:UNIT + 4], 45)
  state = run(default_game, state)
  # 40 to the nearest, half to those within 1.25 of it, none to the third or to flyers.
  close(state.health[:, 1, UNIT:UNIT + 5], [5, 25, 45, 25, 135])
  close(state.x[:, 0, UNIT], 0.0)
  state = run(default_game, give(state, "Morph_Unsiege_quick", slots=[UNIT]))
  same(state.kind[:, 0, UNIT], LOCAL["SiegeTank"])


def test_flames_hit_everything_along_their_line(default_game):
  state = scene(default_game)
  put(state, UNIT, "Hellion", (0.0, 0.0), verb=constants.HOLD)
  for i, place in enumerate(((4.0, 0.0), (5.5, 0.5), (4.0, 1.5))):
    put(state, UNIT + i, "Marine", place, player=1)
  state.cooldown[:, 1] = 100.0
  state = run(default_game, state)
  # 8, and 6 more against light targets; the third is 1.5 aside, more than 0.55 + 0.375.
  close(state.health[:, 1, UNIT:UNIT + 3], [31, 31, 45])


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


def test_a_scan_reveals_enemies_for_196_loops(default_game):
  state = scene(default_game)
  put(state, 0, "OrbitalCommand", HOME)
  state.energy[:, 0, 0] = 50.0
  state.energy[1, 0, 0] = 49.0
  state.memory.seen[:] = False
  seen = []
  state = give(state, "Effect_Scan_pt", slots=[0], x=16.0, y=16.0)
  last = run(default_game, state, 26, lambda s: seen.append(s.memory.seen[:2, 0, 0]))
  # The last step that begins with scan time left is the 24th.
  same(np.array(seen)[:, 0], np.arange(26) < 24)
  assert not np.array(seen)[:, 1].any()
  same(last.memory.kind[:2, 0, 0], [LOCAL["CommandCenter"], 0])  # remembered afterwards


def test_chrono_boost_multiplies_production_speed_by_one_and_a_half(default_game):
  state = scene(default_game, PROTOSS)
  state.minerals[:] = 50
  state.energy[:, 0, 0] = 50.0
  state.energy[1, 0, 0] = 0.0
  state.queue[:, 0, 0, 0], state.timers[:, 0, 0, 0] = LOCAL["Probe"], 91
  state = give(state, "Effect_ChronoBoostEnergyCost_unit", slots=[0], target=0, kind=constants.OWN)
  born = []
  run(default_game, state, 13, lambda s: born.append((s.kind[:2, 0, S:] > 0).sum(-1)))
  # 12 loops a step: 91 loops take 8 steps instead of 12.
  same(np.array(born)[:, 0], np.arange(13) >= 7)
  same(np.array(born)[:, 1], np.arange(13) >= 11)
