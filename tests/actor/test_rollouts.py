"""Rollouts on the clockwork environment."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import rollouts
from starleague.agent import types
from starleague.data.z.conditioning import Conditioning, unconditional
from tests.actor import builders
from tests.actor.clockwork import LENGTH, STEP_LOOPS, clockwork, counting_policy, scripted

NO_Z = unconditional(maps=1, mmr=6200)
CONFIG = rollouts.RolloutConfig(games=6, inference_batch=4, iterations=64, max_advances=8)
CHUNKS = CONFIG.chunk, CONFIG.restart_chunk


@functools.cache
def program(restart: bool, chunks=CHUNKS):
  config = dataclasses.replace(
    CONFIG, restart=restart, chunk=chunks[0], restart_chunk=chunks[1])
  return rollouts.make_rollouts(clockwork(), counting_policy(), config, scripted)


@functools.cache
def played(seed: int = 0, calls: int = 4, chunks=CHUNKS):
  """Returns records and results of several calls, concatenated along the first axis."""
  run = program(True, chunks)
  state = run.init(jax.random.key(seed), jnp.array([0, 0, 0, 1, 1, 2]), NO_Z)
  outputs = []
  for _ in range(calls):
    state, records, results = run.run(
      jnp.ones(()), state, jnp.array([0.5, 0.25, 0.25]), NO_Z)
    outputs.append(jax.tree.map(np.asarray, (records, results)))
  return jax.tree.map(lambda *x: np.concatenate(x), *outputs)


def sequences(records):
  """Yields (row, its records in order as trees of [steps, ...])."""
  flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), records)
  for row in range(2 * CONFIG.games):
    own = flat.row == row
    yield row, jax.tree.map(lambda x, own=own: x[own], flat)


def test_a_row_is_recorded_at_most_once_per_iteration():
  records, _ = played()
  for rows in records.row:
    used = rows[rows >= 0]
    assert len(set(used)) == len(used)


def test_slots_are_filled_while_rows_are_due():
  records, _ = played()
  assert (records.row[8:] >= 0).mean() > 0.95


def test_records_of_a_row_are_complete_games_in_order():
  records, results = played()
  games = 0
  for _, steps in sequences(records):
    starts = np.flatnonzero(steps.first)
    for begin, end in zip(starts, starts[1:], strict=False):
      games += 1
      loops = steps.step.observation.game_loop[begin:end]
      assert loops[0] == 0 and loops[-1] == LENGTH
      assert (np.diff(loops) > 0).all()
      np.testing.assert_array_equal(steps.last[begin:end], np.arange(begin, end) == end - 1)
      delays = steps.step.action.delay[begin:end - 1].astype(int)
      due = loops[:-1] + -(-delays // STEP_LOOPS) * STEP_LOOPS
      np.testing.assert_array_equal(np.minimum(due, LENGTH), loops[1:])
  assert games >= results.over.sum() * 0.5 > 10


def test_reward_and_discount_belong_to_the_transition_into_the_step():
  records, _ = played()
  for row, steps in sequences(records):
    last = steps.last
    np.testing.assert_array_equal(steps.step.reward[~last], 0.0)
    np.testing.assert_array_equal(
      steps.step.reward[last], [[1.0 - 2.0 * (row % 2), 0, 0, 0, 0]] * last.sum())
    np.testing.assert_array_equal(steps.step.discount, 1.0 - last)


def test_core_state_precedes_the_step_and_starts_at_zero():
  records, _ = played()
  for _, steps in sequences(records):
    counts = steps.core_state.hidden[:, 0, 0]
    assert (counts[steps.first] == 0).all()
    inside = ~steps.first[1:]
    np.testing.assert_array_equal(np.diff(counts)[inside], 1.0)
    np.testing.assert_array_equal(counts, steps.step.observation.player[:, 0])


def test_scripted_rows_are_not_recorded():
  records, results = played()
  assert set(results.opponent[results.over]) == {0, 1, 2}
  self_play = (results.over & (results.opponent == 0)).sum()
  lasts = (records.last & (records.row % 2 == 1)).sum()
  # A game of self-play has two terminal records; the second may follow in a later call.
  assert abs(int(lasts) - int(self_play)) <= CONFIG.games


def test_results_hold_the_winner():
  _, results = played()
  assert (results.reward[results.over] == [1.0, -1.0]).all()


def test_seeded_runs_repeat_bit_for_bit():
  first = played(seed=3, calls=1)
  played.cache_clear()
  again = played(seed=3, calls=1)
  for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
    np.testing.assert_array_equal(a, b)


def test_games_do_not_depend_on_chunks():
  """Of five games and the one that is left, and of one game."""
  first, again = played(seed=3), played(seed=3, chunks=(5, 1))
  assert first[1].over.sum() > 6
  for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
    np.testing.assert_array_equal(a, b)


def test_runs_compile_once():
  played()
  assert program(True, CHUNKS).run._cache_size() == 1


def test_without_restart_each_game_is_counted_once():
  run = program(False)
  state = run.init(jax.random.key(1), jnp.array([0, 0, 1, 1, 2, 2]), NO_Z)
  finished = []
  for _ in range(6):
    state, _, results = run.run(
      jnp.ones(()), state, jnp.array([1.0, 0.0, 0.0]), NO_Z)
    finished += list(np.asarray(results.opponent)[np.asarray(results.over)])
  assert sorted(finished) == [0, 0, 1, 1, 2, 2]


def every_match_up() -> Conditioning:
  """Returns three z for each match-up of three maps; their first unit type is the match-up's."""
  shape = (3, len(types.RACES), len(types.RACES), 2, 3)
  count = int(np.prod(shape))
  z = types.zeros(types.statistics_spec())
  z = jax.tree.map(lambda x: np.zeros((count, *x.shape), x.dtype), z)
  # 150 match-ups: their number fits a build order entry.
  z.build_order[:, 0] = np.arange(count) // 3
  rows = np.arange(count, dtype=np.int32).reshape(shape)
  return Conditioning(z, rows, np.ones(4, np.float32), np.int16(6200))


def test_targets_match_the_match_up():
  config = dataclasses.replace(CONFIG, games=64, races=(1, 3), maps=3)
  run = rollouts.make_rollouts(clockwork(), counting_policy(), config, scripted)
  state = run.init(jax.random.key(5), jnp.ones(64, jnp.int32), every_match_up())
  race, side = np.asarray(state.race), np.asarray(state.side)
  assert set(race.reshape(-1)) == {1, 3} and (race[:, 0] != race[:, 1]).any()
  map_index = np.asarray(state.environment.map_index)[:, None]
  assert set(map_index[:, 0]) == {0, 1, 2}
  expected = ((map_index * 5 + race) * 5 + race[:, ::-1]) * 2 + side
  np.testing.assert_array_equal(np.asarray(state.z.build_order)[..., 0], expected)


def test_scripted_players_have_no_z():
  orders = np.tile(np.arange(1, builders.ACTIONS + 1), (2, 1))
  run = rollouts.make_rollouts(
    builders.building(), builders.make_policy(True), CONFIG, builders.scripted)
  opponents = np.array([0, 1, 2, 0, 1, 2], np.int32)
  state = run.init(
    jax.random.key(0), opponents, builders.make_conditioning(orders, mmr=6200))
  played = np.array([[True, True], [True, False], [True, False]] * 2)
  np.testing.assert_array_equal(state.environment.z.build_order.any(-1), played)
  np.testing.assert_array_equal(
    state.pseudo_active, np.repeat(played[..., None], len(types.PSEUDO_REWARDS), axis=2))


def test_results_give_both_players_targets():
  config = dataclasses.replace(CONFIG, games=8, races=(1,))
  run = rollouts.make_rollouts(clockwork(), counting_policy(), config, scripted)
  conditioning = every_match_up()
  state = run.init(jax.random.key(5), jnp.ones(8, jnp.int32), conditioning)
  before = np.asarray(state.z.build_order)
  _, _, results = run.run(jnp.ones(()), state, jnp.array([0.0, 1.0, 0.0]), conditioning)
  over = np.asarray(results.over)
  first = np.argmax(over, axis=0)
  assert over.any(axis=0).all()
  found = np.asarray(results.z.build_order)[first, np.arange(8)]
  np.testing.assert_array_equal(found, before)


def test_the_policy_is_told_the_mmr():
  for mmr in (2000, 7000):
    state = program(True, CHUNKS).init(
      jax.random.key(5), jnp.ones(6, jnp.int32), unconditional(1, mmr))
    np.testing.assert_array_equal(state.environment.mmr, np.full((6, 2), mmr))
    np.testing.assert_array_equal(state.environment.income, np.full((6, 2), 100))


def test_players_are_paid_by_their_opponent():
  paid = NO_Z._replace(income=np.array([[100, 100], [100, 100], [100, 150]], np.int32))
  opponents = np.array([2, 0, 1, 2, 2, 0], np.int32)
  state = program(True, CHUNKS).init(jax.random.key(5), opponents, paid)
  np.testing.assert_array_equal(state.environment.income, [
    [100, 150], [100, 100], [100, 100], [100, 150], [100, 150], [100, 100]])


def test_the_match_up_is_drawn_by_the_opponent():
  config = dataclasses.replace(CONFIG, games=60, races=(1, 2, 3))
  run = rollouts.make_rollouts(clockwork(), counting_policy(), config, scripted)
  shares = np.zeros((3, 3, 3), np.float32)
  shares[0] = 1 / 9
  shares[1, 2, 0] = 1  # race 3 against race 1
  shares[2, [0, 2], [1, 1]] = 0.5  # race 1 or 3 against race 2
  state = run.init(jax.random.key(5), jnp.arange(60) % 3,
                   NO_Z._replace(match_up_probabilities=shares))
  race = np.asarray(state.race)
  assert [{*map(tuple, race[i::3])} for i in (1, 2)] == [{(3, 1)}, {(1, 2), (3, 2)}]
  assert len({*map(tuple, race[::3])}) >= 6  # of nine, in 20 games


def test_a_draw_has_its_reward_and_counts_as_a_draw():
  made = clockwork()
  drawn = made._replace(outcome=lambda s: made.outcome(s)._replace(reward=jnp.zeros(2)))
  config = dataclasses.replace(CONFIG, draw=-0.25)
  run = rollouts.make_rollouts(drawn, counting_policy(), config, scripted)
  state = run.init(jax.random.key(0), jnp.zeros(6, jnp.int32), NO_Z)
  _, records, results = run.run(jnp.ones(()), state, jnp.array([1.0, 0.0, 0.0]), NO_Z)
  filled = np.asarray(records.row) >= 0
  last = np.asarray(records.last)
  rewards = np.asarray(records.step.reward)[..., 0]
  assert last.sum() >= 12
  np.testing.assert_array_equal(rewards[filled], np.where(last, np.float32(-0.25), 0)[filled])
  assert not np.asarray(results.reward)[np.asarray(results.over)].any()


ARMY = [types.PLAYER_COLUMNS.index(name) for name in ("food_army", "army_count")]
KILLED = types.SCORE_COLUMNS.index("killed_value_structures")


def fighting():
  """Player 0 has an army of supply 4 and 2 units from loop 100, player 1 one of half the supply.

  Player 1 has killed a structure at loop 200.
  """
  made = clockwork()

  def seen(state, player):
    large = state.loop >= 100
    army = jnp.where(large, jnp.array([4, 2]) // jnp.array([1 + player, 1]), 0)
    return army, jnp.where((player == 1) & (state.loop >= 200), 150, 0)

  def observe(state, player):
    observation, privileged = made.observe(state, player)
    (army, killed), (other, lost) = seen(state, player), seen(state, 1 - player)
    return (observation._replace(player=observation.player.at[jnp.array(ARMY)].set(army)),
            privileged._replace(
              cumulative_score=privileged.cumulative_score.at[KILLED].set(killed),
              opponent_player=privileged.opponent_player.at[jnp.array(ARMY)].set(other),
              opponent_cumulative_score=privileged.opponent_cumulative_score.at[KILLED].set(lost)))

  return made._replace(observe=observe)


def test_results_hold_the_behaviour_of_both_players():
  """Also of a scripted one, as its opponent observes it; games that follow start again."""
  run = rollouts.make_rollouts(fighting(), counting_policy(), CONFIG, scripted)
  state = run.init(jax.random.key(4), jnp.array([0, 0, 0, 1, 1, 2]), NO_Z)
  outputs = []
  for _ in range(2):
    state, *output = run.run(jnp.ones(()), state, jnp.array([0.5, 0.25, 0.25]), NO_Z)
    outputs.append(jax.tree.map(np.asarray, output))
  records, results = jax.tree.map(lambda *x: np.concatenate(x), *outputs)
  over, track = results.over, results.track
  assert over.sum() > 6
  assert (track.supply[over] == [4, 2]).all() and (track.units[over] == 2).all()
  assert (track.attack[over][:, 0] == -1).all()
  rows, loops = records.row.reshape(-1), records.step.observation.game_loop.reshape(-1)
  for game in range(CONFIG.games):
    end = np.flatnonzero(over[:, game])[0]
    seer = 2 * game + int(results.opponent[end, game] == 0)
    until = (end + 1) * CONFIG.inference_batch
    own = loops[:until][rows[:until] == seer]
    assert track.attack[end, game, 1] == own[own >= 200][0]


@pytest.mark.parametrize("displaced, grid_per_unit, built", [(0, 1.0, 0.5), (3, 1.0, 0.3),
                                                             (3, 2.0, 0.45)])
def test_pseudo_rewards_are_for_what_a_row_executed_since_its_last_record(
    displaced, grid_per_unit, built):
  """Each step builds the next type of z; its place costs 0.8 / 36 for each square unit."""
  made = builders.building()
  environment = made._replace(act=lambda state, actions, acts: made.act(
    state, actions._replace(repeat=actions.repeat + displaced), acts))
  config = rollouts.RolloutConfig(games=4, inference_batch=8, iterations=22, max_advances=1,
                                  pseudo_scale=0.5, grid_per_unit=grid_per_unit)
  active = np.float32([[[1, 1, 1, 1], [0, 0, 0, 0]]])  # of both players of self-play
  conditioning = builders.make_conditioning(
    1 + np.arange(2 * builders.ACTIONS).reshape(2, -1), 2000)._replace(active=active)
  run = rollouts.make_rollouts(environment, builders.make_policy(True), config,
                               builders.scripted)
  state = run.init(jax.random.key(1), jnp.zeros(4, jnp.int32), conditioning)
  assert (state.z.build_order[:, 0] != state.z.build_order[:, 1]).any()
  _, records, _ = run.run(jnp.int32(0), state, jnp.ones(1), conditioning)
  rows, steps = np.asarray(records.row).reshape(-1), jax.tree.map(
    lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), records.step)
  for row in range(8):
    own = jax.tree.map(lambda x, row=row: x[rows == row][:1 + builders.ACTIONS], steps)
    expected = np.zeros((1 + builders.ACTIONS, 5))
    if row % 2 == 0:
      expected[1:, 1:3] = built, 0.5  # build order, units; the game is a draw
    np.testing.assert_allclose(own.reward, expected, atol=1e-6)
    np.testing.assert_array_equal(own.pseudo_active, np.full((21, 4), row % 2 == 0))
