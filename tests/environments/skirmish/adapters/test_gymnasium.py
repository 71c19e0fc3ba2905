"""The Gymnasium environment: gymnasium's own checker, whole games, named errors."""

import re
import warnings

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from starleague.agent import vocabulary  # noqa: E402
from starleague.environments.skirmish.adapters import make_gymnasium  # noqa: E402
from starleague.environments.skirmish.adapters.gymnasium import ID, SkirmishEnv  # noqa: E402
from starleague.environments.skirmish.games import replays  # noqa: E402


def no_op(environment, **arguments):
  rows, picks = 64, environment.action_space["units"].shape
  return {"function": 0, "delay": 127, "queued": 0, "repeat": 0, "units": np.full(picks, rows),
          "target_unit": 0, "location": 0, **arguments}


def test_gymnasiums_checker_passes_without_a_warning():
  environment = gymnasium.make(ID, opponent="passive").unwrapped
  assert isinstance(environment, SkirmishEnv)
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    check_env(environment)


def test_an_idle_player_loses_and_the_game_is_a_replay():
  environment = make_gymnasium("rusher")
  environment.reset(seed=1)
  for _ in range(60):
    observation, reward, terminated, truncated, info = environment.step(no_op(environment))
    assert info["game_loop"] == observation["game_loop"] and not truncated
    if terminated:
      break
    assert reward == 0.0
  assert terminated and reward == -1.0
  with pytest.raises(gymnasium.error.ResetNeeded, match="no game is under way: call reset first"):
    environment.step(no_op(environment))
  replay = environment.replay()
  assert replay.players == ("player", "opponent") and replay.winner == 1
  assert int(replays.resimulate(replay).loop[-1]) == info["game_loop"]


def test_seeds_repeat_games_and_games_differ():
  environment = make_gymnasium("rusher")
  entities = [environment.reset(seed=seed)[0]["entities"] for seed in (5, None, 5, None, 6)]
  np.testing.assert_array_equal(entities[0], entities[2])
  np.testing.assert_array_equal(entities[1], entities[3])
  assert (entities[0] != entities[1]).any() and (entities[0] != entities[4]).any()


def test_an_illegal_action_has_no_effect_but_an_error_code():
  environment = make_gymnasium("passive")
  barracks = vocabulary.FUNCTIONS.index("Build_Barracks_pt")
  _, info = environment.reset(seed=2)
  assert info["action_mask"]["function"][barracks] == 0  # 50 minerals, it costs 150
  illegal = environment.step(no_op(environment, function=barracks, units=np.arange(8)))[0]
  environment.reset(seed=2)
  idle = environment.step(no_op(environment))[0]
  assert illegal["action_result"] == 9 and idle["action_result"] == 0  # not enough minerals
  marks = [46, 47]  # was_selected, was_targeted
  np.testing.assert_array_equal(np.delete(illegal["entities"], marks, 1),
                                np.delete(idle["entities"], marks, 1))
  np.testing.assert_array_equal(illegal["player"], idle["player"])


@pytest.mark.parametrize("options, message", [
  ({"tier": "huge"}, "tier 'huge': expected one of mini, default, large"),
  ({"races": ("zerg", "terran")}, "race 'zerg': expected one of terran in tier mini"),
  ({"map_name": "river"}, "map 'river': expected one of open in tier mini"),
  ({"opponent": "L11", "tier": "default"}, "player 'L11': expected one of L0, L1, "),
  ({"opponent": "L5"}, "player 'L5': expected one of passive, rusher, builder, ")])
def test_unknown_names_are_refused_in_one_line(options, message):
  with pytest.raises(ValueError, match=f"^{re.escape(message)}[^\n]*$"):
    make_gymnasium(**options)
