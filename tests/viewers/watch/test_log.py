"""The action log and the build orders of a recorded game."""

import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.viewers.watch import log as watch_log
from tests.viewers.games import KIND, RULES, STRUCTURES
from tests.viewers.pages import data_of


def test_log_describes_every_action(replay, states, page):
  log = data_of(page, "game")["log"]
  assert len(log) == np.count_nonzero(replay.actions.function)
  assert log[0] == [0, 0, "Train SCV", "at Command Center"]
  refused = [states.refused[line[0] + 1, line[1]] for line in log]
  assert [line[3].endswith(")") for line in log] == [code > 0 for code in refused]
  build = next(line for line in log if line[2] == "Build Barracks")
  barracks = vocabulary.FUNCTIONS.index("Build_Barracks_pt")
  row = np.flatnonzero(replay.actions.function == barracks)[0]
  x, y = replay.actions.location[row] % 32 * 0.75, replay.actions.location[row] // 32 * 0.75
  assert build[:2] == [replay.step[row], replay.player[row]]
  assert build[3] == f"at {int(x + 0.375)}, {int(y + 0.375)} by SCV"


@pytest.mark.parametrize(("name", "rows", "target", "repeat", "expected"), [
  ("Attack_unit", [0, 1, 2], 4, 0, ("Attack", "enemy Barracks with Marine × 2")),
  ("Attack_unit", [2], 5, 0, ("Attack", "enemy Factory without a capable unit")),
  ("Harvest_Gather_unit", [3], 6, 0, ("Gather", "minerals with SCV")),
  ("Move_unit", [0, 3], 2, 0, ("Move", "own Command Center with SCV, Marine")),
  ("Move_unit", [0], 60, 0, ("Move", "nothing with Marine")),
  ("Train_SCV_quick", [2], 0, 2, ("Train SCV × 3", "at Command Center"))])
def test_actions_are_described_with_units_and_target(name, rows, target, repeat, expected):
  """Rows: two Marines, a town hall, an SCV; enemy Barracks seen, a Factory remembered; a patch."""
  n = RULES.tier.slots
  own, enemy = np.zeros(n, int), np.zeros(n, int)
  remembered = np.zeros(STRUCTURES, int)
  own[[0, STRUCTURES, STRUCTURES + 1, STRUCTURES + 2]] = [
    KIND[name] for name in ("CommandCenter", "Marine", "Marine", "SCV")]
  enemy[0], remembered[1] = KIND["Barracks"], KIND["Factory"]
  row_of = np.full(2 * n + RULES.tier.resources, -1)
  row_of[[STRUCTURES, STRUCTURES + 1, 0, STRUCTURES + 2, n, n + 1, 2 * n]] = range(7)
  units = np.full(8, 64)
  units[:len(rows)] = rows
  action = types.Action(
    function=vocabulary.FUNCTIONS.index(name), delay=1, queued=0, repeat=repeat, units=units,
    target_unit=target, location=0)
  slots = watch_log.Slots(row_of, own, enemy, remembered)
  assert watch_log.describe_action(RULES, action, slots) == expected


def test_build_orders_equal_those_of_the_engine(states, page):
  builds = data_of(page, "game")["builds"]
  for player in range(2):
    mine = [line for line in builds if line[1] == player]
    made = states.executed.build_order[-1, player]
    names = [vocabulary.UNIT_TYPES.names[kind] for kind in made[made > 0]]
    assert [line[2] for line in mine] == names
    for place, (step, *_) in enumerate(mine):
      order = states.executed.build_order[:, player, place]
      assert order[step] > 0 and not order[step - 1]
  assert builds[0][2] == "Barracks"
