"""Acting records what the task gave and what the policy did, in the order of the steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.companions import acting
from starleague.companions.system import GREEDY, NO_STATE, Acted, System, step_format
from starleague.data import wire
from tests.companions.catch import ROWS, make_catch

COPIES, ITERATIONS = 3, 9


def counting_system():
  """A system whose action is its copy's index, and whose state counts the steps."""
  def act(params, key, inputs, state, copy):
    action = jnp.where(copy == GREEDY, 2, copy % 3).astype(jnp.int32)
    return Acted(action, inputs.last_reward, (state[0] + 1,))

  return System("counting", lambda key: {"layer": {"w": jnp.zeros(())}},
                lambda: (jnp.zeros(1),), act, lambda *_: None)


@pytest.fixture(scope="module")
def played():
  """Steps [N, n], records and episodes of a call, and the state after it."""
  task, system = make_catch(COPIES), counting_system()
  actor = acting.make_acting(system, task, ITERATIONS)
  state = actor.init(jax.random.key(0))
  params = system.init(jax.random.key(0))
  state, records, episodes = actor.run(params, state)
  steps = wire.unpack_steps(records.step, step_format(system, task))
  return jax.tree.map(np.asarray, (steps, records, episodes)), state, actor, params


def test_actions_and_states_are_those_of_the_policy(played):
  steps, records, _ = played[0]
  np.testing.assert_array_equal(steps.action, np.tile([0, 1, 2], (ITERATIONS, 1)))
  np.testing.assert_array_equal(
    records.core_state[0][..., 0], np.tile(np.arange(ITERATIONS)[:, None], (1, COPIES)))


def test_episodes_end_when_the_ball_is_down(played):
  steps, _, episodes = played[0]
  ended = np.arange(ITERATIONS) % (ROWS - 1) == ROWS - 2
  np.testing.assert_array_equal(episodes.ended, np.tile(ended[:, None], (1, COPIES)))
  np.testing.assert_array_equal(episodes.lengths[ended], ROWS - 1)
  assert set(np.unique(episodes.returns[ended])) <= {-1.0, 1.0}
  # The reward of an end comes with the first step of the next episode.
  begins = np.r_[False, ended[:-1]]
  np.testing.assert_array_equal(steps.reward[begins], episodes.returns[:-1][ended[:-1]])
  np.testing.assert_array_equal(steps.discount, np.tile(~begins[:, None], (1, COPIES)))
  np.testing.assert_array_equal(steps.inputs.first[:, 0], np.r_[True, begins[1:]])


def test_an_episode_forgets_the_last_action_and_reward(played):
  steps, _, _ = played[0]
  first = steps.inputs.first
  for forgotten in (steps.inputs.last_action, steps.inputs.last_reward):
    assert (forgotten[first] == 0).all()
  later = ~first[1:]
  np.testing.assert_array_equal(steps.inputs.last_action[1:][later], steps.action[:-1][later])


def test_a_second_call_goes_on_without_compiling(played):
  _, state, actor, params = played
  again, records, _ = actor.run(params, jax.tree.map(jnp.copy, state))
  assert records.core_state[0][0, 0, 0] == ITERATIONS
  assert again.core[0][0, 0] == 2 * ITERATIONS
  assert actor.run._cache_size() == 1


def finished_episodes(*rows):
  """Episodes of one step each; NaN where none ended."""
  returns = np.array(rows, np.float32)
  return acting.Episodes(~np.isnan(returns), returns, np.ones(returns.shape, np.int32))


def test_scores_are_means_over_the_parts_since_the_last_clear():
  log = acting.EpisodeLog(make_catch(3)._replace(parts=(("a", 2), ("b", 1))), 0)
  assert log.scores() == []
  log.add(finished_episodes([1.0, 2.0, np.nan], [4.0, np.nan, np.nan]))
  assert log.scores() == []  # none of the second part
  log.add(finished_episodes([np.nan, np.nan, 10.0], [np.nan, np.nan, 20.0]))
  assert log.scores() == [(2.0 + 10.0) / 2, (4.0 + 20.0) / 2]
  log.clear()
  assert log.scores() == []
  log.add(finished_episodes([8.0, np.nan, 6.0]))
  assert log.scores() == [7.0]
  assert log.means()["return/train/a"] == (1.0 + 2.0 + 4.0 + 8.0) / 4  # the log's own, not cleared


def test_greedy_copies_are_told_so():
  task, system = make_catch(2), counting_system()
  actor = acting.make_acting(system, task, 3, greedy=True)
  _, records, _ = actor.run(system.init(jax.random.key(0)), actor.init(jax.random.key(0)))
  steps = wire.unpack_steps(records.step, step_format(system, task))
  assert (np.asarray(steps.action) == 2).all()
  assert NO_STATE[0].shape == (0,)
