"""The PettingZoo environment: pettingzoo's own tests, whole games, named errors."""

import re
import warnings

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from pettingzoo.test import parallel_api_test, parallel_seed_test

from starleague.environments.skirmish.adapters import make_pettingzoo
from starleague.environments.skirmish.games import replays

AGENTS = ["player_0", "player_1"]
IDLE = {"function": 0, "delay": 127, "queued": 0, "repeat": 0, "units": np.full(8, 64),
        "target_unit": 0, "location": 0}


def act(environment, *delays):
  return environment.step({agent: IDLE | {"delay": delay}
                           for agent, delay in zip(AGENTS, delays, strict=True)})


def test_pettingzoos_own_tests_pass_without_a_warning():
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    parallel_api_test(make_pettingzoo(), num_cycles=100)
    parallel_seed_test(make_pettingzoo, num_cycles=20)


def test_an_idle_game_is_a_draw_at_the_limit_and_a_replay():
  environment = make_pettingzoo()
  environment.reset(seed=3)
  while environment.agents:
    _, rewards, terminations, truncations, infos = act(environment, 127, 127)
    assert rewards == dict.fromkeys(AGENTS, 0.0)
    assert truncations == dict.fromkeys(AGENTS, False)
    assert terminations == dict.fromkeys(AGENTS, not environment.agents)
  assert infos["player_0"]["game_loop"] == 4480
  replay = environment.replay()
  assert replay.winner == 2 and replay.players == tuple(AGENTS)
  assert int(replays.resimulate(replay).loop[-1]) == 4480
  with pytest.raises(ValueError, match="^no game is under way: call reset first$"):
    act(environment, 1, 1)


def test_a_step_lasts_until_a_player_is_due():
  environment = make_pettingzoo()
  environment.reset(seed=4)
  for delays, loop, due in (((16, 32), 16, (True, False)), ((8, 1), 24, (True, False)),
                            ((24, 1), 32, (False, True)), ((1, 40), 48, (True, False))):
    infos = act(environment, *delays)[-1]
    assert [infos[agent]["game_loop"] for agent in AGENTS] == [loop, loop]
    assert tuple(infos[agent]["due"] for agent in AGENTS) == due


def test_both_agents_act():
  environment = make_pettingzoo()
  environment.reset(seed=5)
  message = "actions: expected those of player_0 and player_1, found player_1"
  with pytest.raises(ValueError, match=f"^{message}$"):
    environment.step({"player_1": IDLE})
  message = "player_1's action.delay: expected 1 to 127, found 128"
  with pytest.raises(ValueError, match=f"^{message}$"):
    act(environment, 1, 128)


@pytest.mark.parametrize("options, message", [
  ({"tier": "huge"}, "tier 'huge': expected one of mini, default, large"),
  ({"races": ("terran", "orc"), "tier": "default"},
   "race 'orc': expected one of terran, protoss, zerg in tier default"),
  ({"races": ("terran",)}, "races: expected 2, found 1"),
  ({"map_name": "river"}, "map 'river': expected one of open in tier mini")])
def test_unknown_names_are_refused_in_one_line(options, message):
  with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
    make_pettingzoo(**options)
