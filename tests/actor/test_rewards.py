"""Rewards: known distances, a plain edit distance as twin, and sums over games."""

import functools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.actor import rewards
from starleague.agent import types

LENGTH = types.BUILD_ORDER_LENGTH
SECOND = types.GAME_LOOPS_PER_SECOND


def build_order(entries):
  """Converts [(type, (x, y)), ...] to padded arrays."""
  order, places = np.zeros(LENGTH, np.uint8), np.zeros((LENGTH, 2), np.uint8)
  for i, (unit_type, place) in enumerate(entries):
    order[i], places[i] = unit_type, place
  return order, places


@pytest.fixture(scope="module")
def distance():
  compiled = jax.jit(rewards.build_order_distance)
  return lambda target, built, **options: float(
    compiled(*build_order(target), *build_order(built), **options))


@pytest.fixture(scope="module")
def pseudo():
  return jax.jit(rewards.pseudo_rewards, static_argnames="level")


def plain_distance(target, built, saturation=6.0, grid_per_unit=1.0):
  """Returns the edit distance by the textbook recursion, cell by cell."""
  table = np.zeros((len(built) + 1, len(target) + 1))
  table[:, 0], table[0] = np.arange(len(built) + 1), np.arange(len(target) + 1)
  for i, (unit_type, place) in enumerate(built, 1):
    for j, (wanted, where) in enumerate(target, 1):
      squared = sum((a - b) ** 2 for a, b in zip(place, where, strict=True)) / grid_per_unit ** 2
      cost = .8 * min(1, squared / saturation ** 2) if unit_type == wanted else 1
      table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
  return table[-1, -1]


GATEWAY, CORE, STARGATE = 1, 2, 3
TARGET = [(GATEWAY, (10, 10)), (CORE, (14, 10)), (STARGATE, (20, 10))]
HERE = (5, 5)


def word(text, place=HERE):
  return [(ord(letter), place) for letter in text]


@pytest.mark.parametrize("target, built, expected", [
  (TARGET, [], 3),
  (TARGET, [(GATEWAY, (10, 10))], 2),
  (TARGET, [(GATEWAY, (10, 10)), (STARGATE, (20, 13))], 1.2),
  (TARGET, [(GATEWAY, (10, 10)), (STARGATE, (40, 40))], 1.8),
  # Aligning the first equal types would cost 1.8.
  ([(GATEWAY, (0, 0)), (GATEWAY, (30, 30))], [(GATEWAY, (0, 0))], 1),
  ([(GATEWAY, (30, 30)), (GATEWAY, (0, 0))], [(GATEWAY, (0, 0))], 1),
  (word("kitten"), word("sitting"), 3),
  (word("GGC", (50, 50)), word("GGC"), 2.4),
  (word("G", (8, 5)), word("G"), .2),
  (word("G", (8, 8)), word("G"), .4),
  (word("G", (11, 5)), word("G"), .8),
  ([], word("GGC"), 3),
  ([], [], 0),
  (word("abcdefghijklmnopqrst"), word("abcdefghijklmnopqrst"), 0),
  (word("abcdefghijklmnopqrst"), word("ABCDEFGHIJKLMNOPQRST"), 20),
])
def test_known_distances(distance, target, built, expected):
  assert distance(target, built) == pytest.approx(expected, abs=1e-5)
  assert distance(built, target) == pytest.approx(expected, abs=1e-5)


def test_distances_are_in_game_units(distance):
  """On a map of 64 cells the 256 grid has 4 cells per game unit."""
  target, built = word("G", (0, 12)), word("G", (0, 0))
  assert distance(target, built) == pytest.approx(.8, abs=1e-6)
  assert distance(target, built, grid_per_unit=4.) == pytest.approx(.2, abs=1e-6)
  assert distance(target, built, saturation_distance=24.) == pytest.approx(.2, abs=1e-6)


def test_large_distances_do_not_overflow(distance):
  assert distance(word("G", (255, 255)), word("G", (0, 0))) == pytest.approx(.8)


def test_entries_after_an_empty_one_do_not_count(distance):
  order, places = build_order([(GATEWAY, HERE), (0, HERE), (CORE, HERE)])
  target = build_order([(GATEWAY, HERE)])
  assert float(rewards.build_order_distance(*target, order, places)) == 0


ENTRIES = st.lists(st.tuples(st.integers(1, 3), st.tuples(st.integers(0, 12), st.integers(0, 12))),
                   max_size=LENGTH)


@hypothesis.given(ENTRIES, ENTRIES, ENTRIES)
@hypothesis.settings(max_examples=30)
def test_distance_equals_the_plain_recursion(distance, first, second, third):
  found = distance(first, second)
  assert found == pytest.approx(plain_distance(first, second), abs=1e-4)
  assert distance(first, second, grid_per_unit=2.) == pytest.approx(
    plain_distance(first, second, grid_per_unit=2.), abs=1e-4)
  assert found == pytest.approx(distance(second, first), abs=1e-4)
  assert distance(first, first) == pytest.approx(0, abs=1e-5)
  assert abs(len(first) - len(second)) - 1e-4 <= found <= max(len(first), len(second)) + 1e-4
  # One more entry changes the distance by at most one, which bounds the reward of a step.
  if len(first) < LENGTH:
    assert abs(distance([*first, *(third[:1] or [(1, HERE)])], second) - found) <= 1 + 1e-4


def test_vmapped_distances_equal_single_ones():
  targets = [TARGET, word("kitten"), []]
  built = [TARGET[:1], word("sitting"), word("GGC")]
  orders = [np.stack(x) for x in zip(*map(build_order, targets), strict=True)]
  orders += [np.stack(x) for x in zip(*map(build_order, built), strict=True)]
  np.testing.assert_allclose(
    jax.jit(jax.vmap(rewards.build_order_distance))(*orders), [2, 3, 3], atol=1e-5)


def test_hamming_distance():
  assert int(rewards.hamming_distance(np.array([1, 1, 0, 1, 0], bool), np.zeros(5, bool))) == 3
  assert rewards.hamming_distance(np.ones(3, bool), np.ones(3, bool)).dtype == jnp.int32


@pytest.mark.parametrize("seconds, factor", [
  (0, 1), (479.9, 1), (480, .5), (959.9, .5), (960, .25), (1439.9, .25), (1440, 0), (9999, 0)])
def test_time_factor(seconds, factor):
  assert float(rewards.time_factor(round(seconds * SECOND))) == factor


@pytest.mark.parametrize("over, result, draw, expected", [
  (True, 1, 0., 1), (True, -1, 0., -1), (True, 0, 0., 0), (True, 0, -1., -1),
  (False, 0, 0., 0), (False, 0, -1., 0), (False, 1, 0., 0),
])
def test_winloss_reward(over, result, draw, expected):
  assert float(rewards.winloss_reward(over, result, draw)) == expected


def statistics(entries=(), **flags):
  """Returns statistics of a build order and of flags set by index."""
  empty = types.zeros(types.statistics_spec())
  order, places = build_order(entries)
  for name, indices in flags.items():
    getattr(empty, name)[list(indices)] = True
  return empty._replace(build_order=order, build_order_xy=places)


ALL = np.ones(4, bool)


def test_build_order_rewards(pseudo):
  game = [[], TARGET[:1], [TARGET[0], (STARGATE, (20, 13))]]
  found = [pseudo(statistics(a), statistics(b), statistics(TARGET), 0, ALL)[0]
           for a, b in zip(game, game[1:], strict=False)]
  np.testing.assert_allclose(found, [1, .8], atol=1e-6)
  worse = pseudo(statistics(game[2]), statistics([TARGET[0], (STARGATE, (40, 40))]),
                 statistics(TARGET), 0, ALL)
  np.testing.assert_allclose(worse, [-.6, 0, 0, 0], atol=1e-6)


@pytest.mark.parametrize("part, row", [("units", 1), ("upgrades", 2), ("effects", 3)])
def test_flag_rewards_decrease_with_game_time(pseudo, part, row):
  target = statistics(**{part: (0, 1, 3)})
  done = [(), (0,), (0, 2), (0, 1, 2), (0, 1, 2, 3)]
  seconds, expected = (60, 500, 1000, 1500), (1, -.5, .25, 0)
  for before, now, at, value in zip(done, done[1:], seconds, expected, strict=False):
    found = pseudo(statistics(**{part: before}), statistics(**{part: now}), target,
                   round(at * SECOND), ALL)
    np.testing.assert_allclose(found, np.eye(4)[row] * value, atol=1e-6)


def test_the_level_form_is_minus_the_changed_distance(pseudo):
  target = statistics(TARGET, units=(0, 1, 3))
  before, now = statistics(), statistics(TARGET[:1], units=(0,))
  at = round(500 * SECOND)
  np.testing.assert_allclose(
    pseudo(before, now, target, at, ALL, level=True), [-2, -1, 0, 0], atol=1e-6)
  np.testing.assert_array_equal(pseudo(now, now, target, at, ALL, level=True), np.zeros(4))


def test_unchanged_statistics_give_exactly_zero(pseudo):
  done = statistics(word("GGC", (7, 9)), units=(1, 2), upgrades=(3,), effects=(4,))
  target = statistics(TARGET, units=(0,), upgrades=(1,), effects=(2,))
  np.testing.assert_array_equal(pseudo(done, done, target, 100, ALL), np.zeros(4))


def test_inactive_parts_and_unconditional_z_give_zero(pseudo):
  target = statistics(TARGET, units=(0,), upgrades=(0,), effects=(0,))
  np.testing.assert_allclose(pseudo(statistics(), target, target, 0, ALL), [3, 1, 1, 1], atol=1e-6)
  for active in np.eye(4, dtype=bool):
    found = pseudo(statistics(), target, target, 0, active)
    np.testing.assert_allclose(found, [3, 1, 1, 1] * active, atol=1e-6)
  unconditional = statistics()
  np.testing.assert_array_equal(pseudo(statistics(), target, unconditional, 0, ALL), np.zeros(4))


def test_scale_multiplies_the_rewards(pseudo):
  target = statistics(TARGET, units=(0,), upgrades=(0,), effects=(0,))
  found = pseudo(statistics(), target, target, 0, ALL, scale=np.array([1 / 3, .5, 2, 0]))
  np.testing.assert_allclose(found, [1, .5, 2, 0], atol=1e-6)


@hypothesis.given(ENTRIES, ENTRIES)
@hypothesis.settings(max_examples=10)
def test_rewards_sum_to_the_decrease_of_the_distance(pseudo, distance, target, built):
  total = 0.
  for i in range(len(built)):
    total += float(pseudo(statistics(built[:i]), statistics(built[:i + 1]), statistics(target), 0,
                          ALL)[0])
  expected = len(target) - distance(target, built) if target else 0
  assert total == pytest.approx(expected, abs=1e-3)


def test_rewards_are_in_the_order_of_types():
  assert types.REWARDS == ("winloss", "build_order", "built_units", "upgrades", "effects")
  target = statistics(TARGET, units=(0, 5), upgrades=(0, 1, 2, 3), effects=range(5))
  compute = jax.jit(jax.vmap(functools.partial(rewards.rewards, scale=1.),
                             in_axes=(0, None, None, None, None, None)))
  found = compute(np.array([1., -1., 0.]), statistics(), target, target, 0, ALL)
  np.testing.assert_allclose(found, [[1, 3, 2, 4, 5], [-1, 3, 2, 4, 5], [0, 3, 2, 4, 5]], atol=1e-6)
  assert found.dtype == jnp.float32


@pytest.mark.parametrize("row, shown", [
  (0, {"build_order", "build_order_xy"}), (1, {"units"}), (2, {"upgrades"}), (3, {"effects"})])
def test_the_policy_observes_active_parts_only(row, shown):
  z = statistics(TARGET, units=(0,), upgrades=(1,), effects=(2,))
  seen = rewards.condition(z, np.arange(4) == row)
  for name, spec in types.statistics_spec()._asdict().items():
    value = getattr(seen, name)
    assert value.dtype == spec.dtype and value.shape == spec.shape
    expected = getattr(z, name) if name in shown else np.zeros(spec.shape)
    np.testing.assert_array_equal(value, expected)


def test_objectives_reward_units_built_and_losses_of_the_opponent():
  objective = np.zeros((2, 4), np.float32)
  objective[0, 1], objective[0, 2], objective[1, 3] = 0.5, -1.0, 0.25
  before, now = np.uint8([9, 1, 5, 0]), np.uint8([0, 4, 6, 0])
  rival_before, rival_now = np.uint8([0, 0, 7, 5]), np.uint8([0, 9, 7, 3])
  found = rewards.objective_reward(before, now, rival_before, rival_now, objective)
  np.testing.assert_allclose(found, 3 * 0.5 - 1.0 + 2 * 0.25)
  # Losses of one's own, and new units of the opponent, give nothing.
  assert rewards.objective_reward(now, before, rival_now, rival_before, objective) == 0.0


def test_a_fall_of_the_opponents_value_is_rewarded():
  np.testing.assert_allclose(rewards.minimax_reward(
    np.float32([0.5, -0.5]), np.float32([-0.25, 0.0]), np.float32([2.0, 1.0])), [1.5, -0.5])
