"""Records of a game: executed statistics (z), scores and the winner."""

import jax.numpy as jnp

from starleague.agent import build_order, types, vocabulary
from starleague.environments.skirmish.rules.state.arrays import look_up, segment_sum, to_dense
from starleague.environments.skirmish.rules.state.queries import (
  finished_kind,
  present_types,
  real_kind,
)
from starleague.environments.skirmish.rules.state.slots import Spawns
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import IDLE, LOOPS_PER_STEP, TRAINING

DRAW = 2


def record_spawns(rules: tables.Rules, state: State, spawns: Spawns) -> State:
  """Records new units and structures in the executed statistics and in the score.

  Args:
    rules: the game's constants.
    state: the game.
    spawns: [2, k], in the order in which the build order lists them.
  """
  types_, executed, score, kind = rules.types, state.executed, state.score, spawns.kind
  scale = types.POSITION_GRID / rules.tier.map_size
  counted = (kind > 0) & look_up(build_order.IN_BUILD_ORDER[types_.index], kind)
  length = jnp.sum(executed.build_order > 0, axis=1, keepdims=True)
  place = jnp.where(counted, length + jnp.cumsum(counted, axis=1) - 1, -1)

  def put(values):
    return segment_sum(place, values, types.BUILD_ORDER_LENGTH).astype(jnp.uint8)

  def cell(values):
    index = jnp.floor(scale * (values + rules.half))
    return put(jnp.clip(index, 0, types.POSITION_GRID - 1).astype(jnp.int32))

  value, structure = look_up(types_.value, kind), look_up(types_.structure, kind)
  if rules.tier.stalemate_loops:
    state = state._replace(last_event=jnp.where(jnp.any(kind > 0), state.loop, state.last_event))
  return state._replace(
    executed=executed._replace(
      build_order=executed.build_order + put(look_up(types_.index, kind)),
      build_order_xy=executed.build_order_xy + jnp.stack(
        [cell(spawns.x), cell(spawns.y)], axis=-1),
      units=executed.units | to_dense(
        types_.index, present_types(rules, kind), vocabulary.NUM_UNIT_TYPES)),
    score=score._replace(
      units=score.units + jnp.sum(jnp.where(structure, 0, value), axis=1),
      structures=score.structures + jnp.sum(jnp.where(structure, value, 0), axis=1)))


def count_idle_time(rules: tables.Rules, state: State) -> State:
  """Adds the game loops of idle workers and idle production structures to the score."""
  score = state.score
  worker = look_up(rules.types.worker, real_kind(rules, state))
  resting = jnp.sum(worker & (state.orders.verb == IDLE), axis=1)
  produces = rules.functions.capable[rules.functions.kind == TRAINING].any(axis=0)
  unused = jnp.sum(look_up(produces, finished_kind(rules, state)) & (
    state.queue[:, :, 0] == 0), axis=1)
  return state._replace(score=score._replace(
    idle_workers=score.idle_workers + resting * LOOPS_PER_STEP,
    idle_production=score.idle_production + unused * LOOPS_PER_STEP))


def winner(rules: tables.Rules, state: State) -> Array:
  """The winner, [] int32: 0, 1, DRAW, or -1 during the game.

  A player without structures has lost. Too long a game, or too long a stalemate, is a draw.
  """
  lost = jnp.all(state.kind[:, :rules.tier.structures] == 0, axis=1)
  late = state.loop >= rules.tier.loop_limit
  if rules.tier.stalemate_loops:
    late |= state.loop - state.last_event >= rules.tier.stalemate_loops
  found = jnp.where(lost[0], 1, jnp.where(lost[1], 0, jnp.where(late, DRAW, -1)))
  return jnp.where(lost[0] & lost[1], DRAW, found).astype(jnp.int32)
