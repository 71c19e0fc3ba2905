"""The second half of the twin's step: combat, and everything after it."""

import math

from tests.environments.skirmish.twin import movement
from tests.environments.skirmish.twin.known import STEP
from tests.environments.skirmish.twin.recovery import recover
from tests.environments.skirmish.twin.sight import perceive
from tests.environments.skirmish.twin.state import (
  ATTACK,
  ATTACK_UNIT,
  HOLD,
  IDLE,
  MOVE,
  PATROL,
)

DEAD = 0.01


def _weapon(twin, shooter, target_flies):
  return twin.row(shooter)["air" if target_flies else "ground"]


def _damage(twin, game, p, shooter, target):
  """The damage of a volley: hits after bonus and armour, at least 0.5 each."""
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
  """The class of a target: fighters, then workers and support, then buildings."""
  row = twin.row(target)
  if row["structure"] and not row["fighter"]:
    return 2
  return 0 if row["fighter"] else 1


class _Plan:
  """What an attacker can do in a step: the enemies it engages, and their distances."""

  def __init__(self, twin, game, p, body):
    player, enemy = game.players[p], game.players[1 - p]
    row, verb = twin.row(body), body.order.verb if body.slot >= twin.s else HOLD
    self.body, self.verb = body, verb
    fights = verb in (ATTACK, PATROL) or (verb in (IDLE, HOLD) and row["fighter"])
    longer = twin.added(player, "range", body.name)
    self.options = {}  # slot: weapon reach, distance of engagement
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
    stim = 1.5 if body.stimmed else 1.0
    self.period = (row["ground"]["cooldown"] or row["air"]["cooldown"]) / stim
    self.speed = (row["speed"] + twin.added(player, "speed", body.name)) * stim
    self.chases = verb != HOLD
    self.goal = movement.goal(twin, game, p, body) if body.slot >= twin.s else (body.x, body.y, 0.0)
    self.damage = {slot: _damage(twin, game, p, body, target)
                   for slot, target in enemy.bodies.items()} if self.options else {}


def _choose(twin, game, plan, enemy):
  """The target of an attacker: the nearest of the first class it engages."""
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
  """{slot: damage} of a volley: its target, and others that a flame or a shell hits."""
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


def cooled(cooldown, period):
  """A weapon's cooldown after a tick in which it fired, or did not: period 0."""
  return cooldown + period - 4.0 if period or cooldown > 0 else 0.0


def _tick(twin, game, plans):
  """Plays 4 game loops: all decisions use the state before any change."""
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
      body.cooldown = cooled(body.cooldown, plan.period if fires else 0.0)
      if body.slot < twin.s or not alive:
        continue
      if target is not None:
        if not plan.chases or in_reach:
          continue
        to_x, to_y, stop = target.x, target.y, 0.0
      else:
        to_x, to_y, stop = plan.goal
      led = movement.around_cliffs(twin, game, p, body, to_x, to_y)
      if led:
        to_x, to_y, stop = *led, 0.0
      dx, dy = to_x - body.x, to_y - body.y
      far = math.hypot(dx, dy)
      part = min(max(far - stop, 0.0), plan.speed) / max(far, 1e-3)
      moves.append((body, movement.move(twin, game, p, body, dx * part, dy * part)))
  # Units that stand still are kept within the map too.
  moving = {id(body) for body, _ in moves}
  for p, player in enumerate(game.players):
    for body in twin.units(player):
      if id(body) not in moving:
        body.x, body.y = movement.move(twin, game, p, body, 0.0, 0.0)
  for body, (x, y) in moves:
    body.x, body.y = x, y
  for p, player in enumerate(game.players):
    for slot, loss in losses[p].items():
      body = player.bodies[slot]
      absorbed = min(loss, body.shield)
      body.shield -= absorbed
      body.health -= loss - absorbed
      body.hurt = True


def _remove_dead(twin, game):
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


def _crowded(twin, game, standing, body, x, y, square):
  """Whether own units nearer to a goal fill half of the disc between it and a unit."""
  flies = twin.row(body)["flying"]
  taken = sum(
    twin.row(other)["radius"] ** 2 for other in standing
    if other is not body and twin.row(other)["flying"] == flies
    and game.at_most((x - other.x) ** 2 + (y - other.y) ** 2, square))
  return game.at_most(0.5 * square, taken)


def _complete_orders(twin, game, p, plans):
  player, enemy = game.players[p], game.players[1 - p]
  standing = movement.solid(twin, player)  # before any order ends
  for plan in plans:
    body = plan.body
    if body.slot < twin.s or player.bodies.get(body.slot) is not body:
      continue
    order = body.order
    x, y = order.x, order.y
    if order.verb in (MOVE, ATTACK, PATROL):
      x, y = movement.on_ground(twin, game, p, body, x, y)
    square = (x - body.x) ** 2 + (y - body.y) ** 2
    there = order.verb in (MOVE, ATTACK, PATROL) and (
      game.less(square, 0.5625 if order.verb == MOVE else 2.25)
      or _crowded(twin, game, standing, body, x, y, square))
    if order.verb in (ATTACK, PATROL):
      there = there and not (plan.engaged and not game.at_most(body.cooldown, 0.0))
    lost = order.verb == ATTACK_UNIT and not (
      order.target in player.seen and order.target in enemy.bodies)
    if there or lost:
      twin.next_order(body, twin.row(body)["worker"])


def fight_and_see(twin, game):
  """Plays two ticks and the rest of the step."""
  for player in game.players:
    player.command = None
    for body in player.bodies.values():
      body.hurt = False
  plans = []
  for p, player in enumerate(game.players):
    able = [player.bodies[i] for i in sorted(player.bodies)
            if i >= twin.s or (i >= twin.tier.unarmed and not player.bodies[i].unfinished)]
    plans.append([_Plan(twin, game, p, body) for body in able])
    for i in sorted(player.bodies):  # weapons of unfinished structures cool down too
      body = player.bodies[i]
      if twin.tier.unarmed <= i < twin.s and body.unfinished:
        for _ in range(2):
          body.cooldown = cooled(body.cooldown, 0.0)
  for _ in range(2):
    _tick(twin, game, plans)
  recover(twin, game)
  _remove_dead(twin, game)
  movement.separate_units(twin, game)
  game.loop += STEP
  for p in range(2):
    perceive(twin, game, p)
  for p in range(2):
    _complete_orders(twin, game, p, plans[p])
  for player in game.players:
    resting = sum(twin.row(b)["worker"] and b.order.verb == IDLE for b in twin.units(player))
    player.score["idle_workers"] += STEP * resting
    unused = sum(twin.produces(b) and not b.unfinished and not b.queue
                 for b in twin.structures(player))
    player.score["idle_production"] += STEP * unused
  _decide(twin, game)


def _decide(twin, game):
  """A player without structures has lost; a late game or a stalemate is a draw."""
  lost = [not twin.structures(player) for player in game.players]
  tier = twin.tier
  if any(lost):
    game.winner = 2 if all(lost) else lost.index(False)
  elif game.loop >= tier.loop_limit or (
      tier.stalemate_loops and game.loop - game.last_event >= tier.stalemate_loops):
    game.winner = 2
