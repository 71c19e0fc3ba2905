"""Moving and shooting: a few array operations a tick, both sides at once."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.actor.environments.skirmish import economy, orders, tables
from starleague.actor.environments.skirmish.state import Array, State, flip, look_up, patch_places

ACQUISITION = 3.5  # beyond a weapon's reach: how far off an enemy is gone for
ARRIVED = 0.7
MANY_ARRIVED = 1.5  # an attack that finds nobody ends this near its aim: a crowd takes room
STRUCTURE_PENALTY, WORKER_PENALTY = 2, 1  # whom a fighter spares for others, in classes
DEAD_VALUE = 0.01  # less health than this is none
NOBODY = np.iinfo(np.int32).max


class Fight(NamedTuple):
  """What stays the same within a step; attackers are units M, targets all n slots."""

  damage: Array  # [2, n, M] float32, of a volley
  reach: Array  # [2, n, M] float32, squared: how far a volley goes
  sight: Array  # [2, n, M] float32, squared: how near an enemy must be to be gone for; -1 never
  offset: Array  # [2, n, 1] int32: what a target's rank starts with, its class and its slot
  line: Array  # [2, M] bool
  width: Array  # [2, n, 1] float32: how far from a flame's middle it is hit
  length: Array  # [2, M] float32: of a flame
  period: Array  # [2, M] float32, loops
  speed: Array  # [2, M] float32, a tick
  chases: Array  # [2, M] bool
  goal_x: Array  # [2, M] float32: where it goes if nobody is near
  goal_y: Array


def prepare(rules: tables.Rules, state: State) -> Fight:
  """Looks up, once a step, all that a step's ticks need."""
  tier, types, s = rules.tier, rules.types, rules.tier.structures
  mine, theirs = state.kind[:, s:], flip(state.kind)
  table = np.stack([types.range, types.radius, types.cooldown, types.speed, types.line,
                    types.fighter, types.worker], axis=1)
  range_, radius, period, speed, line, fighter, worker = jnp.moveaxis(look_up(table, mine), -1, 0)
  their_radius = look_up(types.radius, theirs)
  one_hot = (theirs[:, :, None] == jnp.arange(len(types.names))).astype(jnp.float32)
  damage = one_hot @ jnp.swapaxes(look_up(types.damage, mine), 1, 2)  # [2, n, M]
  verb = state.orders.verb
  reach = range_[:, None] + radius[:, None] + their_radius[:, :, None]
  fights = ((fighter > 0) & ((verb == tables.IDLE) | (verb == tables.HOLD))) | (
    verb == tables.ATTACK)
  look = reach + jnp.where(verb == tables.HOLD, 0.0, ACQUISITION)[:, None]
  target = (verb == tables.ATTACK_UNIT)[:, None] & (
    state.orders.target[:, None] == jnp.arange(tier.slots)[:, None])
  look = jnp.where(target, 4 * tier.map_size, jnp.where(fights[:, None], look, -1.0))
  possible = state.memory.seen[:, :, None] & (mine > 0)[:, None] & (look > 0)
  rank = np.where(types.structure, STRUCTURE_PENALTY, np.where(types.worker, WORKER_PENALTY, 0))
  classes = look_up(rank, theirs).astype(jnp.int32)
  offset = (classes << 26) + jnp.arange(tier.slots)
  patch_x, patch_y = patch_places(rules, state.side)
  at = state.orders.target[:, :, None] == jnp.arange(tier.resources)
  gathers, rests = verb == tables.GATHER, np.array([tables.IDLE, tables.HOLD, tables.CONSTRUCT])
  stays = jnp.any(verb[:, :, None] == rests, axis=2) | (verb == tables.ATTACK_UNIT)
  here_x, here_y = state.x[:, s:], state.y[:, s:]

  def goal(patch, point, here):
    mined = jnp.sum(at * patch[:, None], axis=2)
    return jnp.where(gathers, mined, jnp.where(stays, here, point))

  return Fight(
    damage=damage, reach=reach * reach, sight=jnp.where(possible, look * look, -1.0),
    offset=offset[:, :, None], line=line > 0, width=their_radius[:, :, None] + (
      tables.LINE_HALF_WIDTH), length=range_ + radius, period=period, speed=speed,
    chases=verb != tables.HOLD, goal_x=goal(patch_x, state.orders.x, here_x),
    goal_y=goal(patch_y, state.orders.y, here_y))


def tick(rules: tables.Rules, state: State, fight: Fight) -> State:
  """Four game loops: each unit fires at the nearest enemy, goes for it, or goes on."""
  s, slots = rules.tier.structures, rules.tier.slots
  x, y = state.x[:, s:], state.y[:, s:]
  dx = flip(state.x)[:, :, None] - x[:, None]  # [2, n, M]
  dy = flip(state.y)[:, :, None] - y[:, None]
  square = dx * dx + dy * dy
  alive = state.health > DEAD_VALUE
  # A target's rank is one integer: its class, its distance, its slot. The least of a row is then
  # one minimum, and names one slot however many are equally near.
  near = (square <= fight.sight) & flip(alive)[:, :, None] & alive[:, None, s:]
  bits = (slots - 1).bit_length()
  rank = jnp.where(
    near, fight.offset + ((square * (1 << (15 - bits))).astype(jnp.int32) << bits), NOBODY)
  best = jnp.min(rank, axis=1)  # [2, M]
  found = best < NOBODY
  chosen = (rank == best[:, None]) & near
  to_x, to_y = jnp.sum(chosen * dx, axis=1), jnp.sum(chosen * dy, axis=1)
  in_reach = jnp.any(chosen & (square <= fight.reach), axis=1)
  fires = in_reach & (state.cooldown <= 0)

  # A flame hits all whose middle is near the line from the shooter through its target.
  inverse = 1.0 / jnp.maximum(jnp.sqrt(to_x * to_x + to_y * to_y), 1e-3)
  ahead_x, ahead_y = to_x * inverse, to_y * inverse
  along = dx * ahead_x[:, None] + dy * ahead_y[:, None]
  aside = jnp.abs(dx * ahead_y[:, None] - dy * ahead_x[:, None])
  burnt = (fight.line[:, None] & (along > 0) & (aside <= fight.width)
           & (along <= fight.length[:, None] + fight.width) & flip(alive)[:, :, None])
  dealt = jnp.sum((chosen | burnt) * fires[:, None] * fight.damage, axis=2)  # [2, n]

  goes_x = jnp.where(found, to_x, fight.goal_x - x)
  goes_y = jnp.where(found, to_y, fight.goal_y - y)
  distance = jnp.sqrt(goes_x * goes_x + goes_y * goes_y)
  moves = alive[:, s:] & jnp.where(found, fight.chases & ~in_reach, True)
  # Miners stop beside their patch, not in it.
  stop = jnp.where((state.orders.verb == tables.GATHER) & ~found, 0.8 * economy.MINING_REACH, 0.0)
  pace = jnp.clip(distance - stop, 0.0, fight.speed) * moves / jnp.maximum(distance, 1e-3)
  edge = rules.half - 0.5
  loss = flip(dealt)
  return state._replace(
    x=state.x.at[:, s:].set(jnp.clip(x + goes_x * pace, -edge, edge)),
    y=state.y.at[:, s:].set(jnp.clip(y + goes_y * pace, -edge, edge)),
    cooldown=jnp.where(
      fires, state.cooldown + fight.period,
      jnp.maximum(state.cooldown, 1 - tables.LOOPS_PER_TICK)) - tables.LOOPS_PER_TICK,
    health=state.health - loss, hurt=state.hurt | (loss > 0))


def spread_out(rules: tables.Rules, state: State) -> State:
  """Pushes apart units of a side that stand in one another; miners pass through."""
  s = rules.tier.structures
  x, y = state.x[:, s:], state.y[:, s:]
  solid = (state.kind[:, s:] > 0) & (state.orders.verb != tables.GATHER)
  radius = look_up(rules.types.radius, state.kind[:, s:])
  # Two at the very same place part along a direction that their slots decide.
  angle = np.arange(rules.tier.units, dtype=np.float32) * 2.4
  shift = 1e-3 * state.side[:, None]
  dx = (x + shift * np.cos(angle))[:, None] - (x + shift * np.cos(angle))[:, :, None]
  dy = (y + shift * np.sin(angle))[:, None] - (y + shift * np.sin(angle))[:, :, None]
  distance = jnp.sqrt(dx * dx + dy * dy + 1e-12)
  overlap = jnp.maximum(radius[:, None] + radius[:, :, None] - distance, 0.0)
  pair = solid[:, None] & solid[:, :, None]
  push = jnp.where(pair, 0.5 * overlap / distance, 0.0)
  edge = rules.half - 0.5
  new_x = jnp.clip(x + jnp.clip(jnp.sum(push * dx, axis=1), -0.5, 0.5), -edge, edge)
  new_y = jnp.clip(y + jnp.clip(jnp.sum(push * dy, axis=1), -0.5, 0.5), -edge, edge)
  return state._replace(x=state.x.at[:, s:].set(new_x), y=state.y.at[:, s:].set(new_y))


def bury(rules: tables.Rules, state: State) -> State:
  """Empties the slots of the dead, and credits who killed them."""
  types, s = rules.types, rules.tier.structures
  dead = (state.kind > 0) & (state.health <= DEAD_VALUE)
  value = (look_up(types.cost, state.kind) * dead).astype(jnp.int32)
  kind = jnp.where(dead, 0, state.kind)
  gone, score = dead[:, :s], state.score
  targeted = state.was_targeted & ~jnp.pad(
    jnp.concatenate([dead, flip(dead)], axis=1), ((0, 0), (0, rules.tier.resources)))
  return state._replace(
    kind=kind, health=jnp.where(dead, 0.0, state.health), x=jnp.where(dead, 0.0, state.x),
    y=jnp.where(dead, 0.0, state.y), was_selected=state.was_selected & ~dead,
    was_targeted=targeted, unfinished=jnp.where(gone, 0, state.unfinished),
    queue=jnp.where(gone[:, :, None], 0, state.queue),
    training=jnp.where(gone, 0, state.training),
    orders=state.orders._replace(
      verb=jnp.where(dead[:, s:], tables.IDLE, state.orders.verb)),
    score=score._replace(
      killed_units=score.killed_units + flip(value[:, s:].sum(axis=1)),
      killed_structures=score.killed_structures + flip(value[:, :s].sum(axis=1))))


def arrive(rules: tables.Rules, state: State, fight: Fight) -> State:
  """Ends the orders that are carried out: places reached, targets gone."""
  s = rules.tier.structures
  verb, order = state.orders.verb, state.orders
  square = (order.x - state.x[:, s:]) ** 2 + (order.y - state.y[:, s:]) ** 2
  engaged = jnp.any(fight.sight > 0, axis=1) & (state.cooldown > 0)
  there = ((verb == tables.MOVE) & (square < ARRIVED ** 2)) | (
    (verb == tables.ATTACK) & (square < MANY_ARRIVED ** 2) & ~engaged)
  target = order.target[:, :, None] == jnp.arange(rules.tier.slots)
  seen = jnp.any(target & (state.memory.seen & (flip(state.kind) > 0))[:, None], axis=2)
  lost = (verb == tables.ATTACK_UNIT) & ~seen
  # Workers that have nothing further to do mine: a beginner's stray order costs a walk, not the rest
  # of the game's income.
  worker = look_up(rules.types.worker, state.kind[:, s:]) > 0
  return orders.next_order(rules, state, there | lost, worker)
