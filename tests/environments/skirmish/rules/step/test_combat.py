"""Weapons, upgrades and splash of the default tier against numbers computed by hand."""

import jax
import numpy as np
import pytest

from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import LOCAL, TYPES, UPGRADE, give
from tests.environments.skirmish.places import BUNKER, PROTOSS, TERRAN, UNIT, ZERG
from tests.environments.skirmish.scenes import close, put, run, same, scene

pytestmark = pytest.mark.slow  # the default tier takes a minute to compile

def test_weapon_armour_and_shield_levels_change_damage(default_game):
  """A Marine's volley of 6 against a Zealot's armour of 1, with upgrades of both."""
  weapons = [f"TerranInfantryWeaponsLevel{i}" for i in (1, 2, 3)]
  armour = [f"ProtossGroundArmorsLevel{i}" for i in (1, 2, 3)]
  shields = [f"ProtossShieldsLevel{i}" for i in (1, 2, 3)]
  state = scene(default_game, TERRAN, PROTOSS)
  put(state, UNIT, "Marine", (0.0, 0.0), verb=constants.HOLD)
  put(state, UNIT, "Zealot", (5.0, 0.0), player=1, verb=constants.HOLD)
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
  # Shield levels have no effect without a shield.
  plain = [5, 6, 8, 4, 4, 5, 5, 2]
  close(100 - bare.health[:len(cases), 1, UNIT], plain)


def test_upgrades_change_health_speed_and_range(default_game):
  state = scene(default_game, ZERG, TERRAN)
  put(state, UNIT, "Zergling", (-4.0, -4.0), verb=constants.MOVE)
  put(state, UNIT + 1, "Hydralisk", (0.0, 0.0), verb=constants.HOLD)
  put(state, UNIT, "Marine", (6.5, 0.0), player=1, verb=constants.HOLD)
  state.orders.x[:, 0, 0], state.orders.y[:, 0, 0] = 12.0, -4.0
  state.upgrades[0, 0, UPGRADE["MetabolicBoost"]] = True
  state.upgrades[0, 0, UPGRADE["GroovedSpines"]] = True
  state = run(default_game, state)
  close(state.x[:2, 0, UNIT], [-4 + (2.9531 + 1.745) / 2, -4 + 2.9531 / 2])
  # Range 5 and both radii reach 6; with one more, 7. The volley takes 12.
  close(state.health[:2, 1, UNIT], [33, 45])
  # Combat Shield adds hit points to living Marines at once.
  state = scene(default_game)
  put(state, 1, "Barracks", (-8.0, -16.0))
  put(state, UNIT, "Marine", (0.0, 0.0))
  state.health[:, 0, UNIT] = 30.0
  shield = len(TYPES.names) + UPGRADE["CombatShield"]
  state.queue[:, 0, 1, 0], state.timers[:, 0, 1, 0] = shield, 8
  state = run(default_game, state)
  same(state.upgrades[:, 0, UPGRADE["CombatShield"]], True)
  close(state.health[:, 0, UNIT], 40)


def test_bunkers_shoot_once_they_are_finished(default_game):
  state = scene(default_game)
  put(state, BUNKER, "Bunker", (0.0, 0.0))
  put(state, UNIT, "Marauder", (7.5, 0.0), player=1, verb=constants.HOLD)
  state.unfinished[1, 0, BUNKER] = 500
  state = run(default_game, state)
  crew = TYPES.ground.attacks[LOCAL["Bunker"]]  # Marines, 6 minus armour of 1 each
  assert crew >= 2
  close(state.health[:2, 1, UNIT], [125 - crew * 5, 125])


def test_weapons_hit_air_or_ground_targets(default_game):
  """A Stalker hits both, a Phoenix flyers only, an Immortal no flyers."""
  state = scene(default_game, PROTOSS)
  cases = [("Stalker", "Banshee", 140 - 13), ("Stalker", "Marine", 45 - 13),
           ("Phoenix", "Marine", 45), ("Phoenix", "Banshee", 140 - 2 * 10),
           ("Immortal", "Banshee", 140), ("Stalker", "Marauder", 125 - 13 - 5 + 1)]
  for g, (mine, theirs, _) in enumerate(cases):
    put(state, UNIT, mine, (0.0, 0.0), games=g, verb=constants.HOLD)
    put(state, UNIT, theirs, (5.0, 0.0), player=1, games=g, verb=constants.HOLD)
  state = run(default_game, state)
  close(state.health[:len(cases), 1, UNIT], [left for _, _, left in cases])


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


@pytest.mark.parametrize("rest", range(4))
def test_volleys_follow_each_other_in_whole_periods(default_game, rest):
  """From the first volley of a rested weapon, each comes in the first tick that may have it."""
  state = scene(default_game)
  put(state, UNIT, "Marine", (0.0, 0.0), verb=constants.HOLD)
  state = run(default_game, state, rest)  # without an enemy
  put(state, UNIT, "CommandCenter", (6.0, 0.0), player=1)
  state.health[:, 1, UNIT] = 1e6
  period = TYPES.ground.cooldown[LOCAL["Marine"]]
  ticks = np.arange(2, 42, 2)  # two a step
  volleys = np.array([np.sum(np.arange(40) * period <= 4 * (done - 1)) for done in ticks])
  lost = []
  run(default_game, state, len(ticks), lambda s: lost.append(1e6 - s.health[:, 1, UNIT]))
  same(np.array(lost), (volleys * 5.0)[:, None])  # 6, less armour of 1


def test_flames_hit_everything_along_their_line(default_game):
  state = scene(default_game)
  put(state, UNIT, "Hellion", (0.0, 0.0), verb=constants.HOLD)
  for i, place in enumerate(((4.0, 0.0), (5.5, 0.5), (4.0, 1.5))):
    put(state, UNIT + i, "Marine", place, player=1)
  state.cooldown[:, 1] = 100.0
  state = run(default_game, state)
  # 8, and 6 more against light targets; the third is 1.5 aside, more than 0.55 + 0.375.
  close(state.health[:, 1, UNIT:UNIT + 3], [31, 31, 45])
