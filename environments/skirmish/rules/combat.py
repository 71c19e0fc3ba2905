"""Moving and shooting: a few array operations a tick, both sides at once."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules import (
  constants,
  maps,
  mining,
  orders,
  placement,
  tables,
  unit_tables,
)
from starleague.environments.skirmish.rules.arrays import flip, look_up, pick
from starleague.environments.skirmish.rules.queries import resource_positions
from starleague.environments.skirmish.rules.slots import clear_slots
from starleague.environments.skirmish.rules.state import Array, State
from starleague.environments.skirmish.rules.upgrades import bonus, upgrade_bonuses

ACQUISITION = 3.5  # beyond a weapon's reach: how far off an enemy is gone for
ARRIVED = 0.7
MANY_ARRIVED = 1.5  # an attack that finds nobody ends this near its aim: a crowd takes room
STRUCTURE_PENALTY, WORKER_PENALTY = 2, 1  # whom a fighter spares for others, in classes
DEAD_VALUE = 0.01  # less health than this is none
LEAST_HIT = 0.5  # the real game's
STIM_SPEED = 1.5
SPLASH_SHARE = 0.5  # of the damage, for those beside the one aimed at
NOBODY = np.iinfo(np.int32).max


class Fight(NamedTuple):
  """What stays the same within a step; attackers are armed structures and units F, targets n."""

  damage: Array  # [2, F, n] float32, of a volley
  reach: Array  # [2, F] float32: how far a volley goes, to the edge of a target on the ground
  air_reach: Array  # [2, F] float32: in the air
  sight: Array  # [2, n, F] float32, squared: how near an enemy must be to be gone for; -1 never
  offset: Array  # [2, n, 1] int32: what a target's rank starts with, its class and its slot
  line: Array  # [2, F] bool
  radius: Array  # [2, n] float32: the targets'
  length: Array  # [2, F] float32: of a flame
  splash: Array  # [2, F] float32: how far from its target a shell hits, 0 for none
  flying: Array  # [2, n] bool: the targets'
  period: Array  # [2, F] float32, loops: against the ground and the air alike, of whoever has both
  speed: Array  # [2, M] float32, a tick
  chases: Array  # [2, F] bool
  goal_x: Array  # [2, M] float32: where it goes if nobody is near
  goal_y: Array
  stop: Array  # [2, M] float32: how far from there it stops


def volley(rules: tables.Rules, weapon: unit_tables.Weapon, kind: Array, added: Array | None,
            theirs: Array, armour: Array) -> Array:
  """Damage of a volley by attacker and target, after bonus and armour: [2, F, n]."""
  against = look_up(weapon.against, kind)[:, :, None]
  attributes = look_up(rules.types.attributes, theirs)[:, None]
  strong = (against >= 0) & ((attributes >> jnp.maximum(against, 0)) & 1 > 0)
  more = look_up(weapon.bonus, kind) + bonus(added, "bonus", kind) * (
    look_up(weapon.bonus, kind) > 0)
  plain = look_up(weapon.damage, kind)
  plain = plain + bonus(added, "damage", kind) * (plain > 0)
  hit = plain[:, :, None] + strong * more[:, :, None] - armour[:, None]
  return jnp.maximum(hit, LEAST_HIT) * look_up(weapon.attacks, kind)[:, :, None]


def prepare(rules: tables.Rules, state: State) -> Fight:
  """Looks up, once a step, all that a step's ticks need."""
  tier, types, s, p = rules.tier, rules.types, rules.tier.structures, rules.tier.unarmed
  mine, theirs = state.kind[:, p:], flip(state.kind)
  added = upgrade_bonuses(rules, state)
  radius, their_radius = look_up(types.radius, mine), look_up(types.radius, theirs)
  line, fighter = look_up(types.line, mine), look_up(types.fighter, mine)
  flying = look_up(types.flying, theirs)
  armour = look_up(types.armour, theirs)
  if added is not None:
    armour = armour + bonus(added[::-1], "armour", theirs)
    if rules.has_shields:
      armour = armour + bonus(added[::-1], "shield", theirs) * (flip(state.shield) > 0)
  ground, air = types.ground, types.air
  longer = bonus(added, "range", mine)
  range_, period = look_up(ground.range, mine), look_up(ground.cooldown, mine)
  armed, air_reach = look_up(ground.damage > 0, mine), range_
  damage = volley(rules, ground, mine, added, theirs, armour) * armed[:, :, None]
  volley_range, can = (range_ + longer)[:, None], armed[:, None]
  if rules.has_flyers:
    air_range, air_armed = look_up(air.range, mine), look_up(air.damage > 0, mine)
    air_damage = volley(rules, air, mine, added, theirs, armour) * air_armed[:, :, None]
    damage = jnp.where(flying[:, None], air_damage, damage)
    in_air = flying[:, :, None]
    volley_range = jnp.where(in_air, (air_range + longer)[:, None], volley_range)
    can = jnp.where(in_air, air_armed[:, None], can)
    period = jnp.where(period > 0, period, look_up(air.cooldown, mine))
    air_reach = air_range
  verb = jnp.pad(state.orders.verb, ((0, 0), (tier.armed, 0)), constant_values=constants.HOLD)
  order_target = jnp.pad(state.orders.target, ((0, 0), (tier.armed, 0)))
  reach = volley_range + radius[:, None] + their_radius[:, :, None]
  fights = (fighter & ((verb == constants.IDLE) | (verb == constants.HOLD))) | (
    verb == constants.ATTACK) | (verb == constants.PATROL)
  look = reach + jnp.where(verb == constants.HOLD, 0.0, ACQUISITION)[:, None]
  target = (verb == constants.ATTACK_UNIT)[:, None] & (
    order_target[:, None] == jnp.arange(tier.slots)[:, None])
  look = jnp.where(target, 4 * tier.map_size, jnp.where(fights[:, None], look, -1.0))
  ready = (mine > 0).at[:, :tier.armed].set(
    (mine[:, :tier.armed] > 0) & (state.unfinished[:, p:] == 0))
  possible = state.memory.seen[:, :, None] & ready[:, None] & can & (look > 0)
  peaceful = types.structure & ~types.fighter
  rank = np.where(peaceful, STRUCTURE_PENALTY, np.where(
    types.worker | ~types.fighter, WORKER_PENALTY, 0)).astype(np.int32)
  rank[0] = 0
  offset = (look_up(rank, theirs) << 26) + jnp.arange(tier.slots)
  speed = look_up(types.speed, mine[:, tier.armed:]) + bonus(added, "speed", state.kind[:, s:])
  if rules.has(constants.STIM):
    dose = jnp.where(state.stimmed > 0, STIM_SPEED, 1.0)
    speed = speed * dose
    period = period.at[:, tier.armed:].set(period[:, tier.armed:] / dose)
  goal_x, goal_y, stop = _goals(rules, state)
  return Fight(
    damage=damage, reach=range_ + longer + radius, air_reach=air_reach + longer + radius, sight=jnp.where(possible, look * look, -1.0),
    offset=offset[:, :, None], line=line, radius=their_radius, length=range_ + radius,
    splash=look_up(types.splash, mine), flying=flying, period=period, speed=speed,
    chases=(verb != constants.HOLD).at[:, :tier.armed].set(False), goal_x=goal_x, goal_y=goal_y,
    stop=stop)


def _goals(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """Where units go if nobody is near: x, y [2, M], the next place on their way; how near to it."""
  s = rules.tier.structures
  verb, target = state.orders.verb, state.orders.target
  patch_x, patch_y = resource_positions(rules, state.side)
  here_x, here_y = state.x[:, s:], state.y[:, s:]
  stays = ((verb == constants.IDLE) | (verb == constants.HOLD) | (verb == constants.CONSTRUCT)
           | (verb == constants.ATTACK_UNIT))
  to_patch = (verb == constants.GATHER) & (state.cargo == 0)
  to_hall = (verb == constants.RETURN) | ((verb == constants.GATHER) & (state.cargo > 0))
  # Miners stop beside their patch, not in it, and beside their town hall.
  stop = jnp.where(to_patch, 0.8 * constants.MINING_REACH, 0.0)
  stop = jnp.where(to_hall, 0.95 * constants.DROP_REACH, stop)

  def goal(resources, hall, point, here):
    there = jnp.where(to_hall, hall, jnp.where(stays | to_patch, here, point))
    return jnp.where(to_patch & (target >= 0), pick(resources, target), there)

  hall_x, hall_y, _ = mining.nearest_town_hall(rules, state)
  x = goal(patch_x, hall_x, state.orders.x, here_x)
  y = goal(patch_y, hall_y, state.orders.y, here_y)
  if (rules.functions.verb == constants.REPAIR).any():
    repairs = verb == constants.REPAIR
    x, y = jnp.where(repairs, pick(state.x, target), x), jnp.where(
      repairs, pick(state.y, target), y)
  terrain = rules.terrain
  if terrain is None:
    return x, y, stop
  row, column = placement.cell_of(rules, state.side, here_x, here_y)
  to_row, to_column = placement.cell_of(rules, state.side, x, y)
  g, blocks = terrain.cells, terrain.cells // terrain.block
  block = to_row // terrain.block * blocks + to_column // terrain.block
  field = (state.match_up.map_index % len(maps.NAMES)) * blocks * blocks + block
  way = jnp.take(jnp.asarray(terrain.fields.reshape(-1)), (field * g + row) * g + column,
                 mode="clip").astype(jnp.int32)
  walks = ~_crosses_cliffs(rules, state.kind[:, s:])
  led = walks & (way >= 0) & (way < maps.STRAIGHT) & (verb != constants.IDLE)
  # To the middle of the next cell but one: it keeps off corners.
  direction = np.array([*maps.DIRECTIONS, (0, 0)], np.float32)
  dx, dy = look_up(direction[:, 0], jnp.clip(way, 0, 8)), look_up(
    direction[:, 1], jnp.clip(way, 0, 8))
  side = state.side[:, None]
  middle_x = side * (column + 0.5 + dx - rules.half)
  middle_y = side * (row + 0.5 + dy - rules.half)
  return jnp.where(led, middle_x, x), jnp.where(led, middle_y, y), jnp.where(led, 0.0, stop)


def _crosses_cliffs(rules: tables.Rules, kind: Array) -> Array:
  """Whom the ground does not stop: flyers, and Reapers, which jump."""
  free = rules.types.flying.copy()
  free[rules.types.local("Reaper")] = True
  free[0] = False
  return look_up(free, kind)


def tick(rules: tables.Rules, state: State, fight: Fight) -> State:
  """Four game loops: each unit fires at the nearest enemy, goes for it, or goes on."""
  s, p, slots, a = (rules.tier.structures, rules.tier.unarmed, rules.tier.slots, rules.tier.armed)
  x, y, their_x, their_y = state.x[:, p:], state.y[:, p:], flip(state.x), flip(state.y)
  alive = state.health > DEAD_VALUE
  square = (their_x[:, :, None] - x[:, None]) ** 2 + (their_y[:, :, None] - y[:, None]) ** 2
  # A target's rank is one integer: its class, its distance, its slot. The least of a row is then
  # one minimum, and names one slot however many are equally near.
  near = (square <= fight.sight) & flip(alive)[:, :, None] & alive[:, None, p:]  # [2, n, F]
  bits = (slots - 1).bit_length()
  fine = 1 << max(15 - bits - max(int(np.log2(rules.tier.map_size / 24)), 0) * 2, 0)
  rank = jnp.where(
    near, fight.offset + ((square * fine).astype(jnp.int32) << bits), NOBODY)
  best = jnp.min(rank, axis=1)  # [2, F]
  found = best < NOBODY
  slot = jnp.where(found, best & ((1 << bits) - 1), 0)
  to_x = jnp.where(found, pick(their_x, slot) - x, 0.0)
  to_y = jnp.where(found, pick(their_y, slot) - y, 0.0)
  reach = jnp.where(pick(fight.flying, slot), fight.air_reach, fight.reach) + pick(
    fight.radius, slot)
  in_reach = found & (to_x * to_x + to_y * to_y <= reach * reach)
  fires = in_reach & (state.cooldown <= 0)

  # A flame hits all whose middle is near the line from the shooter through its target. From here
  # on attackers come first, [2, F, n]: sums over them are several times as fast.
  dx, dy = their_x[:, None] - x[:, :, None], their_y[:, None] - y[:, :, None]
  inverse = 1.0 / jnp.maximum(jnp.sqrt(to_x * to_x + to_y * to_y), 1e-3)
  ahead_x, ahead_y = (to_x * inverse)[:, :, None], (to_y * inverse)[:, :, None]
  along = dx * ahead_x + dy * ahead_y
  aside = jnp.abs(dx * ahead_y - dy * ahead_x)
  there = flip(alive)[:, None]
  width = fight.radius[:, None] + constants.LINE_HALF_WIDTH
  burnt = (fight.line[:, :, None] & (along > 0) & (aside <= width)
           & (along <= fight.length[:, :, None] + width) & there)
  if rules.has_flyers:
    burnt &= ~fight.flying[:, None]
  chosen = slot[:, :, None] == jnp.arange(slots)
  share = (chosen | burnt).astype(jnp.float32)
  if rules.types.splash.any():
    around = (dx - to_x[:, :, None]) ** 2 + (dy - to_y[:, :, None]) ** 2
    beside = (fight.splash[:, :, None] > 0) & there & ~fight.flying[:, None] & (
      around <= (fight.splash * fight.splash)[:, :, None])
    share = jnp.maximum(share, SPLASH_SHARE * beside)
  dealt = jnp.sum(share * fires[:, :, None] * fight.damage, axis=1)  # [2, n]

  x, y, to_x, to_y = x[:, a:], y[:, a:], to_x[:, a:], to_y[:, a:]
  found, in_reach, chases = found[:, a:], in_reach[:, a:], fight.chases[:, a:]
  goes_x = jnp.where(found, to_x, fight.goal_x - x)
  goes_y = jnp.where(found, to_y, fight.goal_y - y)
  distance = jnp.sqrt(goes_x * goes_x + goes_y * goes_y)
  moves = alive[:, s:] & jnp.where(found, chases & ~in_reach, True)
  stop = jnp.where(found, 0.0, fight.stop)
  pace = jnp.clip(distance - stop, 0.0, fight.speed) * moves / jnp.maximum(distance, 1e-3)
  new_x, new_y = _step(rules, state, x, y, goes_x * pace, goes_y * pace)
  loss = flip(dealt)
  state = state._replace(
    x=state.x.at[:, s:].set(new_x), y=state.y.at[:, s:].set(new_y),
    cooldown=jnp.where(
      fires, state.cooldown + fight.period,
      jnp.maximum(state.cooldown, 1 - constants.LOOPS_PER_TICK)) - constants.LOOPS_PER_TICK,
    hurt=state.hurt | (loss > 0))
  if rules.has_shields:
    absorbed = jnp.minimum(loss, state.shield)
    return state._replace(shield=state.shield - absorbed, health=state.health - (loss - absorbed))
  return state._replace(health=state.health - loss)


def _step(rules: tables.Rules, state: State, x: Array, y: Array, dx: Array, dy: Array):
  """Moves units [2, M], along cliffs rather than into them."""
  edge = rules.half - 0.5
  new_x, new_y = jnp.clip(x + dx, -edge, edge), jnp.clip(y + dy, -edge, edge)
  if rules.terrain is None:
    return new_x, new_y
  free = _crosses_cliffs(rules, state.kind[:, rules.tier.structures:])

  def passable(to_x, to_y):
    return free | placement.on_terrain(rules, state, rules.terrain.passable, to_x, to_y)

  both = passable(new_x, new_y)
  # Whoever stands in a cliff, pushed there by others, may walk out of it.
  stuck = ~passable(x, y)
  only_x, only_y = passable(new_x, y), passable(x, new_y)
  go = both | stuck
  return (jnp.where(go | only_x, new_x, x), jnp.where(go | (only_y & ~only_x), new_y, y))


def separate_units(rules: tables.Rules, state: State) -> State:
  """Pushes apart units of a side that stand in one another; miners pass through."""
  s = rules.tier.structures
  x, y = state.x[:, s:], state.y[:, s:]
  kind = state.kind[:, s:]
  verb = state.orders.verb
  solid = (kind > 0) & (verb != constants.GATHER) & (verb != constants.RETURN)
  radius = look_up(rules.types.radius, kind)
  # Two at the very same place part along a direction that their slots decide.
  angle = np.arange(rules.tier.units, dtype=np.float32) * 2.4
  shift = 1e-3 * state.side[:, None]
  dx = (x + shift * np.cos(angle))[:, None] - (x + shift * np.cos(angle))[:, :, None]
  dy = (y + shift * np.sin(angle))[:, None] - (y + shift * np.sin(angle))[:, :, None]
  distance = jnp.sqrt(dx * dx + dy * dy + 1e-12)
  overlap = jnp.maximum(radius[:, None] + radius[:, :, None] - distance, 0.0)
  pair = solid[:, None] & solid[:, :, None]
  if rules.has_flyers:
    flying = look_up(rules.types.flying, kind)
    pair &= flying[:, None] == flying[:, :, None]
  push = jnp.where(pair, 0.5 * overlap / distance, 0.0)
  still = kind == rules.types.local("SiegeTankSieged") if rules.has(constants.SIEGE) else False
  new_x, new_y = _step(
    rules, state, x, y,
    jnp.where(still, 0.0, jnp.clip(jnp.sum(push * dx, axis=1), -0.5, 0.5)),
    jnp.where(still, 0.0, jnp.clip(jnp.sum(push * dy, axis=1), -0.5, 0.5)))
  return state._replace(x=state.x.at[:, s:].set(new_x), y=state.y.at[:, s:].set(new_y))


def remove_dead(rules: tables.Rules, state: State) -> State:
  """Empties the slots of the dead, and credits who killed them."""
  types, s = rules.types, rules.tier.structures
  dead = (state.kind > 0) & (state.health <= DEAD_VALUE)
  value = look_up(types.value, state.kind) * dead
  score = state.score
  state = state._replace(
    last_event=jnp.where(jnp.any(state.hurt), state.loop, state.last_event),
    score=score._replace(
      killed_units=score.killed_units + flip(value[:, s:].sum(axis=1)),
      killed_structures=score.killed_structures + flip(value[:, :s].sum(axis=1))))
  return clear_slots(rules, state, dead)


def complete_orders(rules: tables.Rules, state: State, fight: Fight) -> State:
  """Ends the orders that are carried out: places reached, targets gone."""
  s, a = rules.tier.structures, rules.tier.armed
  verb, order = state.orders.verb, state.orders
  square = (order.x - state.x[:, s:]) ** 2 + (order.y - state.y[:, s:]) ** 2
  engaged = jnp.any(fight.sight[:, :, a:] > 0, axis=1) & (state.cooldown[:, a:] > 0)
  there = ((verb == constants.MOVE) & (square < ARRIVED ** 2)) | (
    ((verb == constants.ATTACK) | (verb == constants.PATROL)) & (square < MANY_ARRIVED ** 2) & ~engaged)
  seen = pick(state.memory.seen & (flip(state.kind) > 0), order.target)
  lost = (verb == constants.ATTACK_UNIT) & ~seen
  # Workers that have nothing further to do mine: a beginner's stray order costs a walk, not the rest
  # of the game's income.
  worker = look_up(rules.types.worker, state.kind[:, s:])
  return orders.next_order(rules, state, there | lost, worker)
