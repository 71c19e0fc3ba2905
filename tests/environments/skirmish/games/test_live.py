"""Live games: turns, controllers and rejected arguments."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import predictions, types, vocabulary
from starleague.agent.policy import Policy, StepOutput
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.games.prediction_log import BATCH
from starleague.environments.skirmish.rules.tables import constants
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from tests.environments.skirmish.games.trees import assert_equal

MINI = GAME_CONFIGS["mini"]


def test_live_games_take_the_actions_of_due_players():
  game = live.LiveGame(MINI, replays.make_match_up(), 0)
  with pytest.raises(ValueError, match=r"expected those of players \[0, 1\], found \[0\]"):
    game.step({0: types.zeros(types.action_spec(8))})
  assert replays.resimulate(game.replay(("a", "b"))).loop.tolist() == [0]
  with pytest.raises(ValueError, match="seed: expected 0 to 2147483647, found -1"):
    live.LiveGame(MINI, replays.make_match_up(), -1)


def test_an_action_of_a_wrong_shape_leaves_the_game_as_it_is():
  """The caller may give another one: the replay has one action of each player."""
  game, action = live.LiveGame(MINI, replays.make_match_up(), 0), types.zeros(types.action_spec(8))
  with pytest.raises(ValueError, match="could not broadcast"):
    game.step({0: action, 1: action._replace(units=np.zeros(9, np.int16))})
  assert len(game.replay(("a", "b")).step) == 0
  game.step({0: action, 1: action})
  replay = game.replay(("a", "b"))
  assert (replay.step.tolist(), replay.player.tolist()) == ([0, 0], [0, 1])
  assert replays.resimulate(replay).loop.tolist() == [0, 8]


def test_a_policy_controls_a_player_and_keeps_its_memory():
  """It acts on its observation; its memory changes only when it acts."""
  def step(params, key, observation, state):
    action = types.zeros(types.action_spec(8))
    # Delays by the number of earlier actions, in steps, and writes the game loop into `location`.
    action = action._replace(
      delay=jnp.int16(params) * (1 + state.astype(jnp.int16)), location=observation.game_loop,
      units=jnp.full(8, 64, jnp.int16))
    return StepOutput(action, None, None, state + 1)

  policy = Policy(init=None, initial_state=lambda: jnp.int32(0), step=step, unroll=None,
                  unroll_batch=None, values=None)
  agent = replays.policy_player("counter", policy, constants.LOOPS_PER_STEP)
  steps = iter(range(99))
  replay = replays.record((replays.scripted_player("passive"), agent), 0, max_steps=12,
                          on_step=lambda live: next(steps))
  assert next(steps) == 12
  assert replay.players == ("passive", "counter")
  mine = replay.player == 1
  assert replay.step[mine].tolist() == [0, 1, 3, 6, 10]
  assert replay.actions.location[mine].tolist() == [0, 8, 24, 48, 80]
  replays.resimulate(replay)


@functools.cache
def _predicting_policy():
  """Builds at cell 9 with row 2, or does nothing, in turn; its value falls with every step."""
  function = vocabulary.FUNCTIONS.index("Build_Barracks_pt")

  def step(params, key, observation, state):
    builds = state % 2 == 0
    action = types.zeros(types.action_spec(8))
    action = action._replace(
      function=jnp.where(builds, function, 0).astype(jnp.int16), delay=jnp.int16(params),
      units=jnp.full(8, 64, jnp.int16).at[0].set(jnp.where(builds, 2, 64).astype(jnp.int16)),
      location=jnp.where(builds, 9, 0))
    logits = vocabulary.Arguments(
      function=jnp.full(vocabulary.NUM_FUNCTIONS, -1e9).at[jnp.array([0, function])].set(0.0),
      delay=None, queued=None, repeat=None, units=jnp.full((8, 65), -1e9).at[0, 2].set(0.0),
      target_unit=jnp.zeros(64), location=jnp.full(1024, -1e9).at[jnp.array([9, 10])].set(
        jnp.log(jnp.array([3.0, 1.0]))))
    return StepOutput(action, None, logits, state + 1)

  def values(params, state, observation, privileged):
    del params, observation, privileged
    value = 0.5 - 0.25 * (state - 1).astype(jnp.float32)  # `state` is that after the step
    return jnp.stack([value, *[jnp.float32(0)] * 4])

  return Policy(init=None, initial_state=lambda: jnp.int32(0), step=step, unroll=None,
                unroll_batch=None, values=values)


def test_predictions_are_recorded_with_the_actions(tmp_path):
  pair = (replays.scripted_player("passive"),
          replays.policy_player("agent", _predicting_policy(), 2 * constants.LOOPS_PER_STEP))
  plain, replay, again = (replays.record(pair, 0, max_steps=7, predictions=flag)
                          for flag in (False, True, True))
  assert plain.predicted is None
  assert_equal(plain, replay._replace(predicted=None))  # the same game
  made, actions = replay.predicted.predictions, replay.predicted.action
  assert replay.player[actions].tolist() == [1] * 4
  assert replay.step[actions].tolist() == [0, 2, 4, 6]
  np.testing.assert_allclose(made.value / 32767, [0.5, 0.25, 0.0, -0.25], atol=1e-4)
  build = vocabulary.FUNCTIONS.index("Build_Barracks_pt")
  assert made.functions[:, :2].tolist() == [sorted([0, build])] * 4
  assert made.function_probs[:, :3].tolist() == [[32768, 32768, 0]] * 4
  assert made.cells[:, :3].tolist() == [[9, 10, 0], [0, 0, 0]] * 2
  assert made.cell_probs[:, :3].tolist() == [[49151, 16384, 0], [0, 0, 0]] * 2
  assert made.units[:, 0].tolist() == [2, 0, 2, 0] and not made.target_probs.any()
  assert made.unit_probs[:, 0].tolist() == [65535, 0, 65535, 0]
  assert made.camera.tolist() == [[0, 0, 256, 256]] * 4
  paths = [replays.save(tmp_path / f"{i}.npz", each) for i, each in enumerate((replay, again))]
  assert paths[0].read_bytes() == paths[1].read_bytes()
  assert_equal(replays.load(paths[0]), replay)
  replays.resimulate(replay)


def test_predictions_of_two_agents_are_in_the_order_of_their_actions(monkeypatch):
  """More decisions than are completed at once, by one program for all games."""
  traced, complete = [], predictions.complete
  monkeypatch.setattr(predictions, "complete", lambda *args: traced.append(1) or complete(*args))
  fresh = _predicting_policy.__wrapped__()  # has no program yet
  agent = replays.policy_player("agent", fresh, constants.LOOPS_PER_STEP)
  for steps in (3, BATCH + 6):
    made = replays.record((agent, agent), 0, max_steps=steps, predictions=True).predicted
    assert made.action.tolist() == list(range(2 * steps))
    expected = np.clip(0.5 - 0.25 * np.repeat(np.arange(steps), 2), -1, 1)
    np.testing.assert_allclose(made.predictions.value / 32767, expected, atol=1e-4)
  assert len(traced) == 1


def test_players_without_predictions_have_none():
  game = live.LiveGame(MINI, replays.make_match_up(), 0)
  player = live.LivePlayer(replays.scripted_player("passive"), MINI, predictions=True)
  action = player.act(game, 0)
  assert player.predictions is None
  game.step({0: action, 1: action}, {0: player.predictions})
  assert game.replay(("a", "b")).predicted is None


def test_unknown_players_and_seeds_are_rejected():
  with pytest.raises(ValueError, match="player 'nobody': expected one of passive, .* in tier mini"):
    replays.scripted_player("nobody")
  pair = (replays.scripted_player("passive"),) * 2
  with pytest.raises(ValueError, match=r"seed: expected 0 to 2147483647, found -1"):
    replays.record(pair, -1)


def test_seeds_of_numpy_are_saved(tmp_path):
  pair = (replays.scripted_player("passive"),) * 2
  replay = replays.record(pair, np.int64(3), max_steps=1)
  assert type(replay.seed) is int
  assert_equal(replays.load(replays.save(tmp_path / "game.npz", replay)),
               replays.record(pair, 3, max_steps=1))


@pytest.mark.parametrize(("changes", "message"), [
  ({"name": "x" * 201}, "players: expected at most 200 characters, found 201"),
  ({"name": "two\nlines"}, r"players: expected printable characters, found 'two\\nlines'"),
  ({"name": 7}, "players: expected 2 of str, found 2 of int/str"),
  ({"income": 1001}, "income: expected 0 to 1000, found 1001"),
  ({"mmr": -1}, "mmr: expected 0 to 32767, found -1")])
def test_players_that_a_replay_cannot_hold_are_rejected_before_the_game(changes, message):
  passive = replays.scripted_player("passive")
  steps = []
  with pytest.raises(replays.ReplayError, match=f"^replay: {message}$"):
    replays.record((passive, passive._replace(**changes)), 0, on_step=steps.append)
  assert not steps
  if "name" in changes:
    game = live.LiveGame(MINI, replays.make_match_up(), 0)
    with pytest.raises(replays.ReplayError, match=f"^replay: {message}$"):
      game.replay(("passive", changes["name"]))
  else:
    with pytest.raises(replays.ReplayError, match=f"^replay: {message}$"):
      live.LiveGame(MINI, replays.make_match_up(
        **{field: (100, value) for field, value in changes.items()}), 0)
