"""Movement along flow fields."""

import jax
import numpy as np
import pytest

from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import GAMES, RULES, TIER, S, host, start
from tests.environments.skirmish.scenes import HOME, UNIT, put, run, scene


@pytest.mark.slow
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


@pytest.mark.slow
def test_miners_find_their_way_up_a_ramp(default_game):
  """From low ground to a patch on the plateau, around its cliffs."""
  state = scene(default_game, ground=1)
  put(state, UNIT, "SCV", (0.0, -4.0), verb=constants.GATHER, target=0)
  found = run(default_game, state, 60)
  assert (found.minerals[:, 0] >= 5).all()
