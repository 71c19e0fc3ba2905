"""Combat: target choice, fire and chase, as a few array operations a tick for both sides.

`Plan` holds the look-ups that the ticks of a step share. Attackers are a player's F armed
structures and units, targets the n slots of its opponent.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import orders
from starleague.environments.skirmish.rules.state.arrays import (
  flip,
  look_up,
  pairwise_squared_distance,
  pick,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import bonus, upgrade_bonuses
from starleague.environments.skirmish.rules.state.slots import clear_slots, with_passengers
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.step import movement
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ACQUISITION_RANGE,
  ARRIVED,
  ATTACK,
  ATTACK_ARRIVED,
  ATTACK_UNIT,
  DEAD_HEALTH,
  HOLD,
  IDLE,
  LINE_HALF_WIDTH,
  LOOPS_PER_TICK,
  MINIMUM_DAMAGE,
  MOVE,
  PATROL,
  SPLASH_SHARE,
  STIM,
  STIM_SPEED,
)
from starleague.environments.skirmish.rules.tables.unit_tables import Weapon

# Classes of targets: fighters attack armed enemies first, then workers and support, then buildings.
_ARMED_CLASS, _UNARMED_CLASS, _BUILDING_CLASS = range(3)
_CLASS_SHIFT = 26  # bits of a target's rank below its class
_NO_TARGET = np.iinfo(np.int32).max


class Weapons(NamedTuple):
  """The attackers' weapons against each target, upgrades and stim included."""

  damage: Array  # [2, F, n] float32, of a volley
  can_hit: Array  # [2, n, F] or [2, 1, F] bool
  range: Array  # [2, n, F] or [2, 1, F] float32, from edge to edge
  ground_reach: Array  # [2, F] float32: range from the attacker's middle to a ground target's edge
  air_reach: Array  # [2, F] float32: to an air target's edge
  line_length: Array  # [2, F] float32, of a flame
  period: Array  # [2, F] float32: loops between volleys; of the ground weapon if it has both


class Plan(NamedTuple):
  """The look-ups of a step, constant over its ticks."""

  weapons: Weapons
  sight: Array  # [2, n, F] float32: squared distance at which a target is engaged; -1 for never
  offset: Array  # [2, n, 1] int32: a target's rank at distance zero, from its class and slot
  line: Array  # [2, F] bool: the weapon is a flame
  splash: Array  # [2, F] float32: radius of a shell around its target, 0 for none
  radius: Array  # [2, n] float32, of targets
  flying: Array  # [2, n] bool, of targets
  speed: Array  # [2, M] float32, a tick
  chases: Array  # [2, F] bool
  goal_x: Array  # [2, M] float32: destination of a unit without a target
  goal_y: Array
  stop: Array  # [2, M] float32: the distance from the goal at which it stops


class Aim(NamedTuple):
  """The attackers' targets in a tick, [2, F] each."""

  slot: Array  # int32, of the opponent; 0 if there is none
  found: Array  # bool
  x: Array  # float32: from the attacker to its target; 0 if there is none
  y: Array
  in_reach: Array  # bool
  fires: Array  # bool


def volley(rules: tables.Rules, weapon: Weapon, kind: Array, bonuses: Array | None, theirs: Array,
           armour: Array) -> Array:
  """Damage of a volley, after bonus and armour.

  Args:
    rules: the game's constants.
    weapon: against ground or air.
    kind: [2, F] int32, local types of attackers.
    bonuses: the attackers' `upgrade_bonuses`.
    theirs: [2, n] int32, local types of targets.
    armour: [2, n] float32, of targets.

  Returns:
    [2, F, n] float32.
  """
  against = look_up(weapon.against, kind)[:, :, None]
  attributes = look_up(rules.types.attributes, theirs)[:, None]
  strong = (against >= 0) & ((attributes >> jnp.maximum(against, 0)) & 1 > 0)
  more = look_up(weapon.bonus, kind) + bonus(bonuses, "bonus", kind) * (
    look_up(weapon.bonus, kind) > 0)
  plain = look_up(weapon.damage, kind)
  plain = plain + bonus(bonuses, "damage", kind) * (plain > 0)
  hit = plain[:, :, None] + strong * more[:, :, None] - armour[:, None]
  return jnp.maximum(hit, MINIMUM_DAMAGE) * look_up(weapon.attacks, kind)[:, :, None]


def _armour(rules: tables.Rules, state: State, bonuses: Array | None) -> Array:
  """The armour of targets with upgrades; those of shields count while it lasts: [2, n]."""
  theirs = flip(state.kind)
  armour = look_up(rules.types.armour, theirs)
  if bonuses is not None:
    armour = armour + bonus(flip(bonuses), "armour", theirs)
    if rules.has_shields:
      armour = armour + bonus(flip(bonuses), "shield", theirs) * (flip(state.shield) > 0)
  return armour


def _weapons(rules: tables.Rules, state: State, bonuses: Array | None) -> Weapons:
  """The attackers' weapons, without stim."""
  types = rules.types
  mine, theirs = state.kind[:, rules.tier.unarmed:], flip(state.kind)
  ground, air, radius = types.ground, types.air, look_up(types.radius, mine)
  armour, longer = _armour(rules, state, bonuses), bonus(bonuses, "range", mine)
  ground_range, period = look_up(ground.range, mine), look_up(ground.cooldown, mine)
  can_hit = look_up(ground.damage > 0, mine)
  damage = volley(rules, ground, mine, bonuses, theirs, armour) * can_hit[:, :, None]
  range_, can_hit, air_range = (ground_range + longer)[:, None], can_hit[:, None], ground_range
  if rules.has_flyers:
    flying = look_up(types.flying, theirs)
    air_range, hits_air = look_up(air.range, mine), look_up(air.damage > 0, mine)
    air_damage = volley(rules, air, mine, bonuses, theirs, armour) * hits_air[:, :, None]
    damage = jnp.where(flying[:, None], air_damage, damage)
    range_ = jnp.where(flying[:, :, None], (air_range + longer)[:, None], range_)
    can_hit = jnp.where(flying[:, :, None], hits_air[:, None], can_hit)
    period = jnp.where(period > 0, period, look_up(air.cooldown, mine))
  return Weapons(
    damage=damage, can_hit=can_hit, range=range_, ground_reach=ground_range + longer + radius,
    air_reach=air_range + longer + radius, line_length=ground_range + radius, period=period)


def _engagement(rules: tables.Rules, state: State, weapons: Weapons, verb: Array) -> Array:
  """The squared distance at which attackers engage each target, -1 for never: [2, n, F].

  Idle, holding, attacking and patrolling fighters engage every enemy they see and can hit. A unit
  that was ordered to attack a target engages that one from any distance.

  Args:
    rules: the game's constants.
    state: the game.
    weapons: of the attackers.
    verb: [2, F] int32, of the attackers.
  """
  tier, types, p = rules.tier, rules.types, rules.tier.unarmed
  mine, theirs = state.kind[:, p:], flip(state.kind)
  fighter = look_up(types.fighter, mine)
  order_target = jnp.pad(state.orders.target, ((0, 0), (tier.armed, 0)))
  reach = weapons.range + look_up(types.radius, mine)[:, None] + look_up(
    types.radius, theirs)[:, :, None]
  fights = (fighter & ((verb == IDLE) | (verb == HOLD))) | (verb == ATTACK) | (verb == PATROL)
  sight = reach + jnp.where(verb == HOLD, 0.0, ACQUISITION_RANGE)[:, None]
  ordered = (verb == ATTACK_UNIT)[:, None] & (
    order_target[:, None] == jnp.arange(tier.slots)[:, None])
  sight = jnp.where(ordered, 4 * tier.map_size, jnp.where(fights[:, None], sight, -1.0))
  ready = (mine > 0).at[:, :tier.armed].set(
    (mine[:, :tier.armed] > 0) & (state.unfinished[:, p:] == 0))
  possible = state.memory.seen[:, :, None] & ready[:, None] & weapons.can_hit & (sight > 0)
  return jnp.where(possible, sight * sight, -1.0)


def _rank_offset(rules: tables.Rules, theirs: Array) -> Array:
  """The rank of targets [2, n] at distance zero: class, then slot. [2, n] int32."""
  types = rules.types
  classes = np.where(types.structure & ~types.fighter, _BUILDING_CLASS, np.where(
    types.worker | ~types.fighter, _UNARMED_CLASS, _ARMED_CLASS)).astype(np.int32)
  classes[0] = 0
  return (look_up(classes, theirs) << _CLASS_SHIFT) + jnp.arange(rules.tier.slots)


def plan(rules: tables.Rules, state: State) -> Plan:
  """Makes the look-ups that the ticks of a step share."""
  tier, types, s = rules.tier, rules.types, rules.tier.structures
  mine, theirs = state.kind[:, tier.unarmed:], flip(state.kind)
  bonuses = upgrade_bonuses(rules, state)
  weapons = _weapons(rules, state, bonuses)
  verb = jnp.pad(state.orders.verb, ((0, 0), (tier.armed, 0)), constant_values=HOLD)
  sight = _engagement(rules, state, weapons, verb)
  speed = look_up(types.speed, state.kind[:, s:]) + bonus(bonuses, "speed", state.kind[:, s:])
  if rules.has(STIM):
    factor = jnp.where(state.stimmed > 0, STIM_SPEED, 1.0)
    speed = speed * factor
    weapons = weapons._replace(period=weapons.period.at[:, tier.armed:].set(
      weapons.period[:, tier.armed:] / factor))
  goal_x, goal_y, stop = movement.goals(rules, state)
  return Plan(
    weapons=weapons, sight=sight, offset=_rank_offset(rules, theirs)[:, :, None],
    line=look_up(types.line, mine), splash=look_up(types.splash, mine),
    radius=look_up(types.radius, theirs), flying=look_up(types.flying, theirs), speed=speed,
    chases=(verb != HOLD).at[:, :tier.armed].set(False), goal_x=goal_x, goal_y=goal_y, stop=stop)


def tick(rules: tables.Rules, state: State, plan: Plan) -> State:
  """Plays four game loops: each unit fires at its target, chases it, or goes to its goal."""
  aim = _aim(rules, state, plan)
  loss = flip(_dealt(rules, state, plan, aim))
  cooldown = jnp.where(
    aim.fires, state.cooldown + plan.weapons.period,
    jnp.maximum(state.cooldown, 1 - LOOPS_PER_TICK)) - LOOPS_PER_TICK
  state = _move(rules, state, plan, aim)._replace(cooldown=cooldown, hurt=state.hurt | (loss > 0))
  if rules.has_shields:
    absorbed = jnp.minimum(loss, state.shield)
    return state._replace(shield=state.shield - absorbed, health=state.health - (loss - absorbed))
  return state._replace(health=state.health - loss)


def _aim(rules: tables.Rules, state: State, plan: Plan) -> Aim:
  """Each attacker aims at the nearest target of the first class that it engages."""
  p, slots = rules.tier.unarmed, rules.tier.slots
  x, y, their_x, their_y = state.x[:, p:], state.y[:, p:], flip(state.x), flip(state.y)
  alive = state.health > DEAD_HEALTH
  square = pairwise_squared_distance(their_x, their_y, x, y)
  # A target's rank is one integer: class, distance, slot. One minimum then finds the target and
  # its slot, however many are equally near.
  near = (square <= plan.sight) & flip(alive)[:, :, None] & alive[:, None, p:]  # [2, n, F]
  bits = (slots - 1).bit_length()
  fine = 1 << max(15 - bits - max(int(np.log2(rules.tier.map_size / 24)), 0) * 2, 0)
  rank = jnp.where(
    near, plan.offset + ((square * fine).astype(jnp.int32) << bits), _NO_TARGET)
  best = jnp.min(rank, axis=1)  # [2, F]
  found = best < _NO_TARGET
  slot = jnp.where(found, best & ((1 << bits) - 1), 0)
  to_x = jnp.where(found, pick(their_x, slot) - x, 0.0)
  to_y = jnp.where(found, pick(their_y, slot) - y, 0.0)
  reach = jnp.where(pick(plan.flying, slot), plan.weapons.air_reach, plan.weapons.ground_reach)
  reach = reach + pick(plan.radius, slot)
  in_reach = found & (to_x * to_x + to_y * to_y <= reach * reach)
  return Aim(slot, found, to_x, to_y, in_reach, in_reach & (state.cooldown <= 0))


def _dealt(rules: tables.Rules, state: State, plan: Plan, aim: Aim) -> Array:
  """The damage dealt to each target in a tick: [2, n] float32."""
  p, slots = rules.tier.unarmed, rules.tier.slots
  # Attackers come first here, [2, F, n]: sums over them are several times as fast.
  dx = flip(state.x)[:, None] - state.x[:, p:, None]
  dy = flip(state.y)[:, None] - state.y[:, p:, None]
  there = flip(state.health > DEAD_HEALTH)[:, None]
  # A flame hits every target near the line from the attacker through its own target.
  inverse = 1.0 / jnp.maximum(jnp.sqrt(aim.x * aim.x + aim.y * aim.y), 1e-3)
  ahead_x, ahead_y = (aim.x * inverse)[:, :, None], (aim.y * inverse)[:, :, None]
  along = dx * ahead_x + dy * ahead_y
  aside = jnp.abs(dx * ahead_y - dy * ahead_x)
  width = plan.radius[:, None] + LINE_HALF_WIDTH
  burnt = (plan.line[:, :, None] & (along > 0) & (aside <= width)
           & (along <= plan.weapons.line_length[:, :, None] + width) & there)
  if rules.has_flyers:
    burnt &= ~plan.flying[:, None]
  chosen = aim.slot[:, :, None] == jnp.arange(slots)
  share = (chosen | burnt).astype(jnp.float32)
  if rules.types.splash.any():
    around = squared_distance(aim.x[:, :, None], aim.y[:, :, None], dx, dy)
    beside = (plan.splash[:, :, None] > 0) & there & ~plan.flying[:, None] & (
      around <= (plan.splash * plan.splash)[:, :, None])
    share = jnp.maximum(share, SPLASH_SHARE * beside)
  return jnp.sum(share * aim.fires[:, :, None] * plan.weapons.damage, axis=1)


def _move(rules: tables.Rules, state: State, plan: Plan, aim: Aim) -> State:
  """Units chase targets out of reach; those without a target go to their goal."""
  s, a = rules.tier.structures, rules.tier.armed
  x, y = state.x[:, s:], state.y[:, s:]
  found, in_reach = aim.found[:, a:], aim.in_reach[:, a:]
  goes_x = jnp.where(found, aim.x[:, a:], plan.goal_x - x)
  goes_y = jnp.where(found, aim.y[:, a:], plan.goal_y - y)
  distance = jnp.sqrt(goes_x * goes_x + goes_y * goes_y)
  moves = (state.health[:, s:] > DEAD_HEALTH) & jnp.where(
    found, plan.chases[:, a:] & ~in_reach, True)
  stop = jnp.where(found, 0.0, plan.stop)
  pace = jnp.clip(distance - stop, 0.0, plan.speed) * moves / jnp.maximum(distance, 1e-3)
  new_x, new_y = movement.move(rules, state, x, y, goes_x * pace, goes_y * pace)
  return state._replace(x=state.x.at[:, s:].set(new_x), y=state.y.at[:, s:].set(new_y))


def remove_dead(rules: tables.Rules, state: State) -> State:
  """Empties the slots of the dead and their passengers; credits the opponent with their value."""
  s = rules.tier.structures
  dead = (state.kind > 0) & (state.health <= DEAD_HEALTH)
  if rules.has_transports:
    state, dead = with_passengers(rules, state, dead)
  value = look_up(rules.types.value, state.kind) * dead
  score = state.score
  state = state._replace(
    last_event=jnp.where(jnp.any(state.hurt), state.loop, state.last_event),
    score=score._replace(
      killed_units=score.killed_units + flip(value[:, s:].sum(axis=1)),
      killed_structures=score.killed_structures + flip(value[:, :s].sum(axis=1))))
  return clear_slots(rules, state, dead)


def complete_orders(rules: tables.Rules, state: State, plan: Plan,
                    ended: Array | bool = False) -> State:
  """Ends orders whose goal is reached or whose target is gone, and others [2, M] bool."""
  s, a = rules.tier.structures, rules.tier.armed
  order, verb = state.orders, state.orders.verb
  square = squared_distance(state.x[:, s:], state.y[:, s:], order.x, order.y)
  engaged = jnp.any(plan.sight[:, :, a:] > 0, axis=1) & (state.cooldown[:, a:] > 0)
  arrived = ((verb == MOVE) & (square < ARRIVED ** 2)) | (
    ((verb == ATTACK) | (verb == PATROL)) & (square < ATTACK_ARRIVED ** 2) & ~engaged)
  seen = pick(state.memory.seen & (flip(state.kind) > 0), order.target)
  lost = (verb == ATTACK_UNIT) & ~seen
  # Workers without further orders mine: a stray order of a beginner costs a walk, not the income
  # of the rest of the game.
  worker = look_up(rules.types.worker, state.kind[:, s:])
  return orders.next_order(rules, state, arrived | lost | ended, worker)
