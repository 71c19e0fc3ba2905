"""The loop of an actor: calls of the rollout program, whose outputs are handled a call later.

While a call runs on the device, the host writes the trajectories of the previous call.
"""

import time
from typing import Any, NamedTuple, NoReturn, Protocol

import jax
import numpy as np

from starleague.actor import rollouts, sessions
from starleague.actor.loops.options import ActorOptions
from starleague.common import compiling
from starleague.data.records import Records
from starleague.data.z.conditioning import Conditioning

# Calls before an actor lowers its priority: until they are handled, the learner may wait for its
# first batch. Beside other programs, an actor of low priority would take minutes for them.
FIRST_CALLS = 6


class Call(NamedTuple):
  """The arguments of a call of the rollout program."""

  number: int  # of the call, as its source counts; `Played.number` repeats it
  params: Any
  probabilities: np.ndarray  # [opponents] float32, of the opponents of new games
  conditioning: Conditioning


class Played(NamedTuple):
  """The outputs of a call."""

  number: int
  records: Records
  results: rollouts.Results
  after: jax.Array  # [games] int32: opponent indices after the call


class CallSource(Protocol):
  """The calls of an actor: opponents, weights, conditioning, and the use of the outcomes.

  A run of one agent is a league of one: `compiled_single` draws its opponents without a
  coordinator. `compiled_league` plays the matches of a coordinator.
  """

  program: rollouts.Rollouts

  def first(self) -> tuple[np.ndarray, Conditioning]:
    """Returns the opponent indices [games] of the first games, and their conditioning."""

  def example(self) -> Call:
    """Returns a call to compile the program with: `params` are arrays of any values, or shapes."""

  def next_call(self) -> Call:
    """Returns the next call."""

  def handle(self, played: Played) -> None:
    """Writes the trajectories of a call and reports its games. Calls come in order."""


def play(source: CallSource, options: ActorOptions, index: int) -> NoReturn:
  """Plays for ever.

  Args:
    source: of the calls.
    options: of the actor.
    index: of this actor among the run's.
  """
  # The time is part of the seed: a restarted actor must not repeat its games.
  key = jax.random.fold_in(jax.random.key(options.seed), time.time_ns() % 2**31 + index)
  opponents, conditioning = source.first()
  with compiling.without_collection():
    state = source.program.init(key, opponents, conditioning)
    # Compiled before the first parameters are there: the learner starts meanwhile.
    example = source.example()
    run = source.program.run.lower(
      example.params, state, example.probabilities, example.conditioning).compile()
  handled, previous = 0, None
  while True:
    call = source.next_call()
    state, records, finished = run(call.params, state, call.probabilities, call.conditioning)
    played = Played(call.number, records, finished, state.opponent + 0)  # `state` is donated
    if previous is not None:
      source.handle(previous)
      handled += 1
    if handled == FIRST_CALLS:
      sessions.lower_priority(options.niceness)
    previous = played
