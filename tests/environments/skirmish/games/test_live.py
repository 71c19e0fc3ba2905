"""Live games: turns, controllers and rejected arguments."""

import jax.numpy as jnp
import pytest

from starleague.agent import types
from starleague.agent.policy import Policy, StepOutput
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules.tables import constants
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS

MINI = GAME_CONFIGS["mini"]


def test_live_games_take_the_actions_of_due_players():
  game = live.LiveGame(MINI, replays.make_match_up(), 0)
  with pytest.raises(ValueError, match=r"expected those of players \[0, 1\], found \[0\]"):
    game.step({0: types.zeros(types.action_spec(8))})
  assert replays.resimulate(game.replay(("a", "b"))).loop.tolist() == [0]
  with pytest.raises(ValueError, match="seed: expected 0 to 2147483647, found -1"):
    live.LiveGame(MINI, replays.make_match_up(), -1)


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
                  unroll_batch=None)
  agent = replays.policy_player("counter", policy, constants.LOOPS_PER_STEP)
  steps = iter(range(99))
  replay = replays.record((replays.scripted_player("passive"), agent), 0, max_steps=12,
                          on_step=lambda: next(steps))
  assert next(steps) == 12
  assert replay.players == ("passive", "counter")
  mine = replay.player == 1
  assert replay.step[mine].tolist() == [0, 1, 3, 6, 10]
  assert replay.actions.location[mine].tolist() == [0, 8, 24, 48, 80]
  replays.resimulate(replay)


def test_unknown_players_and_seeds_are_rejected():
  with pytest.raises(ValueError, match="player 'nobody': expected one of passive, .* in tier mini"):
    replays.scripted_player("nobody")
  pair = (replays.scripted_player("passive"),) * 2
  with pytest.raises(ValueError, match=r"seed: expected 0 to 2147483647, found -1"):
    replays.record(pair, -1)
