"""Games between scripted players on the clockwork environment."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor import demonstrations, rollouts
from starleague.data.games import waits
from starleague.data.z import conditioning
from tests.actor.clockwork import LENGTH, STEP_LOOPS, clockwork, scripted

CONFIG = rollouts.RolloutConfig(games=6, inference_batch=4, iterations=64, max_advances=8)
PLAYERS = [demonstrations.Player(script=3, mmr=2000), demonstrations.Player(0, 5000, income=150),
           demonstrations.Player(1, 7000)]
PAIRS = demonstrations.pairings(3)
CONDITIONS = conditioning.unconditional(1, 0)


def _reset(key, match_up):
  """A clock, and the match-up beside it."""
  return {"clock": clockwork().reset(key, match_up), "match_up": match_up}


def environment():
  """The clockwork environment whose observations show the MMR."""
  clock = clockwork()

  def observe(state, player):
    observation, privileged = clock.observe(state["clock"], player)
    return observation._replace(mmr=state["match_up"].mmr[player]), privileged

  def within(function):
    return lambda state, *rest: state | {"clock": function(state["clock"], *rest)}

  return clock._replace(
    reset=_reset, observe=observe, act=within(clock.act), advance=within(clock.advance),
    due=lambda state: clock.due(state["clock"]),
    outcome=lambda state: clock.outcome(state["clock"]))


@functools.cache
def played(seed: int = 0, calls: int = 4, chunk: int = 32):
  program = demonstrations.make_demonstrations(
    environment(), PLAYERS, PAIRS, dataclasses.replace(CONFIG, chunk=chunk), scripted, 2,
    STEP_LOOPS)
  probabilities = np.full(len(PAIRS), 1 / len(PAIRS), np.float32)
  state = program.init(jax.random.key(seed), np.arange(6), CONDITIONS)
  outputs = []
  for _ in range(calls):
    state, records, results = program.run((), state, probabilities, CONDITIONS)
    outputs.append(jax.tree.map(np.asarray, (records, results)))
  assert program.run._cache_size() == 1
  return jax.tree.map(lambda *x: np.concatenate(x), *outputs)


def test_pairings_are_all_pairs_with_mirrors():
  assert PAIRS.tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]


def test_both_players_decisions_are_recorded_with_their_own_strength():
  records, results = played()
  flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), records)
  delays, strengths = set(), []
  for row in range(2 * CONFIG.games):
    own = jax.tree.map(lambda x, row=row: x[flat.row == row], flat)
    begins = np.flatnonzero(own.first)
    for begin, end in zip(begins, begins[1:], strict=False):
      game = jax.tree.map(lambda x, begin=begin, end=end: x[begin:end], own)
      loops, chosen = game.step.observation.game_loop, game.step.action.delay[:-1].astype(int)
      assert loops[0] == 0 and loops[-1] == LENGTH and game.last[-1] and not game.last[:-1].any()
      due = loops[:-1] + -(-chosen // STEP_LOOPS) * STEP_LOOPS
      np.testing.assert_array_equal(np.minimum(due, LENGTH), loops[1:])
      assert (game.step.action.function[:-1] == 7).all()
      mmr, = set(game.step.observation.mmr.tolist())
      script = next(player.script for player in PLAYERS if player.mmr == mmr)
      assert set(chosen) == {16 + 8 * script}
      delays |= set(chosen)
      strengths.append((row % 2, mmr))
  assert delays == {16, 24, 40}
  assert len(set(strengths)) == 6
  assert not np.asarray(flat.step.log_prob).any()
  assert set(results.opponent[results.over]) == set(range(len(PAIRS)))
  assert set(results.map_index[results.over]) == {0}


def test_decisions_do_not_depend_on_chunks():
  for a, b in zip(jax.tree.leaves(played(calls=1)), jax.tree.leaves(played(calls=1, chunk=5)),
                  strict=True):
    np.testing.assert_array_equal(a, b)


def test_income_is_that_of_the_pairing():
  program = demonstrations.make_demonstrations(
    environment(), PLAYERS, PAIRS, CONFIG, scripted, 2, STEP_LOOPS)
  state = program.init(jax.random.key(0), jnp.arange(6), CONDITIONS)
  match_up = state.environment["match_up"]
  np.testing.assert_array_equal(match_up.mmr, np.array([2000, 5000, 7000])[PAIRS])
  np.testing.assert_array_equal(match_up.income, np.array([100, 150, 100])[PAIRS])


def often_waiting(index, key, state, player):
  """Acts when a function of the loop says so, and waits otherwise; looks again after 16 loops."""
  action = scripted(jnp.int32(0), key, state, player)
  acts = (state["clock"].loop * (3 + index) // 16 + player) % (4 + 7 * index) == 0
  return action._replace(function=jnp.where(acts, 7, waits.NO_OP).astype(jnp.int16))


def test_waiting_is_not_recorded():
  """Compares with all decisions of the same players, merged afterwards."""
  players = [demonstrations.Player(script=0, mmr=1), demonstrations.Player(script=1, mmr=2)]
  program = demonstrations.make_demonstrations(
    environment(), players, np.array([[0, 1]]), CONFIG, often_waiting, 2, STEP_LOOPS)
  state = program.init(jax.random.key(0), np.zeros(6, int), CONDITIONS)
  state, records, _ = program.run((), state, np.ones(1, np.float32), CONDITIONS)
  flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), records)
  games = 0
  for row in range(2 * CONFIG.games):
    own = jax.tree.map(lambda x, row=row: x[flat.row == row], flat)
    begins = np.flatnonzero(own.first)
    every = np.arange(0, LENGTH + 1, 16)
    index = player = row % 2
    functions = np.where((every[:-1] * (3 + index) // 16 + player) % (4 + 7 * index) == 0, 7, 0)
    kept = waits.kept(functions, every)
    for begin, end in zip(begins, begins[1:], strict=False):
      games += 1
      step = jax.tree.map(lambda x, begin=begin, end=end: x[begin:end], own.step)
      np.testing.assert_array_equal(step.observation.game_loop, every[kept])
      np.testing.assert_array_equal(step.action.function[:-1], functions[kept[:-1]])
  assert games > 20
