"""Scripted players: whom they fight, when they attack, and games of the mini tier."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish.bots import plans, players, scripts, views
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import LOCAL, RACES, RULES, TYPES, S
from tests.environments.skirmish.mini_games import GAMES, play, start
from tests.environments.skirmish.states import first, on_device

EVERY = scripts.parameters(RULES)
TERRAN, PROTOSS, ZERG = range(3)
HOVER = 3.0  # x of the enemies from the town hall, map units


@jax.jit
def _view(state):
  return views.make_view(RULES, state, jnp.int32(0))


def army_at_home(race, units):
  """A game in which player 0 has units, of names and x from its town hall, and no workers."""
  state = first(RULES, (RACES[race], RACES[race]))
  state.kind[:, S:] = 0
  for i, (name, x) in enumerate(units):
    _put(state, 0, i, name, x)
  state.orders.verb[:] = constants.IDLE
  return state


def _put(state, player, unit, name, x):
  """Puts a unit in sight of the opponent at x from the town hall of player 0."""
  state.kind[player, S + unit] = LOCAL[name]
  state.health[player, S + unit] = TYPES.health[LOCAL[name]]
  state.x[player, S + unit] = state.x[0, 0] + x
  state.y[player, S + unit] = state.y[0, 0]
  state.memory.seen[1 - player, S + unit] = True


def defenders(race, units, enemies):
  """The units that defend against enemies, and the x of the attack from the town hall."""
  state = army_at_home(race, units)
  for i, (name, x) in enumerate(enemies):
    _put(state, 1, i, name, x)
  view = _view(on_device(state))
  choice = players.defend(RULES, view, view.kind[S:] > 0)
  sent = np.flatnonzero(choice.slots[S:]).tolist() if choice.wanted else []
  return sent, round(float(choice.x - view.x[0]), 3)


@pytest.mark.parametrize(("race", "units", "enemies"), [
  (PROTOSS, ["Zealot", "Immortal"], ["VoidRay", "Phoenix"]),
  (ZERG, ["Roach", "Zergling"], ["Mutalisk"]),
  (TERRAN, ["VikingFighter", "Medivac"], ["Marine"])])
def test_no_unit_defends_against_enemies_that_it_cannot_hit(race, units, enemies):
  far = [(name, -6.0) for name in units]
  assert defenders(race, far, [(name, HOVER) for name in enemies])[0] == []


def test_units_that_can_hit_an_enemy_defend_and_medivacs_follow():
  units = [(name, -6.0) for name in ("Marauder", "Marine", "Medivac", "VikingFighter")]
  assert defenders(TERRAN, units, [("Banshee", HOVER)]) == ([1, 2, 3], HOVER)
  assert defenders(TERRAN, units, [("Hellion", HOVER)]) == ([0, 1, 2], HOVER)
  assert defenders(TERRAN, units, [("Hellion", 1.0), ("Banshee", 4.0)]) == ([0, 1, 2, 3], 2.5)


def test_enemies_that_nobody_can_hit_do_not_move_the_place_of_the_defence():
  units = [("Zealot", -6.0)]
  assert defenders(PROTOSS, units, [("VoidRay", -5.0), ("Zealot", HOVER)]) == ([0], HOVER)


def test_defenders_go_to_the_base_that_most_enemies_attack():
  state = army_at_home(TERRAN, [("Marine", -3.0)])
  state.kind[0, 1] = LOCAL["CommandCenter"]
  state.x[0, 1], state.y[0, 1] = state.x[0, 0] + 30.0, state.y[0, 0]
  for i, x in enumerate((4.0, 27.0, 28.0, 32.0)):
    _put(state, 1, i, "Hellion", x)
  view = _view(on_device(state))
  for x, _ in (players.find_threat(RULES, view)[1:],
               players.defend(RULES, view, view.kind[S:] > 0)[3:5]):
    np.testing.assert_allclose(x - state.x[0, 0], 29.0)  # the mean of the second base's three


def test_units_at_the_place_of_a_threat_are_free_for_other_commands():
  at, away = ("Stalker", HOVER + 2.9), ("Stalker", HOVER + 3.1)
  assert defenders(PROTOSS, [at, away], [("VoidRay", HOVER)]) == ([1], HOVER)
  assert defenders(PROTOSS, [at], [("VoidRay", HOVER)])[0] == []
  # 13 Stalkers of radius 0.625 fill half of a disc of radius 3.19.
  crowd = [("Stalker", HOVER + 4.6)] * 12 + [("Stalker", HOVER + 4.8)]
  assert defenders(PROTOSS, crowd, [("VoidRay", HOVER)]) == ([12], HOVER)


def attacks(race, units, in_training=(), attack=18, supplied=40):
  """Whether an army at home attacks; all units that are fighters are at home."""
  names = [name for name, number in units.items() for _ in range(number)]
  state = army_at_home(race, [(name, 0.0) for name in names])
  state.queue[0, 0, :len(in_training)] = [LOCAL[name] for name in in_training]
  depot = {TERRAN: "SupplyDepot", PROTOSS: "Pylon"}.get(race)
  if depot is not None:
    state.kind[0, 1:1 + supplied // 8] = LOCAL[depot]
  view = _view(on_device(state))
  script = EVERY._replace(attack=attack, reinforce=attack // 2)
  waiting = sum(bool(scripts.army_types(RULES)[LOCAL[name]]) for name in names)
  return {under_way: bool(players.attacks(RULES, script, view, waiting - under_way, under_way))
          for under_way in (0, waiting // 2)}


def test_a_full_army_of_large_units_attacks_below_half_of_the_plans_number():
  eight = {"Probe": 12, "Zealot": 2, "Immortal": 6}  # 40 food, 8 of 18 fighters
  assert attacks(PROTOSS, eight) == {0: True, 4: False}
  assert attacks(PROTOSS, {**eight, "Probe": 10}) == {0: False, 4: False}  # a Zealot fits
  assert attacks(PROTOSS, eight, supplied=24) == {0: False, 4: False}  # Pylons are missing
  assert attacks(PROTOSS, eight, attack=plans.NEVER) == {0: False, 4: False}


def test_a_full_army_waits_for_fighters_in_production():
  seven = {"Probe": 12, "Zealot": 2, "Immortal": 5}
  assert attacks(PROTOSS, seven, ["Immortal"])[0] is False
  assert attacks(PROTOSS, {**seven, "Probe": 15}, ["Probe"])[0] is True


def test_zerglings_that_take_all_slots_attack():
  units = {"Drone": 14, "Overlord": 5, "Zergling": 20}
  assert attacks(ZERG, units, attack=30) == {0: True, 10: False}
  assert attacks(ZERG, {**units, "Zergling": 18}, ["Zergling"], attack=60)[0] is False
  assert attacks(ZERG, {**units, "Zergling": 19}, attack=30)[0] is False  # two more fit


@pytest.mark.slow
def test_players_leave_out_commands_whose_target_has_no_row():
  """Idle workers with a patch beyond the last row: the player spends instead of mining."""
  state = first(RULES, (RACES[TERRAN], RACES[TERRAN]))
  state.orders.verb[:] = constants.IDLE
  names = RULES.functions.names

  def function(rows):
    crowded = views.make_view(RULES, on_device(state), jnp.int32(0))
    crowded = crowded._replace(present=crowded.present & (jnp.arange(len(crowded.present)) < rows))
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(players, "make_view", lambda *_: crowded)
      action = players.decide(RULES, jnp.int32(scripts.names_of("default").index("macro")),
                              jax.random.key(0), on_device(state), jnp.int32(0))
    return names[RULES.functions.index.tolist().index(int(action.function))]

  assert function(len(_view(on_device(state)).present)) == "Harvest_Gather_unit"
  assert function(2 * RULES.tier.slots) == "Train_SCV_quick"


@pytest.mark.slow
def test_scripts_beat_their_expected_opponents(game):
  names = np.array([(1, 0), (2, 0), (1, 3), (2, 3)] * 4)
  state = play(game, start(game, 9, np.arange(GAMES) % 8 < 4), names, 9, 560)
  winner = np.asarray(state.winner).reshape(4, 4)
  assert (winner[:, [0, 2, 3]] == 0).mean() > 0.9
  assert (winner[:, 1] == 0).mean() >= 0.75
