"""Goals of exploiters: z drawn by the scores of games for similar z."""

import jax
import numpy as np
import pytest

from starleague.actor import goals, rollouts
from starleague.agent import types
from starleague.common.arrays import ArraysError
from tests.actor.builders import make_conditioning
from tests.actor.clockwork import clockwork, counting_policy, scripted

ORDERS = np.zeros((4, 20), int)
ORDERS[0, :6] = 3
ORDERS[1, :6] = [3, 3, 3, 3, 3, 5]  # one entry from the first
ORDERS[2, :6] = 7  # six entries
ORDERS[3, :6] = [5, 3, 3, 3, 3, 3]  # the second in another order
STORE = make_conditioning(ORDERS, 6000)


def z_of(*rows):
  return jax.tree.map(lambda x: x[list(rows)], STORE.z)


class Clock:
  """A clock that is set by hand."""

  now = 0.0

  def __init__(self):
    self.resets = {"rival": 0, "other": 0}  # of players

  def __call__(self):
    return self.now


@pytest.fixture
def made(tmp_path):
  clock = Clock()

  def make(process="0"):
    return goals.Goals(STORE, ["rival", "other"], lambda name: tmp_path / name, process,
                       lambda name: clock.resets[name], clock)

  return make, clock, tmp_path


def test_a_game_counts_by_the_exchanged_entries():
  counts = goals.entries_of(STORE.z.build_order)
  expected = np.exp(-np.array([6 / 2, 0, 1, 6, 1]) / goals.WIDTH)  # row 0 has no z
  np.testing.assert_allclose(goals.similarity(counts, 1), expected)


def test_weights_are_smoothed_scores():
  counts = goals.entries_of(STORE.z.build_order)
  played = goals.nothing_played(5)
  np.testing.assert_allclose(goals.log_weights(counts, played), 0.5 / goals.TEMPERATURE)
  played.games[1], played.points[1] = 4, 3.0
  near = np.exp(-1 / 3)
  mean = (3 + 1) / (4 + 2)
  found = goals.log_weights(counts, played) * goals.TEMPERATURE
  np.testing.assert_allclose(found[1], (3 + 2 * mean) / (4 + 2), rtol=1e-6)
  np.testing.assert_allclose(found[2], (3 * near + 2 * mean) / (4 * near + 2), rtol=1e-6)
  assert found[1] > found[2] == found[4] > found[3]


def test_players_learn_their_own_goals_and_keep_them_over_a_restart(made):
  make, clock, folder = made
  pursued = make()
  assert [pursued.number(name) for name in ("main", "rival", "other")] == [0, 1, 2]
  pursued.add(["rival", "main", "rival", None], z_of(1, 1, 3, 2), np.array([1.0, 1.0, -1.0, 1.0]))
  assert len(np.unique(pursued.weights)) == 2  # uniform until the interval is over
  clock.now += goals.INTERVAL_S
  pursued.add(["rival"], z_of(0), np.array([1.0]))  # a game without z does not count
  uniform, rival, other = pursued.weights
  assert not uniform.any() and len(set(other)) == 1
  assert rival[1] > rival[2] > rival[3]
  np.testing.assert_array_equal(make().weights, pursued.weights)
  np.testing.assert_array_equal(goals.learnt(STORE, folder / "rival"), rival)


def test_a_reset_player_starts_without_games(made):
  """Its policy is the imitator again; also an actor that was started again forgets its games."""
  make, clock, _ = made
  pursued = make()
  clock.now += goals.INTERVAL_S
  pursued.add(["rival", "other"], z_of(1, 1), np.array([1.0, 1.0]))
  assert all(len(set(weights)) > 1 for weights in pursued.weights[1:])
  clock.resets["rival"] = 1
  clock.now += goals.INTERVAL_S
  for found in (make(), pursued):  # before and after the file is written
    found.add(["rival"], z_of(3), np.array([-1.0]))
    assert len(set(found.weights[1])) == 1 and len(set(found.weights[2])) > 1
  clock.now += goals.INTERVAL_S
  pursued.add(["rival"], z_of(2), np.array([1.0]))
  assert pursued.weights[1][2] > pursued.weights[1][1] > pursued.weights[1][3]
  np.testing.assert_array_equal(make().weights, pursued.weights)


def test_the_games_of_all_actors_count_at_the_end(made):
  make, clock, folder = made
  first, second = make("0"), make("1")
  clock.now += goals.INTERVAL_S
  first.add(["rival"], z_of(1), np.array([1.0]))
  second.add(["rival"], z_of(1), np.array([0.0]))
  played = goals.nothing_played(5)
  played.games[1], played.points[1] = 2, 1.5
  np.testing.assert_allclose(
    goals.learnt(STORE, folder / "rival"),
    goals.log_weights(goals.entries_of(STORE.z.build_order), played))


def test_games_for_other_z_do_not_count(made):
  make, clock, folder = made
  pursued = make()
  clock.now += goals.INTERVAL_S
  pursued.add(["rival"], z_of(1), np.array([1.0]))
  other = make_conditioning(ORDERS[:3], 6000)
  assert len(set(goals.learnt(other, folder / "rival"))) == 1


def test_a_damaged_file_is_named(made):
  make, _, folder = made
  path = folder / "rival" / goals.FOLDER / "0.npz"
  path.parent.mkdir(parents=True)
  path.write_bytes(b"no zip")
  with pytest.raises(ArraysError, match="rival/goals/0.npz"):
    make()


def test_finished_games_of_both_players():
  over = np.array([[True, False], [False, True]])
  z = jax.tree.map(lambda x: np.stack([[[x[1], x[2]]] * 2, [[x[3], x[4]]] * 2]), STORE.z)
  reward = np.array([[[1, -1], [0, 0]], [[0, 0], [-1, 1]]], np.float32)
  results = rollouts.Results(*[None] * 8)._replace(over=over, z=z, reward=reward)
  names, found, points = goals.ended_games(results, ["main", "rival"], np.array([[1, -1], [-1, 0]]))
  assert names == ["rival", None, None, "main"]
  np.testing.assert_array_equal(found.build_order, STORE.z.build_order[[1, 2, 3, 4]])
  np.testing.assert_array_equal(points, [1, -1, -1, 1])


def test_games_draw_z_by_the_weights_of_their_player():
  """Player 0 against opponent 1 draws the second z only; other players draw uniformly."""
  weights = np.full((2, 5), -1e9, np.float32)
  weights[0], weights[1, 2] = 0.0, 0.0
  goal = np.zeros((3, 2), np.int32)
  goal[1, 0] = 1
  conditioning = STORE._replace(goals=weights, goal=goal)
  config = rollouts.RolloutConfig(games=400, inference_batch=8, iterations=1)
  program = rollouts.make_rollouts(clockwork(), counting_policy(), config, scripted)
  opponents = np.arange(400) % 3
  state = program.init(jax.random.key(0), opponents, conditioning)
  drawn = np.asarray(state.z.build_order)
  assert (drawn[opponents == 1, 0] == ORDERS[1]).all()
  others = drawn[opponents != 1].reshape(-1, 20)
  shares = np.array([(others == order).all(axis=1).mean() for order in ORDERS])
  assert shares.sum() == 1.0
  np.testing.assert_allclose(shares, 0.25, atol=0.08)
  assert len(types.PSEUDO_REWARDS) == state.pseudo_active.shape[-1]
