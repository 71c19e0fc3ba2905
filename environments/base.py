"""The two-player protocol: an environment as pure functions of a state.

A player acts when its own delay is over. One step of a driver:

  due = environment.due(state)                 # [2] bool: the players that must act now
  observation, privileged = environment.observe(state, player)
  state = environment.act(state, actions, due) # notes the actions, starts the delays
  state = environment.advance(state)           # plays one step; both players' actions take effect

`act` changes nothing that the other player can observe. Actions of both players take effect
together in `advance`, so neither gains from acting first.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.agent import types

Array = jax.Array | np.ndarray
# The MMR in an agent's observations: that of the best players it learnt from (Vinyals et al. 2019,
# Methods).
AGENT_MMR = 6200


class MatchUp(NamedTuple):
  """The settings of a game, fixed from its start."""

  races: Array  # [2] int32, indices of types.RACES
  map_index: Array  # [] int32
  swap_sides: Array  # [] bool: player 0 starts in the second position
  z: types.Statistics  # [2, ...], each player's; zero is unconditional
  mmr: Array  # [2] int16: each player's MMR as its observations show it
  income: Array  # [2] int32: percent of workers' loads paid, rounded down; above 100 cheats


def make_match_up(
    races: Any = (1, 1), map_index: Any = 0, swap_sides: Any = False,
    z: types.Statistics | None = None, mmr: Any = (AGENT_MMR,) * 2,
    income: Any = (100,) * 2) -> MatchUp:
  """Makes the match-up of one game. JAX arrays are kept; other values become numpy arrays.

  Args:
    races: [2], indices of types.RACES.
    map_index: index of the environment's maps.
    swap_sides: whether player 0 starts in the second position.
    z: [2, ...], of both players; unconditional if not given.
    mmr: [2].
    income: [2], percent.
  """
  if z is None:
    z = jax.tree.map(
      lambda spec: np.zeros((2, *spec.shape), spec.dtype), types.statistics_spec())

  def array(values, dtype):
    return values if isinstance(values, jax.Array) else np.asarray(values, dtype)[()]

  return MatchUp(
    array(races, np.int32), array(map_index, np.int32), array(swap_sides, np.bool_), z,
    array(mmr, np.int16), array(income, np.int32))


class Outcome(NamedTuple):
  """The result of a game so far."""

  over: Array  # [] bool
  reward: Array  # [2] float32: +1 win, -1 loss, 0 for a draw and during the game


class PlayerStep(NamedTuple):
  """A step of one player of a game, numpy arrays."""

  player: int  # 0 or 1
  step: types.Step  # reward and discount belong to the transition into this step
  first: bool
  last: bool
  executed: types.Statistics  # so far


class Environment(NamedTuple):
  """Pure functions of one game's state, to be jitted and vmapped by the caller."""

  reset: Callable[[Array, MatchUp], Any]  # (key, match_up) -> state
  observe: Callable[[Any, Array], tuple[types.Observation, types.Privileged]]  # (state, player)
  act: Callable[[Any, types.Action, Array], Any]  # (state, actions [2, ...], acts [2]) -> state
  advance: Callable[[Any], Any]  # state -> state, one step later; unchanged once the game is over
  due: Callable[[Any], Array]  # state -> [2] bool; all False once the game is over
  outcome: Callable[[Any], Outcome]  # state -> Outcome
