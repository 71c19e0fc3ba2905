"""The loop of an actor: calls and their outputs in order, counts, priority."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import rollouts
from starleague.actor.loops import compiled_loop
from starleague.data.z.conditioning import unconditional
from tests.actor.loops.options import options


class State(NamedTuple):
  """State of a program that counts its calls."""

  key: jax.Array
  opponent: jax.Array
  calls: jax.Array


class Ended(Exception):
  """The games are over."""


class FourCalls:
  """Games of a program whose records are the sum of parameters and the number of calls."""

  def __init__(self):
    def init(key, opponents, conditioning):
      return State(key, jnp.asarray(opponents), jnp.int32(0))

    def run(params, state, probabilities, conditioning):
      calls = state.calls + 1
      opponent = state.opponent + 1
      return State(state.key, opponent, calls), params + calls, probabilities.sum()

    self.program = rollouts.Rollouts(init, jax.jit(run, donate_argnums=1))
    self.log = []

  def first(self):
    return np.array([3, 4]), unconditional(1, 6000)

  def _call(self, number, params):
    return compiled_loop.Call(
      number, params, np.full(2, number, np.float32), unconditional(1, 6000))

  def example(self):
    return self._call(0, jax.ShapeDtypeStruct((), np.int32))

  def next_call(self):
    number = 1 + sum(kind == "call" for kind, *_ in self.log)
    if number == 5:
      raise Ended
    self.log.append(("call", number))
    return self._call(number, np.int32(10 * number))

  def handle(self, played):
    self.log.append(("handled", played.number, int(played.records), float(played.results),
                     played.after.tolist()))


@pytest.fixture
def games(monkeypatch):
  found = FourCalls()
  monkeypatch.setattr(compiled_loop.sessions, "lower_priority",
                      lambda niceness: found.log.append(("niceness", niceness)))
  return found


def test_outputs_are_handled_in_order_while_the_next_call_runs(games):
  with pytest.raises(Ended):
    compiled_loop.play(games, options(), 0)
  # Call n adds n to its parameters 10 n, sums probabilities n and n, and changes the opponents.
  assert games.log == [
    ("call", 1), ("call", 2), ("handled", 1, 11, 2.0, [4, 5]),
    ("call", 3), ("handled", 2, 22, 4.0, [5, 6]),
    ("call", 4), ("handled", 3, 33, 6.0, [6, 7])]


def test_the_priority_is_lowered_when_the_first_calls_are_handled(games, monkeypatch):
  """The learner waits for its first batch: beside other programs, a nice actor takes minutes."""
  monkeypatch.setattr(compiled_loop, "FIRST_CALLS", 2)
  with pytest.raises(Ended):
    compiled_loop.play(games, options(actor__niceness=7), 0)
  assert [entry[:2] for entry in games.log] == [
    ("call", 1), ("call", 2), ("handled", 1), ("call", 3), ("handled", 2), ("niceness", 7),
    ("call", 4), ("handled", 3)]
