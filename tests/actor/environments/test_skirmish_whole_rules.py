"""The whole game's rules (gas, supply, technology, abilities, terrain), held to numbers by hand."""

import jax
import numpy as np
import pytest

from starleague.actor.environments.skirmish import tables
from starleague.agent import vocabulary
from tests.actor.environments.default_games import (
  FUNCTION,
  GAMES,
  LOCAL,
  RACES,
  RULES,
  TIER,
  TYPES,
  UPGRADE,
  S,
  give,
  host,
  start,
)

TERRAN, PROTOSS, ZERG = RACES
HOME = (-16.0, -16.0)
UNIT = S  # the first slot of a unit
BUNKER = TIER.plain  # the first slot of a structure that shoots
GEYSER = 4  # the first base's resources: four patches and a geyser
GEYSER_PLACE = TIER.patches[GEYSER]


def scene(game, mine=TERRAN, theirs=TERRAN, ground=0, workers=False):
  """The same start in all games, with the town halls alone unless workers are asked for."""
  state = jax.tree.map(np.array, host(start(game, match_ups=[(mine, theirs, ground)])))
  if not workers:
    state.kind[:, :, S:] = 0
    for name in ("health", "shield", "energy", "x", "y"):
      getattr(state, name)[:, :, S:] = 0
    state.orders.verb[:, :, :] = tables.IDLE
  state.minerals[:] = 0
  return state


def put(state, slot, name, place, player=0, games=slice(None), verb=tables.IDLE, target=-1):
  """Puts a finished structure or a unit into a slot; all of it is in the other's sight."""
  kind = LOCAL[name]
  state.kind[games, player, slot] = kind
  state.x[games, player, slot], state.y[games, player, slot] = place
  state.health[games, player, slot] = TYPES.health[kind]
  state.shield[games, player, slot] = TYPES.shield[kind]
  state.energy[games, player, slot] = 0
  state.memory.seen[games, 1 - player, slot] = True
  if slot >= S:
    state.orders.verb[games, player, slot - S] = verb
    state.orders.target[games, player, slot - S] = target


def run(game, state, steps=1, visit=None):
  for _ in range(steps):
    state = host(game.advance(state))
    if visit is not None:
      visit(state)
  return jax.tree.map(np.array, state)


def same(values, expected):
  """All games are alike: [G, ...] against what one is to be."""
  np.testing.assert_array_equal(values, np.broadcast_to(expected, np.shape(values)))


def close(values, expected):
  np.testing.assert_allclose(values, np.broadcast_to(expected, np.shape(values)), atol=1e-4)


# Mining.

@pytest.mark.parametrize("race", [TERRAN, PROTOSS, ZERG])
def test_gas_comes_in_fours_and_three_workers_fill_a_geyser(default_game, race):
  state = scene(default_game, race)
  names = {TERRAN: ("Refinery", "SCV"), PROTOSS: ("Assimilator", "Probe"),
           ZERG: ("Extractor", "Drone")}[race]
  put(state, 1, names[0], GEYSER_PLACE)
  hands = [1, 2, 3, 4, 6]
  for g, count in enumerate(hands):
    for i in range(count):
      put(state, UNIT + i, names[1], np.add(GEYSER_PLACE, (0.0, 1.2)), games=g,
          verb=tables.GATHER, target=GEYSER)
  state = run(default_game, state, 60)
  # A trip takes 40 loops, 5 steps; more than three share the three's income: a trip of four
  # workers takes 30 / 4 = 7.5 steps.
  trips = [12 * 1, 12 * 2, 12 * 3, 8 * 4, 6 * 6]
  same(state.vespene[:5, 0], 4 * np.array(trips))
  same(state.score.collected_vespene[:5, 0], 4 * np.array(trips))
  same(state.patches[:5, 0, GEYSER], 1500 - 4 * np.array(trips))
  same(state.minerals[:5, 0], 0)


def test_no_gas_without_a_finished_gas_structure_or_from_the_enemys(default_game):
  state = scene(default_game, TERRAN, PROTOSS)
  put(state, UNIT, "SCV", np.add(GEYSER_PLACE, (0.0, 1.2)), verb=tables.GATHER, target=GEYSER)
  for g, player in ((1, 0), (2, 1)):
    put(state, 1, ("Refinery", "Assimilator")[player], GEYSER_PLACE, player=player, games=g)
  state.unfinished[1, 0, 1] = 4000
  state = run(default_game, state, 1)
  # They mine the nearest patch of minerals instead.
  square = ((np.array(TIER.patches)[:GEYSER] - np.add(GEYSER_PLACE, (0.0, 1.2))) ** 2).sum(-1)
  same(state.orders.target[:3, 0, 0], square.argmin())
  same(run(default_game, state, 30).vespene[:3, 0], 0)


def test_cheats_get_half_as_much_again(default_game):
  state = scene(default_game)
  put(state, UNIT, "SCV", TIER.patches[0], verb=tables.GATHER, target=0)
  state.income[1] = 150
  state = run(default_game, state, 50)
  same(state.minerals[:2, 0], [10 * 5, 10 * 7])  # 7.5 a trip, rounded down
  same(state.patches[:2, 0, 0], 900 - 50)  # the patch gives as much


def test_the_last_minerals_of_a_patch_are_shared_fairly(default_game):
  """Two workers of the one and one of the other end a trip at a patch that holds 8."""
  state = scene(default_game)
  place = TIER.patches[0]
  for i in range(2):
    put(state, UNIT + i, "SCV", place, verb=tables.GATHER, target=0)
  half = TIER.resources // 2
  put(state, UNIT, "SCV", place, player=1, verb=tables.GATHER, target=half)
  put(state, 1, "CommandCenter", HOME, player=1)  # another's hall at the same place
  state.patches[:, 0, 0] = 8
  state.memory.patches[:, 0, 0] = state.memory.patches[:, 1, half] = 8
  state = run(default_game, state, 5)
  # 15 are asked for: 8 * 2 // 3 = 5 and 8 * 1 // 3 = 2.
  same(state.minerals, [5, 2])
  same(state.patches[:, 0, 0], 1)


# Supply, larvae, training.

def test_supply_depots_feed(default_game):
  state = scene(default_game)
  state.minerals[:] = 100
  for i in range(15):  # as many as a command center feeds
    put(state, UNIT + i, "SCV", (0.0, 0.0))
  for g in (1, 2):
    put(state, 1, "SupplyDepot", (-10.0, -10.0), games=g)
  state.unfinished[1, 0, 1] = 4000
  can = host(default_game.observe(state)[0].available_actions)[:, 0]
  train = vocabulary.FUNCTIONS.index("Train_SCV_quick")
  same(can[:3, train], [False, False, True])
  state = run(default_game, give(state, "Train_SCV_quick", slots=[0], repeat=3))
  same((state.queue[:3, 0, 0] > 0).sum(-1), [0, 0, 2])  # two can be paid
  same(state.minerals[:3, 0], [100, 100, 0])


def test_what_is_in_the_making_takes_food(default_game):
  """14 of 15, and one in the queue: there is no food for another."""
  state = scene(default_game)
  state.minerals[:] = 500
  for i in range(13):
    put(state, UNIT + i, "SCV", (0.0, 0.0))
  state = run(default_game, give(state, "Train_SCV_quick", slots=[0], repeat=3))
  same((state.queue[:, 0, 0] > 0).sum(-1), 2)
  same(state.minerals[:, 0], 400)


def test_food_never_exceeds_the_tiers_cap(default_game):
  state = scene(default_game)
  state.minerals[:] = 500
  for i in range(1, 8):
    put(state, i, "SupplyDepot", (4.0 * i - 16, 0.0))
  for i in range(39):
    put(state, UNIT + i, "SCV", (0.0, 0.0))
  state = run(default_game, give(state, "Train_SCV_quick", slots=[0], repeat=3))
  same((state.queue[:, 0, 0] > 0).sum(-1), 1)  # the fortieth


def test_larvae_come_with_time_up_to_three(default_game):
  state = scene(default_game, ZERG)
  state.larvae[:] = 0
  found = []
  run(default_game, state, 40, lambda s: found.append(s.larvae[:, 0, 0]))
  # 176 loops at tempo 3 are 59, which the eighth step completes.
  same(np.array(found).T, np.minimum((np.arange(40) + 1) // 8, 3))


def test_a_queen_brings_three_larvae(default_game):
  state = scene(default_game, ZERG)
  put(state, UNIT, "Queen", HOME)
  state.energy[:, 0, UNIT] = 25.0
  state.energy[1, 0, UNIT] = 24.9
  same(state.larvae[:, 0, 0], 3)
  state = give(state, "Effect_InjectLarva_unit", slots=[UNIT], target=0, kind=tables.OWN)
  found = []
  last = run(default_game, state, 25, lambda s: found.append(s.larvae[:2, 0, 0]))
  # 464 loops at tempo 3 are 154, which the twentieth step completes.
  same(np.array(found)[:, 0], [3] * 19 + [6] * 6)
  same(np.array(found)[:, 1], 3)
  # 0.5625 a second of 16 loops: 25 steps give 7.03.
  close(last.energy[:2, 0, UNIT], [25 * 8 * 0.5625 / 16, 24.9 + 25 * 8 * 0.5625 / 16])
  effect = np.flatnonzero(vocabulary.EFFECT_FUNCTIONS == vocabulary.FUNCTIONS.index(
    "Effect_InjectLarva_unit"))
  same(last.executed.effects[:2, 0, effect[0]], [True, False])


def test_zerglings_come_in_pairs_from_one_larva(default_game):
  state = scene(default_game, ZERG)
  put(state, 1, "SpawningPool", (-10.0, -14.0))
  state.minerals[:] = 75
  state = run(default_game, give(state, "Train_Zergling_quick", slots=[0], repeat=3))
  same(state.minerals[:, 0], 25)
  same(state.larvae[:, 0, 0], 2)
  player = host(default_game.observe(state)[0].player)[:, 0]
  same(player[:, 2], 1)  # food used: two halves
  state = run(default_game, state, 14)
  same(state.kind[:, 0, S:], 0)
  state = run(default_game, state)  # 384 loops at tempo 3 are 128, 16 steps
  same((state.kind[:, 0, S:] == LOCAL["Zergling"]).sum(-1), 2)
  same(state.score.units[:, 0], 50)


def test_a_hatchery_makes_several_at_once_and_others_one_after_the_other(default_game):
  state = scene(default_game, ZERG, PROTOSS)
  state.minerals[:] = 1000
  order = give(give(state, "Train_Drone_quick", slots=[0], repeat=3),
               "Train_Probe_quick", slots=[0], repeat=3, player=1)
  state = run(default_game, order, 15)  # 272 loops at tempo 3 are 91: 12 steps
  same((state.kind[:, :, S:] > 0).sum(-1), [3, 1])


# Building.

def test_a_drone_becomes_what_it_builds_a_probe_goes_and_an_scv_stays(default_game):
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
      ZERG: tables.IDLE, PROTOSS: tables.GATHER, TERRAN: tables.CONSTRUCT}[race])
    same(state.orders.verb[:, 0, 1], tables.IDLE)  # a site takes one
    same(state.score.killed_units, 0)
    steps = -(-loops // 8)
    state = run(default_game, state, steps - 1)
    same(state.unfinished[:, 0, 1] > 0, True)
    state = run(default_game, state)
    same(state.unfinished[:, 0, 1], 0)
    close(state.health[:, 0, 1], TYPES.health[LOCAL[name]])
    close(state.shield[:, 0, 1], TYPES.shield[LOCAL[name]])
    same(state.orders.verb[:, 0, 0], tables.IDLE if race == ZERG else tables.GATHER)


def test_zerg_builds_on_creep_and_gas_structures_on_geysers(default_game):
  state = scene(default_game, ZERG)
  state.minerals[:] = 1000
  put(state, UNIT, "Drone", HOME)
  far = give(state, "Build_SpawningPool_pt", slots=[UNIT], x=-5.9, y=-16.0)  # 10.1 from the hall
  same(run(default_game, far).orders.verb[:, 0, 0], tables.IDLE)
  near = give(state, "Build_SpawningPool_pt", slots=[UNIT], x=-6.1, y=-16.0)
  same(run(default_game, near).orders.verb[:, 0, 0], tables.BUILD)
  hall = give(state, "Build_Hatchery_pt", slots=[UNIT], x=0.0, y=0.0)
  same(run(default_game, hall).orders.verb[:, 0, 0], tables.BUILD)
  gas = give(state, "Build_Extractor_unit", slots=[UNIT], target=GEYSER, kind=tables.RESOURCE)
  found = run(default_game, gas)
  same(found.orders.verb[:, 0, 0], tables.BUILD)
  same(found.orders.x[:, 0, 0], GEYSER_PLACE[0])
  patch = give(state, "Build_Extractor_unit", slots=[UNIT], target=1, kind=tables.RESOURCE)
  found = run(default_game, patch)  # 4.9 from the geyser: too far
  same(found.orders.verb[:, 0, 0], tables.IDLE)


def test_cancelled_structures_give_back_three_quarters_and_queues_all(default_game):
  state = scene(default_game)
  put(state, 1, "Barracks", (-8.0, -16.0))
  put(state, 2, "Factory", (-8.0, -8.0))
  state.unfinished[:, 0, 2] = 100
  state.queue[:, 0, 1, :2] = [LOCAL["Marine"], LOCAL["Marauder"]]
  state.timers[:, 0, 1, :2] = 100
  found = run(default_game, give(state, "Cancel_quick", slots=[1, 2]))
  # 150 minerals and 100 vespene; the Barracks stands finished and stays.
  same(found.minerals[:, 0], 112)
  same(found.vespene[:, 0], 75)
  same(found.kind[:, 0, :3], [LOCAL["CommandCenter"], LOCAL["Barracks"], 0])
  same(found.score.spent[:, 0], -112)
  found = run(default_game, give(state, "Cancel_Last_quick", slots=[0, 1]))
  same(found.minerals[:, 0], 100)
  same(found.vespene[:, 0], 25)
  same(found.queue[:, 0, 1], [LOCAL["Marine"], 0, 0, 0, 0])
  same(found.timers[:, 0, 1], [92, 0, 0, 0, 0])


def test_an_orbital_command_comes_of_a_command_center(default_game):
  state = scene(default_game)
  state.minerals[:] = 400
  put(state, 1, "Barracks", (-8.0, -16.0))
  state.unfinished[1, 0, 1] = 4000  # without one there is none
  state = run(default_game, give(state, "Morph_OrbitalCommand_quick", slots=[0], repeat=3))
  same(state.minerals[:2, 0], [250, 400])
  state = run(default_game, state, 22)  # 560 loops at tempo 3 are 187, 24 steps
  same(state.kind[:2, 0, 0], LOCAL["CommandCenter"])
  state = run(default_game, state)
  same(state.kind[:2, 0, 0], [LOCAL["OrbitalCommand"], LOCAL["CommandCenter"]])
  # Fifty, and what the rest of the step adds.
  close(state.energy[0, 0, 0], 50 + 8 * 0.5625 / 16)
  # It is worth both prices, and trains as before, but does not turn again.
  assert TYPES.value[LOCAL["OrbitalCommand"]] == 550
  same(state.score.structures[:2, 0], [150, 0])
  orbital = vocabulary.UNIT_TYPES.index("OrbitalCommand")
  same(state.executed.units[:2, 0, orbital], [True, False])
  can = host(default_game.observe(state)[0].available_actions)[0, 0]
  names = {name: can[vocabulary.FUNCTIONS.index(name)] for name in (
    "Train_SCV_quick", "Effect_Scan_pt", "Morph_OrbitalCommand_quick")}
  assert list(names.values()) == [True, True, False]


# Abilities.

def test_a_dose_costs_ten_and_makes_half_as_fast_again(default_game):
  state = scene(default_game)
  put(state, UNIT, "Marine", (-22.0, 0.0), verb=tables.MOVE)
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


def test_doses_make_weapons_half_as_fast_again(default_game):
  state = scene(default_game)
  put(state, UNIT, "Marine", (0.0, 0.0), verb=tables.HOLD)
  put(state, 1, "SupplyDepot", (4.0, 0.0), player=1)
  state.stimmed[1, 0, 0] = 176
  state = run(default_game, state, 22)
  # 400 hit points, a point of armour; a volley every 13.76 loops of 176, or every 9.173. The
  # first falls at 0, what follows at ticks of four: the times are 0, 13.76 .. rounded up.
  due = [sum(4 * np.ceil(i * period / 4) < 176 for i in range(40))
         for period in (13.76, 13.76 / 1.5)]
  assert due == [13, 19]
  close(state.health[:2, 1, 1], 400 - 5 * np.array(due))


def test_sieged_tanks_hit_half_as_hard_beside_their_target(default_game):
  state = scene(default_game)
  put(state, UNIT, "SiegeTank", (0.0, 0.0))
  for i, place in enumerate(((10.0, 0.0), (10.0, 1.2), (10.0, -1.3), (10.9, 0.0))):
    put(state, UNIT + i, "Marine", place, player=1, verb=tables.HOLD)
  put(state, UNIT + 4, "VikingFighter", (10.0, 0.1), player=1)
  state = run(default_game, give(state, "Morph_SiegeMode_quick", slots=[UNIT]))
  same(state.kind[:, 0, UNIT], LOCAL["SiegeTankSieged"])
  close(state.health[:, 1, UNIT:UNIT + 4], 45)  # it changes for 43 loops
  state = run(default_game, state, 4)
  close(state.health[:, 1, UNIT:UNIT + 4], 45)
  state = run(default_game, state)
  # 40 to the nearest, half to those within 1.25 of it, none to the third or to flyers.
  close(state.health[:, 1, UNIT:UNIT + 5], [5, 25, 45, 25, 135])
  close(state.x[:, 0, UNIT], 0.0)
  state = run(default_game, give(state, "Morph_Unsiege_quick", slots=[UNIT]))
  same(state.kind[:, 0, UNIT], LOCAL["SiegeTank"])


def test_flames_hit_all_in_their_line(default_game):
  state = scene(default_game)
  put(state, UNIT, "Hellion", (0.0, 0.0), verb=tables.HOLD)
  for i, place in enumerate(((4.0, 0.0), (5.5, 0.5), (4.0, 1.5))):
    put(state, UNIT + i, "Marine", place, player=1)
  state.cooldown[:, 1] = 100.0
  state = run(default_game, state)
  # 8 and 6 more against the light; the third is 1.5 aside, farther than 0.55 + 0.375.
  close(state.health[:, 1, UNIT:UNIT + 3], [31, 31, 45])


def test_shields_take_hits_first_and_come_back_after_ten_calm_seconds(default_game):
  state = scene(default_game, TERRAN, PROTOSS)
  put(state, UNIT, "Marine", (0.0, 0.0), verb=tables.HOLD)
  put(state, UNIT, "Zealot", (5.0, 0.0), player=1, verb=tables.HOLD)
  state.shield[1, 1, UNIT] = 2.0
  state = run(default_game, state)
  # 6 less a point of armour.
  close(state.shield[:2, 1, UNIT], [45, 0])
  close(state.health[:2, 1, UNIT], [100, 97])
  same(state.hurt[:2, 1, UNIT], True)
  state.kind[:, 0, UNIT] = 0
  state.health[:, 0, UNIT] = 0
  found = []
  run(default_game, state, 25, lambda s: found.append(s.shield[:2, 1, UNIT]))
  # 160 loops are 20 steps; then 2 a second, one a step.
  came = np.maximum(np.arange(1, 26) - 19, 0)
  close(np.array(found)[:, 0], np.minimum(45 + came, 50))
  close(np.array(found)[:, 1], came)


def test_a_medivac_heals_four_and_a_half_a_step_for_one_and_a_half_energy(default_game):
  state = scene(default_game)
  put(state, UNIT, "Medivac", (0.0, 0.0))
  put(state, UNIT + 1, "Marine", (3.0, 0.0), verb=tables.HOLD)
  put(state, UNIT + 2, "Marine", (-4.1, 0.0), verb=tables.HOLD)
  put(state, UNIT + 3, "Hellion", (0.0, 3.0), verb=tables.HOLD)
  state.health[:, 0, UNIT + 1:UNIT + 4] = 20.0
  state.energy[:, 0, UNIT] = [50.0, 1.0, 1.3] + [50.0] * (GAMES - 3)
  state.health[3, 0, UNIT + 1] = 43.0
  gain = 8 * 0.5625 / 16
  state = run(default_game, state)
  close(state.health[:4, 0, UNIT + 1], [24.5, 20, 24.5, 45])
  same(state.health[:, 0, UNIT + 2:UNIT + 4], 20)  # out of reach; a machine
  close(state.energy[:4, 0, UNIT], [50 + gain - 1.5, 1 + gain, 1.3 + gain - 1.5, 50 + gain - 1.5])
  assert (state.energy >= 0).all()


def test_a_repair_costs_a_quarter_and_takes_as_long_as_making_one(default_game):
  state = scene(default_game)
  state.minerals[:] = 1000
  put(state, 1, "SupplyDepot", (-8.0, -16.0))
  put(state, UNIT, "SCV", (-6.5, -16.0))
  state.health[:, 0, 1] = 200.0
  state = run(default_game, give(
    state, "Effect_Repair_unit", slots=[UNIT], target=1, kind=tables.OWN))
  # 160 loops for 400 hit points: 20 a step.
  close(state.health[:, 0, 1], 220)
  state = run(default_game, state, 8)
  same(state.orders.verb[:, 0, 0], tables.REPAIR)
  state = run(default_game, state)
  close(state.health[:, 0, 1], 400)
  same(state.orders.verb[:, 0, 0], tables.GATHER)
  same(state.score.spent[:, 0], 12)  # half of a quarter of 100, rounded down
  close(state.repair_debt[:, 0], 0.5)


def test_a_sieged_tank_is_repaired_as_slowly_as_a_tank(default_game):
  state = scene(default_game)
  state.minerals[:] = 1000
  for i, name in enumerate(("SiegeTank", "SiegeTankSieged")):
    put(state, UNIT + 2 * i, name, (4.0 * i, 0.0))
    put(state, UNIT + 2 * i + 1, "SCV", (4.0 * i + 1, 0.0), verb=tables.REPAIR,
        target=UNIT + 2 * i)
    state.health[:, 0, UNIT + 2 * i] = 50.0
  state = run(default_game, state)
  close(state.health[:, 0, UNIT:UNIT + 4:2], 50 + 175 * 8 / 240)  # 720 loops at tempo 3


def test_what_was_killed_is_not_repaired(default_game):
  state = scene(default_game)
  state.minerals[:] = 1000
  put(state, 1, "SupplyDepot", (0.0, 0.0))
  put(state, UNIT, "SCV", (1.5, 0.0), verb=tables.REPAIR, target=1)
  put(state, UNIT, "Marine", (-5.0, 0.0), player=1, verb=tables.HOLD)
  state.health[:, 0, 1] = 3.0  # a volley takes five; a step's repair gives twenty
  state = run(default_game, state)
  same(state.kind[:, 0, 1], 0)
  same(state.score.killed_structures[:, 1], 100)


def test_a_scan_shows_what_is_there_for_nine_seconds(default_game):
  state = scene(default_game)
  put(state, 0, "OrbitalCommand", HOME)
  state.energy[:, 0, 0] = 50.0
  state.energy[1, 0, 0] = 49.0
  state.memory.seen[:] = False
  seen = []
  state = give(state, "Effect_Scan_pt", slots=[0], x=16.0, y=16.0)
  last = run(default_game, state, 26, lambda s: seen.append(s.memory.seen[:2, 0, 0]))
  # 196 loops: the last step that begins with some left is the 24th.
  same(np.array(seen)[:, 0], np.arange(26) < 24)
  assert not np.array(seen)[:, 1].any()
  same(last.memory.kind[:2, 0, 0], [LOCAL["CommandCenter"], 0])  # and is remembered


def test_chrono_boost_works_half_as_fast_again(default_game):
  state = scene(default_game, PROTOSS)
  state.minerals[:] = 50
  state.energy[:, 0, 0] = 50.0
  state.energy[1, 0, 0] = 0.0
  state.queue[:, 0, 0, 0], state.timers[:, 0, 0, 0] = LOCAL["Probe"], 91
  state = give(state, "Effect_ChronoBoostEnergyCost_unit", slots=[0], target=0, kind=tables.OWN)
  born = []
  run(default_game, state, 13, lambda s: born.append((s.kind[:2, 0, S:] > 0).sum(-1)))
  # 12 loops a step: 91 take 8 steps, not 12.
  same(np.array(born)[:, 0], np.arange(13) >= 7)
  same(np.array(born)[:, 1], np.arange(13) >= 11)


# Upgrades.

def test_weapons_armour_and_shields_add_what_their_levels_say(default_game):
  """A Marine's volley of 6 against a Zealot's armour of 1, with levels on either side."""
  weapons = [f"TerranInfantryWeaponsLevel{i}" for i in (1, 2, 3)]
  armour = [f"ProtossGroundArmorsLevel{i}" for i in (1, 2, 3)]
  shields = [f"ProtossShieldsLevel{i}" for i in (1, 2, 3)]
  state = scene(default_game, TERRAN, PROTOSS)
  put(state, UNIT, "Marine", (0.0, 0.0), verb=tables.HOLD)
  put(state, UNIT, "Zealot", (5.0, 0.0), player=1, verb=tables.HOLD)
  cases = [([], [], 5), (weapons[:1], [], 6), (weapons, [], 8), ([], armour[:1], 4),
           (weapons[:2], armour, 4), ([], shields[:1], 4), ([], shields, 2),
           ([], armour + shields, 0.5)]
  for g, (mine, theirs, _) in enumerate(cases):
    state.upgrades[g, 0, [UPGRADE[name] for name in mine]] = True
    state.upgrades[g, 1, [UPGRADE[name] for name in theirs]] = True
  bare = jax.tree.map(np.array, state)
  bare.shield[:, 1] = 0.0
  state, bare = run(default_game, state), run(default_game, bare)
  close(50 - state.shield[:len(cases), 1, UNIT], [taken for _, _, taken in cases])
  # Without a shield its levels do nothing.
  plain = [5, 6, 8, 4, 4, 5, 5, 2]
  close(100 - bare.health[:len(cases), 1, UNIT], plain)


def test_upgrades_of_health_speed_and_range(default_game):
  state = scene(default_game, ZERG, TERRAN)
  put(state, UNIT, "Zergling", (-4.0, -4.0), verb=tables.MOVE)
  put(state, UNIT + 1, "Hydralisk", (0.0, 0.0), verb=tables.HOLD)
  put(state, UNIT, "Marine", (6.5, 0.0), player=1, verb=tables.HOLD)
  state.orders.x[:, 0, 0], state.orders.y[:, 0, 0] = 12.0, -4.0
  state.upgrades[0, 0, UPGRADE["MetabolicBoost"]] = True
  state.upgrades[0, 0, UPGRADE["GroovedSpines"]] = True
  state = run(default_game, state)
  close(state.x[:2, 0, UNIT], [-4 + (2.9531 + 1.745) / 2, -4 + 2.9531 / 2])
  # A reach of 5 and both radii is 6; with a point more, 7. The volley takes 12.
  close(state.health[:2, 1, UNIT], [33, 45])
  # A shield's hit points come at once to those that live.
  state = scene(default_game)
  put(state, 1, "Barracks", (-8.0, -16.0))
  put(state, UNIT, "Marine", (0.0, 0.0))
  state.health[:, 0, UNIT] = 30.0
  shield = len(TYPES.names) + UPGRADE["CombatShield"]
  state.queue[:, 0, 1, 0], state.timers[:, 0, 1, 0] = shield, 8
  state = run(default_game, state)
  same(state.upgrades[:, 0, UPGRADE["CombatShield"]], True)
  close(state.health[:, 0, UNIT], 40)


def test_levels_are_researched_one_after_the_other_and_once(default_game):
  state = scene(default_game)
  put(state, 1, "EngineeringBay", (-8.0, -16.0))
  put(state, 2, "EngineeringBay", (-8.0, -8.0))
  state.minerals[:], state.vespene[:] = 1000, 1000
  name = "Research_TerranInfantryWeapons_quick"
  state = run(default_game, give(state, name, slots=[1, 2], repeat=3))
  same(state.queue[:, 0, 1:3, 0], [len(TYPES.names) + UPGRADE["TerranInfantryWeaponsLevel1"], 0])
  same(state.minerals[:, 0], 900)
  same(state.vespene[:, 0], 900)
  can = host(default_game.observe(state)[0].available_actions)[:, 0]
  same(can[:, vocabulary.FUNCTIONS.index(name)], False)
  state.timers[:, 0, 1, 0] = 8
  state = run(default_game, state)
  state = run(default_game, give(state, name, slots=[1, 2]))
  same(state.minerals[:, 0], 900)  # the second level needs an Armory
  put(state, 3, "Armory", (-16.0, -6.0))
  state = run(default_game, give(state, name, slots=[1, 2]))
  same(state.minerals[:, 0], 900 - 175)


# Seeing, going, ending.

def test_high_ground_is_not_seen_from_below(default_game):
  state = scene(default_game, ground=1)
  inside, below = (-9.5, -18.0), (-6.5, -18.0)  # on either side of the plateau's edge
  for g, (mine, where, theirs, there) in enumerate([
      ("Marine", below, "Marine", inside), ("Marine", inside, "Marine", below),
      ("Medivac", below, "Marine", inside), ("Marine", below, "Medivac", inside),
      ("Marine", inside, "Marine", inside), ("Marine", below, "SupplyDepot", inside)]):
    put(state, UNIT, mine, where, games=g)
    put(state, 1 if theirs == "SupplyDepot" else UNIT, theirs, there, player=1, games=g)
    state.kind[g, 0, 0] = 0  # or the hall up there would see
    state.kind[g, 0, 0] = LOCAL["CommandCenter"]
    state.x[g, 0, 0], state.y[g, 0, 0] = 20.0, -20.0
  state.memory.seen[:] = False
  state.cooldown[:] = 100.0
  state = run(default_game, state)
  same(state.memory.seen[:6, 0, UNIT], [False, True, True, True, True, False])
  same(state.memory.seen[5, 0, 1], False)
  same(state.memory.kind[5, 0, 1], 0)


@pytest.mark.slow
def test_units_find_their_way_between_bases_on_every_map(default_game):
  """From home to each of the eight bases, never into a cliff; flyers fly straight."""
  state = jax.tree.map(np.array, host(start(default_game)))
  state.kind[:, :, S:] = 0
  state.health[:, :, S:] = 0
  bases = np.concatenate([np.array(TIER.homes), -np.array(TIER.homes)])
  for i, base in enumerate(bases[1:]):
    for j, name in enumerate(("Zealot", "Banshee")):
      slot = UNIT + 7 * j + i
      put(state, slot, name, np.add(HOME, (3.5, 3.5)), verb=tables.MOVE)
      state.orders.x[:, 0, slot - S], state.orders.y[:, 0, slot - S] = base
  state.health[:, 0, UNIT:UNIT + 14] = 1e6
  half, ground = RULES.half, state.match_up.map_index % 3
  passable = RULES.terrain.passable
  arrived = np.full((GAMES, 14), 999)
  for step in range(130):
    state = host(default_game.advance(state))
    x, y = state.x[:, 0, UNIT:UNIT + 7], state.y[:, 0, UNIT:UNIT + 7]
    cells = np.floor(y + half).astype(int), np.floor(x + half).astype(int)
    assert passable[ground[:, None], cells[0], cells[1]].all()
    done = state.orders.verb[:, 0, :14] == tables.IDLE
    arrived = np.where(done & (arrived == 999), step + 1, arrived)
  straight = np.hypot(*(bases[1:] - np.add(HOME, (3.5, 3.5))).T)
  pace = {"Zealot": 1.125, "Banshee": 1.375}  # a step
  assert (arrived[:, 7:] <= np.ceil(straight / pace["Banshee"]) + 3).all()
  assert (arrived[ground == 0, :7] <= np.ceil(straight / pace["Zealot"]) + 5).all()
  assert (arrived[:, :7] <= 115).all()


def test_a_game_in_which_nothing_happens_is_a_draw(default_game):
  state = scene(default_game)
  state.loop[:] = 1976
  # In one, somebody is in the making; in another, a patch is mined.
  state.queue[1, 0, 0, 0], state.timers[1, 0, 0, 0] = LOCAL["SCV"], 16
  put(state, UNIT, "SCV", TIER.patches[0], games=2, verb=tables.GATHER, target=0)
  state.trip[2, 0, 0] = 20
  state.last_event[3] = 8
  state = run(default_game, state, 2)
  same(state.winner[:4], -1)
  state = run(default_game, state)
  same(state.loop[:4], 2000)
  same(state.winner[:4], [2, -1, -1, -1])
  same(run(default_game, state).winner[:4], [2, -1, -1, 2])


def test_whoever_has_no_structure_has_lost(default_game):
  state = scene(default_game)
  put(state, UNIT, "Marine", (0.0, 0.0), player=0)
  for g, players in enumerate(((0,), (1,), (0, 1))):
    for player in players:
      state.kind[g, player, 0] = 0
      state.health[g, player, 0] = 0.0
  # One under construction is enough.
  state.unfinished[3, 0, 0] = 1000
  same(run(default_game, state).winner[:4], [1, 0, 2, -1])


def test_bunkers_shoot_once_they_are_finished(default_game):
  state = scene(default_game)
  put(state, BUNKER, "Bunker", (0.0, 0.0))
  put(state, UNIT, "Marauder", (7.5, 0.0), player=1, verb=tables.HOLD)
  state.unfinished[1, 0, BUNKER] = 500
  state = run(default_game, state)
  close(state.health[:2, 1, UNIT], [125 - 2 * (6 - 1), 125])


def test_weapons_against_the_air_and_the_ground(default_game):
  """Who can hit whom: a Marauder no flyer, a Phoenix nothing else, a Stalker both."""
  state = scene(default_game, PROTOSS)
  cases = [("Stalker", "Banshee", 140 - 13), ("Stalker", "Marine", 45 - 13),
           ("Phoenix", "Marine", 45), ("Phoenix", "Banshee", 140 - 2 * 10),
           ("Immortal", "Banshee", 140), ("Stalker", "Marauder", 125 - 13 - 5 + 1)]
  for g, (mine, theirs, _) in enumerate(cases):
    put(state, UNIT, mine, (0.0, 0.0), games=g, verb=tables.HOLD)
    put(state, UNIT, theirs, (5.0, 0.0), player=1, games=g, verb=tables.HOLD)
  state = run(default_game, state)
  close(state.health[:len(cases), 1, UNIT], [left for _, _, left in cases])


def test_zerg_heal_by_themselves(default_game):
  state = scene(default_game, ZERG, TERRAN)
  put(state, UNIT, "Roach", (0.0, 0.0))
  put(state, UNIT, "Marine", (-20.0, 20.0), player=1)
  state.health[:, :, UNIT] = 20.0
  state = run(default_game, state, 10)
  close(state.health[:, :, UNIT], [20 + 10 * 8 * 0.2734 / 16, 20])


def test_only_what_produces_is_ever_idle(default_game):
  state = scene(default_game)
  put(state, 1, "SupplyDepot", (-8.0, -16.0))
  put(state, 2, "Barracks", (-8.0, -8.0))
  put(state, BUNKER, "Bunker", (0.0, 0.0))
  state = run(default_game, state, 5)
  same(state.score.idle_production, [2 * 5 * 8, 5 * 8])


def test_every_function_has_an_index():
  assert len(FUNCTION) == len(RULES.functions.names) > 80
