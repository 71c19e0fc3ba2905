"""Executed statistics, idle times and winners."""

import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.step import accounting
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.default_games import LOCAL, give
from tests.environments.skirmish.places import (
  BUNKER,
  GAS_PLACE,
  GEYSER,
  HOME,
  PROTOSS,
  TERRAN,
  UNIT,
)
from tests.environments.skirmish.scenes import put, run, same, scene
from tests.environments.skirmish.states import first


@pytest.mark.slow
def test_the_build_order_excludes_workers_and_supply(default_game):
  for race, worker, name, gas, aim in (
      (TERRAN, "SCV", "SupplyDepot", "Refinery_pt",
       {"x": GAS_PLACE[0], "y": GAS_PLACE[1]}),
      (PROTOSS, "Probe", "Pylon", "Assimilator_unit",
       {"target": GEYSER, "kind": constants.RESOURCE})):
    state = scene(default_game, race)
    state.minerals[:] = 1000
    state.queue[:, 0, 0, 0], state.timers[:, 0, 0, 0] = LOCAL[worker], 8
    put(state, UNIT, worker, (-12.0, -10.5))
    state = run(default_game, give(state, f"Build_{name}_pt", slots=[UNIT], x=-12.0, y=-10.5))
    put(state, UNIT + 1, worker, np.add(GAS_PLACE, (0.0, 2.0)))
    state = run(default_game, give(state, f"Build_{gas}", slots=[UNIT + 1], **aim))
    gas = gas.split("_")[0]
    same(state.kind[:, 0, 1:3], [LOCAL[name], LOCAL[gas]])
    same(state.executed.build_order[:, 0], [vocabulary.UNIT_TYPES.index(gas), *[0] * 19])
    for each in (worker, name, gas):
      same(state.executed.units[:, 0, vocabulary.UNIT_TYPES.index(each)], True)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_only_production_structures_count_as_idle(default_game):
  state = scene(default_game)
  put(state, 1, "SupplyDepot", (-8.0, -16.0))
  put(state, 2, "Barracks", (-8.0, -8.0))
  put(state, BUNKER, "Bunker", (0.0, 0.0))
  state = run(default_game, state, 5)
  same(state.score.idle_production, [2 * 5 * 8, 5 * 8])


@pytest.mark.parametrize(("lost", "loop", "winner"), [
  ((), 0, -1), ((0,), 0, 1), ((1,), 0, 0), ((0, 1), 0, accounting.DRAW),
  ((), mini.RULES.tier.loop_limit, accounting.DRAW), ((1,), mini.RULES.tier.loop_limit, 0)])
def test_the_last_structure_or_the_time_limit_decides(lost, loop, winner):
  state = first(mini.RULES)
  state.kind[list(lost), :mini.S] = 0
  assert int(accounting.winner(mini.RULES, state._replace(loop=np.int32(loop)))) == winner


def test_idle_workers_and_town_halls_count_eight_loops_a_step():
  state = first(mini.RULES)
  state.orders.verb[0, :3] = constants.IDLE
  state.queue[1, 0, 0] = mini.SCV
  score = accounting.count_idle_time(mini.RULES, state).score
  np.testing.assert_array_equal(score.idle_workers, [24, 0])
  np.testing.assert_array_equal(score.idle_production, [8, 0])
