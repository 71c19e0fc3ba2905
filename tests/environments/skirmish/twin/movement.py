"""Movement in the twin: goals, ways around cliffs, and separation of overlapping units."""

import math

from tests.environments.skirmish.twin.state import (
  ATTACK_UNIT,
  CONSTRUCT,
  GATHER,
  HOLD,
  IDLE,
  REPAIR,
  RETURN,
)

PLACE_ROUNDING = 4e-6  # of the difference of two float32 positions, map units
DIRECTIONS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))


def ignores_cliffs(twin, body):
  return twin.row(body)["flying"] or body.name == "Reaper"


def goal(twin, game, p, body):
  """Where a unit goes without a target: x, y of the goal, and how far from it the unit stops."""
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
  return *on_ground(twin, game, p, body, x, y), stop


def on_ground(twin, game, p, body, x, y):
  """Where a unit stops on its way to a place."""
  terrain, player = twin.table.rules.terrain, game.players[p]
  if terrain is None or ignores_cliffs(twin, body):
    return x, y
  note_edges(game, x, y)
  at = game.map, *twin.cell(player, x, y)
  if terrain.passable[at]:
    return x, y
  row, column = divmod(terrain.nearest[at], terrain.cells)
  half = terrain.cells / 2
  return player.side * (column + 0.5 - half), player.side * (row + 0.5 - half)


def around_cliffs(twin, game, p, body, x, y):
  """The middle of the next cell on a unit's way to a place; None if it may walk straight."""
  terrain, player = twin.table.rules.terrain, game.players[p]
  if terrain is None or ignores_cliffs(twin, body):
    return None
  note_edges(game, body.x, body.y, x, y)
  row, column = twin.cell(player, body.x, body.y)
  way = terrain.fields[terrain.area_of[(game.map, *twin.cell(player, x, y))], row, column]
  if not 0 <= way < 8:
    return None
  (dx, dy), half = DIRECTIONS[way], terrain.cells / 2
  return player.side * (column + dx + 0.5 - half), player.side * (row + dy + 0.5 - half)


def note_edges(game, *values):
  """Counts places so near to the edge of a cell that rounding decides which cell they are in."""
  for value in values:
    game.close += 0 < abs(value - round(value)) < 1e-4


def move(twin, game, p, body, dx, dy):
  """The position after a displacement, along cliffs rather than into them."""
  player, edge = game.players[p], twin.tier.map_size / 2 - 0.5
  x, y = (min(max(v, -edge), edge) for v in (body.x + dx, body.y + dy))
  if twin.table.rules.terrain is None or ignores_cliffs(twin, body):
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


def solid(twin, player):
  """The units through which others do not pass: all but miners."""
  return [b for b in twin.units(player) if b.order.verb not in (GATHER, RETURN)]


def separate_units(twin, game):
  """Pushes overlapping units of a side apart; miners pass through."""
  for p, player in enumerate(game.players):
    standing = solid(twin, player)
    places = {}
    for b in standing:
      angle = (b.slot - twin.s) * 2.4
      places[b.slot] = (b.x + 1e-3 * player.side * math.cos(angle),
                        b.y + 1e-3 * player.side * math.sin(angle))
    moved = {}
    for body in standing:
      if body.name == "SiegeTankSieged":
        continue
      row = twin.row(body)
      push_x = push_y = 0.0
      for other in standing:
        if other is body or twin.row(other)["flying"] != row["flying"]:
          continue
        dx = places[body.slot][0] - places[other.slot][0]
        dy = places[body.slot][1] - places[other.slot][1]
        far = math.sqrt(dx * dx + dy * dy + 1e-12)
        overlap = row["radius"] + twin.row(other)["radius"] - far
        if overlap > 0:
          push_x += 0.5 * overlap * dx / far
          push_y += 0.5 * overlap * dy / far
          # For two units at nearly one place, the last bits of their positions give the direction.
          body.blur += 0.5 * overlap * PLACE_ROUNDING / far
      moved[body.slot] = move(twin, game, p, body, *(
        min(max(push, -0.5), 0.5) for push in (push_x, push_y)))
    for slot, (x, y) in moved.items():
      player.bodies[slot].x, player.bodies[slot].y = x, y
