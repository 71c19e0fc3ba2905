"""Types of the program of rollouts: its decider, sizes, state and results; see `rollouts`."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from starleague.actor import rows
from starleague.actor.behaviour import Track
from starleague.agent import types
from starleague.data.z.conditioning import Conditioning

# (index, key, state, player) -> action of the scripted player of that index, unbatched.
ScriptedPlayer = Callable[[jax.Array, jax.Array, Any, jax.Array], types.Action]
SELF_PLAY = 0  # opponent index; scripted player i is opponent i + 1
COUNTED = -1  # opponent index of a finished game that is not replaced


class Decider(NamedTuple):
  """Decides for the rows that are inferred and recorded; for a policy, see `make_rollouts`."""

  # (params, keys, games, players, opponents, observations, privileged, cores, plans) -> StepOutput,
  # or what has its fields; all have a leading axis of rows
  decide: Callable[..., Any]
  initial_state: Callable[[], types.CoreState]  # at the start of a game
  plays: Callable[[jax.Array], jax.Array]  # opponents [games] -> [games, 2] bool: its rows
  # (opponents [games], conditioning) -> MMR as observations show it, percent of income: [games, 2]
  strength: Callable[[jax.Array, Conditioning], tuple[jax.Array, jax.Array]]
  # (params, priority [2 * games], opponents [games], size) -> row, filled [size]: the rows that an
  # iteration infers. A priority of 0 means that the row is not pending.
  choose_rows: Callable[..., tuple[jax.Array, jax.Array]] = rows.longest_waiting
  # opponents [games] -> index of the scripted player, any where there is none
  script: Callable[[jax.Array], jax.Array] = lambda opponent: jnp.maximum(opponent - 1, 0)
  # The rest is for a decider that decides before it observes. Plans at the start, [games, ...]:
  initial_plan: Callable[[int], Any] = lambda games: ()
  # (key, game states, plans, opponents, advanced [games] bool) -> plans, after environment steps
  look: Callable[..., Any] = lambda key, game, plan, opponent, advanced: plan
  # plans -> rows to be observed [games, 2] bool; None: those that are due
  ready: Callable[[Any], jax.Array] | None = None
  # output of `decide` -> the actions that records hold, where they are not those that are taken
  recorded: Callable[[Any], types.Action] = lambda output: output.action
  # output of `decide` -> win-loss values [rows] for `Conditioning.minimax`; None: there are none
  value: Callable[[Any], jax.Array] | None = None


@dataclasses.dataclass(frozen=True)
class RolloutConfig:
  """Sizes of the compiled program.

  Attributes:
    games: number of games in the batch.
    inference_batch: rows inferred per iteration; at most 2 * games.
    iterations: iterations per call.
    max_advances: most environment steps per iteration while fewer rows than `inference_batch` are
      due.
    races: indices of types.RACES that match-ups are drawn from.
    draw: reward of a draw, for both players; results count draws as they are.
    maps: number of maps that match-ups are drawn from: the environment's first ones.
    pseudo_scale: pseudo-reward per unit of distance to z.
    grid_per_unit: cells of the 256 x 256 grid per game unit, for build order distances.
    restart: whether new games replace finished ones.
    chunk: games that advance, or whose scripted players decide, in one vectorised operation. Games
      that wait cost nothing: only chunks that hold other games are computed.
    restart_chunk: as `chunk`, of new games.
  """

  games: int
  inference_batch: int
  iterations: int
  max_advances: int = 16
  races: tuple[int, ...] = (1,)
  maps: int = 1
  draw: float = 0.0
  pseudo_scale: float = 1.0
  grid_per_unit: float = 1.0
  restart: bool = True
  chunk: int = 32
  restart_chunk: int = 8

  def __post_init__(self) -> None:
    if not 0 < self.inference_batch <= 2 * self.games:
      raise ValueError(
        f"inference_batch must be in 1..{2 * self.games} (twice the games), found "
        f"{self.inference_batch}.")


class Results(NamedTuple):
  """Results of finished games, [iterations, games, ...]."""

  over: types.Array  # bool: the game finished in this iteration
  opponent: types.Array  # int32
  reward: types.Array  # [.., 2] float32: +1, 0, -1
  # [.., 2, ...]; a scripted player's as of player 0's last observation.
  executed: types.Statistics
  z: types.Statistics  # [.., 2, ...], inactive parts included
  race: types.Array  # [.., 2] int32, indices of types.RACES
  side: types.Array  # [.., 2] int32: starting sides
  map_index: types.Array  # int32
  track: Track | tuple[()] = ()  # [.., 2]; () of games outside the program


class RolloutState(NamedTuple):
  """State of a batch of games between calls, [games, ...]."""

  key: jax.Array
  environment: Any
  core: types.CoreState  # [games, 2, ...]
  plan: Any  # of the decider, [games, ...]
  # [games, 2, ...]: at each row's last observation; a scripted player's at its opponent's.
  executed: types.Statistics
  race: jax.Array  # [games, 2] int32
  side: jax.Array  # [games, 2] int32: starting side, 0 or 1
  map_index: jax.Array  # [games] int32
  pseudo_active: jax.Array  # [games, 2, 4] bool
  z: types.Statistics  # [games, 2, ...], inactive parts included
  opponent: jax.Array  # [games] int32
  first: jax.Array  # [games, 2] bool: the next observation is the first of its game
  flushed: jax.Array  # [games, 2] bool: the terminal observation has been recorded
  waited: jax.Array  # [games, 2] int32: iterations for which a due row has not been inferred
  value: jax.Array  # [games, 2] float32: win-loss value at each row's last decision, 0 before
  # [games, 2] float32: `value` of the opponent, at each row's last observation.
  rival_value: jax.Array
  # [games, 2, 2, types] uint8: own and the opponent's units at each row's last observation; () if
  # `Conditioning.objectives` is None.
  units: Any
  track: Track  # [games, 2]; a scripted player's as its opponent's observations show it


class Rollouts(NamedTuple):
  """The compiled functions of `make_rollouts`."""

  # (key, opponents [games], conditioning) -> state
  init: Callable[..., RolloutState]
  # (params, state, probabilities, conditioning) -> (state, records, results); donates `state`.
  run: jax.stages.Wrapped
