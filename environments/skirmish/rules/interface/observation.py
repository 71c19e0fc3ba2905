"""Observations of the players, and the privileged input of their value functions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules.interface import availability, planes
from starleague.environments.skirmish.rules.interface.entities import entities
from starleague.environments.skirmish.rules.state.arrays import flip, look_up, to_dense
from starleague.environments.skirmish.rules.state.queries import (
  present_types,
  real_kind,
  type_counts,
  warp_gates,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.state.supply import food
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import IDLE, RACES


def observe(rules: tables.Rules, state: State,
            player: Array) -> tuple[types.Observation, types.Privileged]:
  """Makes a player's observation and the privileged input of its value functions.

  Args:
    rules: the game's constants.
    state: the game.
    player: [] int32, 0 or 1.

  Returns:
    (Observation, Privileged), unbatched.
  """
  both = _both_players(rules, state)
  shown = _select(both, player)
  # By index: XLA would fuse a select into the unpacking, which then is not vectorised.
  shown["minimap"] = planes.unpack(rules, planes.bits(rules, state)[player])
  whole_map = jnp.array([0, 0, types.POSITION_GRID, types.POSITION_GRID], jnp.int16)
  observation = types.Observation(**shown, game_loop=state.loop, camera=whole_map)
  other, score = 1 - player, score_columns(state)
  privileged = types.Privileged(
    cumulative_score=_select(score, player), executed=_select(state.executed, player),
    opponent_player=_select(both["player"], other),
    opponent_upgrades=_select(both["upgrades"], other),
    opponent_unit_counts=_select(both["unit_counts"], other),
    opponent_cumulative_score=_select(score, other),
    opponent_statistics=_select(state.match_up.z, other),
    opponent_executed=_select(state.executed, other))
  return observation, privileged


def _select(tree: Any, player: Array) -> Any:
  """One player's part of a tree of [2, ...] arrays. A select is cheaper than a gather."""
  return jax.tree.map(lambda values: jnp.where(player == 0, values[0], values[1]), tree)


def _both_players(rules: tables.Rules, state: State) -> dict[str, Any]:
  """Both players' fields of Observation, [2, ...], without planes, time and camera."""
  rows, count = entities(rules, state)
  can = availability.available(rules, state)
  functions = to_dense(rules.functions.index, can.astype(jnp.uint8), vocabulary.NUM_FUNCTIONS)
  functions = functions.at[:, 0].set(1) > 0  # no_op
  counts = to_dense(rules.types.index, type_counts(rules, state, finished=False),
                    vocabulary.NUM_UNIT_TYPES)
  race_index = [types.RACES.index(race.lower()) for race in RACES]
  races = look_up(np.array(race_index, np.uint8), state.race)
  upgrades, enemy_upgrades = _upgrades(rules, state)
  return {
    "entities": rows, "entity_count": count,
    "player": player_columns(rules, state), "home_race": races,
    "away_race": flip(races),
    "upgrades": upgrades, "enemy_upgrades": enemy_upgrades,
    "available_actions": functions, "unit_counts": counts.astype(jnp.uint8),
    "last_delay": jnp.minimum(state.loop - state.last_loop, types.MAX_DELAY).astype(jnp.int16),
    "last_function": state.last_function.astype(jnp.int16),
    "last_queued": state.last_queued.astype(jnp.uint8),
    "last_repeat": state.last_repeat.astype(jnp.uint8),
    "action_result": state.refused.astype(jnp.uint8),
    "mmr": state.match_up.mmr, "statistics": state.match_up.z}


def player_columns(rules: tables.Rules, state: State) -> Array:
  """PLAYER_COLUMNS of both players: [2, 10] int32."""
  types_ = rules.types
  used, most = food(rules, state)
  units = real_kind(rules, state)
  worker, fighter = look_up(types_.worker, units), look_up(types_.fighter, units)
  takes_food = look_up(types_.takes_food, units)
  zero = jnp.zeros(2)
  larvae = jnp.sum(state.larvae, axis=1) if rules.has_larvae else zero
  ready = warp_gates(rules, state) & (state.queue[:, :, 0] == 0)
  gates = jnp.sum(ready, axis=1) if rules.has_warp_gates else zero
  columns = {
    "minerals": state.minerals, "vespene": state.vespene, "food_used": (used + 1) // 2,
    "food_cap": most // 2, "food_army": jnp.sum(fighter * takes_food, axis=1) // 2,
    "food_workers": jnp.sum(worker * takes_food, axis=1) // 2,
    "idle_worker_count": jnp.sum(worker & (state.orders.verb == IDLE), axis=1),
    "army_count": jnp.sum(fighter, axis=1), "warp_gate_count": gates, "larva_count": larvae}
  return jnp.stack([columns[name] for name in types.PLAYER_COLUMNS], axis=1).astype(jnp.int32)


def score_columns(state: State) -> Array:
  """SCORE_COLUMNS of both players: [2, 13] int32; idle times in game loops, rates per minute."""
  score = state.score
  minutes = jnp.maximum(state.loop, 1) / (60 * types.GAME_LOOPS_PER_SECOND)

  def rate(amount):
    return (amount / minutes).astype(jnp.int32)

  columns = {
    "score": state.minerals + state.vespene + score.units + score.structures
             + score.killed_units + score.killed_structures,
    "idle_production_time": score.idle_production, "idle_worker_time": score.idle_workers,
    "total_value_units": score.units, "total_value_structures": score.structures,
    "killed_value_units": score.killed_units, "killed_value_structures": score.killed_structures,
    "collected_minerals": score.collected, "collected_vespene": score.collected_vespene,
    "collection_rate_minerals": rate(score.collected),
    "collection_rate_vespene": rate(score.collected_vespene),
    "spent_minerals": score.spent, "spent_vespene": score.spent_vespene}
  return jnp.stack([columns[name] for name in types.SCORE_COLUMNS], axis=1)


def _upgrades(rules: tables.Rules, state: State) -> tuple[Array, Array]:
  """The players' upgrades, and those of the opponent that its units in sight show: [2, U] bool."""
  none = jnp.zeros((2, vocabulary.NUM_UPGRADES), bool)
  if not rules.has_upgrades:
    return none, none
  own = none.at[:, rules.upgrades.index].set(state.upgrades)
  affected = (rules.upgrades.effects > 0).any(axis=1)  # [U, Y]
  seen = present_types(rules, jnp.where(state.memory.seen, flip(state.kind), 0))
  shown = (seen.astype(jnp.float32) @ affected.T.astype(np.float32)) > 0
  return own, none.at[:, rules.upgrades.index].set(flip(state.upgrades) & shown)
