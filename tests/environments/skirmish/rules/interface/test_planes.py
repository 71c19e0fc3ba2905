"""The minimap planes: cells in sight, and cells of slots."""

import jax
import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.skirmish.rules.interface.discs import on_planes
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import default_games
from tests.environments.skirmish import mini_games as games
from tests.environments.skirmish.cells import bits, disc
from tests.environments.skirmish.mini_games import RULES

SIDE = np.array([1.0, -1.0], np.float32)


def drawn(rules, state, p):
  """The planes of a player, computed slot by slot: {name: [H, W]}; and neutral cells."""
  size, s, radii = rules.map_size, rules.tier.structures, rules.types.radius
  memory, side = state.memory, state.side[p]
  own, enemy, hurt, neutral = np.zeros((4, size, size), bool)
  for slot in np.flatnonzero(state.kind[p]):
    cells = disc(rules, side, state.x[p, slot], state.y[p, slot], radii[state.kind[p, slot]])
    own |= cells
    hurt |= cells & state.hurt[p, slot]
  for slot in np.flatnonzero(memory.kind[p]):
    enemy |= disc(rules, side, memory.x[p, slot], memory.y[p, slot], radii[memory.kind[p, slot]])
  for slot in np.flatnonzero(memory.seen[p, s:]) + s:
    enemy |= disc(rules, side, state.x[1 - p, slot], state.y[1 - p, slot],
                  radii[state.kind[1 - p, slot]])
  middles = (np.arange(size) + 0.5) * rules.tier.map_size / size - rules.half
  half = np.array(rules.tier.patches)
  for place, there in zip(np.concatenate([half, -half]) * side, memory.patches[p], strict=True):
    square = (middles - place[0]) ** 2 + (middles[:, None] - place[1]) ** 2
    neutral |= (square <= constants.PATCH_RADIUS ** 2) & (there > 0)
  creep = np.zeros((2, size, size), bool)
  for q in range(2):
    for slot in np.flatnonzero(rules.types.larvae[state.kind[q, :s]] & (state.unfinished[q] == 0)):
      creep[q] |= disc(rules, state.side[q], state.x[q, slot], state.y[q, slot],
                       constants.CREEP_RADIUS)
  visible, explored = bits(memory.visible[p]), bits(memory.explored[p])
  relative = np.where(own, types.ALLIANCE_SELF, np.where(
    enemy, types.ALLIANCE_ENEMY, types.ALLIANCE_NEUTRAL * neutral))
  return {"visibility": np.where(visible, 2, explored), "player_relative": relative,
          "alerts": hurt, "creep": creep[p] | (creep[1 - p] & visible)}, neutral


def check_planes(rules, state, planes):
  """Checks both players' planes [G, 2, 7, H, W]; returns how often each value occurs."""
  found = []
  for g in range(len(planes)):
    one = jax.tree.map(lambda values, g=g: np.asarray(values)[g], state)
    for p in range(2):
      shown = dict(zip(types.MINIMAP_PLANES, planes[g, p], strict=True))
      expected, neutral = drawn(rules, one, p)
      for name, values in expected.items():
        np.testing.assert_array_equal(shown[name], values, err_msg=name)
      if rules.terrain is None:
        np.testing.assert_array_equal(shown["buildable"], ~neutral)
        assert (shown["height_map"] == 128).all() and shown["pathable"].all()
      else:
        for name, table in (("pathable", rules.terrain.passable),
                            ("buildable", rules.terrain.buildable)):
          ground = on_planes(rules, table)[one.match_up.map_index]
          np.testing.assert_array_equal(
            shown[name], ground & ~neutral if name == "buildable" else ground, err_msg=name)
      found.append([(shown[name] == value).any() for name, value in (
        ("visibility", 2), ("visibility", 1), ("player_relative", types.ALLIANCE_SELF),
        ("player_relative", types.ALLIANCE_ENEMY), ("player_relative", types.ALLIANCE_NEUTRAL),
        ("alerts", 1), ("creep", 1))])
  return np.sum(found, axis=0)


def test_planes_show_what_players_know(game, played):
  for state in played[1::2]:
    state = games.host(state)
    found = check_planes(RULES, state, np.asarray(game.observe(state)[0].minimap))
    assert (found[:5] > 0).all()


@pytest.mark.slow
def test_planes_of_the_default_tier(default_game, default_record):
  found = 0
  for state in default_record.states[2::5]:
    found += check_planes(
      default_games.RULES, state, np.asarray(default_game.observe(state)[0].minimap))
  assert (found > 0).all()
