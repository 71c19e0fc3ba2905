"""Abilities and cancellations of the default tier against numbers computed by hand."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import LOCAL, TIER, UPGRADE, S, give
from tests.environments.skirmish.places import HOME, PROTOSS, UNIT, ZERG
from tests.environments.skirmish.scenes import close, put, run, same, scene

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


def test_cancelled_structures_refund_three_quarters_and_queues_everything(default_game):
  state = scene(default_game)
  put(state, 1, "Barracks", (-8.0, -16.0))
  put(state, 2, "Factory", (-8.0, -8.0))
  state.unfinished[:, 0, 2] = 100
  state.queue[:, 0, 1, :2] = [LOCAL["Marine"], LOCAL["Marauder"]]
  state.timers[:, 0, 1, :2] = 100
  found = run(default_game, give(state, "Cancel_quick", slots=[1, 2]))
  # 150 minerals and 100 vespene; the Barracks is finished and stays.
  same(found.minerals[:, 0], 112)
  same(found.vespene[:, 0], 75)
  same(found.kind[:, 0, :3], [LOCAL["CommandCenter"], LOCAL["Barracks"], 0])
  same(found.score.spent[:, 0], -112)
  found = run(default_game, give(state, "Cancel_Last_quick", slots=[0, 1]))
  same(found.minerals[:, 0], 100)
  same(found.vespene[:, 0], 25)
  same(found.queue[:, 0, 1], [LOCAL["Marine"], 0, 0, 0, 0])
  same(found.timers[:, 0, 1], [92, 0, 0, 0, 0])


def test_a_cancelled_zerg_structure_returns_its_drone(default_game):
  """One; two with a slot for one; two without food."""
  state = scene(default_game, ZERG)
  site, other = (-12.0, -10.0), (-8.0, -14.0)
  for i, place in enumerate((site, other), 1):
    put(state, i, "SpawningPool", place, games=slice(0 if i == 1 else 1, None))
    state.unfinished[0 if i == 1 else 1:, 0, i] = 300
  for i in range(TIER.units - 1):  # units that take no food
    put(state, UNIT + 1 + i, "Overlord", (0.0, 0.0), games=1)
  put(state, UNIT, "Overlord", (0.0, 0.0), games=1)
  state.kind[1, 0, UNIT + 7] = 0
  for i in range(TIER.food_cap // 2):
    put(state, UNIT + i, "Queen", (0.0, 0.0), games=2)
  drone = LOCAL["Drone"]
  state = run(default_game, give(state, "Cancel_quick", slots=[1, 2]))
  same(state.kind[:3, 0, 1:3], 0)
  same(state.minerals[:3, 0], [150, 300, 300])
  same((state.kind[:3, 0, S:] == drone).sum(-1), [1, 1, 0])
  same(state.kind[0, 0, UNIT], drone)
  same(state.kind[1, 0, UNIT + 7], drone)
  for g, slot in ((0, UNIT), (1, UNIT + 7)):
    close(state.health[g, 0, slot], 40)
    same(state.orders.verb[g, 0, slot - S], constants.GATHER)
    assert np.hypot(state.x[g, 0, slot] - site[0], state.y[g, 0, slot] - site[1]) < 2.0
  # The score counted the Drone when it was made.
  same(state.score.units[:3, 0], 0)
  same(state.score.spent[:3, 0], [-150, -300, -300])
