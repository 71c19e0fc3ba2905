"""Games are the same on both paths; the comparison finds each field that may not differ."""

import itertools

import jax
import numpy as np
import pytest

from starleague.actor import rewards
from starleague.agent import types
from starleague.environments.sc2.server import layout
from tests.environments.sc2 import same_game


def pair():
  observation = types.zeros(types.observation_spec(4, 4))
  observation.entities[:3, types.COLUMN["alliance"]] = (1, 3, 4)
  return observation, types.zeros(types.privileged_spec())


@pytest.mark.parametrize("column, row, change, differs", [
  ("unit_type", 0, 1, True), ("health", 0, 1, False), ("health", 0, 2, True),
  ("x", 2, -1, False), ("x", 2, -2, True), ("facing", 0, 5, False),
  ("energy", 0, 9, True), ("energy", 2, 9, False), ("buff_id_0", 0, 1, True),
  ("ideal_harvesters", 0, 1, True), ("ideal_harvesters", 1, 1, False), ("owner", 3, 1, True)])
def test_columns_are_compared_as_far_as_they_can_be_equal(column, row, change, differs):
  one, two = pair(), pair()
  two[0].entities[row, types.COLUMN[column]] += change
  assert list(same_game.differences(*one, *two)) == ([f"column {column}"] if differs else [])


@pytest.mark.parametrize("name, value", [
  ("game_loop", np.int32(8)), ("action_result", np.uint8(9)),
  ("home_race", np.uint8(1)), ("last_delay", np.int32(0))])
def test_other_fields_are_compared(name, value):
  one, two = pair(), pair()
  two = two[0]._replace(**{name: value}), two[1]
  assert list(same_game.differences(*one, *two)) == [name]


def test_planes_and_what_is_hidden_are_compared():
  one, two = pair(), pair()
  two[0].minimap[2, 1, 1] = 1
  two[1].opponent_player[3] = 7
  two[1].executed.units[5] = True
  two[1].executed.build_order_xy[0] = 3
  assert list(same_game.differences(*one, *two)) == [
    "plane creep", "hidden executed.units", "hidden opponent_player"]


def test_the_direct_path_may_know_fewer_functions_and_never_more():
  one, two = pair(), pair()
  two[0].available_actions[3] = True
  assert list(same_game.differences(*one, *two)) == []
  assert list(same_game.differences(*two, *one)) == ["available_actions"]


def pseudo_rewards(steps, games):
  """Returns the sums of both paths over a game, for the z that it ended with: [2, 4]."""
  _, target, _ = steps[-1]
  return [sum(rewards.pseudo_rewards(
    before[path], after[path], target, after[0], np.ones(4, bool),
    grid_per_unit=games.grid_per_unit()) for before, after in itertools.pairwise(steps))
    for path in (1, 2)]


@pytest.mark.slow
def test_the_start_of_a_game_is_the_same_through_the_protocol(tmp_path, monkeypatch):
  """The whole comparison of all tiers, maps and races is `python -m` of its module."""
  monkeypatch.setenv("SC2PATH", str(layout.make_layout(tmp_path)))
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir or "")
  comparison = same_game.Comparison("mini")
  try:
    earned = []
    for seed in range(2):  # from both sides
      comparison.play((1, 1), map_index=0, seed=seed, steps=40)
      earned += [pseudo_rewards(steps, comparison.games) for steps in comparison.executed]
  finally:
    comparison.close()
  found = comparison.found
  assert found.observations >= 80 and found.rows > 1500
  assert not found.differing
  assert set(found.results) - {0}  # some commands were refused, on both paths
  # On both paths: the first player finishes an SCV in one game, the second one an SCV and two
  # barracks in each; of these the build order has the barracks.
  np.testing.assert_array_equal(np.moveaxis(earned, 1, 0), 2 * [
    [[0, 1, 0, 0], [2, 2, 0, 0], [0, 0, 0, 0], [2, 2, 0, 0]]])
