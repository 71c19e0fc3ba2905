"""Sites of structures: creep, geysers and known obstacles."""

import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.state import placement
from starleague.environments.skirmish.rules.tables import constants
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
