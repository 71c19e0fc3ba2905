"""The minimap planes: cells in sight, and cells of slots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.skirmish.rules.interface.discs import discs, on_planes, union
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import default_games
from tests.environments.skirmish import mini_games as games
from tests.environments.skirmish.mini_games import RULES

SIDE = np.array([1.0, -1.0], np.float32)


def cell_of(rules, side, value):
  """The row or column of a coordinate; on a boundary, the player's own frame decides."""
  size = rules.map_size
  own = int(np.floor(np.float32(side * value) * np.float32(size / rules.tier.map_size)))
  return min(max((own if side > 0 else -1 - own) + size // 2, 0), size - 1)


def disc(rules, side, x, y, radius):
  """The cells within a radius of a place's cell, between middles: [H, W] bool."""
  row, column = cell_of(rules, side, y), cell_of(rules, side, x)
  rows, columns = np.indices((rules.map_size,) * 2)
  square = (rows - row) ** 2 + (columns - column) ** 2
  return square <= (radius * rules.map_size / rules.tier.map_size) ** 2 + 1e-3


def bits(words):
  """[..., H, W / 32] uint32 to [..., H, W] bool."""
  words = np.ascontiguousarray(words)
  return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").astype(bool)


@pytest.mark.parametrize("rules", [RULES, default_games.RULES])
def test_discs_contain_the_cells_whose_middles_are_inside(rules):
  rng = np.random.default_rng(0)
  x, y = rng.uniform(-rules.half, rules.half, (2, 2, 5)).astype(np.float32)
  x[:, 0], y[:, 0] = 3.0, 0.0  # on the boundary of two cells
  radius = rng.uniform(0, 9, (2, 5)).astype(np.float32)
  radius[:, 1] = 6.0  # exactly eight cells
  chosen = np.array([[1, 1, 1, 0, 1], [1, 1, 0, 1, 1]], bool)
  found = bits(union(discs(rules, SIDE, x, y, radius), chosen))
  for p in range(2):
    expected = [disc(rules, SIDE[p], *row) for row in zip(x[p], y[p], radius[p], strict=True)]
    np.testing.assert_array_equal(found[p], np.array(expected)[chosen[p]].any(axis=0))


def test_a_disc_leaves_out_its_excluded_cells():
  x = np.array([[-5.0, 5.0]] * 2, np.float32)
  radius = np.full((2, 2), 3.0, np.float32)
  around = discs(RULES, SIDE, x, 0 * x, radius)
  left = np.zeros((2, 2, 32, 1), np.uint32)
  left[:, 0] = 0xFFFFFFFF
  chosen = np.ones((2, 2), bool)
  found = bits(union(around, chosen, jnp.asarray(left)))
  for p in range(2):
    np.testing.assert_array_equal(found[p], disc(RULES, SIDE[p], 5.0, 0.0, 3.0))


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
