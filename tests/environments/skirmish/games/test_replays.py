"""Replays: games are reproduced bit for bit, and changed replays are rejected."""

import jax
import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.games import replay_format, replays
from starleague.environments.skirmish.rules.tables import constants, tiers
from tests.environments.skirmish.games.trees import assert_equal, leaves


def test_a_game_is_recorded_to_its_end(replay, states):
  assert replay.winner in (0, 1) and states.winner[-1] == replay.winner
  assert replay.steps > replay_format.STEPS_PER_HASH
  assert replay.steps * constants.LOOPS_PER_STEP == states.loop[-1]
  lost = states.kind[-1, 1 - replay.winner, :tiers.TIERS["mini"].structures]
  assert not lost.any()


def test_resimulated_states_match_steps_and_hashes(replay, states):
  assert {len(leaf) for _, leaf in leaves(states)} == {replay.steps + 1}
  np.testing.assert_array_equal(
    states.loop, constants.LOOPS_PER_STEP * np.arange(replay.steps + 1))
  assert np.all(states.winner[:-1] == -1)
  assert replay_format.hash_steps(replay.steps)[:2] == (0, 256)
  for step, expected in zip(replay_format.hash_steps(replay.steps), replay.hashes, strict=True):
    assert replays.state_hash(jax.tree.map(lambda x, at=step: x[at], states)) == expected


def test_a_saved_replay_resimulates_to_equal_states(replay, states, path):
  assert path.stat().st_size < 8_000
  loaded = replays.load(path)
  assert_equal(replay, loaded)
  again = replays.resimulate(loaded)
  for (name, one), (_, other) in zip(leaves(states), leaves(again), strict=True):
    assert one.dtype == other.dtype and one.tobytes() == other.tobytes(), name


def test_players_act_when_their_delays_end(replay):
  for player in range(2):
    mine = replay.player == player
    delays = np.asarray(replay.actions.delay)[mine][:-1]
    expected = -(-delays.astype(int) // constants.LOOPS_PER_STEP)
    np.testing.assert_array_equal(np.diff(replay.step[mine]), expected)


def test_equal_seeds_give_equal_games(replay):
  pair = (replays.scripted_player("rusher"), replays.scripted_player("builder"))
  one, other = (replays.record(pair, seed, max_steps=40) for seed in (3, 4))
  assert one.steps == other.steps == 40 and one.winner == replay_format.UNFINISHED
  assert one.hashes[0] == replay.hashes[0] != other.hashes[0]
  count = len(one.step)
  np.testing.assert_array_equal(one.actions.location, replay.actions.location[:count])
  assert replays.resimulate(one).loop[-1] == 40 * constants.LOOPS_PER_STEP


def test_sides_are_swapped(replay):
  pair = (replays.scripted_player("rusher"), replays.scripted_player("builder"))
  swapped = replays.record(
    pair, 3, match_up=replays.make_match_up(swap_sides=True), max_steps=1)
  states = replays.resimulate(swapped)
  assert states.side[0].tolist() == [-1.0, 1.0]


def _changed(replay, field, row, value):
  values = getattr(replay.actions, field).copy()
  values[row] = value
  return replay._replace(actions=replay.actions._replace(**{field: values}))


@pytest.mark.parametrize("late", [False, True])
def test_a_changed_action_fails_at_the_next_hash(replay, late):
  """The position of a building, and the training of a marine."""
  function = replay.actions.function
  if late:
    trains = function == vocabulary.FUNCTIONS.index("Train_Marine_quick")
    row = np.flatnonzero(trains & (replay.step > 256))[0]
    changed = _changed(replay, "function", row, 0)
    after = next(at for at in replay_format.hash_steps(replay.steps) if at > replay.step[row])
    expected = rf"step {after}: .* they agree up to step 256: the replay was changed"
  else:
    builds = function == vocabulary.FUNCTIONS.index("Build_Barracks_pt")
    changed = _changed(replay, "location", np.flatnonzero(builds)[0], 500)
    expected = r"step 256: the game is not .* found \w{16}; they agree up to step 0:"
  with pytest.raises(replays.ReplayError, match=expected):
    replays.resimulate(changed)


def test_a_changed_delay_fails_at_the_next_action(replay):
  row, following = np.flatnonzero((replay.player == 1) & (replay.step > 256))[:2]
  assert replay.step[following] < replay.step[row] + 127 // constants.LOOPS_PER_STEP
  expected = rf"step {replay.step[following]}: player 2 acts, but by the delay .* it is not due:"
  with pytest.raises(replays.ReplayError, match=expected):
    replays.resimulate(_changed(replay, "delay", row, 127))


@pytest.mark.parametrize(("index", "step"), [(0, 0), (1, 256)])
def test_a_changed_hash_fails_at_its_step(replay, index, step):
  hashes = list(replay.hashes)
  hashes[index] = "0123456789abcdef" * 4
  found = replay.hashes[index][:16]
  with pytest.raises(replays.ReplayError,
                     match=rf"step {step}: .*expected .* 0123456789abcdef, found {found};"):
    replays.resimulate(replay._replace(hashes=tuple(hashes)))


@pytest.mark.parametrize(("change", "message"), [
  ({"seed": 4}, "step 0: .* they differ from the start"),
  ({"winner": 2}, "winner: expected 2, found [01]$"),
  ({"seed": 4, "recorded_with": "jax 9.9 on abacus"},
   "it was recorded with jax 9.9 on abacus, this is jax .* may round differently"),
  ({"rules": "0" * 16}, "rules of tier 'mini': expected 0000000000000000, found .* has changed")])
def test_a_replay_of_another_game_is_rejected(replay, change, message):
  with pytest.raises(replays.ReplayError, match=message):
    replays.resimulate(replay._replace(**change))
