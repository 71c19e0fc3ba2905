"""The response of policies that follow z and their MMR, or ignore both."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import evaluation, rollouts
from starleague.agent import types
from starleague.common import results
from starleague.experiments.run.evaluation import conditioning
from tests.actor import builders

MMRS = (7000, 2000)
# Orders of different types: any two are 20 substitutions apart, and build 40 types in all.
ORDERS = 20 + np.arange(100).reshape(5, 20)


def played(follows_z):
  environment, policy = builders.building(), builders.make_policy(follows_z)
  test = conditioning.ConditioningTest(
    evaluator=evaluation.make_evaluator(
      environment, policy, builders.scripted, opponents=(0, 1), games=10),
    match=evaluation.make_match(environment, policy, games=6),
    conditioning=builders.make_conditioning(ORDERS, 6000), grid_per_unit=1.0, mmrs=MMRS)
  reported = []
  found = conditioning.play(test, jnp.int32(0), seed=3, report=lambda *x: reported.append(x))
  assert reported[-1] == (test.games, "mmr_7000_against_2000")
  assert test.games == 5 * 20 + 6
  return found


@pytest.fixture(scope="module")
def following():
  return played(follows_z=True)


@pytest.fixture(scope="module")
def ignoring():
  return played(follows_z=False)


def test_a_policy_that_copies_z_is_at_distance_zero_from_it(following):
  right, shuffled, none = (following[arm] for arm in (
    conditioning.RIGHT, conditioning.SHUFFLED, conditioning.NONE))
  for samples in (right, shuffled, none):
    assert len(samples.score) == 20
  for name in ("build_order", "build_order_types", "units"):
    np.testing.assert_array_equal(getattr(right, name), 0)
  # Twenty substitutions; forty types that only one of both orders has.
  np.testing.assert_array_equal(shuffled.build_order, 20)
  np.testing.assert_array_equal(shuffled.build_order_types, 20)
  np.testing.assert_array_equal(shuffled.units, 40)
  # Shown no z it builds nothing: twenty insertions.
  np.testing.assert_array_equal(none.build_order, 20)
  np.testing.assert_array_equal(none.units, 20)


def test_a_policy_that_ignores_z_is_as_far_from_any(ignoring):
  for arm in (conditioning.RIGHT, conditioning.SHUFFLED, conditioning.NONE):
    np.testing.assert_array_equal(ignoring[arm].build_order, 20)
    np.testing.assert_array_equal(ignoring[arm].units, 21)


def test_the_mmr_decides_the_games_of_a_policy_that_follows_it(following, ignoring):
  # It makes MMR / 1000 good actions, scripted players make four.
  np.testing.assert_array_equal(following["mmr_7000"].score, 1)
  np.testing.assert_array_equal(following["mmr_2000"].score, 0)
  np.testing.assert_array_equal(following["mmr_7000_against_2000"].score, np.ones(6))
  np.testing.assert_array_equal(following["mmr_7000_against_2000"].win, np.ones(6))
  np.testing.assert_array_equal(ignoring["mmr_7000"].score, ignoring["mmr_2000"].score)
  np.testing.assert_array_equal(ignoring["mmr_7000_against_2000"].score, 0.5 * np.ones(6))
  np.testing.assert_array_equal(ignoring["mmr_7000_against_2000"].win, np.zeros(6))


def test_differences_are_those_of_the_means(following, ignoring):
  found = conditioning.differences(following, MMRS)
  assert list(found) == ["shuffled_z-right_z", "no_z-right_z", "mmr_7000-mmr_2000"]
  assert found["shuffled_z-right_z"]["build_order"] == (20.0, 20.0, 20.0, 0.0)
  assert found["mmr_7000-mmr_2000"]["score"] == (1.0, 1.0, 1.0, 0.0)
  none = conditioning.differences(ignoring, MMRS)
  assert none["no_z-right_z"]["build_order"] == (0.0, 0.0, 0.0, 1.0)


def test_places_count_in_game_units():
  order = np.full((1, 20), 5, np.uint8)
  zeros = jax.tree.map(lambda s: np.zeros((1, *s.shape), s.dtype), types.statistics_spec())
  requested = zeros._replace(build_order=order)
  moved = zeros._replace(build_order=order, build_order_xy=np.full((1, 20, 2), [12, 0], np.uint8))
  two = jax.tree.map(lambda x: np.stack([x, x], axis=1), moved)
  game = rollouts.Results(
    over=np.array([True]), opponent=np.array([1]), reward=np.array([[0.0, 0.0]]), executed=two,
    z=two, race=np.ones((1, 2), int), side=np.array([[0, 1]]), map_index=np.zeros(1, int))
  # 12 cells are 3 game units at 4 cells a unit: 0.8 * (3 / 6)^2 = 0.2 for each of 20 entries.
  found = conditioning.measure(game, requested, 4.0)
  np.testing.assert_allclose(found.build_order, 4.0, rtol=1e-6)
  assert (found.build_order_types, found.score, found.win) == (0.0, 0.5, 0.0)
  np.testing.assert_allclose(
    conditioning.measure(game, requested, 1.0).build_order, 16.0, rtol=1e-6)


def test_a_redrawn_z_is_of_the_match_up_and_another_one():
  drawn_from = builders.make_conditioning(ORDERS[:3], 0)
  rows = drawn_from.rows.copy()
  rows[0, 1, 1, 1] = 1  # a single z for side 1
  drawn_from = drawn_from._replace(rows=rows)
  games = 40
  z = jax.tree.map(lambda x: np.repeat(x[1:2][:, None], games, axis=0).repeat(2, axis=1),
                   drawn_from.z)
  side = np.stack([np.arange(games) % 2, 1 - np.arange(games) % 2], axis=1)
  game = rollouts.Results(
    over=np.ones(games, bool), opponent=np.ones(games, int), reward=np.zeros((games, 2)),
    executed=z, z=z, race=np.ones((games, 2), int), side=side,
    map_index=np.zeros(games, int))
  drawn = conditioning.redraw(drawn_from, game, seed=0).build_order[:, 0]
  assert set(drawn[0::2]) == {ORDERS[1, 0], ORDERS[2, 0]}
  assert set(drawn[1::2]) == {ORDERS[0, 0]}


def test_figures_are_stored_and_shown(following, tmp_path):
  results.append(tmp_path / "results.csv", conditioning.result_rows(following, MMRS, 5.0, 7))
  rows = {row.tag: row for row in results.read(tmp_path / "results.csv")}
  assert rows["conditioning/shuffled_z-right_z/build_order"][3:] == (20.0, 20.0, 20.0)
  assert rows["conditioning/right_z/build_order"].update == 7
  lines = conditioning.table(following, MMRS)
  assert lines[0].startswith("| arm | games | build order | build order types | units |")
  assert lines[2].startswith("| right z | 20 | 0.00 (0.00 to 0.00) |")
  assert "| shuffled z - right z | | +20.00 (+20.00 to +20.00), p 0 |" in lines[8]
  assert len({line.count("|") for line in lines}) == 1
  stored = json.loads(json.dumps(conditioning.summary(following, MMRS)))
  assert stored["games"]["right_z"] == 20
  assert stored["differences"]["no_z-right_z"]["build_order"] == [20.0, 20.0, 20.0, 0.0]
