"""The second half of the twin's step: fighting, recovering, dying, arriving."""

import math

from tests.environments.skirmish.twin.sight import perceive
from tests.environments.skirmish.twin.state import (
  ATTACK,
  ATTACK_UNIT,
  CONSTRUCT,
  GATHER,
  HOLD,
  IDLE,
  MOVE,
  PATROL,
  REPAIR,
  RETURN,
)

DEAD, STEP = 0.01, 8
PLACE_ROUNDING = 4e-6  # of the difference of two places in float32, map units
DIRECTIONS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))


def _weapon(twin, shooter, target_flies):
  return twin.row(shooter)["air" if target_flies else "ground"]


def _damage(twin, game, p, shooter, target):
  """What a volley takes: every hit after its bonus and the target's armour, at least a half."""
  row, other = twin.row(target), game.players[1 - p]
  weapon = _weapon(twin, shooter, row["flying"])
  hit = weapon["damage"] + twin.added(game.players[p], "damage", shooter.name)
  if weapon["against"] and weapon["against"] in row["tags"]:
    hit += weapon["bonus"] + twin.added(game.players[p], "bonus", shooter.name)
  armour = row["armor"] + twin.added(other, "armour", target.name)
  if target.shield > 0:
    armour += twin.added(other, "shield", target.name)
  return max(hit - armour, 0.5) * weapon["attacks"]


def _rank(twin, target):
  """Fighters first, then what can do harm or work, then what only stands there."""
  row = twin.row(target)
  if row["structure"] and not row["fighter"]:
    return 2
  return 0 if row["fighter"] else 1


class _Plan:
  """What a shooter may do in a step: which enemies it goes for, and from how far."""

  def __init__(self, twin, game, p, body):
    player, enemy = game.players[p], game.players[1 - p]
    row, verb = twin.row(body), body.order.verb if body.slot >= twin.s else HOLD
    self.body, self.verb = body, verb
    fights = verb in (ATTACK, PATROL) or (verb in (IDLE, HOLD) and row["fighter"])
    longer = twin.added(player, "range", body.name)
    self.options = {}  # slot: how far it shoots, how far it goes
    self.engaged = False
    for slot in sorted(player.seen):
      target = enemy.bodies.get(slot)
      flies = target is not None and twin.row(target)["flying"]
      weapon = _weapon(twin, body, flies)
      chosen = verb == ATTACK_UNIT and body.order.target == slot
      if weapon["damage"] <= 0 or not (fights or chosen):
        continue
      self.engaged = True
      if target is not None:
        reach = weapon["range"] + longer + row["radius"] + twin.row(target)["radius"]
        self.options[slot] = (reach, 4 * twin.tier.map_size if chosen else (
          reach if verb == HOLD else reach + 3.5))
    dose = 1.5 if body.stimmed else 1.0
    self.period = (row["ground"]["cooldown"] or row["air"]["cooldown"]) / dose
    self.speed = (row["speed"] + twin.added(player, "speed", body.name)) * dose
    self.chases = verb != HOLD
    self.goal = _goal(twin, game, p, body) if body.slot >= twin.s else (body.x, body.y, 0.0)
    self.damage = {slot: _damage(twin, game, p, body, target)
                   for slot, target in enemy.bodies.items()} if self.options else {}


def _crosses(twin, body):
  return twin.row(body)["flying"] or body.name == "Reaper"


def _goal(twin, game, p, body):
  """Where a unit goes if nobody is near, the next place on its way, and how near to it."""
  player, order = game.players[p], body.order
  x, y, stop = body.x, body.y, 0.0
  if order.verb == RETURN or (order.verb == GATHER and body.cargo):
    hall, _ = twin.home(game, player, body)
    x, y, stop = (hall.x, hall.y, 0.95 * 3.5) if hall else (x, y, 0.95 * 3.5)
  elif order.verb == GATHER:
    x, y = twin.place(player, order.target) if order.target >= 0 else (x, y)
    stop = 0.8 * 1.5
  elif order.verb == REPAIR:
    target = player.bodies.get(order.target)
    x, y = (target.x, target.y) if target else (0.0, 0.0)
  elif order.verb not in (IDLE, HOLD, CONSTRUCT, ATTACK_UNIT):
    x, y = order.x, order.y
  terrain = twin.table.rules.terrain
  if terrain is None or order.verb == IDLE or _crosses(twin, body):
    return x, y, stop
  row, column = twin.cell(player, body.x, body.y)
  for value in (body.x, body.y, x, y):
    if 0 < abs(value - round(value)) < 1e-4:
      game.close += 1
  to_row, to_column = twin.cell(player, x, y)
  across = terrain.cells // terrain.block
  way = terrain.fields[game.map, to_row // terrain.block * across + to_column // terrain.block,
                       row, column]
  if not 0 <= way < 8:
    return x, y, stop
  dx, dy = DIRECTIONS[way]
  half = terrain.cells / 2
  return (player.side * (column + dx + 0.5 - half), player.side * (row + dy + 0.5 - half), 0.0)


def _move(twin, game, p, body, dx, dy):
  """Where a unit gets to: along a cliff rather than into it."""
  player, edge = game.players[p], twin.tier.map_size / 2 - 0.5
  x, y = (min(max(v, -edge), edge) for v in (body.x + dx, body.y + dy))
  if twin.table.rules.terrain is None or _crosses(twin, body):
    return x, y

  def open_(px, py):
    return twin.on(game, player, "passable", px, py)

  if open_(x, y) or not open_(body.x, body.y):
    return x, y
  if open_(x, body.y):
    return x, body.y
  if open_(body.x, y):
    return body.x, y
  return body.x, body.y


def _choose(twin, game, plan, enemy):
  """The enemy that a shooter goes for: the nearest of the class that it would rather hit."""
  slots = twin.n
  bits = (slots - 1).bit_length()
  scale = max(int(math.log2(twin.tier.map_size / 24)), 0) * 2
  fine = 1 << max(15 - bits - scale, 0)
  best, second, chosen = None, None, None
  for slot, (_, sight) in plan.options.items():
    target = enemy.bodies[slot]
    if target.health <= DEAD:
      continue
    square = (target.x - plan.body.x) ** 2 + (target.y - plan.body.y) ** 2
    if not game.at_most(square, sight * sight):
      continue
    key = (_rank(twin, target), math.floor(square * fine), slot)
    exact = (key[0], square * fine)
    if best is None or key < best[0]:
      best, second, chosen = (key, exact), best, target
    elif second is None or key < second[0]:
      second = (key, exact)
  if second is not None and second[0][0] == best[0][0] and abs(best[1][1] - second[1][1]) < 1.01:
    for _, exact in (best, second):
      game.close += abs(exact[1] - round(exact[1])) < 0.02 * max(1.0, exact[1] / 1000)
  return chosen


def _hits(twin, game, plan, target, enemy):
  """{slot: damage} of a volley at a target: itself, and whom a flame or a shell hits besides."""
  body, row = plan.body, twin.row(plan.body)
  hits = {target.slot: plan.damage[target.slot]}
  dx, dy = target.x - body.x, target.y - body.y
  far = math.hypot(dx, dy)
  for other in enemy.bodies.values():
    if other is target or other.health <= DEAD or twin.row(other)["flying"]:
      continue
    if row["ground"]["damage"] <= 0:
      continue
    ox, oy = other.x - body.x, other.y - body.y
    if row["line"] and far > 1e-3:
      along, aside = (ox * dx + oy * dy) / far, abs(ox * dy - oy * dx) / far
      width = twin.row(other)["radius"] + 0.55
      if (game.less(0.0, along) and game.at_most(aside, width)
          and game.at_most(along, row["ground"]["range"] + row["radius"] + width)):
        hits[other.slot] = plan.damage[other.slot]
    if row["splash"] and game.at_most(
        (other.x - target.x) ** 2 + (other.y - target.y) ** 2, row["splash"] ** 2):
      hits[other.slot] = max(hits.get(other.slot, 0.0), 0.5 * plan.damage[other.slot])
  return hits


def _tick(twin, game, plans):
  """4 game loops: everyone decides from the same moment, then everything happens."""
  losses = [{}, {}]
  moves = []
  for p, side in enumerate(plans):
    enemy = game.players[1 - p]
    for plan in side:
      body = plan.body
      alive = body.health > DEAD
      target = _choose(twin, game, plan, enemy) if alive else None
      in_reach = fires = False
      if target is not None:
        square = (target.x - body.x) ** 2 + (target.y - body.y) ** 2
        in_reach = game.at_most(square, plan.options[target.slot][0] ** 2)
        fires = in_reach and game.at_most(body.cooldown, 0.0)
      if fires:
        for slot, damage in _hits(twin, game, plan, target, enemy).items():
          losses[1 - p][slot] = losses[1 - p].get(slot, 0.0) + damage
      body.cooldown = (body.cooldown + plan.period if fires else max(body.cooldown, -3.0)) - 4.0
      if body.slot < twin.s or not alive:
        continue
      if target is not None:
        if not plan.chases or in_reach:
          continue
        dx, dy, stop = target.x - body.x, target.y - body.y, 0.0
      else:
        dx, dy = plan.goal[0] - body.x, plan.goal[1] - body.y
        stop = plan.goal[2]
      far = math.hypot(dx, dy)
      part = min(max(far - stop, 0.0), plan.speed) / max(far, 1e-3)
      moves.append((body, _move(twin, game, p, body, dx * part, dy * part)))
  # Who stands still keeps within the map too.
  moving = {id(body) for body, _ in moves}
  for p, player in enumerate(game.players):
    for body in twin.units(player):
      if id(body) not in moving:
        body.x, body.y = _move(twin, game, p, body, 0.0, 0.0)
  for body, (x, y) in moves:
    body.x, body.y = x, y
  for p, player in enumerate(game.players):
    for slot, loss in losses[p].items():
      body = player.bodies[slot]
      absorbed = min(loss, body.shield)
      body.shield -= absorbed
      body.health -= loss - absorbed
      body.hurt = True


def _recover(twin, game):
  table = twin.table
  for player in game.players:
    for body in player.bodies.values():
      row, alive = twin.row(body), body.health > 0
      whole = not body.unfinished
      body.energy = min(body.energy + STEP * 0.5625 / 16, row["energy"]) if whole and alive else 0.0
      if table.rules.has_shields:
        body.calm = 0 if body.hurt else min(body.calm + STEP, 1600)
        if whole and alive and body.calm >= 160:
          body.shield = min(body.shield + STEP * 2.0 / 16, row["shield"])
      if row["race"] == "Zerg" and alive and whole:
        body.health = min(body.health + STEP * 0.2734 / 16, twin.most_health(player, body))
      body.stimmed = max(body.stimmed - STEP, 0)
    player.scan[2] = max(player.scan[2] - STEP, 0)
    _heal(twin, game, player)
    _repair(twin, game, player)


def _heal(twin, game, player):
  """Each Medivac the nearest hurt body, 4.5 hit points a step for 1.5 energy."""
  hurt = [b for b in twin.units(player) if "Biological" in twin.row(b)["tags"]
          and 0 < b.health < twin.most_health(player, b)]
  helped = {}
  for medic in twin.units(player):
    if medic.name != "Medivac" or medic.energy < 1.5:
      continue
    near = sorted(((b.x - medic.x) ** 2 + (b.y - medic.y) ** 2, b.slot) for b in hurt)
    near = [entry for entry in near if game.at_most(entry[0], 16.0)]
    if near:
      game.close += len(near) > 1 and near[1][0] - near[0][0] < 1e-4
      helped[near[0][1]] = helped.get(near[0][1], 0) + 1
      medic.energy -= 1.5
  for slot, count in helped.items():
    body = player.bodies[slot]
    body.health = min(body.health + 4.5 * count, twin.most_health(player, body))


def _repair(twin, game, player):
  """A whole repair takes as long as making one, for a quarter of the price."""
  hands = {}
  for body in twin.units(player):
    target = player.bodies.get(body.order.target)
    if body.order.verb == REPAIR and target is not None and twin.repairable(target):
      reach = 1.0 + twin.row(target)["radius"]
      if game.at_most((body.x - target.x) ** 2 + (body.y - target.y) ** 2, reach * reach):
        hands[target.slot] = hands.get(target.slot, 0) + 1
  if player.minerals > 0:
    for slot, count in hands.items():
      target = player.bodies[slot]
      row = twin.row(target)
      loops = twin.row_of_making(target)["loops"]
      player.debt += 0.25 * row["minerals"] * count * STEP / loops
      target.health = min(target.health + row["health"] * count * STEP / loops, row["health"])
  game.close += abs(player.debt - round(player.debt)) < 1e-4 and player.debt > 1e-4
  due = min(math.floor(player.debt), player.minerals)
  player.debt -= due
  player.minerals -= due
  player.score["spent"] += due
  for body in twin.units(player):
    if body.order.verb == REPAIR:
      target = player.bodies.get(body.order.target)
      if target is None or not twin.repairable(target):
        twin.next_order(body, True)


def _bury(twin, game):
  if any(b.hurt for player in game.players for b in player.bodies.values()):
    game.last_event = game.loop
  for p, player in enumerate(game.players):
    for body in list(player.bodies.values()):
      if abs(body.health - DEAD) < 1e-4:
        game.close += 1
      if body.health <= DEAD:
        name = "killed_structures" if body.slot < twin.s else "killed_units"
        game.players[1 - p].score[name] += twin.row(body)["value"]
        twin.leave(game, p, body)


def _spread_out(twin, game):
  """Pushes apart units of a side that stand in one another; miners pass through."""
  for p, player in enumerate(game.players):
    solid = [b for b in twin.units(player) if b.order.verb not in (GATHER, RETURN)]
    places = {}
    for b in solid:
      angle = (b.slot - twin.s) * 2.4
      places[b.slot] = (b.x + 1e-3 * player.side * math.cos(angle),
                        b.y + 1e-3 * player.side * math.sin(angle))
    moved = {}
    for body in solid:
      if body.name == "SiegeTankSieged":
        continue
      row = twin.row(body)
      push_x = push_y = 0.0
      for other in solid:
        if other is body or twin.row(other)["flying"] != row["flying"]:
          continue
        dx = places[body.slot][0] - places[other.slot][0]
        dy = places[body.slot][1] - places[other.slot][1]
        far = math.sqrt(dx * dx + dy * dy + 1e-12)
        overlap = row["radius"] + twin.row(other)["radius"] - far
        if overlap > 0:
          push_x += 0.5 * overlap * dx / far
          push_y += 0.5 * overlap * dy / far
          # Two at nearly one place part along a direction that their places' last bits decide.
          body.blur += 0.5 * overlap * PLACE_ROUNDING / far
      moved[body.slot] = _move(twin, game, p, body, *(
        min(max(push, -0.5), 0.5) for push in (push_x, push_y)))
    for slot, (x, y) in moved.items():
      player.bodies[slot].x, player.bodies[slot].y = x, y


def _arrive(twin, game, p, plans):
  player, enemy = game.players[p], game.players[1 - p]
  for plan in plans:
    body = plan.body
    if body.slot < twin.s or player.bodies.get(body.slot) is not body:
      continue
    order = body.order
    square = (order.x - body.x) ** 2 + (order.y - body.y) ** 2
    there = order.verb == MOVE and game.less(square, 0.49)
    if order.verb in (ATTACK, PATROL):
      there = game.less(square, 2.25) and not (plan.engaged and not game.at_most(
        body.cooldown, 0.0))
    lost = order.verb == ATTACK_UNIT and not (
      order.target in player.seen and order.target in enemy.bodies)
    if there or lost:
      twin.next_order(body, twin.row(body)["worker"])


def fight_and_see(twin, game):
  """Two ticks, and all that comes after them."""
  for player in game.players:
    player.command = None
    for body in player.bodies.values():
      body.hurt = False
  plans = []
  for p, player in enumerate(game.players):
    able = [player.bodies[i] for i in sorted(player.bodies)
            if i >= twin.s or (i >= twin.tier.plain and not player.bodies[i].unfinished)]
    plans.append([_Plan(twin, game, p, body) for body in able])
    for i in sorted(player.bodies):  # what cannot shoot yet gets ready all the same
      body = player.bodies[i]
      if twin.tier.plain <= i < twin.s and body.unfinished:
        for _ in range(2):
          body.cooldown = max(body.cooldown, -3.0) - 4.0
  for _ in range(2):
    _tick(twin, game, plans)
  _recover(twin, game)
  _bury(twin, game)
  _spread_out(twin, game)
  game.loop += STEP
  for p in range(2):
    perceive(twin, game, p)
  for p in range(2):
    _arrive(twin, game, p, plans[p])
  for player in game.players:
    resting = sum(twin.row(b)["worker"] and b.order.verb == IDLE for b in twin.units(player))
    player.score["idle_workers"] += STEP * resting
    unused = sum(twin.produces(b) and not b.unfinished and not b.queue
                 for b in twin.structures(player))
    player.score["idle_production"] += STEP * unused
  _decide(twin, game)


def _decide(twin, game):
  """Whoever has no structure left has lost."""
  lost = [not twin.structures(player) for player in game.players]
  tier = twin.tier
  if any(lost):
    game.winner = 2 if all(lost) else lost.index(False)
  elif game.loop >= tier.loop_limit or (
      tier.quiet_loops and game.loop - game.last_event >= tier.quiet_loops):
    game.winner = 2
