"""Rollouts of several players on the clockwork environment."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import players, rollouts
from starleague.agent import types
from starleague.data.z.conditioning import unconditional
from tests.actor.clockwork import clockwork, counting_policy, scripted

NO_Z = unconditional(maps=1, mmr=6200)
SIZES = players.Sizes(slots=3, matches=2, scripts=2, chunk=2)
CONFIG = rollouts.RolloutConfig(games=8, inference_batch=6, iterations=64, max_advances=8)
# The policy adds its parameter to the core state at each step: it shows whose weights inferred.
STEPS = (1.0, 100.0, 10_000.0)
PAIRS = np.array([[0, 1], [2, 2]], np.int32)
OPPONENTS = np.array([0, 1, SIZES.scripted_match(0, 0), SIZES.scripted_match(1, 1),
                      SIZES.scripted_match(2, 0), 0, 1, 0])


@functools.cache
def program() -> rollouts.Rollouts:
  return players.make_rollouts(clockwork(), counting_policy(), CONFIG, SIZES, scripted)


def at_hand(steps=STEPS) -> players.Players:
  return players.stack([np.float32(step) for step in steps], PAIRS)


@functools.cache
def played(calls: int = 3):
  """Returns the players of each game at the start, records and results of several calls."""
  state = program().init(jax.random.key(0), OPPONENTS, NO_Z)
  probabilities = np.full(SIZES.opponents, 1 / SIZES.opponents, np.float32)
  outputs = []
  for _ in range(calls):
    state, records, results = program().run(at_hand(), state, probabilities, NO_Z)
    outputs.append(jax.tree.map(np.asarray, (records, results)))
  return jax.tree.map(lambda *x: np.concatenate(x), *outputs)


def slots_by_hand(opponent: int) -> tuple[int, int]:
  if opponent < SIZES.matches:
    return tuple(PAIRS[opponent])
  return ((opponent - SIZES.matches) // SIZES.scripts,) * 2


def test_opponent_index_names_the_slots():
  opponents = np.arange(SIZES.opponents)
  expected = [slots_by_hand(opponent) for opponent in opponents]
  np.testing.assert_array_equal(players.slots_of(SIZES, PAIRS, opponents), expected)
  assert SIZES.opponents == 8 and SIZES.scripted_match(2, 1) == 7


def test_each_row_is_inferred_with_the_weights_of_its_player():
  """The core state counts the row's steps in units of its slot's parameter."""
  records, results = played()
  opponent = OPPONENTS.copy()
  checked = np.zeros(3, int)
  for iteration in range(len(records.row)):
    for i in np.flatnonzero(records.row[iteration] >= 0):
      row = records.row[iteration, i]
      slot = slots_by_hand(opponent[row // 2])[row % 2]
      acted = records.step.observation.player[iteration, i, 0]
      assert records.core_state.hidden[iteration, i, 0, 0] == acted * STEPS[slot]
      checked[slot] += acted > 0
    for game in np.flatnonzero(results.over[iteration]):
      assert results.opponent[iteration, game] == opponent[game]
      opponent[game] = -9  # a new match: learnt from its next result
    after = results.opponent[iteration + 1] if iteration + 1 < len(records.row) else opponent
    opponent = np.where(opponent == -9, after, opponent)
  assert (checked > 50).all()


def test_scripted_players_are_not_recorded():
  records, results = played()
  assert set(results.opponent[results.over]) == set(range(SIZES.opponents))
  odd = (records.row >= 0) & (records.row % 2 == 1)
  assert 0 < odd.sum() < (records.row >= 0).sum() / 2


def test_other_players_and_matches_need_no_compilation():
  played()
  state = program().init(jax.random.key(1), OPPONENTS, NO_Z)
  probabilities = np.zeros(SIZES.opponents, np.float32)
  probabilities[1] = 1.0
  others = at_hand((5.0, 6.0, 7.0))._replace(pairs=np.array([[2, 0], [1, 1]], np.int32))
  program().run(others, state, probabilities, NO_Z)
  assert program().run._cache_size() == 1


def test_conditions_may_differ_by_match():
  """Only player 0 of match 0 gets z."""
  active = np.zeros((SIZES.opponents, 2, len(types.PSEUDO_REWARDS)), np.float32)
  active[0, 0] = 1.0
  state = program().init(jax.random.key(2), OPPONENTS, NO_Z._replace(active=active))
  expected = (OPPONENTS == 0)[:, None, None] & np.array([True, False])[:, None]
  np.testing.assert_array_equal(state.pseudo_active, np.broadcast_to(expected, (8, 2, 4)))


def test_races_may_differ_by_match():
  races = np.full((SIZES.opponents, 2), -1, np.int32)
  races[0], races[1, 1] = (2, 3), 4
  state = program().init(jax.random.key(2), OPPONENTS, NO_Z._replace(races=races))
  drawn = CONFIG.races[0]
  expected = np.array([{0: (2, 3), 1: (drawn, 4)}.get(m, (drawn, drawn)) for m in OPPONENTS])
  np.testing.assert_array_equal(state.race, expected)


def test_slot_order_does_not_matter():
  """The same game is played whichever slot holds the weights."""
  def last_cores(steps, pairs):
    config = rollouts.RolloutConfig(games=4, inference_batch=8, iterations=16)
    run = players.make_rollouts(clockwork(), counting_policy(), config,
                                players.Sizes(slots=2, matches=1, scripts=0, chunk=4), None)
    state = run.init(jax.random.key(3), np.zeros(4, np.int32), NO_Z)
    state, _, _ = run.run(players.stack([np.float32(s) for s in steps], np.array([pairs])), state,
                          np.ones(1, np.float32), NO_Z)
    return np.asarray(state.environment.acted), np.asarray(state.core.hidden)[..., 0, 0]

  acted, cores = last_cores((1.0, 100.0), (0, 1))
  acted_swapped, cores_swapped = last_cores((100.0, 1.0), (1, 0))
  assert acted.sum() == acted_swapped.sum() > 40
  assert (cores[:, 0] <= acted[:, 0]).all() and (cores[:, 1] % 100 == 0).all()
  assert (cores_swapped[:, 0] <= acted_swapped[:, 0]).all()
  assert (cores_swapped[:, 1] % 100 == 0).all()


def test_the_opponents_fall_of_value_is_rewarded():
  """The value of a decision is its number in the game times the player's weight, over 100."""
  def values(params, core, observation, privileged):
    number = 1.0 + observation.player[0]
    return jnp.zeros(len(types.REWARDS)).at[0].set(params * number / 100)

  policy = counting_policy()._replace(values=values)
  sizes = players.Sizes(slots=2, matches=1, scripts=0, chunk=1)
  config = rollouts.RolloutConfig(games=3, inference_batch=4, iterations=200)
  run = players.make_rollouts(clockwork(), policy, config, sizes, None, valued=True)
  conditioning = NO_Z._replace(minimax=np.array([[0.0, 0.5]], np.float32))
  state = run.init(jax.random.key(4), np.zeros(3, np.int32), conditioning)
  _, records, _ = run.run(players.stack([np.float32(1), np.float32(2)], np.array([[0, 1]])), state,
                          np.ones(1, np.float32), conditioning)
  row, step, last = np.asarray(records.row), records.step, np.asarray(records.last)
  value, met, total = np.zeros(6), np.zeros(6), np.zeros(6)
  ended = 0
  for iteration in range(len(row)):
    for slot in np.flatnonzero(row[iteration] >= 0):
      here, at = row[iteration, slot], (iteration, slot)
      player, over = here % 2, bool(last[at])
      now = 0.0 if over else value[here ^ 1]
      expected = (1.0 - 2.0 * player) * over + (0.5 * (met[here] - now) if player else 0.0)
      np.testing.assert_allclose(step.reward[at][0], expected, atol=1e-6)
      met[here], total[here] = now, total[here] + float(step.reward[at][0])
      if over:  # the rewards of a game sum to its result
        np.testing.assert_allclose(total[here], 1.0 - 2.0 * player, atol=1e-5)
        met[here], total[here], ended = 0.0, 0.0, ended + 1
    for slot in np.flatnonzero(row[iteration] >= 0):  # after all observations of the iteration
      here, at = row[iteration, slot], (iteration, slot)
      number = 1.0 + np.asarray(step.observation.player[at][0])
      value[here] = 0.0 if last[at] else (1 + here % 2) * number / 100
  assert ended > 10


def test_units_built_and_lost_are_rewarded():
  """A player has as many units of a type as it acted, and the opponent sees them fall from 200."""
  made = clockwork()

  def observe(state, player):
    observation, privileged = made.observe(state, player)
    own = jnp.zeros(256, jnp.uint8).at[7].set(state.acted[player].astype(jnp.uint8))
    rival = jnp.zeros(256, jnp.uint8).at[9].set(200 - state.acted[1 - player].astype(jnp.uint8))
    return (observation._replace(unit_counts=own),
            privileged._replace(opponent_unit_counts=rival))

  sizes = players.Sizes(slots=2, matches=1, scripts=0, chunk=1)
  config = rollouts.RolloutConfig(games=3, inference_batch=4, iterations=200)
  run = players.make_rollouts(
    made._replace(observe=observe), counting_policy(), config, sizes, None)
  objectives = np.zeros((2, 2, 256), np.float32)
  objectives[1, 0, 7], objectives[1, 1, 9] = 0.25, 0.5
  conditioning = NO_Z._replace(objectives=objectives, objective=np.array([[0, 1]], np.int32))
  state = run.init(jax.random.key(4), np.zeros(3, np.int32), conditioning)
  _, records, _ = run.run(players.stack([np.float32(1), np.float32(1)], np.array([[0, 1]])), state,
                          np.ones(1, np.float32), conditioning)
  row, first, last = (np.asarray(x) for x in (records.row, records.first, records.last))
  before, checked = np.zeros((6, 2), int), 0
  for at in zip(*np.nonzero(row >= 0), strict=True):
    here, observation = row[at], records.step
    now = np.array([observation.observation.unit_counts[at][7],
                    observation.privileged.opponent_unit_counts[at][9]], int)
    rise, fall = np.maximum(0, [now[0] - before[here][0], before[here][1] - now[1]])
    expected = 0.0 if first[at] or here % 2 == 0 else 0.25 * rise + 0.5 * fall
    expected += (1.0 - 2.0 * (here % 2)) * last[at]
    np.testing.assert_allclose(records.step.reward[at][0], expected, atol=1e-6)
    before[here], checked = now, checked + (expected != 0)
  assert checked > 100


@pytest.mark.parametrize("changes, message", [
  ({"slots": 0}, "sizes.slots must be at least 1, found 0"),
  ({"chunk": 4}, "sizes.chunk must divide inference_batch 6, found 4"),
  ({"scripts": 0}, "sizes.scripts is 0: give a scripted player"),
])
def test_invalid_sizes_are_rejected(changes, message):
  with pytest.raises(ValueError, match=message):
    players.make_rollouts(clockwork(), counting_policy(), CONFIG, SIZES._replace(**changes),
                          scripted)
