"""Structures of the default tier: building, cancelling, morphing; numbers computed by hand."""

import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import LOCAL, TIER, TYPES, S, give, host
from tests.environments.skirmish.scenes import (
  GEYSER,
  GEYSER_PLACE,
  HOME,
  PROTOSS,
  TERRAN,
  UNIT,
  ZERG,
  close,
  put,
  run,
  same,
  scene,
)

pytestmark = pytest.mark.slow  # the default tier takes a minute to compile


def test_a_drone_becomes_its_structure_a_probe_leaves_and_an_scv_stays(default_game):
  for race, worker, name, cost, loops in (
      (ZERG, "Drone", "SpawningPool", 200, 347), (PROTOSS, "Probe", "Pylon", 100, 134),
      (TERRAN, "SCV", "SupplyDepot", 100, 160)):
    state = scene(default_game, race)
    state.minerals[:] = 210
    site = (-12.0, -10.5)
    put(state, UNIT, worker, site)
    put(state, UNIT + 1, worker, (5.0, 5.0))
    state = run(default_game, give(
      state, f"Build_{name}_pt", slots=[UNIT, UNIT + 1], x=site[0], y=site[1]))
    same(state.kind[:, 0, 1], LOCAL[name])
    same(state.minerals[:, 0], 210 - cost)
    same(state.unfinished[:, 0, 1], loops)
    close(state.health[:, 0, 1], 0.1 * TYPES.health[LOCAL[name]])
    close(state.shield[:, 0, 1], 0.1 * TYPES.shield[LOCAL[name]])
    same((state.kind[:, 0, S:] > 0).sum(-1), 1 if race == ZERG else 2)
    same(state.orders.verb[:, 0, 0], {
      ZERG: constants.IDLE, PROTOSS: constants.GATHER, TERRAN: constants.CONSTRUCT}[race])
    same(state.orders.verb[:, 0, 1], constants.IDLE)  # a site takes one builder
    same(state.score.killed_units, 0)
    steps = -(-loops // 8)
    state = run(default_game, state, steps - 1)
    same(state.unfinished[:, 0, 1] > 0, True)
    state = run(default_game, state)
    same(state.unfinished[:, 0, 1], 0)
    close(state.health[:, 0, 1], TYPES.health[LOCAL[name]])
    close(state.shield[:, 0, 1], TYPES.shield[LOCAL[name]])
    same(state.orders.verb[:, 0, 0], constants.IDLE if race == ZERG else constants.GATHER)


def test_zerg_builds_on_creep_and_gas_structures_on_geysers(default_game):
  state = scene(default_game, ZERG)
  state.minerals[:] = 1000
  put(state, UNIT, "Drone", HOME)
  far = give(state, "Build_SpawningPool_pt", slots=[UNIT], x=-5.9, y=-16.0)  # 10.1 from the hall
  same(run(default_game, far).orders.verb[:, 0, 0], constants.IDLE)
  near = give(state, "Build_SpawningPool_pt", slots=[UNIT], x=-6.1, y=-16.0)
  same(run(default_game, near).orders.verb[:, 0, 0], constants.BUILD)
  hall = give(state, "Build_Hatchery_pt", slots=[UNIT], x=0.0, y=0.0)
  same(run(default_game, hall).orders.verb[:, 0, 0], constants.BUILD)
  gas = give(state, "Build_Extractor_unit", slots=[UNIT], target=GEYSER, kind=constants.RESOURCE)
  found = run(default_game, gas)
  same(found.orders.verb[:, 0, 0], constants.BUILD)
  same(found.orders.x[:, 0, 0], GEYSER_PLACE[0])
  patch = give(state, "Build_Extractor_unit", slots=[UNIT], target=1, kind=constants.RESOURCE)
  found = run(default_game, patch)  # 4.9 from the geyser: too far
  same(found.orders.verb[:, 0, 0], constants.IDLE)


@pytest.mark.parametrize("race", [TERRAN, PROTOSS, ZERG])
def test_gas_structures_need_a_geyser_that_is_free_as_far_as_known(default_game, race):
  """None left as known; an enemy's seen, and hidden; depleted unseen; blocked; just clear."""
  name, takes, worker, pylon = {
    TERRAN: ("Refinery", "pt", "SCV", "SupplyDepot"),
    PROTOSS: ("Assimilator", "unit", "Probe", "Pylon"),
    ZERG: ("Extractor", "unit", "Drone", "SporeCrawler")}[race]
  state = scene(default_game, race)
  state.minerals[:] = 100
  put(state, UNIT, worker, HOME)
  places = np.flatnonzero(TIER.geysers * 2)
  last, half = places[-1], TIER.resources // 2
  state.memory.patches[:, 0, places[:-1]] = 0
  x, y = -np.array(TIER.patches[last - half])
  state.memory.patches[0, 0, last] = 0
  put(state, 1, "Refinery", (x, y), player=1, games=[1, 2])
  state.memory.seen[2, 0, 1] = False
  state.patches[3, 1, last - half] = 0
  wide = TYPES.radius[LOCAL[name]] + TYPES.radius[LOCAL[pylon]]
  put(state, 1, pylon, (x, y - wide + 0.1), games=4)
  put(state, 1, pylon, (x, y - wide - 0.1), games=5)
  function = f"Build_{name}_{takes}"
  can = host(default_game.observe(state)[0].available_actions)[
    :6, 0, vocabulary.FUNCTIONS.index(function)]
  same(can, [False, False, True, True, False, True])
  aim = {"pt": {"x": x, "y": y}, "unit": {"target": last, "kind": constants.RESOURCE}}[takes]
  found = run(default_game, give(state, function, slots=[UNIT], **aim))
  same(found.orders.verb[:6, 0, 0] == constants.BUILD, can)


def test_build_orders_fail_at_once_only_for_known_obstacles(default_game):
  """A free site; a Barracks there in sight, hidden, remembered; and hidden at arrival."""
  state = scene(default_game)
  state.minerals[:] = 100
  site = (2.0, 2.0)
  put(state, UNIT, "SCV", (-12.0, 0.0))
  put(state, UNIT, "SCV", site, games=4)
  for g in (1, 2, 4):
    put(state, 1, "Barracks", (3.0, 3.0), player=1, games=g)
  state.memory.seen[[2, 4], 0, 1] = False
  state.memory.kind[3, 0, 1] = LOCAL["Barracks"]
  state.memory.x[3, 0, 1] = state.memory.y[3, 0, 1] = 3.0
  found = run(default_game, give(
    state, "Build_SupplyDepot_pt", slots=[UNIT], x=site[0], y=site[1]))
  # A builder that meets a hidden obstacle mines again; nothing is paid.
  same(found.orders.verb[:5, 0, 0], [
    constants.BUILD, constants.IDLE, constants.BUILD, constants.IDLE, constants.GATHER])
  same(found.kind[:5, 0, 1], 0)
  same(found.minerals[:5, 0], 100)
  found = run(default_game, found, 60)
  same(found.kind[:5, 0, 1], [LOCAL["SupplyDepot"], 0, 0, 0, 0])
  same(found.orders.verb[2, 0, 0], constants.GATHER)


def test_an_empty_patch_is_known_once_seen(default_game):
  state = scene(default_game)
  put(state, UNIT, "SCV", (0.0, 0.0))
  half = TIER.resources // 2
  state.patches[:2, 1, 0] = 0  # the enemy's first patch, out of sight
  state.memory.patches[1, 0, half] = 0
  found = run(default_game, give(
    state, "Harvest_Gather_unit", slots=[UNIT], target=half, kind=constants.RESOURCE))
  same(found.orders.verb[:3, 0, 0], [constants.GATHER, constants.IDLE, constants.GATHER])


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


def test_the_build_order_excludes_workers_and_supply(default_game):
  for race, worker, name, gas, aim in (
      (TERRAN, "SCV", "SupplyDepot", "Refinery_pt",
       {"x": GEYSER_PLACE[0], "y": GEYSER_PLACE[1]}),
      (PROTOSS, "Probe", "Pylon", "Assimilator_unit",
       {"target": GEYSER, "kind": constants.RESOURCE})):
    state = scene(default_game, race)
    state.minerals[:] = 1000
    state.queue[:, 0, 0, 0], state.timers[:, 0, 0, 0] = LOCAL[worker], 8
    put(state, UNIT, worker, (-12.0, -10.5))
    state = run(default_game, give(state, f"Build_{name}_pt", slots=[UNIT], x=-12.0, y=-10.5))
    put(state, UNIT + 1, worker, np.add(GEYSER_PLACE, (0.0, 2.0)))
    state = run(default_game, give(state, f"Build_{gas}", slots=[UNIT + 1], **aim))
    gas = gas.split("_")[0]
    same(state.kind[:, 0, 1:3], [LOCAL[name], LOCAL[gas]])
    same(state.executed.build_order[:, 0], [vocabulary.UNIT_TYPES.index(gas), *[0] * 19])
    for each in (worker, name, gas):
      same(state.executed.units[:, 0, vocabulary.UNIT_TYPES.index(each)], True)


def test_a_command_center_morphs_into_an_orbital_command(default_game):
  state = scene(default_game)
  state.minerals[:] = 400
  put(state, 1, "Barracks", (-8.0, -16.0))
  state.unfinished[1, 0, 1] = 4000  # required, but unfinished
  state = run(default_game, give(state, "Morph_OrbitalCommand_quick", slots=[0], repeat=3))
  same(state.minerals[:2, 0], [250, 400])
  state = run(default_game, state, 22)  # 560 loops at tempo 3 are 187, 24 steps
  same(state.kind[:2, 0, 0], LOCAL["CommandCenter"])
  state = run(default_game, state)
  same(state.kind[:2, 0, 0], [LOCAL["OrbitalCommand"], LOCAL["CommandCenter"]])
  # 50, and what the rest of the step adds.
  close(state.energy[0, 0, 0], 50 + 8 * 0.5625 / 16)
  # Its value is both prices. It trains as before, but cannot morph again.
  assert TYPES.value[LOCAL["OrbitalCommand"]] == 550
  same(state.score.structures[:2, 0], [150, 0])
  orbital = vocabulary.UNIT_TYPES.index("OrbitalCommand")
  same(state.executed.units[:2, 0, orbital], [True, False])
  # The Barracks was there before; the morphed town hall enters the build order at its place.
  same(state.executed.build_order[0, 0], [orbital, *[0] * 19])
  same(state.executed.build_order_xy[0, 0, 0], np.floor((np.array(HOME) + 24) * 256 / 48))
  same(state.executed.build_order[1, 0], 0)
  can = host(default_game.observe(state)[0].available_actions)[0, 0]
  names = {name: can[vocabulary.FUNCTIONS.index(name)] for name in (
    "Train_SCV_quick", "Effect_Scan_pt", "Morph_OrbitalCommand_quick")}
  assert list(names.values()) == [True, True, False]
