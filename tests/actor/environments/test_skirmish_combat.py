"""The whole game's abilities, fights, sight and ends, held to numbers by hand."""

import jax
import numpy as np
import pytest

from starleague.actor.environments.skirmish import tables
from starleague.agent import vocabulary
from tests.actor.environments.default_games import (
  GAMES,
  LOCAL,
  RULES,
  TIER,
  TYPES,
  UPGRADE,
  S,
  give,
  host,
  start,
)
from tests.actor.environments.scenes import (
  BUNKER,
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


def test_nobody_repairs_itself(default_game):
  """One hurt alone; one that another can repair; two hurt, that repair one another."""
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
    state, "Effect_Repair_unit", slots=[UNIT, UNIT + 1], target=UNIT, kind=tables.OWN))
  same(state.orders.verb[:3, 0, :2], [
    [tables.IDLE, tables.IDLE], [tables.IDLE, tables.REPAIR], [tables.IDLE, tables.REPAIR]])
  # 272 loops at tempo 3 are 91, for 45 hit points.
  close(state.health[:3, 0, UNIT], [20, 20 + 45 * 8 / 91, 20 + 45 * 8 / 91])
  found = run(default_game, give(
    state, "Effect_Repair_unit", slots=[UNIT], target=UNIT + 1, kind=tables.OWN))
  same(found.orders.verb[:3, 0, 0], [tables.IDLE, tables.IDLE, tables.REPAIR])


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
  crew = TYPES.ground.attacks[LOCAL["Bunker"]]  # Marines, of 6 less a point of armour each
  assert crew >= 2
  close(state.health[:2, 1, UNIT], [125 - crew * 5, 125])


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
