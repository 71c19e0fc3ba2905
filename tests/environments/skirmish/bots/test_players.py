"""Scripted players: whom they fight, when they attack, and games of the mini tier."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.skirmish.bots import players, views
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import LOCAL, RACES, RULES, TYPES, S
from tests.environments.skirmish.mini_games import GAMES, play, start
from tests.environments.skirmish.states import first, on_device

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


def test_units_at_the_place_of_a_threat_are_free_for_other_commands():
  at, away = ("Stalker", HOVER + 2.9), ("Stalker", HOVER + 3.1)
  assert defenders(PROTOSS, [at, away], [("VoidRay", HOVER)]) == ([1], HOVER)
  assert defenders(PROTOSS, [at], [("VoidRay", HOVER)])[0] == []


@pytest.mark.slow
def test_scripts_beat_their_expected_opponents(game):
  names = np.array([(1, 0), (2, 0), (1, 3), (2, 3)] * 4)
  state = play(game, start(game, 9, np.arange(GAMES) % 8 < 4), names, 9, 560)
  winner = np.asarray(state.winner).reshape(4, 4)
  assert (winner[:, [0, 2, 3]] == 0).mean() > 0.9
  assert (winner[:, 1] == 0).mean() >= 0.75
