"""Predictions on the page of a replay."""

import re

import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.agent.predictions import CELLS, FUNCTIONS, UNITS, Predictions
from starleague.environments.skirmish.games.replay_format import Predicted
from starleague.viewers.watch import page as watch_page
from starleague.viewers.watch import predictions
from tests.viewers.browser import measure, needs_browser
from tests.viewers.games import RULES
from tests.viewers.pages import check_self_contained, data_of, unpack

BUILD = vocabulary.FUNCTIONS.index("Build_Barracks_pt")


@pytest.fixture(scope="module")
def predicted(replay):
  """The game with predictions of player 2: the taken action is the likeliest one."""
  rows = np.flatnonzero(replay.player == 1)
  count, taken = len(rows), replay.actions.function[rows]
  used = vocabulary.ARGUMENT_TABLE[taken]
  share = np.zeros((count, CELLS), np.uint16)
  share[:, :2] = used[:, 6:] * np.array([40000, 20000], np.uint16)
  functions = np.zeros((count, FUNCTIONS), np.int16)
  functions[:, 0], functions[:, 1] = taken, BUILD
  cells = np.zeros((count, CELLS), np.int32)
  cells[:, 0], cells[:, 1] = replay.actions.location[rows], 5 * used[:, 6]
  units = np.zeros((count, UNITS), np.int16)
  units[:, 0] = np.where(used[:, 4], replay.actions.units[rows, 0], 0)
  units[:, 1] = used[:, 4] * 1
  targets = np.zeros((count, UNITS), np.int16)
  targets[:, 0] = replay.actions.target_unit[rows]
  made = Predictions(
    value=(np.linspace(-0.5, 0.25, count) * 32767).astype(np.int16),
    functions=functions,
    function_probs=np.tile(np.array([45875, 13107, 0, 0, 0], np.uint16), (count, 1)),
    units=units, unit_probs=np.where(
      used[:, 4:5], np.array([60000, 30000, *[0] * 6]), 0).astype(np.uint16),
    targets=targets, target_probs=np.where(
      used[:, 5:6], np.array([50000, *[0] * 7]), 0).astype(np.uint16),
    cells=cells, cell_probs=share, camera=np.tile(np.array([0, 0, 256, 256], np.int16), (count, 1)))
  return replay._replace(predicted=Predicted(rows.astype(np.int32), made))


@pytest.fixture(scope="module")
def page(predicted, states):
  return watch_page.render_page(predicted, states)


@pytest.fixture(scope="module")
def shown(page):
  """The arrays of predictions in the page, and the names of functions."""
  found = data_of(page, "game")["predictions"]
  arrays = {name: unpack(packed) for name, packed in found["arrays"].items()}
  return predictions.PagePredictions(**arrays), found["names"]


def test_a_page_without_predictions_has_no_arrays_of_them(replay, states, derived):
  page = watch_page.render_page(replay, states)
  assert data_of(page, "game")["predictions"] is None
  assert predictions.make_predictions(replay, derived) is None


def test_the_page_holds_the_predictions(page, shown, predicted):
  check_self_contained(page)
  assert len(page) < 110_000
  arrays, names = shown
  made, rows = predicted.predicted.predictions, predicted.predicted.action
  np.testing.assert_array_equal(arrays.step, predicted.step[rows])
  assert arrays.player.tolist() == [1] * len(rows)
  np.testing.assert_array_equal(arrays.value.astype(int) - 32767, made.value)
  for field in ("function_probs", "unit_probs", "target_probs", "cells", "cell_probs", "camera"):
    np.testing.assert_array_equal(getattr(arrays, field), getattr(made, field), err_msg=field)
  taken = predicted.actions.function[rows]
  ids = np.unique([*taken, 0, BUILD])
  assert names == predictions.function_names(ids)
  assert names[0] == "No action" and "Build Barracks" in names
  np.testing.assert_array_equal(arrays.taken, arrays.functions[:, 0])
  np.testing.assert_array_equal(ids[arrays.taken], taken)
  assert data_of(page, "game")["predictions"]["grid"] == 32
  assert data_of(page, "game")["predictions"]["players"] == [1]


def test_rows_become_slots_of_the_units_that_they_show(shown, predicted, states, derived):
  """The first unit considered is the executor: an own slot, whose row it was at that step."""
  arrays, _ = shown
  n, checked = RULES.tier.slots, 0
  for i, action in enumerate(predicted.predicted.action):
    uses = vocabulary.ARGUMENT_TABLE[predicted.actions.function[action]]
    for field, bits, used, row in (
        ("units", "selected", uses[4], predicted.actions.units[action, 0]),
        ("targets", "targeted", uses[5], predicted.actions.target_unit[action])):
      found = getattr(arrays, field)[i, 0]
      if not used:
        assert found == predictions.NOTHING and getattr(arrays, bits)[i] == 0
        continue
      step = arrays.step[i]
      assert derived.rows.present[step, 1, found] and derived.rows.row[step, 1, found] == row
      assert getattr(arrays, bits)[i] & 1
      if field == "units":
        assert found < n and states.kind[step, 1, found] > 0
        checked += 1
  assert checked > 5


def test_the_chosen_location_is_the_likeliest_cell(shown):
  arrays, _ = shown
  used = arrays.location > 0
  assert used.any() and not used.all()
  np.testing.assert_array_equal(arrays.location[used] - 1, arrays.cells[used, 0])
  assert not arrays.cell_probs[~used].any()


def test_functions_of_one_name_are_told_apart():
  ids = [vocabulary.FUNCTIONS.index(name) for name in ("Attack_pt", "Attack_unit", "Stop_quick")]
  assert predictions.function_names(np.array(ids)) == ["Attack (place)", "Attack (unit)", "Stop"]
  assert predictions.function_names(np.array(ids[:1])) == ["Attack"]


def test_colours_and_lines_tell_players_and_heads_apart(page):
  """Players differ in blue and amber and in the curve's dashes; heads in the ring's dashes."""
  assert 'TEAM = ["#60a5fa", "#fbbf24"]' in page and 'INK = ["#2563eb", "#b45309"]' in page
  assert "context.setLineDash(player ? [5, 2] : [])" in page
  assert '["unit", "selected", []], ["target", "targeted", [5, 4]]' in page


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_panels_fit_the_screen_in_a_browser(predicted, states, width, tmp_path):
  z = predicted.match_up.z
  order = np.array(z.build_order)
  order[1, :2] = vocabulary.UNIT_TYPES.index("Barracks"), vocabulary.UNIT_TYPES.index("Factory")
  match_up = predicted.match_up._replace(z=z._replace(build_order=order))
  page = watch_page.render_page(predicted._replace(match_up=match_up), states)
  overflows, text = measure(page, width, tmp_path, boxes="html, .card, .pair, .keys, .name")
  assert overflows == 0 and "cannot show the game" not in text
  assert re.search(r"Agent, player 2: value \u22120\.\d\d, functions at 0:0\d", text)
  assert "70%" in text and "20%" in text and "all others" in text and "10%" in text
  assert "z of player 2" in text and "build order, 0 of 2" in text
