"""Orders become actions; wrong ones are refused with the reason."""

import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules.interface import action_results
from starleague.viewers.play import orders as play_orders
from tests.viewers.games import FUNCTION, RULES


def test_orders_become_actions(begun):
  _, seen = begun
  tags = seen.entities[:, types.COLUMN["tag"]]
  scvs = tags[seen.entities[:, types.COLUMN["unit_type"]] == vocabulary.UNIT_TYPES.index("SCV")]
  order = play_orders.check_order({
    "function": FUNCTION["Smart_pt"], "units": [int(scvs[1]), int(scvs[0])], "x": 0.5, "y": 0.999,
    "queued": True}, RULES)
  action = play_orders.to_action(RULES, seen, order)
  assert action.function == vocabulary.FUNCTIONS.index("Smart_pt")
  assert tags[action.units[:2]].tolist() == [scvs[1], scvs[0]] and np.all(action.units[2:] == 64)
  assert (action.location, action.queued, action.delay) == (31 * 32 + 16, 1, 1)
  patch = int(tags[seen.entities[:, types.COLUMN["mineral_contents"]] > 0][0])
  order = play_orders.check_order({
    "function": FUNCTION["Smart_unit"], "units": [int(scvs[0])], "target": patch}, RULES)
  assert tags[play_orders.to_action(RULES, seen, order).target_unit] == patch
  assert play_orders.no_action(RULES).function == 0


@pytest.mark.parametrize(("order", "message"), [
  ({"function": FUNCTION["Train_Marine_quick"], "units": [1]}, "Train Marine: needs a Barracks"),
  ({"function": FUNCTION["Build_Barracks_pt"], "units": [1]},
   "Build Barracks: needs 100 more minerals"),
  ({"function": FUNCTION["Train_SCV_quick"], "units": [999]}, "no selected unit can do that"),
  ({"function": FUNCTION["Harvest_Gather_unit"], "units": [7], "target": 999}, "is out of sight")])
def test_impossible_orders_are_refused_with_the_reason(begun, order, message):
  with pytest.raises(play_orders.OrderError, match=message):
    play_orders.to_action(RULES, begun[1], play_orders.check_order(order, RULES))


def test_rejected_actions_are_explained(begun):
  seen = begun[1]
  assert play_orders.refusal_text(seen) == ""
  refused = seen._replace(
    action_result=np.uint8(action_results.CANT_BUILD_LOCATION_INVALID),
    last_function=np.int16(vocabulary.FUNCTIONS.index("Build_Barracks_pt")))
  assert play_orders.refusal_text(refused) == "Build Barracks: cannot be built there"


@pytest.mark.parametrize(("order", "message"), [
  ([], "order: expected an object, found list"),
  ({"function": 0, "units": [1]}, "order.function: expected an integer from 1 to"),
  ({"function": True, "units": [1]}, "order.function: expected an integer"),
  ({"function": 1, "units": []}, "order.units: expected 1 to 8 tags, found 0"),
  ({"function": 1, "units": [1] * 9}, "order.units: expected 1 to 8 tags, found 9"),
  ({"function": 1, "units": ["a"]}, "order.units: expected a list of tags"),
  ({"function": 1, "units": [1], "x": 1.5}, "order.x: expected a number from 0 to 1, found 1.5"),
  ({"function": 1, "units": [1], "queued": 1}, "order.queued: expected true or false, found 1"),
  ({"function": 1, "units": [1], "repeat": 4}, "order.repeat: expected an integer from 1 to 3"),
  ({"function": 1, "units": [1], "cheat": 1}, "order: unknown key 'cheat'")])
def test_malformed_orders_are_refused(order, message):
  with pytest.raises(ValueError, match=message):
    play_orders.check_order(order, RULES)
