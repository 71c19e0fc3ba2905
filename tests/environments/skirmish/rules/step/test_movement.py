"""Movement along flow fields."""

import jax
import numpy as np
import pytest

from starleague.environments.skirmish.rules.step import movement
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.default_games import GAMES, RULES, TIER, S, host, start
from tests.environments.skirmish.places import HOME, PROTOSS, UNIT
from tests.environments.skirmish.scenes import put, run, scene
from tests.environments.skirmish.states import first, on_device


@pytest.mark.slow
def test_units_find_their_way_between_bases_on_every_map(default_game):
  """From home to the other seven bases, never into a cliff; flyers in a straight line.

  Fast walkers keep their pace beside cliffs.
  """
  state = jax.tree.map(np.array, host(start(default_game)))
  state.kind[:, :, S:] = 0
  state.health[:, :, S:] = 0
  bases = np.concatenate([np.array(TIER.homes), -np.array(TIER.homes)])
  for i, base in enumerate(bases[1:]):
    for j, name in enumerate(("Zealot", "Banshee", "Zergling")):
      slot = UNIT + 7 * j + i
      put(state, slot, name, np.add(HOME, (3.5, 3.5)), verb=constants.MOVE)
      state.orders.x[:, 0, slot - S], state.orders.y[:, 0, slot - S] = base
  state.health[:, 0, UNIT:UNIT + 21] = 1e6
  half, ground = RULES.half, state.match_up.map_index % 3
  passable = RULES.terrain.passable
  arrived = np.full((GAMES, 21), 999)

  def walkers(slots):
    return np.delete(slots[:, 0, UNIT:UNIT + 21], np.s_[7:14], axis=1)

  for step in range(130):
    state = host(default_game.advance(state))
    x, y = walkers(state.x), walkers(state.y)
    cells = np.floor(y + half).astype(int), np.floor(x + half).astype(int)
    assert passable[ground[:, None], cells[0], cells[1]].all()
    done = state.orders.verb[:, 0, :21] == constants.IDLE
    arrived = np.where(done & (arrived == 999), step + 1, arrived)
  straight = np.hypot(*(bases[1:] - np.add(HOME, (3.5, 3.5))).T)
  pace = {"Zealot": 1.125, "Banshee": 1.375, "Zergling": 1.4765}  # a step
  assert (arrived[:, 7:14] <= np.ceil(straight / pace["Banshee"]) + 3).all()
  assert (arrived[ground == 0, :7] <= np.ceil(straight / pace["Zealot"]) + 5).all()
  assert (arrived[:, :7] <= 115).all()
  assert (arrived[:, 14:] * pace["Zergling"] <= arrived[:, :7] * pace["Zealot"] + 3).all()


@pytest.mark.slow
def test_miners_find_their_way_up_a_ramp(default_game):
  """From low ground to a patch on the plateau, around its cliffs."""
  state = scene(default_game, ground=1)
  put(state, UNIT, "SCV", (0.0, -4.0), verb=constants.GATHER, target=0)
  found = run(default_game, state, 60)
  assert (found.minerals[:, 0] >= 5).all()


@pytest.mark.slow
def test_walkers_reach_places_beside_a_bank_and_hold_them(default_game):
  """On river: to a cell beside the water; to the bank nearest to a place in it; and on hold."""
  state = scene(default_game, ground=2)
  places = {"reached": (-7.9, 11.7), "wet": (-7.9, 8.1), "held": (12.2, -8.4)}
  for i, place in enumerate(places.values()):
    there = tuple(np.array(place) * (i == 2) + np.add(HOME, (3.5, 3.5)) * (i < 2))
    put(state, UNIT + i, "Marine", there, verb=constants.HOLD if i == 2 else constants.MOVE)
    state.orders.x[:, 0, UNIT + i - S], state.orders.y[:, 0, UNIT + i - S] = place
  found = run(default_game, state, 90)
  x, y = found.x[:, 0, UNIT:UNIT + 3], found.y[:, 0, UNIT:UNIT + 3]
  apart = np.hypot(x - [place[0] for place in places.values()],
                   y - [place[1] for place in places.values()])
  assert (apart[:, 0] < constants.ARRIVED).all()
  assert (found.orders.verb[:, 0, UNIT - S] == constants.IDLE).all()
  assert (apart[:, 1] < 2.5).all()
  assert (found.orders.verb[:, 0, UNIT + 1 - S] == constants.IDLE).all()
  np.testing.assert_allclose(apart[:, 2], 0.0, atol=1e-5)


@pytest.mark.slow
def test_walkers_go_around_a_cliff_to_a_target_that_they_see(default_game):
  """On `ramps`, with a Phoenix in sight of a Gateway on the plateau: by a ramp, as to a goal."""
  state = scene(default_game, mine=PROTOSS, theirs=PROTOSS, ground=1)
  put(state, 1, "Gateway", (12.0, 18.0), player=1)
  put(state, UNIT, "Phoenix", (10.0, 16.0), verb=constants.HOLD)
  put(state, UNIT + 1, "Zealot", (5.0, 18.0), verb=constants.ATTACK)
  put(state, UNIT + 2, "Zealot", (5.0, 16.0), verb=constants.ATTACK_UNIT, target=1)
  state.orders.x[:, 0, :3], state.orders.y[:, 0, :3] = 16.0, 16.0
  found = run(default_game, state, 20)
  assert (found.shield[:, 1, 1] < state.shield[:, 1, 1]).all()
  for unit in (1, 2):  # both stand at the building's edge
    apart = np.hypot(found.x[:, 0, UNIT + unit] - 12.0, found.y[:, 0, UNIT + unit] - 18.0)
    assert (apart < 2.5).all(), apart


def test_moves_end_at_the_edge_of_the_map():
  state = first(mini.RULES)
  x = np.zeros((2, mini.RULES.tier.units), np.float32)
  found = movement.move(mini.RULES, state, x + 11.0, x, x + 2.0, x - 1.0)
  np.testing.assert_array_equal(found[0], x + 11.5)  # half a unit from the edge at 12
  np.testing.assert_array_equal(found[1], x - 1.0)


def test_overlapping_units_part_except_miners():
  state = first(mini.RULES)
  s = mini.S
  state.kind[0, s:s + 2] = mini.MARINE
  state.x[0, s:s + 2], state.y[0, s:s + 2] = [0.0, 0.25], 0.0
  state.orders.verb[0, :2] = constants.IDLE
  found = movement.separate_units(mini.RULES, on_device(state))
  # Each moves by half the overlap.
  apart = float(found.x[0, s + 1] - found.x[0, s])
  np.testing.assert_allclose(apart, 2 * mini.RULES.types.radius[mini.MARINE], atol=5e-3)
  np.testing.assert_array_equal(found.x[0, s + 2:s + 4], state.x[0, s + 2:s + 4])
