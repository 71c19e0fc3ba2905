"""The calls of one agent: z of demonstrators."""

import numpy as np
import pytest

from starleague.actor.loops import compiled_single
from starleague.agent import types
from starleague.data.z.conditioning import Recent, unconditional
from tests.actor.loops.results import NAMES, ZERG, results


@pytest.mark.parametrize("name, reward, taken", [
  ("rusher", -1, True), ("builder", -1, True), ("rusher", 1, False), ("rusher", 0, False),
  ("passive", -1, False)])
def test_z_comes_from_games_that_demonstrators_won(name, reward, taken):
  recent = Recent(3, 1, np.ones(4), 6200)
  batch = results([1 + NAMES.index(name)], [reward])
  assert compiled_single.add_demonstrations(recent, batch, [1, 2]) is taken
  found = recent.conditioning()
  units = found.z.units[found.rows]  # [maps, races, races, sides, 3, 256]
  assert units.shape == (1, len(types.RACES), len(types.RACES), 2, 3, 256)
  np.testing.assert_array_equal(units[:, ZERG, :, 0, :, 7], taken)
  units[:, ZERG, :, 0] = False
  assert not units.any()


def test_the_objective_of_one_agent_is_not_its_opponents():
  without = unconditional(1, 0)
  objective = np.zeros((2, 9), np.float32)
  assert compiled_single.with_objective(without, objective, 3) is without
  objective[0, 4] = 0.5
  found = compiled_single.with_objective(without, objective, 3)
  assert found.objectives.shape == (2, 2, 9) and not found.objectives[0].any()
  np.testing.assert_array_equal(found.objectives[1], objective)
  assert found.objective.tolist() == [[1, 1], [1, 0], [1, 0]]  # both where it plays itself
