"""Construction: prices, times and builders, computed by hand."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.step import construction
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish import states
from tests.environments.skirmish.default_games import LOCAL, TYPES, S, give
from tests.environments.skirmish.places import PROTOSS, TERRAN, UNIT, ZERG
from tests.environments.skirmish.scenes import close, put, run, same, scene


def test_building_has_its_price_and_time_and_takes_one_worker(game):
  state = mini.start(game)
  state = state._replace(minerals=state.minerals + 250)
  site = (-1.5, -7.5)
  build = mini.everyone(mini.action("Build_Barracks_pt", rows=[1, 2], x=site[0], y=site[1]))
  state = game.advance(game.act(state, build, game.due(state)))
  np.testing.assert_array_equal(
    np.sum(np.asarray(state.orders.verb)[:, 0] == constants.BUILD, axis=1), 1)
  begun = None
  for step in range(120):
    state = game.advance(state)
    kind = np.asarray(state.kind)[0, 0, 1]
    if kind == mini.BARRACKS and begun is None:
      begun = step
      assert np.sum(np.asarray(state.orders.verb)[0, 0] == constants.CONSTRUCT) == 1
      assert np.asarray(state.unfinished)[0, 0, 1] == 347
      assert np.asarray(state.score.spent)[0, 0] == 150
    if begun is not None and not np.asarray(state.unfinished)[0, 0, 1]:
      break
  assert step - begun == 44  # 347 loops
  np.testing.assert_allclose(np.asarray(state.health)[0, 0, 1], 1000)
  assert np.sum(np.asarray(state.orders.verb)[0, 0] == constants.GATHER) == 4
  executed = mini.host(state.executed)
  dense = mini.RULES.types.index
  np.testing.assert_array_equal(executed.build_order[0, 0, :2], [dense[mini.BARRACKS], 0])
  # The middle of the location's cell on the grid of 256: (-1.5 + 12) / 0.75 = 14, so 14.5 / 32.
  np.testing.assert_array_equal(executed.build_order_xy[0, 0, 0], [14.5 * 8, 6.5 * 8])
  assert np.flatnonzero(executed.units[0, 0]).tolist() == [dense[mini.BARRACKS]]


def test_a_builder_leaves_when_another_structure_takes_the_slot_of_its_own():
  """SCV 0 constructs in slot 1, whose structure has died; SCV 1 begins another one there."""
  first, second = (-1.5, -7.5), (4.5, -4.5)
  state = states.first(mini.RULES)
  state.minerals[0] = 150
  for unit, verb, (x, y) in ((0, constants.CONSTRUCT, first), (1, constants.BUILD, second)):
    state.x[0, mini.S + unit], state.y[0, mini.S + unit] = x, y
    state.orders.x[0, unit], state.orders.y[0, unit] = x, y
    state.orders.verb[0, unit], state.orders.target[0, unit] = verb, 1
    state.orders.product[0, unit] = mini.BARRACKS
  after, begun = construction.construct(mini.RULES, states.on_device(state))
  assert begun.kind[0, 0] == after.kind[0, 1] == mini.BARRACKS
  assert (after.x[0, 1], after.y[0, 1]) == second and after.unfinished[0, 1] == 347
  assert after.orders.verb[0, :2].tolist() == [constants.GATHER, constants.CONSTRUCT]
  later, _ = construction.construct(mini.RULES, after)
  assert later.unfinished[0, 1] == 339
  assert later.orders.verb[0, :2].tolist() == [constants.GATHER, constants.CONSTRUCT]


@pytest.mark.slow
def test_a_drone_becomes_its_structure_a_probe_leaves_and_an_scv_stays(default_game):
  for race, worker, name, cost, loops in (
      (ZERG, "Drone", "SpawningPool", 200, 347), (PROTOSS, "Probe", "Pylon", 100, 134),
      (TERRAN, "SCV", "SupplyDepot", 100, 160)):
    state = scene(default_game, race)
    state.minerals[:] = 210
    site = (-12.0, -10.5)
    put(state, UNIT, worker, site)
    put(state, UNIT + 1, worker, (5.0, 5.0))
    state = run(default_game, give(
      state, f"Build_{name}_pt", slots=[UNIT, UNIT + 1], x=site[0], y=site[1]))
    same(state.kind[:, 0, 1], LOCAL[name])
    same(state.minerals[:, 0], 210 - cost)
    same(state.unfinished[:, 0, 1], loops)
    close(state.health[:, 0, 1], 0.1 * TYPES.health[LOCAL[name]])
    close(state.shield[:, 0, 1], 0.1 * TYPES.shield[LOCAL[name]])
    same((state.kind[:, 0, S:] > 0).sum(-1), 1 if race == ZERG else 2)
    same(state.orders.verb[:, 0, 0], {
      ZERG: constants.IDLE, PROTOSS: constants.GATHER, TERRAN: constants.CONSTRUCT}[race])
    same(state.orders.verb[:, 0, 1], constants.IDLE)  # a site takes one builder
    same(state.score.killed_units, 0)
    steps = -(-loops // 8)
    state = run(default_game, state, steps - 1)
    same(state.unfinished[:, 0, 1] > 0, True)
    state = run(default_game, state)
    same(state.unfinished[:, 0, 1], 0)
    close(state.health[:, 0, 1], TYPES.health[LOCAL[name]])
    close(state.shield[:, 0, 1], TYPES.shield[LOCAL[name]])
    same(state.orders.verb[:, 0, 0], constants.IDLE if race == ZERG else constants.GATHER)
