"""Cooperative tasks of several agents, from JaxMARL (Rutherford et al. 2023).

Observations are stacked, [agents, ...]. The agents share one reward, the mean of theirs. Planes of
counts are int16: networks divide uint8 by 255, as colours.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxmarl.environments.mpe import (
  SimpleFacmacMPE,
  SimpleReferenceMPE,
  SimpleSpeakerListenerMPE,
  SimpleSpreadMPE,
)
from jaxmarl.environments.overcooked import Overcooked
from jaxmarl.environments.overcooked.layouts import overcooked_layouts
from jaxmarl.environments.spaces import Discrete
from jaxmarl.environments.switch_riddle import SwitchRiddle

from starleague.companions.tasks.pure import Copy, make_pure_task
from starleague.companions.tasks.task import Task, TaskError


def _overcooked(layout: str) -> Overcooked:
  with warnings.catch_warnings():  # of a second version, which is another game
    warnings.simplefilter("ignore", DeprecationWarning)
    return Overcooked(layout=overcooked_layouts[layout])


def _spread(agents: int) -> SimpleSpreadMPE:
  return SimpleSpreadMPE(num_agents=agents, num_landmarks=agents)


_Entry = tuple[Callable[..., Any], dict[str, Any]]  # an environment, and its parameters
_OVERCOOKED: dict[str, _Entry] = {
  f"overcooked-{layout}": (functools.partial(_overcooked, layout), {"shaping": 0.0})
  for layout in overcooked_layouts}
_ENVIRONMENTS: dict[str, _Entry] = _OVERCOOKED | {
  "simple_facmac": (SimpleFacmacMPE, {}),
  "simple_reference": (SimpleReferenceMPE, {"clock": False}),
  "simple_speaker_listener": (SimpleSpeakerListenerMPE, {"clock": False}),
  "simple_spread": (_spread, {"agents": 3, "clock": False}),
  "switch_riddle": (lambda agents: SwitchRiddle(num_agents=agents), {"agents": 3}),
}
TASKS = {name: parameters | {"limit": 0} for name, (_, parameters) in _ENVIRONMENTS.items()}


def make(name: str, task: str, copies: int, seed: int, *, limit: int, shaping: float = 0.0,
         clock: bool = False, **parameters: Any) -> Task:
  """Makes a task of several agents.

  Args:
    name: the task's full name.
    task: a key of `TASKS`.
    copies: n.
    seed: not used; nothing stays the same over episodes.
    limit: steps of an episode; 0: the task's own limit.
    shaping: Overcooked's factor of the rewards for a pot filled, a plate or a soup picked up.
    clock: whether to append the elapsed share of the episode to the observations. Episodes end
      at a time limit, so values depend on the time.
    **parameters: `agents`: the number of agents.

  Raises:
    TaskError: continuous actions, or agents that differ in observations or actions.
  """
  del seed
  environment = _ENVIRONMENTS[task][0](**parameters)
  agents = environment.agents
  num_actions = _num_actions(name, [environment.action_space(agent) for agent in agents])

  def init(key):
    return environment.reset(key)[1]

  def step(state, key, actions):
    _, state, rewards, ended, information = environment.step_env(
      key, state, {agent: actions[index] for index, agent in enumerate(agents)})
    reward = _mean(rewards, agents)
    if shaping:
      reward += shaping * _mean(information["shaped_reward"], agents)
    return state, reward, ended["__all__"]

  def observe(state):
    observations = environment.get_obs(state)
    x = jnp.stack([observations[agent] for agent in agents])
    if x.dtype == jnp.uint8:  # counts, of Overcooked
      x = x.astype(jnp.int16)
    if not clock:
      return x
    return jnp.concatenate(
      [x, jnp.full((len(agents), 1), state.step / (limit or environment.max_steps))], axis=1)

  shapes = {leaf.shape for leaf in jax.tree.leaves(jax.eval_shape(
    lambda key: environment.reset(key)[0], jax.random.key(0)))}
  if len(shapes) > 1:
    raise TaskError(f"task {name!r}: the agents' observations differ, {sorted(shapes)}; expected "
                    "equal shapes")
  return make_pure_task(name, copies, Copy(init, step, observe), num_actions,
                        action_shape=(len(agents),), limit=limit)


def _num_actions(name: str, spaces: list[Any]) -> int:
  if not all(isinstance(space, Discrete) for space in spaces):
    raise TaskError(f"task {name!r} has continuous actions ({type(spaces[0]).__name__}); these "
                    "systems play discrete ones only")
  sizes = {int(space.n) for space in spaces}
  if len(sizes) > 1:
    raise TaskError(f"task {name!r}: the agents have {' and '.join(map(str, sorted(sizes)))} "
                    "actions; expected equal numbers")
  return sizes.pop()


def _mean(rewards: dict[str, jax.Array], agents: list[str]) -> jax.Array:
  return jnp.stack([rewards[agent] for agent in agents]).mean(dtype=jnp.float32)
