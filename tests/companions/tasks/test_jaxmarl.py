"""Tasks of several agents against JaxMARL stepped by hand."""

import subprocess
import sys

import jax
import numpy as np
import pytest
from jaxmarl.environments.mpe import SimpleSpreadMPE
from jaxmarl.environments.overcooked import Overcooked
from jaxmarl.environments.overcooked.layouts import overcooked_layouts
from jaxmarl.environments.switch_riddle import SwitchRiddle

from starleague.companions.tasks.registry import make_task
from starleague.companions.tasks.task import TaskError
from tests.companions.tasks import episodes

_FIRST_TASK = """
import io, sys
from starleague.companions.tasks.registry import make_task
streams = sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
make_task("jaxmarl-switch_riddle", copies=1)
assert (sys.stdout, sys.stderr) == streams
assert [stream.getvalue() for stream in streams] == ["", ""]
"""


@pytest.mark.parametrize("name, make_environment, shape, length", [
  ("switch_riddle:agents=4", lambda: SwitchRiddle(num_agents=4), (4, 2), 30),
  pytest.param("simple_spread", SimpleSpreadMPE, (3, 18), 30, marks=pytest.mark.slow)])
def test_a_task_is_that_of_jaxmarl(name, make_environment, shape, length):
  task = make_task(f"jaxmarl-{name}", copies=3)
  assert task.observation.shape == shape and task.action_shape == shape[:1]
  played = episodes.play(task, length)
  episodes.check(task, played)
  environment = make_environment()
  reset, step = jax.jit(environment.reset), jax.jit(environment.step_env)
  observation, state = reset(played.keys[0, 1])
  for time in range(length):
    np.testing.assert_allclose(
      played.steps.observation[time, 1], [observation[agent] for agent in environment.agents],
      rtol=1e-5, atol=1e-6)
    step_key, init_key = jax.random.split(played.keys[time + 1, 1])
    actions = dict(zip(environment.agents, played.actions[time, 1], strict=True))
    observation, state, rewards, ended, _ = step(step_key, state, actions)
    mean = np.mean([rewards[agent] for agent in environment.agents])
    np.testing.assert_allclose(played.steps.reward[time + 1, 1], mean, rtol=1e-5)
    assert played.steps.first[time + 1, 1] == ended["__all__"]
    if ended["__all__"]:
      observation, state = reset(init_key)


@pytest.mark.slow
def test_a_clock_is_added_to_the_observations():
  plain, timed = (episodes.play(make_task(f"jaxmarl-simple_spread{more}", copies=2), 30)
                  for more in ("", ":clock=true"))
  np.testing.assert_array_equal(timed.steps.observation[..., :-1], plain.steps.observation)
  share = np.arange(31) % 26 / 25  # JaxMARL's limit is 25, but 26 steps are taken
  np.testing.assert_allclose(timed.steps.observation[..., -1],
                             np.broadcast_to(share[:, None, None], (31, 2, 3)), rtol=1e-6)


@pytest.mark.slow
def test_shaping_adds_rewards_in_overcooked():
  plain, shaped = (episodes.play(make_task(
    f"jaxmarl-overcooked-cramped_room:limit=200{more}", copies=8), 400) for more in (
    "", ",shaping=0.5"))
  episodes.check(make_task("jaxmarl-overcooked-cramped_room", copies=8), plain)
  added = shaped.steps.reward - plain.steps.reward
  # Plates and onions give 3, a soup 5, to one of two agents: times 0.5, and the mean of both.
  assert set(np.unique(added)) <= {0.0, 0.75, 1.25, 1.5, 2.0, 2.5}
  assert (added > 0).sum() > 20
  np.testing.assert_array_equal(plain.steps.observation, shaped.steps.observation)


@pytest.mark.filterwarnings("ignore:OvercookedV2:DeprecationWarning")
def test_overcookeds_counts_are_not_colours():
  task = make_task("jaxmarl-overcooked-cramped_room", copies=1)
  assert task.observation == jax.ShapeDtypeStruct((2, 4, 5, 26), np.int16) and task.symbols == ()
  environment = Overcooked(layout=overcooked_layouts["cramped_room"])
  key = jax.random.key(0)
  found = task.reset(key[None])[1].observation
  expected = environment.reset(key)[0]
  np.testing.assert_array_equal(found[0], [expected[agent] for agent in environment.agents])
  assert (found.min(), found.max()) == (0, 1)


@pytest.mark.parametrize("name, message", [
  ("simple_facmac", r"^task 'jaxmarl-simple_facmac' has continuous actions \(Box\); these systems "
                    "play discrete ones only$"),
  ("simple_speaker_listener", "^task 'jaxmarl-simple_speaker_listener': the agents have 3 and 5 "
                              "actions; expected equal numbers$")])
def test_other_agents_are_refused(name, message):
  with pytest.raises(TaskError, match=message):
    make_task(f"jaxmarl-{name}", copies=2)


@pytest.mark.slow
def test_nothing_is_printed_and_the_streams_stay():
  run = subprocess.run([sys.executable, "-c", _FIRST_TASK], capture_output=True, text=True,
                       timeout=300)
  assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
