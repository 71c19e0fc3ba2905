"""The page gets the human player's observation and nothing else."""

import numpy as np

from starleague.agent import types
from starleague.viewers.play import view
from tests.viewers.games import KIND, RULES


def test_frame_holds_only_the_observation(begun):
  game, seen = begun
  frame = view.page_frame(RULES, seen)
  assert len(frame["rows"]) == seen.entity_count
  assert {row["side"] for row in frame["rows"]} == {types.ALLIANCE_SELF, types.ALLIANCE_NEUTRAL}
  assert frame["player"]["minerals"] == 50 and frame["clock"] == "0:00"
  town = next(row for row in frame["rows"] if row["type"] == KIND["CommandCenter"])
  assert (town["health"], town["ratio"], town["built"]) == (1500, 255, 100)
  x, y = (game.state.x[0, 0] / 24 + 0.5, game.state.y[0, 0] / 24 + 0.5)
  np.testing.assert_allclose([town["x"], town["y"]], [x, y], atol=1 / 256)
  assert [list(map(int, row)) for row in frame["visibility"]] == seen.minimap[1].tolist()
  can = {RULES.functions.names[i] for i in frame["can"]}
  assert "Train_SCV_quick" in can and "Train_Marine_quick" not in can
