"""The loop of an actor: calls of the rollout program, whose outputs are handled a call later.

While a call runs on the device, the host writes the trajectories of the previous call.
"""

import pathlib
import time
from typing import Any, NamedTuple, NoReturn, Protocol

import jax
import ml_collections
import numpy as np

from starleague.actor import rollouts, sessions
from starleague.common import compiling, results
from starleague.data.records import Records
from starleague.data.z.conditioning import Conditioning

REPORT_INTERVAL_S = 5.0


class Call(NamedTuple):
  """The arguments of a call of the rollout program."""

  number: int  # one above that of the call before
  params: Any
  probabilities: np.ndarray  # [opponents] float32, of the opponents of new games
  conditioning: Conditioning


class Played(NamedTuple):
  """The outputs of a call."""

  number: int
  records: Records
  results: rollouts.Results
  after: jax.Array  # [games] int32: opponent indices after the call


class Games(Protocol):
  """The games of an actor: against whom, with which weights, and the use of their outcomes.

  A run of one agent is a league of one: `agent_acting` deals its opponents without a coordinator.
  `league_acting` plays the matches of a coordinator.
  """

  program: rollouts.Rollouts

  def first(self) -> tuple[np.ndarray, Conditioning]:
    """Returns the opponent indices [games] of the first games, and their conditions."""

  def example(self) -> Call:
    """Returns a call to compile the program with; shapes take the place of `params`."""

  def next_call(self) -> Call:
    """Returns the next call."""

  def handle(self, played: Played) -> None:
    """Writes the trajectories of a call and reports its games. Calls come in order."""


class Counts:
  """Adds the steps and games of an actor to the run's results file every few seconds."""

  def __init__(self, run_dir: pathlib.Path, origin: float, name: str | None = None):
    """Starts with none.

    Args:
      run_dir: the run's directory.
      origin: start of the run, in Unix seconds.
      name: of the actor, for rows of its own speed; None: no such rows.
    """
    self._path, self._origin, self._name = run_dir / results.FILE_NAME, origin, name
    self._steps = self._games = 0
    self._since = time.time()

  def add(self, steps: int, games: int, update: int = 0) -> float | None:
    """Counts steps and games; returns the time if it has reported them now, in Unix seconds."""
    self._steps += steps
    self._games += games
    now = time.time()
    if now - self._since < REPORT_INTERVAL_S:
      return None
    rows = {"count/steps": float(self._steps), "count/games": float(self._games)}
    if self._name is not None:
      rows[f"actor/{self._name}"] = self._steps / (now - self._since)
    results.append(self._path, [results.Row(now - self._origin, update, tag, value)
                                for tag, value in rows.items()])
    self._steps, self._games, self._since = 0, 0, now
    return now


def play(games: Games, config: ml_collections.ConfigDict, index: int) -> NoReturn:
  """Plays for ever.

  Args:
    games: to play.
    config: the run's config.
    index: of this actor among the run's.
  """
  # The time is part of the seed: a restarted actor must not repeat its games.
  key = jax.random.fold_in(jax.random.key(config.seed), time.time_ns() % 2**31 + index)
  opponents, conditioning = games.first()
  with compiling.without_collection():
    state = games.program.init(key, opponents, conditioning)
    # Compiled before the first parameters are there: the learner starts meanwhile.
    example = games.example()
    run = games.program.run.lower(
      example.params, state, example.probabilities, example.conditioning).compile()
  sessions.lower_priority(config.actor.niceness)
  previous: Played | None = None
  while True:
    call = games.next_call()
    state, records, finished = run(call.params, state, call.probabilities, call.conditioning)
    played = Played(call.number, records, finished, state.opponent + 0)  # `state` is donated
    if previous is not None:
      games.handle(previous)
    previous = played
