"""The two-player protocol: what an environment offers, as pure functions of a state.

A player acts when its own delay is over; the game then waits for it. One step of a driver:

  due = environment.due(state)                 # [2] bool: who must act before time goes on
  observation, privileged = environment.observe(state, player)
  state = environment.act(state, actions, due) # notes the orders, starts the delays
  state = environment.advance(state)           # time goes on; both players' orders take effect

`act` changes nothing that the other player can observe: orders take effect in `advance`, both
players' at once, so that neither gains from acting first.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from starleague.agent import types

Array = Any


class MatchUp(NamedTuple):
  """What a game is about: set at its start, fixed until its end."""

  races: Array  # [2] int32, indices of types.RACES
  map_index: Array  # [] int32
  swap_sides: Array  # [] bool: player 0 starts in the second place
  statistics: types.Statistics  # [2, ...]: z, each player's target; zero is unconditional


class Outcome(NamedTuple):
  """How a game stands."""

  over: Array  # [] bool
  reward: Array  # [2] float32: +1 win, -1 loss, 0 draw; 0 while it goes on


class Environment(NamedTuple):
  """Pure functions of one game's state, to be jitted and vmapped by the caller."""

  reset: Callable[[Array, MatchUp], Any]  # (key, match_up) -> state
  observe: Callable[[Any, Array], tuple[types.Observation, types.Privileged]]  # (state, player)
  act: Callable[[Any, types.Action, Array], Any]  # (state, actions [2, ...], acts [2]) -> state
  advance: Callable[[Any], Any]  # state -> state, one step later; a game that is over stays
  due: Callable[[Any], Array]  # state -> [2] bool; all False once the game is over
  outcome: Callable[[Any], Outcome]  # state -> Outcome
