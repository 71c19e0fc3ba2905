"""The weights of players by name: live ones from the data server, frozen ones from snapshots.

Snapshots lie in the run's directory. One that is missing there is copied from the coordinator.
"""

import threading
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax

from starleague.actor.parts import Parts
from starleague.agent.config import AgentConfig
from starleague.common import errors
from starleague.data import checkpoints
from starleague.data.reverb.parameters import Fetched, ParameterFetcher
from starleague.league.run_copy import RunCopy


class Version(NamedTuple):
  """What tells weights from other weights of the same player."""

  step: int  # updates of reinforcement learning
  checksum: int  # of the weights: a reset changes them without an update


FROZEN = Version(-1, 0)  # of weights that never change


class Weights(NamedTuple):
  """The weights of a player and their version."""

  params: Any
  version: Version


def make_fetcher(parts: Parts, address: str, player: str, interval_s: float, deadline_s: float,
                 stop: threading.Event | None = None) -> ParameterFetcher:
  """Connects to the data server at host:port for a learning player's newest weights."""
  template = jax.eval_shape(parts.policy.init, jax.random.key(0))
  return ParameterFetcher(
    address, player, template, interval_s=interval_s, deadline_s=deadline_s, stop=stop)


def load_snapshot(config: AgentConfig, run: RunCopy, name: str) -> Any:
  """Returns the weights of a historical player.

  Raises:
    FileNotFoundError: its snapshot is missing.
    FinalError: its snapshot is damaged, or of another agent.
    LeagueUnavailableError, LeagueError: see `RunCopy.fetch`.
  """
  path = run.snapshot(name)
  with errors.final(*checkpoints.UNUSABLE):
    return checkpoints.load_params(path, config)


class WeightSource:
  """The weights of a run's players; see the module."""

  def __init__(self, fetch: Callable[[str], Callable[[], Fetched]],
               load: Callable[[str], Any], learners: Collection[str]):
    """Connects to nothing yet.

    Args:
      fetch: returns the fetcher of a learning player's newest weights.
      load: returns the weights of a frozen player.
      learners: names of the players that learn.
    """
    self._fetch, self._load, self.learners = fetch, load, tuple(learners)
    self._fetchers: dict[str, Callable[[], Fetched]] = {}

  def newer(self, name: str, held: Version | None) -> Weights | None:
    """Returns the newest weights of a player, or None if they are the held ones.

    Args:
      name: of the player. The first weights of one that learns are waited for.
      held: version of the weights that the caller has; None: it has none.

    Raises:
      StoppedError, StarvedError, ServerUnavailableError: see `ParameterFetcher`.
      Errors of `load_snapshot`: for a frozen player.
    """
    if name not in self.learners:
      return None if held == FROZEN else Weights(self._load(name), FROZEN)
    if name not in self._fetchers:
      self._fetchers[name] = self._fetch(name)
    fetched = self._fetchers[name]()
    version = Version(fetched.step, fetched.checksum)
    return None if version == held else Weights(fetched.params, version)

  def __call__(self, name: str) -> Weights:
    """Returns the newest weights of a player; see `newer`."""
    found = self.newer(name, None)
    assert found is not None
    return found


def make_source(parts: Parts, run: RunCopy, address: str, learners: Collection[str],
                interval_s: float, deadline_s: float,
                stop: threading.Event | None = None) -> WeightSource:
  """Returns the weights of a run's players.

  Args:
    parts: of the run.
    run: the run's directory, for the snapshots of frozen players.
    address: host:port of the data server that has the newest weights.
    learners: names of the players that learn.
    interval_s: between two looks for newer weights.
    deadline_s: of a wait for the data server.
    stop: ends all waits when set.
  """
  return WeightSource(
    lambda name: make_fetcher(parts, address, name, interval_s, deadline_s, stop),
    lambda name: load_snapshot(parts.config, run, name), learners)
