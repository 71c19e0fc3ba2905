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

import jax
import numpy as np

from starleague.agent import types

Array = Any
# What an agent is told of its own skill (Vinyals et al. 2019, Methods: it is conditioned on the best
# of the players that it learnt from).
AGENT_MMR = 6200


class MatchUp(NamedTuple):
  """What a game is about: set at its start, fixed until its end."""

  races: Array  # [2] int32, indices of types.RACES
  map_index: Array  # [] int32
  swap_sides: Array  # [] bool: player 0 starts in the second place
  statistics: types.Statistics  # [2, ...]: z, each player's target; zero is unconditional
  mmr: Array  # [2] int16: what each player's observation says of its skill
  income: Array  # [2] int32: percent of what its workers bring that each gets; above 100: a cheat


def make_match_up(
    races: Any = (1, 1), map_index: Any = 0, swap_sides: Any = False,
    statistics: types.Statistics | None = None, mmr: Any = (AGENT_MMR,) * 2,
    income: Any = (100,) * 2) -> MatchUp:
  """A match-up of one game, of numpy arrays but for what is given as JAX's.

  Args:
    races: indices of types.RACES.
    map_index: one of the environment's maps.
    swap_sides: player 0 starts in the second place.
    statistics: z of both; none if not given.
    mmr: of both.
    income: of both, percent.
  """
  if statistics is None:
    statistics = jax.tree.map(
      lambda spec: np.zeros((2, *spec.shape), spec.dtype), types.statistics_spec())

  def array(values, dtype):
    return values if isinstance(values, jax.Array) else np.asarray(values, dtype)[()]

  return MatchUp(
    array(races, np.int32), array(map_index, np.int32), array(swap_sides, np.bool_), statistics,
    array(mmr, np.int16), array(income, np.int32))


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
