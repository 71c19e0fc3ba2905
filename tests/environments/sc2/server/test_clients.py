"""Unmodified clients start the server as if it were the game, and play whole games."""

import os
import re
import subprocess
import sys

import jax
import pytest

from starleague.environments.sc2 import protocol
from starleague.environments.sc2.server import layout

assert protocol  # makes pysc2 importable
DEADLINE = 1800  # s, for a machine that compiles slowly
LOOP_LIMIT = 4480  # of `mini`


@pytest.fixture(scope="module")
def sc2path(tmp_path_factory):
  folder = layout.make_layout(tmp_path_factory.mktemp("game"))
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("SC2PATH", str(folder))
    patch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir or "")
    yield folder


def _parse_flags():
  from absl import flags
  flags.FLAGS(["test", f"--sc2_timeout={DEADLINE}"])


@pytest.mark.slow
@pytest.mark.parametrize("agents", [1, 2])
def test_pysc2s_random_agents_finish_a_game(sc2path, agents):
  from pysc2.agents import random_agent
  from pysc2.env import sc2_env
  from pysc2.lib import features
  _parse_flags()
  terran = sc2_env.Race.terran
  players = [sc2_env.Agent(terran)] * agents + [
    sc2_env.Bot(terran, sc2_env.Difficulty.very_hard)] * (2 - agents)
  with sc2_env.SC2Env(
      map_name="Flat32", players=players, step_mul=64, random_seed=3,
      agent_interface_format=sc2_env.AgentInterfaceFormat(
        feature_dimensions=features.Dimensions(screen=32, minimap=32), use_feature_units=True,
        use_raw_units=True)) as environment:
    minds = [random_agent.RandomAgent() for _ in range(agents)]
    for mind, seen, acts in zip(minds, environment.observation_spec(), environment.action_spec(),
                                strict=True):
      mind.setup(seen, acts)
    steps = environment.reset()
    while not steps[0].last():
      steps = environment.step([mind.step(step) for mind, step in zip(minds, steps, strict=True)])
  loop = int(steps[0].observation.game_loop[0])
  assert 1000 < loop <= LOOP_LIMIT + 64
  if agents == 1:
    assert steps[0].reward == -1 and loop < LOOP_LIMIT  # the scripted opponent wins
  else:
    assert sum(step.reward for step in steps) == 0


@pytest.mark.slow
def test_a_bot_of_python_sc2_plays_a_whole_game(sc2path):
  pytest.importorskip("sc2", reason="burnysc2 declares numpy 2: it is not in the lock")
  bot = os.path.join(os.path.dirname(__file__), "marine_bot.py")
  played = subprocess.run([sys.executable, bot, "AcropolisLE"], capture_output=True,
                          text=True, timeout=DEADLINE)
  found = re.search(r"result=(Victory|Defeat|Tie) loops=(\d+)", played.stdout)
  # A bot that raises resigns at once.
  assert found and int(found[2]) > 1000, (played.stdout, played.stderr[-2000:])
