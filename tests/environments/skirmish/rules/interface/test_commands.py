"""Commands are checked against the knowledge of their player."""

import pytest

from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import LOCAL, TIER, give
from tests.environments.skirmish.scenes import UNIT, put, run, same, scene


@pytest.mark.slow
def test_build_orders_fail_at_once_only_for_known_obstacles(default_game):
  """A free site; a Barracks there in sight, hidden, remembered; and hidden at arrival."""
  state = scene(default_game)
  state.minerals[:] = 100
  site = (2.0, 2.0)
  put(state, UNIT, "SCV", (-12.0, 0.0))
  put(state, UNIT, "SCV", site, games=4)
  for g in (1, 2, 4):
    put(state, 1, "Barracks", (3.0, 3.0), player=1, games=g)
  state.memory.seen[[2, 4], 0, 1] = False
  state.memory.kind[3, 0, 1] = LOCAL["Barracks"]
  state.memory.x[3, 0, 1] = state.memory.y[3, 0, 1] = 3.0
  found = run(default_game, give(
    state, "Build_SupplyDepot_pt", slots=[UNIT], x=site[0], y=site[1]))
  # A builder that meets a hidden obstacle mines again; nothing is paid.
  same(found.orders.verb[:5, 0, 0], [
    constants.BUILD, constants.IDLE, constants.BUILD, constants.IDLE, constants.GATHER])
  same(found.kind[:5, 0, 1], 0)
  same(found.minerals[:5, 0], 100)
  found = run(default_game, found, 60)
  same(found.kind[:5, 0, 1], [LOCAL["SupplyDepot"], 0, 0, 0, 0])
  same(found.orders.verb[2, 0, 0], constants.GATHER)


@pytest.mark.slow
def test_an_empty_patch_is_known_once_seen(default_game):
  state = scene(default_game)
  put(state, UNIT, "SCV", (0.0, 0.0))
  half = TIER.resources // 2
  state.patches[:2, 1, 0] = 0  # the enemy's first patch, out of sight
  state.memory.patches[1, 0, half] = 0
  found = run(default_game, give(
    state, "Harvest_Gather_unit", slots=[UNIT], target=half, kind=constants.RESOURCE))
  same(found.orders.verb[:3, 0, 0], [constants.GATHER, constants.IDLE, constants.GATHER])
