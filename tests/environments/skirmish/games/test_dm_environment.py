"""The dm_env wrapper: dm_env's own tests, named errors, reproducible games."""

import json
import pathlib
import re

import jax
import numpy as np
import pytest
from absl.testing import absltest
from dm_env import test_utils

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.games import dm_environment as wrapper
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from tests import compiling

MINI = GAME_CONFIGS["mini"]
ATTACK = vocabulary.FUNCTIONS.index("Attack_pt")


def nothing(environment, delay=1):
  """Returns no_op with a delay."""
  action = types.Action(*(spec.generate_value() for spec in environment.action_spec()))
  return action._replace(delay=np.int16(delay))


class TestProtocol(test_utils.EnvironmentTestMixin, absltest.TestCase):
  """dm_env's own tests."""

  def make_object_under_test(self):
    return wrapper.SkirmishEnvironment("rusher", game=MINI, seed=4)

  def make_action_sequence(self):
    for _ in range(20):
      yield nothing(self.object_under_test, delay=127)


def play(environment, steps, delay=16):
  """Returns the time steps of an idle player."""
  return [environment.reset(), *(environment.step(nothing(environment, delay))
                                 for _ in range(steps))]


def assert_same(one, other):
  jax.tree.map(np.testing.assert_array_equal, one, other)


def test_equal_seeds_give_equal_games():
  first, second, third = (
    wrapper.SkirmishEnvironment("rusher", game=MINI, seed=seed) for seed in (7, 7, 8))
  for _ in range(2):  # the second game differs from the first
    one, other = play(first, 20), play(second, 20)
    assert_same(one, other)
  other = play(third, 20)
  assert any(np.any(a.observation.entities != b.observation.entities)
             for a, b in zip(one, other, strict=True))


def test_a_step_advances_until_the_player_is_due():
  environment = wrapper.SkirmishEnvironment("rusher", game=MINI)
  environment.reset()
  for delay, loops in ((1, 8), (8, 16), (9, 32), (127, 160)):
    observation = environment.step(nothing(environment, delay)).observation
    assert observation.game_loop == loops
    assert observation.last_delay == min(127, loops - {8: 0, 16: 8, 32: 16, 160: 32}[loops])


def test_a_lost_game_ends_with_reward_minus_one_and_the_next_starts():
  environment = wrapper.SkirmishEnvironment("rusher", game=MINI, seed=1)
  environment.reset()
  for _ in range(60):
    timestep = environment.step(nothing(environment, 127))
    if timestep.last():
      break
    assert timestep.reward == 0 and timestep.discount == 1
  assert timestep.reward == -1 and timestep.discount == 0
  assert environment.step(nothing(environment)).first()


@pytest.mark.parametrize("player", [0, 1])
def test_the_replay_reproduces_the_game(player):
  """The user plays the recorded actions of either script."""
  pair = [replays.scripted_player(name) for name in ("builder", "rusher")]
  wanted = replays.record(tuple(pair), 11, max_steps=120)
  environment = wrapper.SkirmishEnvironment(
    pair[1 - player], game=MINI, player=player, seed=0, swap_sides=False)
  environment.reset()
  environment._live = live.LiveGame(MINI, wanted.match_up, 11)
  mine = wanted.player == player
  for i in np.flatnonzero(mine):
    environment.step(types.Action(*(values[i] for values in wanted.actions)))
  found = environment.replay(("builder", "rusher") if player == 0 else ("rusher", "builder"))
  assert found.players == wanted.players
  taken = wanted.step < wanted.step[mine][-1]
  for name, values in found.actions._asdict().items():
    np.testing.assert_array_equal(values[:taken.sum()], getattr(wanted.actions, name)[taken])
  states = replays.resimulate(found)
  assert replays.state_hash(jax.tree.map(lambda x: x[-1], states)) == replays.state_hash(
    environment._live.state)


def test_a_function_can_be_the_opponent():
  seen = []

  def opponent(observation):
    seen.append(observation)
    return nothing(environment, 32)

  environment = wrapper.SkirmishEnvironment(opponent, game=MINI)
  environment.reset()
  for _ in range(4):
    environment.step(nothing(environment, 16))
  assert [int(observation.game_loop) for observation in seen] == [0, 32]
  for observation in seen:
    assert all(spec.validate(value) is not None for spec, value in zip(
      environment.observation_spec()[:3], observation[:3], strict=True))

  environment = wrapper.SkirmishEnvironment(lambda observation: None, game=MINI)
  environment.reset()
  with pytest.raises(TypeError, match="the opponent's action: expected types.Action, found None"):
    environment.step(nothing(environment))

  environment = wrapper.SkirmishEnvironment(lambda observation: json.loads("x"), game=MINI)
  environment.reset()
  with pytest.raises(json.JSONDecodeError, match=r"^Expecting value: line 1 column 1 \(char 0\)$"):
    environment.step(nothing(environment))  # its own error, as it is


def test_after_a_failed_step_the_next_one_names_it_and_reset_starts_a_game():
  """The player's next action is never dropped: it is refused until it sees a state again."""
  fails_at = []  # game loops

  def opponent(observation):
    if int(observation.game_loop) in fails_at:
      fails_at.remove(int(observation.game_loop))
      raise OSError("no connection")
    return nothing(environment, 8)

  environment = wrapper.SkirmishEnvironment(opponent, game=MINI)
  environment.reset()
  fails_at.append(0)
  with pytest.raises(OSError, match="no connection"):
    environment.step(nothing(environment, 64))
  # Nothing was played: the same step can be repeated.
  assert environment.step(nothing(environment, 64)).observation.game_loop == 64
  fails_at.append(80)
  with pytest.raises(OSError, match="no connection"):
    environment.step(nothing(environment, 64))
  for _ in range(2):
    with pytest.raises(RuntimeError, match=(
        "^step: expected a game in which the player is due, found one whose last step failed at "
        "game loop 80; call reset first$")):
      environment.step(nothing(environment, 24))
  assert environment.replay().steps == 10  # 80 game loops
  assert environment.reset().observation.game_loop == 0
  assert environment.step(nothing(environment, 24)).observation.game_loop == 24


@pytest.mark.parametrize(("argument", "value", "message"), [
  ("function", np.int16(327), "action.function: expected 0 to 326, found 327"),
  ("delay", np.int16(0), "action.delay: expected 1 to 127, found 0"),
  ("delay", np.float32(3), r"action.delay: expected integers \(int16\), found float32"),
  ("queued", 2, "action.queued: expected 0 to 1, found 2"),
  ("units", np.zeros(16, np.int16), r"action.units: expected shape \(8,\), found \(16,\)"),
  ("units", np.full(8, 65), "action.units: expected 0 to 64, found 65"),
  ("target_unit", np.int16(-1), "action.target_unit: expected 0 to 63, found -1"),
  ("location", 2 ** 40, f"action.location: expected 0 to 1023, found {2 ** 40}")])
def test_bad_arguments_are_named(argument, value, message):
  environment = wrapper.SkirmishEnvironment("rusher", game=MINI)
  environment.reset()
  with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
    environment.step(nothing(environment)._replace(**{argument: value}))
  assert environment.step(nothing(environment)).observation.game_loop == 8  # no step was played


@pytest.mark.parametrize(("arguments", "message"), [
  ({"opponent": "nobody"}, "player 'nobody': expected one of passive, .* in tier mini"),
  ({"races": ("zerg", "terran")}, "race 'zerg': expected one of terran in tier mini"),
  ({"races": ("terran",)}, "races: expected 2, found 1"),
  ({"map_name": "ramps"}, "map 'ramps': expected one of open in tier mini"),
  ({"player": 2}, "player: expected 0 or 1, found 2"),
  ({"seed": -1}, "seed: expected 0 or more, found -1"),
  ({"game": MINI._replace(max_entities=8)}, "max_entities is 8")])
def test_invalid_arguments_are_rejected(arguments, message):
  with pytest.raises(ValueError, match=message):
    wrapper.SkirmishEnvironment(**{"opponent": "rusher", "game": MINI, **arguments})


@pytest.mark.slow
def test_the_example_of_the_page_plays_a_game(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  page = (pathlib.Path(__file__).resolve().parents[4] / "docs" / "play.md").read_text()
  example, = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
  exec(compile(example, "docs/play.md", "exec"), {"__name__": "example"})  # noqa: S102
  replay = replays.load(tmp_path / "game.npz")
  assert replay.players == ("player", "opponent") and replay.game == GAME_CONFIGS["default"]
  assert capsys.readouterr().out == "-1.0\n" and replay.winner == 1  # L5 wins
  # Every third environment step of eight game loops has an action, until the end.
  own = replay.step[replay.player == 0]
  assert own[0] == 0 and set(np.diff(own)) == {3}


@pytest.mark.slow
def test_all_races_and_maps_share_one_compiled_program():
  environment = wrapper.SkirmishEnvironment("L7", seed=3)

  def met():
    observation = play(environment, 3, delay=24)[-1].observation
    return types.RACES[int(observation.home_race)], int(environment._live.match_up.map_index)

  first = met()
  with compiling.events() as events:
    races, maps = zip(first, *(met() for _ in range(9)), strict=True)
  assert len(set(races)) == len(set(maps)) == 3
  assert events == []
