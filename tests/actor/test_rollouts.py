"""Rollouts on a clockwork environment whose every number is known."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import evaluation, rollouts
from starleague.agent import types
from starleague.agent.policy import Policy, StepOutput
from starleague.environments import base

STEP_LOOPS = 8
LENGTH = 400  # loops of a game
CONFIG = rollouts.RolloutConfig(games=6, inference_batch=4, iterations=64, max_advances=8)


class Clock(NamedTuple):
  """A game that only counts: it ends after LENGTH loops and player 0 wins."""

  loop: jax.Array
  next_loop: jax.Array
  acted: jax.Array
  scripted: jax.Array


def clockwork() -> base.Environment:
  observation = types.zeros(types.observation_spec(4, 4))
  privileged = types.zeros(types.privileged_spec())

  def over(state):
    return state.loop >= LENGTH

  def reset(key, match_up):
    zeros = jnp.zeros((2,), jnp.int32)
    return Clock(loop=jnp.zeros((), jnp.int32), next_loop=zeros, acted=zeros, scripted=zeros)

  def observe(state, player):
    seen = jax.tree.map(jnp.asarray, observation)
    counts = jnp.zeros((10,), jnp.int32).at[0].set(state.acted[player]).at[1].set(player)
    return seen._replace(game_loop=state.loop, player=counts), jax.tree.map(
      jnp.asarray, privileged)

  def act(state, actions, acts):
    delay = actions.delay.astype(jnp.int32)
    steps = -(-delay // STEP_LOOPS)
    return state._replace(
      next_loop=jnp.where(acts, state.loop + steps * STEP_LOOPS, state.next_loop),
      acted=state.acted + acts, scripted=state.scripted + acts * (actions.function == 7))

  def advance(state):
    return state._replace(loop=jnp.where(over(state), state.loop, state.loop + STEP_LOOPS))

  return base.Environment(
    reset=reset, observe=observe, act=act, advance=advance,
    due=lambda s: (s.loop >= s.next_loop) & ~over(s),
    outcome=lambda s: base.Outcome(
      over=over(s), reward=jnp.where(over(s), jnp.array([1.0, -1.0]), jnp.zeros(2))))


def counting_policy() -> Policy:
  """Acts with a random delay; its core counts the row's steps."""

  def step(params, key, observation, state):
    action = jax.tree.map(jnp.asarray, types.zeros(types.action_spec(2)))
    delay = jax.random.randint(key, (), 1, 50).astype(jnp.int16)
    log_prob = types.Arguments(*[jnp.zeros(())] * 7)
    return StepOutput(
      action=action._replace(delay=delay), log_prob=log_prob, logits=log_prob,
      state=jax.tree.map(lambda x: x + params, state))

  def initial_state():
    return types.CoreState(hidden=jnp.zeros((1, 2)), cell=jnp.zeros((1, 2)))

  return Policy(init=lambda key: jnp.ones(()), initial_state=initial_state, step=step, unroll=None,
                unroll_batch=None)


def scripted(index, key, state, player):
  del key, state, player
  action = jax.tree.map(jnp.asarray, types.zeros(types.action_spec(2)))
  return action._replace(function=jnp.int16(7), delay=(16 + 8 * index).astype(jnp.int16))


@functools.cache
def program(restart: bool):
  config = dataclasses.replace(CONFIG, restart=restart)
  return rollouts.make_rollouts(clockwork(), counting_policy(), config, scripted)


@functools.cache
def played(seed: int = 0, calls: int = 4):
  """Records and results of several calls, one after the other along the first axis."""
  run = program(True)
  state = run.init(jax.random.key(seed), jnp.array([0, 0, 0, 1, 1, 2]), rollouts.no_targets())
  outputs = []
  for _ in range(calls):
    state, records, results = run.run(
      jnp.ones(()), state, jnp.array([0.5, 0.25, 0.25]), rollouts.no_targets())
    outputs.append(jax.tree.map(np.asarray, (records, results)))
  return jax.tree.map(lambda *x: np.concatenate(x), *outputs)


def sequences(records):
  """Each row's records in order, as trees of [steps, ...]."""
  flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), records)
  for row in range(2 * CONFIG.games):
    own = flat.row == row
    yield row, jax.tree.map(lambda x, own=own: x[own], flat)


def test_a_row_is_recorded_at_most_once_an_iteration():
  records, _ = played()
  for rows in records.row:
    used = rows[rows >= 0]
    assert len(set(used)) == len(used)


def test_slots_are_filled_while_rows_are_due():
  records, _ = played()
  assert (records.row[8:] >= 0).mean() > 0.95


def test_records_of_a_row_are_whole_games_in_order():
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


def test_reward_and_discount_are_those_of_arriving():
  records, _ = played()
  for row, steps in sequences(records):
    last = steps.last
    np.testing.assert_array_equal(steps.step.reward[~last], 0.0)
    np.testing.assert_array_equal(
      steps.step.reward[last], [[1.0 - 2.0 * (row % 2), 0, 0, 0, 0]] * last.sum())
    np.testing.assert_array_equal(steps.step.discount, 1.0 - last)


def test_core_state_is_the_one_before_the_step_and_starts_at_zero():
  records, _ = played()
  for _, steps in sequences(records):
    counts = steps.core_state.hidden[:, 0, 0]
    assert (counts[steps.first] == 0).all()
    inside = ~steps.first[1:]
    np.testing.assert_array_equal(np.diff(counts)[inside], 1.0)
    np.testing.assert_array_equal(counts, steps.step.observation.player[:, 0])


def test_scripted_rows_are_not_recorded_and_act_at_their_own_pace():
  records, results = played()
  assert set(results.opponent[results.over]) == {0, 1, 2}
  self_play = (results.over & (results.opponent == 0)).sum()
  lasts = (records.last & (records.row % 2 == 1)).sum()
  # A self-played game has two terminal records, one of which may lie in a call not made yet.
  assert abs(int(lasts) - int(self_play)) <= CONFIG.games


def test_results_say_who_won():
  _, results = played()
  assert (results.reward[results.over] == [1.0, -1.0]).all()


def test_seeded_runs_repeat_bit_for_bit():
  first = played(seed=3, calls=1)
  played.cache_clear()
  again = played(seed=3, calls=1)
  for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
    np.testing.assert_array_equal(a, b)


def test_one_compilation():
  played()
  assert program(True).run._cache_size() == 1


def test_without_restart_each_game_is_counted_once():
  run = program(False)
  state = run.init(jax.random.key(1), jnp.array([0, 0, 1, 1, 2, 2]), rollouts.no_targets())
  finished = []
  for _ in range(6):
    state, _, results = run.run(
      jnp.ones(()), state, jnp.array([1.0, 0.0, 0.0]), rollouts.no_targets())
    finished += list(np.asarray(results.opponent)[np.asarray(results.over)])
  assert sorted(finished) == [0, 0, 1, 1, 2, 2]


def test_sizes_that_cannot_be_are_refused():
  with pytest.raises(ValueError, match="inference_batch must be in 1..8.*found 9"):
    rollouts.RolloutConfig(games=4, inference_batch=9, iterations=1)


def test_evaluation_counts_every_game_once():
  evaluator = evaluation.make_evaluator(
    clockwork(), counting_policy(), scripted, opponents=(0, 1), games=4, inference_batch=8)
  scores = evaluation.evaluate(evaluator, jnp.ones(()), jax.random.key(2))
  assert scores == {0: evaluation.Counts(4, 0, 0), 1: evaluation.Counts(4, 0, 0)}
  assert scores[0].games == 4


def test_evaluation_plays_both_sides_equally_often():
  with pytest.raises(ValueError, match="games must be even.*found 3"):
    evaluation.make_evaluator(clockwork(), counting_policy(), scripted, opponents=(0,), games=3)


def test_targets_are_those_of_the_race_and_the_starting_side():
  targets = rollouts.no_targets(3)
  for race in range(len(types.RACES)):
    for side in range(2):
      targets.units[race, side, :, 2 * race + side] = True
  config = dataclasses.replace(CONFIG, games=64, races=(1, 3), maps=3, pseudo_probability=1.0)
  run = rollouts.make_rollouts(clockwork(), counting_policy(), config, scripted)
  state = run.init(jax.random.key(5), jnp.ones(64, jnp.int32), targets)
  race, side = np.asarray(state.race), np.asarray(state.side)
  assert set(race.reshape(-1)) == {1, 3} and (race[:, 0] != race[:, 1]).any()
  np.testing.assert_array_equal(
    np.argmax(state.target.units, axis=-1), 2 * race + side)
  assert np.asarray(state.target.units).sum() == 128
