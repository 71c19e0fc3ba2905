"""Sites of structures: creep, geysers and known obstacles."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import placement as agent_placement
from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.state import placement
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import default_games
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.default_games import LOCAL, TIER, TYPES, give, host
from tests.environments.skirmish.places import GAS_PLACE, GEYSER, HOME, PROTOSS, TERRAN, UNIT, ZERG
from tests.environments.skirmish.scenes import put, run, same, scene
from tests.environments.skirmish.states import first, on_device


@pytest.mark.slow
def test_zerg_builds_on_creep_and_gas_structures_on_geysers(default_game):
  state = scene(default_game, ZERG)
  state.minerals[:] = 1000
  put(state, UNIT, "Drone", HOME)
  far = give(state, "Build_SpawningPool_pt", slots=[UNIT], x=-5.9, y=-16.0)  # 10.1 from the hall
  same(run(default_game, far).orders.verb[:, 0, 0], constants.IDLE)
  near = give(state, "Build_SpawningPool_pt", slots=[UNIT], x=-6.1, y=-16.0)
  same(run(default_game, near).orders.verb[:, 0, 0], constants.BUILD)
  hall = give(state, "Build_Hatchery_pt", slots=[UNIT], x=0.0, y=0.0)
  same(run(default_game, hall).orders.verb[:, 0, 0], constants.BUILD)
  gas = give(state, "Build_Extractor_unit", slots=[UNIT], target=GEYSER, kind=constants.RESOURCE)
  found = run(default_game, gas)
  same(found.orders.verb[:, 0, 0], constants.BUILD)
  same(found.orders.x[:, 0, 0], GAS_PLACE[0])
  patch = give(state, "Build_Extractor_unit", slots=[UNIT], target=1, kind=constants.RESOURCE)
  found = run(default_game, patch)  # 4.9 from the geyser: too far
  same(found.orders.verb[:, 0, 0], constants.IDLE)


@pytest.mark.slow
@pytest.mark.parametrize("race", [TERRAN, PROTOSS, ZERG])
def test_gas_structures_need_a_geyser_that_is_free_as_far_as_known(default_game, race):
  """None left as known; an enemy's seen, and hidden; depleted unseen; blocked; just clear."""
  name, takes, worker, pylon = {
    TERRAN: ("Refinery", "pt", "SCV", "SupplyDepot"),
    PROTOSS: ("Assimilator", "unit", "Probe", "Pylon"),
    ZERG: ("Extractor", "unit", "Drone", "SporeCrawler")}[race]
  state = scene(default_game, race)
  state.minerals[:] = 100
  put(state, UNIT, worker, HOME)
  places = np.flatnonzero(TIER.geysers * 2)
  last, half = places[-1], TIER.resources // 2
  state.memory.patches[:, 0, places[:-1]] = 0
  x, y = -np.array(TIER.patches[last - half])
  state.memory.patches[0, 0, last] = 0
  put(state, 1, "Refinery", (x, y), player=1, games=[1, 2])
  state.memory.seen[2, 0, 1] = False
  state.patches[3, 1, last - half] = 0
  wide = TYPES.radius[LOCAL[name]] + TYPES.radius[LOCAL[pylon]]
  put(state, 1, pylon, (x, y - wide + 0.1), games=4)
  put(state, 1, pylon, (x, y - wide - 0.1), games=5)
  function = f"Build_{name}_{takes}"
  can = host(default_game.observe(state)[0].available_actions)[
    :6, 0, vocabulary.FUNCTIONS.index(function)]
  same(can, [False, False, True, True, False, True])
  aim = {"pt": {"x": x, "y": y}, "unit": {"target": last, "kind": constants.RESOURCE}}[takes]
  found = run(default_game, give(state, function, slots=[UNIT], **aim))
  same(found.orders.verb[:6, 0, 0] == constants.BUILD, can)


@pytest.mark.parametrize(("x", "y", "fits"), [
  (0.0, 0.0, True), (-6.5, -6.5, False), (-11.0, 0.0, False), (-10.0, 0.0, True)])
def test_structures_fit_beside_others_and_on_the_map(x, y, fits):
  """In the middle; on the town hall; beyond the edge, which is at 12; beside it."""
  state = on_device(first(mini.RULES))
  product = jnp.full(2, mini.BARRACKS)
  assert mini.RULES.types.radius[mini.BARRACKS] > 1
  found = placement.placeable(
    mini.RULES, state, placement.true_ground(mini.RULES, state),
    jnp.array([x, -x]), jnp.array([y, -y]), product)
  same(np.asarray(found), fits)


def test_footprints_are_nine_places_around_the_middle():
  x, y = placement.footprint(np.float32(1.0), np.float32(2.0), np.float32(2.0))
  np.testing.assert_allclose(sorted(set(np.round(x, 4).tolist())), [-0.6, 1.0, 2.6], rtol=1e-6)
  np.testing.assert_allclose([x[4], y[4], y[0], y[8]], [1.0, 2.0, 0.4, 3.6], rtol=1e-6)


@functools.cache
def programs():
  size = default_games.SIZES["location_size"]

  @jax.jit
  def rules(state, x, y, product):
    ground = placement.known_ground(default_games.RULES, state)
    return jax.vmap(lambda x, y: placement.placeable(
      default_games.RULES, state, ground, x, y, product))(x, y)

  masks = jax.jit(jax.vmap(functools.partial(
    agent_placement.free_cells, size=size, map_units=default_games.TIER.map_size)))
  return rules, masks


@pytest.mark.slow
def test_the_agents_mask_leaves_nearly_all_places_that_fit_and_few_others(
    default_game, default_record):
  """Against Skirmish's rule, in rich games of all races on all maps; 400 cells of each state."""
  rules, masks = programs()
  size, rng = default_games.SIZES["location_size"], np.random.default_rng(0)
  cell, names = default_games.TIER.map_size / size, default_games.TYPES.names
  of_race = {race: [i for i in range(1, len(names)) if default_games.TYPES.race[i] == race
                    and f"Build_{names[i]}_pt" in vocabulary.FUNCTIONS.names
                    and default_games.TYPES.structure[i] and not default_games.TYPES.gas[i]]
             for race in range(3)}
  counts = np.zeros((2, 2), int)  # [fits, legal]
  for states in default_record.states[3::4]:
    seen, _ = default_game.observe(jax.tree.map(jnp.asarray, states))
    for game in range(0, default_games.GAMES, 2):
      product = np.array([rng.choice(of_race[race]) for race in states.race[game]], np.int32)
      row, column = rng.integers(0, size, (2, 400))
      x, y = ((np.repeat(place[:, None], 2, 1) - (size - 1) / 2).astype(np.float32) * np.float32(
        cell) for place in (column, row))
      fits = np.asarray(rules(default_games.one(states, game), x, y, product))
      functions = np.array([default_games.dense(f"Build_{names[i]}_pt") for i in product])
      legal = np.asarray(masks(default_games.one(seen, game), functions))[:, row * size + column].T
      np.add.at(counts, (fits.astype(int), legal.astype(int)), 1)
  # The planes' cells are twice as wide as those of the grid: a few places beside resources go.
  assert counts[1, 0] < 0.002 * counts[1].sum() and counts[1, 1] > 10_000, counts
  assert counts[0, 1] < 0.3 * counts[1, 1], counts
