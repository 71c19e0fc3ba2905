"""Labelled games of a student on the clockwork environment."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import demonstrations, rollouts, students
from starleague.agent import types
from starleague.data.games import waits
from starleague.data.z import conditioning
from tests.actor.clockwork import LENGTH, STEP_LOOPS, counting_policy, scripted
from tests.actor.test_demonstrations import environment, often_waiting

CONFIG = rollouts.RolloutConfig(
  games=6, inference_batch=4, iterations=64, max_advances=8, restart=False)
PLAYERS = [demonstrations.Player(script=0, mmr=2000), demonstrations.Player(1, 5000, income=150)]
PAIRS = students.pairings(2)
CONDITIONS = conditioning.unconditional(1, 0)
LOOK = 16  # loops between two looks of `often_waiting`


def policy_of(delay: int):
  """The counting policy, which always chooses one delay."""
  policy = counting_policy()

  def step(params, key, observation, state):
    output = policy.step(params, key, observation, state)
    return output._replace(action=output.action._replace(delay=jnp.int16(delay)))

  return policy._replace(step=step)


@functools.cache
def played(share: float, delay: int = 0, taught: bool = True,
           takes_over: int = students.NEVER):
  """Both players' records by (game, player), and the pairing of each game."""
  program = students.make_students(
    environment(), policy_of(delay), PLAYERS, PAIRS, CONFIG, often_waiting, 2, STEP_LOOPS,
    taught=taught)
  state = program.init(jax.random.key(0), np.arange(6) % 4, CONDITIONS)
  pairing = np.asarray(state.opponent)
  state, parts = students.prepare(state, share, takes_over=takes_over), []
  for _ in range(12):
    state, records, _ = program.run(jnp.ones(()), state, np.ones(4) / 4, CONDITIONS)
    parts.append(jax.tree.map(np.asarray, records))
  assert program.run._cache_size() == 1 and (np.asarray(state.opponent) < 0).all()
  records = jax.tree.map(lambda *x: np.concatenate(x).reshape(-1, *x[0].shape[2:]), *parts)
  return {(row // 2, row % 2): jax.tree.map(lambda x, row=row: x[records.row == row], records)
          for row in range(12)}, pairing


def acts(loop: int, index: int, player: int) -> bool:
  """Whether `often_waiting` acts."""
  return (loop * (3 + index) // 16 + player) % (4 + 7 * index) == 0


def test_pairings_are_all_teachers_with_all_opponents():
  assert PAIRS.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_teachers_alone_play_their_own_games():
  """With a share of 1 the labels are the actions taken, and their delays last until the next."""
  records, pairing = played(1.0)
  for (game, player), own in records.items():
    index = PAIRS[pairing[game]][player]
    loops = own.step.observation.game_loop
    every = np.arange(0, LENGTH + 1, LOOK)
    functions = np.array([7 * acts(loop, index, player) for loop in every[:-1]])
    kept = waits.kept(functions, every)
    np.testing.assert_array_equal(loops, every[kept])
    np.testing.assert_array_equal(own.step.action.function[:-1], functions[kept[:-1]])
    if player == students.STUDENT:
      until = np.diff(loops)[:-1]
      np.testing.assert_array_equal(own.step.action.delay[1:-1], until)
    assert set(own.step.observation.mmr.tolist()) == {PLAYERS[index].mmr}


@pytest.mark.parametrize("delay", [8, 24, 40, 120])
def test_labels_are_those_of_the_teacher_at_the_students_states(delay):
  records, pairing = played(0.0, delay)
  for game in range(6):
    index, own = PAIRS[pairing[game]][0], records[game, students.STUDENT]
    loops = own.step.observation.game_loop
    np.testing.assert_array_equal(loops, [*range(0, LENGTH, delay), LENGTH])
    expected = [7 * acts(loop, index, 0) for loop in loops[:-1]]
    assert own.step.action.function[:-1].tolist() == expected
    for now, until, label in zip(loops, loops[1:], own.step.action.delay[1:], strict=False):
      # The teacher looks again until it acts, the student decides, or the delay is the longest.
      looks = now + LOOK
      while looks <= until and not acts(looks, index, 0) and (
          looks + LOOK - now <= types.MAX_DELAY):
        looks += LOOK
      assert label == looks - now, (now, until)


def test_an_untaught_students_own_actions_are_recorded():
  records, pairing = played(0.0, 24, taught=False)
  policy, params = policy_of(24), jnp.ones(())
  for (game, player), own in records.items():
    mmr = PLAYERS[PAIRS[pairing[game]][player]].mmr
    assert set(own.step.observation.mmr.tolist()) == {mmr}
    if player != students.STUDENT:
      taught = played(0.0, 24)[0][game, player].step
      np.testing.assert_array_equal(own.step.action.function, taught.action.function)
      continue
    assert own.step.observation.game_loop.tolist() == [*range(0, LENGTH, 24), LENGTH]
    state = policy.initial_state()
    for i in range(LENGTH // 24):
      observation = jax.tree.map(lambda x, i=i: x[i], own.step.observation)
      output = policy.step(params, jax.random.key(0), observation, state)
      assert own.step.action.function[i] == output.action.function
      assert own.step.action.delay[i] == 24
      state = output.state


@pytest.mark.parametrize("delay", [24, 40])
def test_a_teacher_plays_on_from_a_step(delay):
  """The records are the student's own actions until then, and the teacher's own game after it."""
  takes_over = 30
  records, pairing = played(0.0, delay, False, takes_over)
  before = played(0.0, delay, False)[0]
  begins = -(-takes_over * STEP_LOOPS // delay) * delay  # a decision of the student's would be due
  played_on = 0
  for game in range(6):
    index, own = PAIRS[pairing[game]][0], records[game, students.STUDENT]
    loops, function = own.step.observation.game_loop, own.step.action.function
    first = begins // delay
    for now, then in zip(jax.tree.leaves(own.step),
                         jax.tree.leaves(before[game, students.STUDENT].step), strict=True):
      np.testing.assert_array_equal(now[:first], then[:first])
    # The teacher's game goes on from the student's last decision.
    every = np.array([begins - delay, *range(begins, LENGTH + 1, LOOK)])
    functions = np.array([1, *(7 * acts(loop, index, 0) for loop in every[1:-1])])
    kept = waits.kept(functions, every)[1:]
    np.testing.assert_array_equal(loops[first:], every[kept])
    np.testing.assert_array_equal(function[first:-1], functions[kept[:-1]])
    played_on += (function[first:-1] == 7).sum()
  assert played_on > 6


def test_the_share_of_the_teachers_own_decisions():
  program = students.make_students(
    environment(), policy_of(120), PLAYERS[:1], students.pairings(1), CONFIG, scripted, 2,
    STEP_LOOPS)
  state = students.prepare(
    program.init(jax.random.key(0), np.zeros(6, int), CONDITIONS), 0.5)
  taken = np.zeros(2)  # by the teacher, by the student
  for _ in range(12):
    state, records, _ = program.run(jnp.ones(()), state, np.ones(1), CONDITIONS)
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), records)
    for row in range(0, 12, 2):
      loops = flat.step.observation.game_loop[flat.row == row]
      gaps = np.diff(loops[loops < LENGTH - 120])
      taken += (gaps == LOOK).sum(), (gaps == 120).sum()
  assert taken.sum() > 20 and 0.25 < taken[0] / taken.sum() < 0.75


def test_the_student_observes_z_and_keeps_its_core_state():
  seen = []

  def step(params, key, observation, state):
    jax.debug.callback(lambda z: seen.append(int(z)), observation.statistics.build_order[0])
    return policy_of(40).step(params, key, observation, state)

  program = students.make_students(
    environment(), counting_policy()._replace(step=step), PLAYERS, PAIRS, CONFIG, scripted, 2,
    STEP_LOOPS)
  state = program.init(jax.random.key(0), np.arange(6) % 4, CONDITIONS)
  z = jax.tree.map(lambda x: np.ones((6, *x.shape), x.dtype), types.statistics_spec())
  z.build_order[:, 0] = 10 + np.arange(6)
  state = students.prepare(state, 0.0, z)
  state, records, _ = program.run(jnp.ones(()), state, np.ones(4) / 4, CONDITIONS)
  jax.effects_barrier()
  assert set(range(10, 16)) <= set(seen)
  flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), records)
  assert not flat.step.observation.statistics.build_order.any()  # the dataset adds z
  core = flat.core_state.hidden[flat.row == 0, 0, 0]
  np.testing.assert_array_equal(core, np.arange(len(core)))  # the policy counts its steps
