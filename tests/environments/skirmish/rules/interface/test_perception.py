"""Sight of the players."""

import pytest

from tests.environments.skirmish.scenes import UNIT, put, run, same, scene


@pytest.mark.slow
def test_high_ground_is_invisible_from_below(default_game):
  state = scene(default_game, ground=1)
  inside, below = (-9.5, -18.0), (-6.5, -18.0)  # on either side of the plateau's edge
  for g, (mine, where, theirs, there) in enumerate([
      ("Marine", below, "Marine", inside), ("Marine", inside, "Marine", below),
      ("Medivac", below, "Marine", inside), ("Marine", below, "Medivac", inside),
      ("Marine", inside, "Marine", inside), ("Marine", below, "SupplyDepot", inside)]):
    put(state, UNIT, mine, where, games=g)
    put(state, 1 if theirs == "SupplyDepot" else UNIT, theirs, there, player=1, games=g)
    # The town hall on the plateau would see it.
    state.x[g, 0, 0], state.y[g, 0, 0] = 20.0, -20.0
  state.memory.seen[:] = False
  state.cooldown[:] = 100.0
  state = run(default_game, state)
  same(state.memory.seen[:6, 0, UNIT], [False, True, True, True, True, False])
  same(state.memory.seen[5, 0, 1], False)
  same(state.memory.kind[5, 0, 1], 0)
