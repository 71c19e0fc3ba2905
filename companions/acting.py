"""Acting: copies of a task and batched inference in one compiled program.

All copies are due at every step, so that one inference serves them all. Steps leave the device
packed; the writer cuts them into unrolls. `workers.actor` is the other `Actor`.
"""

import collections
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent.types import Array
from starleague.common import results
from starleague.companions.system import GREEDY, Inputs, Step, System
from starleague.companions.tasks.task import Task, TimeStep, part_slices
from starleague.data import wire
from starleague.data.records import Records

LOGGED = 100  # latest episodes of a part that `EpisodeLog` holds


class ActingState(NamedTuple):
  """The state of the copies between calls, [n, ...]."""

  key: jax.Array
  task: Any
  timestep: TimeStep
  last_action: jax.Array
  core: Any
  episode_return: jax.Array  # [n] float32, of the running episode
  length: jax.Array  # [n] int32, steps of the running episode


class Episodes(NamedTuple):
  """Episodes that ended, [N, n]."""

  ended: Array  # bool
  returns: Array  # float32, sum of the rewards; any value where none ended
  lengths: Array  # int32


class Round(NamedTuple):
  """N steps of each of n copies, with the same parameters."""

  records: Records  # [N, n, ...]
  episodes: Episodes
  restarted: Sequence[int] = ()  # copies whose first step here does not follow their last one


class Actor(Protocol):
  """Acts in rounds, beside the learner."""

  def start(self, params: Any) -> Callable[[], Round | None]:
    """Starts a round; returns a function that waits for its end, and returns None at a stop."""

  def cpu_seconds(self) -> float:
    """Returns the CPU time of other processes that act, so far."""

  def close(self) -> None:
    """Ends a round that has begun."""


class Acting(NamedTuple):
  """The compiled functions of `make_acting`."""

  init: Callable[[jax.Array], ActingState]  # key -> state
  # (params, state) -> (state, Records [N, n, ...], Episodes [N, n]); donates `state`
  run: jax.stages.Wrapped


def make_acting(system: System, task: Task, iterations: int, greedy: bool = False) -> Acting:
  """Makes the program that acts in all copies of a task.

  Args:
    system: that acts.
    task: n copies.
    iterations: N, steps of a call.
    greedy: no copy explores, for evaluation.
  """
  copies = jnp.full(task.copies, GREEDY) if greedy else jnp.arange(task.copies)

  def init(key: jax.Array) -> ActingState:
    key, *keys = jax.random.split(key, 1 + task.copies)
    state, timestep = task.reset(jnp.stack(keys))
    core = jax.tree.map(lambda x: jnp.broadcast_to(x, (task.copies, *x.shape)),
                        system.initial_state())
    zero = jnp.zeros(task.copies)
    started = ActingState(
      key, state, timestep, jnp.zeros((task.copies, *task.action_shape), jnp.int32), core, zero,
      zero.astype(jnp.int32))
    return _strongly_typed(started)

  @functools.partial(jax.jit, donate_argnums=(1,))
  def run(params: Any, state: ActingState) -> tuple[ActingState, Records, Episodes]:
    state, (records, episodes) = jax.lax.scan(
      functools.partial(_iteration, system, task, copies, params), state, None, iterations)
    return state, records, episodes

  return Acting(jax.jit(init), run)


def _iteration(system: System, task: Task, copies: jax.Array, params: Any, state: ActingState,
               _: None) -> tuple[ActingState, tuple[Records, Episodes]]:
  """Acts once in each copy."""
  key, act_key, task_key = jax.random.split(state.key, 3)
  before = state.timestep
  inputs = Inputs(
    before.observation, state.last_action,
    jnp.where(before.first, 0.0, before.reward), jnp.asarray(before.first))
  acted = jax.vmap(system.act, in_axes=(None, 0, 0, 0, 0))(
    params, jax.random.split(act_key, task.copies), inputs, state.core, copies)
  records = Records(
    row=jnp.arange(task.copies), first=jnp.asarray(before.first),
    last=jnp.zeros(task.copies, bool),
    step=wire.pack_steps(
      Step(inputs, acted.action, acted.behaviour, before.reward, before.discount)),
    core_state=state.core)
  task_state, after = task.step(
    state.task, jax.random.split(task_key, task.copies), acted.action)
  returns, length = state.episode_return + after.reward, state.length + 1
  ended = jnp.asarray(after.first)
  rows = ended.reshape(task.copies, *[1] * len(task.action_shape))
  state = ActingState(
    key, task_state, after, jnp.where(rows, 0, acted.action), acted.state,
    jnp.where(ended, 0.0, returns), jnp.where(ended, 0, length))
  return _strongly_typed(state), (records, Episodes(ended, returns, length))


def _strongly_typed(state: ActingState) -> ActingState:
  """Weakly typed leaves, of a task say, would make the second call of `run` compile again."""
  return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype), state)


class CompiledActor:
  """An `Actor` whose rounds are calls of a compiled program."""

  def __init__(self, acting: Acting, key: jax.Array):
    """Starts the copies."""
    self._run, self._state = acting.run, acting.init(key)

  def start(self, params: Any) -> Callable[[], Round | None]:
    """Starts a round; JAX runs it meanwhile."""
    self._state, records, episodes = self._run(params, self._state)
    return lambda: Round(records, episodes)

  def cpu_seconds(self) -> float:
    """No other process acts."""
    return 0.0

  def close(self) -> None:
    """A round that has begun ends by itself."""


class EpisodeLog:
  """Returns and lengths of the latest training episodes, by part of the task."""

  def __init__(self, task: Task, steps: int):
    """Starts without episodes, at a number of steps."""
    self._slices = part_slices(task)
    self._recent: dict[str, collections.deque[tuple[float, float]]] = {
      name: collections.deque(maxlen=LOGGED) for name in self._slices}
    self._new: dict[str, collections.deque[float]] = {
      name: collections.deque(maxlen=LOGGED) for name in self._slices}  # returns since `clear`
    self._before = (time.time(), steps)

  def add(self, episodes: Episodes) -> None:
    """Adds the episodes of a round."""
    ended, returns, lengths = map(np.asarray, episodes)
    for name, copies in self._slices.items():
      chosen = ended[:, copies]
      found = returns[:, copies][chosen].tolist()
      self._recent[name] += zip(found, lengths[:, copies][chosen].tolist(), strict=True)
      self._new[name] += found

  def scores(self) -> list[float]:
    """Returns means over the parts of the returns since `clear`, oldest first.

    Each mean is of one episode of each part, so that all parts count equally: there are as many as
    episodes of the part that has fewest, at most `LOGGED`.
    """
    count = min(map(len, self._new.values()))
    return np.mean([list(new)[len(new) - count:] for new in self._new.values()], axis=0).tolist()

  def clear(self) -> None:
    """Forgets the episodes of `scores`."""
    for new in self._new.values():
      new.clear()

  def rate(self, steps: int) -> float:
    """Returns the steps per second since the last call."""
    now, (then, before) = time.time(), self._before
    self._before = now, steps
    return (steps - before) / max(1e-9, now - then)

  def means(self) -> dict[str, float]:
    """Returns the mean return and length of each part that has episodes, by tag."""
    found: dict[str, float] = {}
    for name, recent in self._recent.items():
      if recent:
        returns, lengths = np.mean(recent, axis=0).tolist()
        part = results.as_tag(name)
        found |= {f"return/train{part}": returns, f"length/train{part}": lengths}
    return found
