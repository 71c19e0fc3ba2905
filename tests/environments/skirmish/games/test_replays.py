"""Replays: a game comes back to the last bit, and what does not belong is refused by name."""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.agent.policy import Policy, StepOutput
from starleague.environments.skirmish.games import exact, replay_format, replays
from starleague.environments.skirmish.rules import constants, tiers

# Replays recorded with the rules of today; record them again when the rules change on purpose.
RECORDED = pathlib.Path(__file__).parent / "recorded"


@pytest.fixture(scope="module")
def replay():
  """A whole game, of more than one stretch between hashes."""
  pair = (replays.scripted_player("rusher"), replays.scripted_player("builder"))
  return replays.record(pair, seed=3)


@pytest.fixture(scope="module")
def states(replay):
  return replays.resimulate(replay)


@pytest.fixture
def path(replay, tmp_path):
  return replays.save(tmp_path / "game.npz", replay)


def _leaves(tree):
  return [(jax.tree_util.keystr(where), np.asarray(leaf))
          for where, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def _rewrite(path, changes=None, **arrays):
  """A replay's file with other contents; None leaves an array out."""
  with np.load(path) as file:
    found = dict(file)
  if changes is not None:
    manifest = json.loads(found["manifest"].tobytes()) | changes
    found["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
  found |= arrays
  np.savez_compressed(path, **{name: x for name, x in found.items() if x is not None})


def test_game_is_played_to_its_end(replay, states):
  assert replay.winner in (0, 1) and states.winner[-1] == replay.winner
  assert replay.steps > replay_format.STEPS_PER_HASH
  assert replay.steps * constants.LOOPS_PER_STEP == states.loop[-1]
  lost = states.kind[-1, 1 - replay.winner, :tiers.TIERS["mini"].structures]
  assert not lost.any()


def test_states_are_those_of_each_step(replay, states):
  assert {len(leaf) for _, leaf in _leaves(states)} == {replay.steps + 1}
  np.testing.assert_array_equal(
    states.loop, constants.LOOPS_PER_STEP * np.arange(replay.steps + 1))
  assert np.all(states.winner[:-1] == -1)
  assert replay_format.hash_steps(replay.steps)[:2] == (0, 256)
  for step, expected in zip(replay_format.hash_steps(replay.steps), replay.hashes, strict=True):
    assert replays.state_hash(jax.tree.map(lambda x, at=step: x[at], states)) == expected


def test_file_gives_back_the_same_replay_and_it_the_same_game(replay, states, path):
  assert path.stat().st_size < 8_000
  loaded = replays.load(path)
  for (name, one), (other_name, other) in zip(_leaves(replay), _leaves(loaded), strict=True):
    assert name == other_name and one.dtype == other.dtype, name
    np.testing.assert_array_equal(one, other, err_msg=name)
  again = replays.resimulate(loaded)
  for (name, one), (_, other) in zip(_leaves(states), _leaves(again), strict=True):
    assert one.dtype == other.dtype and one.tobytes() == other.tobytes(), name


def load_recorded(tier):
  found = replays.load(RECORDED / f"{tier}.npz")
  assert exact.rules_digest(tier) == found.rules
  if found.recorded_with != exact.recorded_with():
    pytest.skip(f"recorded with {found.recorded_with}, whose rounding may differ")
  return found


def test_the_rules_of_mini_have_not_changed(replay):
  """The same scripts play the recorded game, hash for hash."""
  for (name, one), (_, other) in zip(
      _leaves(load_recorded("mini")), _leaves(replay), strict=True):
    np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.slow
def test_the_rules_of_default_have_not_changed():
  replays.resimulate(load_recorded("default"))


def test_recording_and_playing_again_run_one_compiled_program(replay, states):
  assert exact.make_program(replay.game).run._cache_size() == 1


def test_players_act_when_their_delays_are_over(replay):
  for player in range(2):
    mine = replay.player == player
    delays = np.asarray(replay.actions.delay)[mine][:-1]
    expected = -(-delays.astype(int) // constants.LOOPS_PER_STEP)
    np.testing.assert_array_equal(np.diff(replay.step[mine]), expected)


def test_same_seed_gives_the_same_game_and_another_another(replay):
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
def test_one_changed_action_is_found_at_the_next_hash(replay, late):
  """A building goes elsewhere; a marine is not trained."""
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


def test_a_changed_delay_is_found_where_the_player_acts_next(replay):
  row, following = np.flatnonzero((replay.player == 1) & (replay.step > 256))[:2]
  assert replay.step[following] < replay.step[row] + 127 // constants.LOOPS_PER_STEP
  expected = rf"step {replay.step[following]}: player 2 acts, but by the delay .* it is not due:"
  with pytest.raises(replays.ReplayError, match=expected):
    replays.resimulate(_changed(replay, "delay", row, 127))


@pytest.mark.parametrize(("index", "step"), [(0, 0), (1, 256)])
def test_a_changed_hash_is_found_and_named(replay, index, step):
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
def test_another_game_is_refused(replay, change, message):
  with pytest.raises(replays.ReplayError, match=message):
    replays.resimulate(replay._replace(**change))


@pytest.mark.parametrize(("changes", "arrays", "message"), [
  ({"schema": 1}, {}, r"schema: expected 2, found 1$"),
  ({"tier": "huge"}, {}, r"tier: expected one of .*mini.*, found 'huge'$"),
  ({"max_entities": 8}, {}, "sizes: tier mini: max_entities is 8"),
  ({"seed": "3"}, {}, "type of seed: expected int, found str$"),
  ({"extra": 1}, {}, "keys of the manifest: expected .*'winner'.*, found .*'extra'"),
  ({"players": ["one"]}, {}, "players: expected 2 of str, found 1 of str$"),
  ({"hashes": []}, {}, r"hashes: expected \d of str, found 0 of "),
  ({"steps": -1}, {}, "steps: expected 0 to 1048576, found -1$"),
  ({"races": [1, 9]}, {}, "races: expected 0 to 4, found 9$"),
  ({"income": [100, -5]}, {}, "income: expected 0 to 1000, found -5$"),
  ({"mmr": [6200]}, {}, "mmr: expected 2 of int, found 1 of int$"),
  ({"steps": 300, "hashes": ["0" * 64] * 3}, {}, "step: expected 0 to 299, found 0 to"),
  (None, {"player": None}, "arrays: expected .*'player'.*, found "),
  (None, {"manifest": None}, "not a replay: expected an array 'manifest', found "),
  (None, {"manifest": np.frombuffer(b"{", np.uint8)}, "manifest: expected JSON"),
  (None, {"manifest": np.frombuffer(b"[]", np.uint8)}, "manifest: expected an object, found list$"),
  (None, {"step": np.zeros(2, np.float32)}, r"step: expected int32\[2\], found float32\[2\]$"),
  (None, {"action.delay": np.zeros(1, np.int16)},
   r"action.delay: expected int16\[\d+\], found int16\[1\]$"),
  (None, {"z.units": np.array({}, object)}, "damaged, or not a replay: Object arrays cannot"),
])
def test_foreign_files_are_refused_by_name(path, changes, arrays, message):
  _rewrite(path, changes, **arrays)
  with pytest.raises(replays.ReplayError, match=message) as raised:
    replays.load(path)
  assert str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize(("field", "value", "message"), [
  ("player", 2, "player: expected 0 or 1, found 2$"),
  ("step", 0, "step: expected ascending steps, one action per player and step$"),
  ("action.function", vocabulary.NUM_FUNCTIONS, "action.function: expected 0 to 326, found 327$")])
def test_actions_that_cannot_be_are_refused(path, field, value, message):
  with np.load(path) as file:
    values = file[field]
  values[-1] = value
  _rewrite(path, **{field: values})
  with pytest.raises(replays.ReplayError, match=message):
    replays.load(path)


def test_damaged_files_are_refused(replay, path):
  """Wherever a byte is wrong, the file is refused, or what it says is all there."""
  sound, refused = path.read_bytes(), 0
  for place in range(0, len(sound), 11):
    path.write_bytes(sound[:place] + bytes([sound[place] ^ 0x55]) + sound[place + 1:])
    try:
      loaded = replays.load(path)
    except replays.ReplayError as error:
      assert str(error).startswith(f"{path}: ")
      refused += 1
    else:
      for (name, one), (_, other) in zip(_leaves(replay), _leaves(loaded), strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)
  assert refused > 0.6 * len(range(0, len(sound), 11))  # the rest is in what nobody reads
  path.write_bytes(sound[:len(sound) // 2])
  with pytest.raises(replays.ReplayError, match=r"not a replay, or truncated: .* begins with b'PK"):
    replays.load(path)
  path.write_bytes(b"")
  with pytest.raises(replays.ReplayError, match="not a replay, or truncated"):
    replays.load(path)
  with pytest.raises(FileNotFoundError):
    replays.load(path.with_name("none.npz"))


def test_a_save_that_fails_leaves_the_old_file(replay, path, monkeypatch):
  before = path.read_bytes()
  monkeypatch.setattr(np, "savez_compressed", lambda file, **arrays: file.write(b"half") / 0)
  with pytest.raises(ZeroDivisionError):
    replays.save(path, replay)
  assert path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == ["game.npz"]


def test_a_policy_plays_either_side_and_remembers():
  """It acts on what it sees; its memory goes on only when it acts."""
  def step(params, key, observation, state):
    action = types.zeros(types.action_spec(8))
    # Waits as many steps as it has acted before, and says in `location` when it is.
    action = action._replace(
      delay=jnp.int16(params) * (1 + state.astype(jnp.int16)), location=observation.game_loop,
      units=jnp.full(8, 64, jnp.int16))
    return StepOutput(action, None, None, state + 1)

  policy = Policy(init=None, initial_state=lambda: jnp.int32(0), step=step, unroll=None, unroll_batch=None)
  agent = replays.policy_player("counter", policy, constants.LOOPS_PER_STEP)
  replay = replays.record((replays.scripted_player("passive"), agent), 0, max_steps=12)
  assert replay.players == ("passive", "counter")
  mine = replay.player == 1
  assert replay.step[mine].tolist() == [0, 1, 3, 6, 10]
  assert replay.actions.location[mine].tolist() == [0, 8, 24, 48, 80]
  replays.resimulate(replay)


def test_players_and_seeds_that_do_not_exist_are_refused():
  with pytest.raises(ValueError, match="player 'nobody': expected one of passive, .* in tier mini"):
    replays.scripted_player("nobody")
  pair = (replays.scripted_player("passive"),) * 2
  with pytest.raises(ValueError, match=r"seed: expected 0 to 2147483647, found -1"):
    replays.record(pair, -1)
