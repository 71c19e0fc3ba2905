"""Upgrades, combat, sight and results of the default tier against numbers computed by hand."""

import jax
import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import (
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
from tests.environments.skirmish.scenes import (
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

# Upgrades.

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


def test_levels_are_researched_in_order_and_once(default_game):
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


# Sight, movement, results.

def test_high_ground_is_invisible_from_below(default_game):
  state = scene(default_game, ground=1)
  inside, below = (-9.5, -18.0), (-6.5, -18.0)  # on either side of the plateau's edge
  for g, (mine, where, theirs, there) in enumerate([
      ("Marine", below, "Marine", inside), ("Marine", inside, "Marine", below),
      ("Medivac", below, "Marine", inside), ("Marine", below, "Medivac", inside),
      ("Marine", inside, "Marine", inside), ("Marine", below, "SupplyDepot", inside)]):
    put(state, UNIT, mine, where, games=g)
    put(state, 1 if theirs == "SupplyDepot" else UNIT, theirs, there, player=1, games=g)
    # The town hall on the plateau would see it.
    state.x[g, 0, 0], state.y[g, 0, 0] = 20.0, -20.0
  state.memory.seen[:] = False
  state.cooldown[:] = 100.0
  state = run(default_game, state)
  same(state.memory.seen[:6, 0, UNIT], [False, True, True, True, True, False])
  same(state.memory.seen[5, 0, 1], False)
  same(state.memory.kind[5, 0, 1], 0)


def test_units_find_their_way_between_bases_on_every_map(default_game):
  """From home to the other seven bases, never into a cliff; flyers in a straight line."""
  state = jax.tree.map(np.array, host(start(default_game)))
  state.kind[:, :, S:] = 0
  state.health[:, :, S:] = 0
  bases = np.concatenate([np.array(TIER.homes), -np.array(TIER.homes)])
  for i, base in enumerate(bases[1:]):
    for j, name in enumerate(("Zealot", "Banshee")):
      slot = UNIT + 7 * j + i
      put(state, slot, name, np.add(HOME, (3.5, 3.5)), verb=constants.MOVE)
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
    done = state.orders.verb[:, 0, :14] == constants.IDLE
    arrived = np.where(done & (arrived == 999), step + 1, arrived)
  straight = np.hypot(*(bases[1:] - np.add(HOME, (3.5, 3.5))).T)
  pace = {"Zealot": 1.125, "Banshee": 1.375}  # a step
  assert (arrived[:, 7:] <= np.ceil(straight / pace["Banshee"]) + 3).all()
  assert (arrived[ground == 0, :7] <= np.ceil(straight / pace["Zealot"]) + 5).all()
  assert (arrived[:, :7] <= 115).all()


def test_a_stalemate_is_a_draw(default_game):
  state = scene(default_game)
  state.loop[:] = 1976
  # In game 1 an SCV is in production; in game 2 a patch is mined.
  state.queue[1, 0, 0, 0], state.timers[1, 0, 0, 0] = LOCAL["SCV"], 16
  put(state, UNIT, "SCV", HOME, games=2, verb=constants.GATHER, target=0)
  state.cargo[2, 0, 0] = 5
  state.last_event[3] = 8
  state = run(default_game, state, 2)
  same(state.winner[:4], -1)
  state = run(default_game, state)
  same(state.loop[:4], 2000)
  same(state.winner[:4], [2, -1, -1, -1])
  same(run(default_game, state).winner[:4], [2, -1, -1, 2])


def test_a_player_without_structures_loses(default_game):
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


def test_zerg_regenerate(default_game):
  state = scene(default_game, ZERG, TERRAN)
  put(state, UNIT, "Roach", (0.0, 0.0))
  put(state, UNIT, "Marine", (-20.0, 20.0), player=1)
  state.health[:, :, UNIT] = 20.0
  state = run(default_game, state, 10)
  close(state.health[:, :, UNIT], [20 + 10 * 8 * 0.2734 / 16, 20])
