"""Combat: target choice, fire and chase, as a few array operations a tick for both sides.

`Plan` holds the look-ups that the ticks of a step share. Attackers are a player's F armed
structures and units, targets the n slots of its opponent.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import sentries
from starleague.environments.skirmish.rules.state.arrays import (
  flip,
  look_up,
  pairwise_squared_distance,
  pick,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import (
  bonus,
  is_hallucination,
  upgrade_bonuses,
)
from starleague.environments.skirmish.rules.state.slots import clear_slots, with_passengers
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.step import movement
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ACQUISITION_RANGE,
  ATTACK,
  ATTACK_UNIT,
  DEAD_HEALTH,
  GUARD_ARMOUR,
  HALLUCINATION_DAMAGE,
  HOLD,
  IDLE,
  LINE_HALF_WIDTH,
  LOOPS_PER_TICK,
  MELEE_RANGE,
  MINIMUM_DAMAGE,
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
_NEVER = -1e9  # a reach without targets, map units


class Weapons(NamedTuple):
  """The attackers' weapons against each target, upgrades and stim included."""

  damage: Array  # [2, F, n] float32, of a volley
  ground_reach: Array  # [2, F] float32: range from the attacker's middle to a ground target's edge
  air_reach: Array  # [2, F] float32: to an air target's edge
  line_length: Array  # [2, F] float32, of a flame
  period: Array  # [2, F] float32: loops between volleys; of the ground weapon if it has both


class Volley(NamedTuple):
  """Volleys of attackers, [2, F, 1] each, or [2, F, n] by target."""

  plain: Array  # float32: damage of a hit, before armour
  more: Array  # float32: added against targets with an attribute
  against: Array  # int32: the bit of this attribute, 0 for none
  attacks: Array  # float32: hits, 0 without the weapon


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
  weakness: Array | None  # [2, n] float32: factor of the damage that slots take; None: 1
  barrier: sentries.Barriers | None  # Force Fields in the way of units


class Aim(NamedTuple):
  """The attackers' targets in a tick, [2, F] each."""

  slot: Array  # int32, of the opponent; 0 if there is none
  found: Array  # bool
  x: Array  # float32: from the attacker to its target; 0 if there is none
  y: Array
  in_reach: Array  # bool
  fires: Array  # bool


def volley(rules: tables.Rules, weapon: Weapon, kind: Array, bonuses: Array | None) -> Volley:
  """Volleys of local types [2, F] with a weapon: [2, F, 1] each. Those without it deal no damage.

  Args:
    rules: the game's constants.
    weapon: against ground or air.
    kind: [2, F] int32, local types of attackers.
    bonuses: the attackers' `upgrade_bonuses`.
  """
  more = look_up(weapon.bonus, kind) + bonus(bonuses, "bonus", kind) * (
    look_up(weapon.bonus, kind) > 0)
  plain = look_up(weapon.damage, kind)
  plain = plain + bonus(bonuses, "damage", kind) * (plain > 0)
  against = np.where(weapon.against >= 0, 1 << np.maximum(weapon.against, 0), 0)
  attacks = np.where(weapon.damage > 0, weapon.attacks, 0)
  return Volley(plain[:, :, None], more[:, :, None], look_up(against, kind)[:, :, None],
                look_up(attacks, kind)[:, :, None])


def damage(rules: tables.Rules, shots: Volley, theirs: Array, armour: Array) -> Array:
  """Damage of volleys, after bonus and armour.

  Args:
    rules: the game's constants.
    shots: of the attackers.
    theirs: [2, n] int32, local types of targets.
    armour: [2, 1, n] or [2, F, n] float32, of targets.

  Returns:
    [2, F, n] float32.
  """
  strong = (look_up(rules.types.attributes, theirs)[:, None] & shots.against) > 0
  hit = shots.plain + strong * shots.more - armour
  return jnp.maximum(hit, MINIMUM_DAMAGE) * shots.attacks


def _armour(rules: tables.Rules, state: State, bonuses: Array | None) -> Array:
  """The armour of targets with upgrades; those of shields count while it lasts: [2, n]."""
  theirs = flip(state.kind)
  armour = look_up(rules.types.armour, theirs)
  if bonuses is not None:
    armour = armour + bonus(flip(bonuses), "armour", theirs)
    if rules.has_shields:
      armour = armour + bonus(flip(bonuses), "shield", theirs) * (flip(state.shield) > 0)
  return armour


def _guarded(rules: tables.Rules, state: State, mine: Array, armour: Array) -> Array:
  """The armour [2, n] of targets against attackers of local types [2, F]: [2, F, n].

  A Guardian Shield adds armour against ranged weapons.
  """
  weapons = rules.types.ground, rules.types.air
  ranged = np.maximum(*(weapon.range for weapon in weapons)) > MELEE_RANGE
  assert not any((ranged & (weapon.damage > 0) & (weapon.range <= MELEE_RANGE)).any()
                 for weapon in weapons)
  guarded = armour + GUARD_ARMOUR * flip(sentries.shielded(rules, state))
  return jnp.where(look_up(ranged, mine)[:, :, None], guarded[:, None], armour[:, None])


def _damage(rules: tables.Rules, state: State, bonuses: Array | None) -> Array:
  """The damage of the attackers' volleys to each target: [2, F, n]."""
  types = rules.types
  mine, theirs = state.kind[:, rules.tier.unarmed:], flip(state.kind)
  armour, shots = _armour(rules, state, bonuses), volley(rules, types.ground, mine, bonuses)
  if rules.has_flyers:
    flying = look_up(types.flying, theirs)[:, None]
    shots = Volley(*(jnp.where(flying, air, ground) for ground, air in zip(
      shots, volley(rules, types.air, mine, bonuses), strict=True)))
  if not rules.has_sentries:
    return damage(rules, shots, theirs, armour[:, None])
  real = ~jnp.pad(is_hallucination(rules, state), ((0, 0), (rules.tier.armed, 0)))
  return damage(rules, shots._replace(attacks=shots.attacks * real[:, :, None]), theirs,
                _guarded(rules, state, mine, armour))


def _weapons(rules: tables.Rules, state: State, bonuses: Array | None) -> Weapons:
  """The attackers' weapons, without stim. Those of hallucinations deal no damage."""
  types = rules.types
  mine = state.kind[:, rules.tier.unarmed:]
  ground, air, radius = types.ground, types.air, look_up(types.radius, mine)
  longer = bonus(bonuses, "range", mine)
  ground_range, period = look_up(ground.range, mine), look_up(ground.cooldown, mine)
  air_range = ground_range
  if rules.has_flyers:
    air_range = look_up(air.range, mine)
    period = jnp.where(period > 0, period, look_up(air.cooldown, mine))
  return Weapons(
    damage=_damage(rules, state, bonuses), ground_reach=ground_range + longer + radius,
    air_reach=air_range + longer + radius, line_length=ground_range + radius, period=period)


def _engagement(rules: tables.Rules, state: State, weapons: Weapons, verb: Array) -> Array:
  """The squared distance at which attackers engage each target, -1 for never: [2, n, F].

  Idle, holding, attacking and patrolling fighters engage enemies that they see and can hit, in
  reach or, unless they hold, up to ACQUISITION_RANGE beyond. A unit that was ordered to attack a
  target engages that one from any distance.

  Args:
    rules: the game's constants.
    state: the game.
    weapons: of the attackers.
    verb: [2, F] int32, of the attackers.
  """
  tier, types, p, seen = rules.tier, rules.types, rules.tier.unarmed, state.memory.seen
  mine, theirs = state.kind[:, p:], flip(state.kind)
  fighter = look_up(types.fighter, mine)
  fights = (fighter & ((verb == IDLE) | (verb == HOLD))) | (verb == ATTACK) | (verb == PATROL)
  ready = (mine > 0).at[:, :tier.armed].set(
    (mine[:, :tier.armed] > 0) & (state.unfinished[:, p:] == 0))
  target = jnp.pad(state.orders.target, ((0, 0), (tier.armed, 0)))

  # Conditions become impossible distances and slots of attackers and of targets: few operations
  # are left for their pairs.
  def of_weapon(weapon, reach):
    hits = ready & look_up(weapon.damage > 0, mine)
    return (jnp.where(fights & hits, reach, _NEVER)[:, None],
            jnp.where((verb == ATTACK_UNIT) & hits, target, -1)[:, None])

  reach, ordered = of_weapon(types.ground, weapons.ground_reach)
  if rules.has_flyers:
    flying = look_up(types.flying, theirs)[:, :, None]
    air_reach, air_ordered = of_weapon(types.air, weapons.air_reach)
    reach = jnp.where(flying, air_reach, reach)
    ordered = jnp.where(flying, air_ordered, ordered)
  radius = jnp.where(seen, look_up(types.radius, theirs), _NEVER)[:, :, None]
  slot = jnp.where(seen, jnp.arange(tier.slots), -2)[:, :, None]
  sight = reach + radius + jnp.where(verb == HOLD, 0.0, ACQUISITION_RANGE)[:, None]
  sight = jnp.where(ordered == slot, 4 * tier.map_size, sight)
  return jnp.where(sight > 0, sight * sight, -1.0)


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
    chases=(verb != HOLD).at[:, :tier.armed].set(False), goal_x=goal_x, goal_y=goal_y, stop=stop,
    weakness=_weakness(rules, state), barrier=sentries.barriers(rules, state))


def _weakness(rules: tables.Rules, state: State) -> Array | None:
  """The factor of the damage that slots take: [2, n] float32; None if it is 1."""
  if not rules.has_sentries:
    return None
  return jnp.pad(jnp.where(is_hallucination(rules, state), HALLUCINATION_DAMAGE, 1.0),
                 ((0, 0), (rules.tier.structures, 0)), constant_values=1.0)


def tick(rules: tables.Rules, state: State, plan: Plan) -> State:
  """Plays four game loops: each unit fires at its target, chases it, or goes to its goal."""
  aim = _aim(rules, state, plan)
  loss = flip(_dealt(rules, state, plan, aim))
  if plan.weakness is not None:
    loss = loss * plan.weakness
  # A weapon that fires when it can keeps the loops that its last tick had left; a rested one has
  # none to keep.
  rests = (state.cooldown <= 0) & ~aim.fires
  cooldown = jnp.where(rests, 0.0, state.cooldown + plan.weapons.period * aim.fires
                       - LOOPS_PER_TICK)
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
  stop = jnp.where(found, 0.0, plan.stop)
  if rules.terrain is not None:
    # In each tick: led once a step, fast units would wait in the middle of the next cell.
    led, next_x, next_y = movement.around_cliffs(
      rules, state, jnp.where(found, x + goes_x, plan.goal_x),
      jnp.where(found, y + goes_y, plan.goal_y))
    goes_x, goes_y = jnp.where(led, next_x - x, goes_x), jnp.where(led, next_y - y, goes_y)
    stop = jnp.where(led, 0.0, stop)
  distance = jnp.sqrt(goes_x * goes_x + goes_y * goes_y)
  moves = (state.health[:, s:] > DEAD_HEALTH) & jnp.where(
    found, plan.chases[:, a:] & ~in_reach, True)
  pace = jnp.clip(distance - stop, 0.0, plan.speed) * moves / jnp.maximum(distance, 1e-3)
  new_x, new_y = movement.move(rules, state, x, y, goes_x * pace, goes_y * pace, plan.barrier)
  return state._replace(x=state.x.at[:, s:].set(new_x), y=state.y.at[:, s:].set(new_y))


def remove_dead(rules: tables.Rules, state: State) -> State:
  """Empties the slots of the dead and their passengers.

  Credits the opponent with the value of those that are no hallucinations.
  """
  s = rules.tier.structures
  dead = (state.kind > 0) & (state.health <= DEAD_HEALTH)
  if rules.has_transports:
    state, dead = with_passengers(rules, state, dead)
  value = look_up(rules.types.value, state.kind) * dead
  units, score = value[:, s:], state.score
  if rules.has_sentries:
    units = jnp.where(is_hallucination(rules, state), 0, units)
  state = state._replace(
    last_event=jnp.where(jnp.any(state.hurt), state.loop, state.last_event),
    score=score._replace(
      killed_units=score.killed_units + flip(units.sum(axis=1)),
      killed_structures=score.killed_structures + flip(value[:, :s].sum(axis=1))))
  return clear_slots(rules, state, dead)
