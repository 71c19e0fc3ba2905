"""What the twin's players see and remember."""

import math

import numpy as np


def _viewers(twin, game, p):
  """x, y, sight and whether it looks from above, of each body and of the scan."""
  player, viewers = game.players[p], []
  for body in player.bodies.values():
    high = twin.table.rules.terrain is not None and twin.on(game, player, "high", body.x, body.y)
    viewers.append((body.x, body.y, twin.row(body)["sight"], twin.row(body)["flying"] or high))
  if player.scan[2]:
    viewers.append((*player.scan[:2], 13.0 * twin.tier.sight_scale, True))
  return viewers


def _plane_cell(twin, game, player, value):
  """The row or column of the planes that contains a coordinate, in the player's own frame."""
  size = twin.table.rules.map_size
  own = player.side * value * size / twin.tier.map_size + size / 2
  if 0 < abs(own - round(own)) < 1e-4:
    game.close += 1
  index = math.floor(own) if player.side > 0 else size - 1 - math.floor(own)
  return min(max(index, 0), size - 1)


def perceive(twin, game, p):
  """Updates what a player sees and remembers."""
  player, enemy = game.players[p], game.players[1 - p]
  viewers = _viewers(twin, game, p)
  terrain = twin.table.rules.terrain

  def sees(x, y, radius, hidden):
    return any((above or not hidden) and game.at_most((x - ex) ** 2 + (y - ey) ** 2,
                                                      (sight + radius) ** 2)
               for ex, ey, sight, above in viewers)

  def high(x, y):
    return terrain is not None and twin.on(game, player, "high", x, y)

  player.seen = set()
  for slot, body in enemy.bodies.items():
    row = twin.row(body)
    if sees(body.x, body.y, row["radius"], high(body.x, body.y) and not row["flying"]):
      player.seen.add(slot)
  for slot, (name, x, y, _) in list(player.memory.items()):
    if sees(x, y, twin.table.unit[name]["radius"], high(x, y)):
      del player.memory[slot]
  for slot in player.seen:
    body = enemy.bodies[slot]
    if slot < twin.s:
      player.memory[slot] = [body.name, body.x, body.y, body.health]
  for r in range(len(twin.places)):
    x, y = twin.place(player, r)
    if sees(x, y, 0.0, high(x, y)):
      player.known_patches[r] = twin.contents(game, p, r)
  player.met |= bool(player.seen)
  size = twin.table.rules.map_size
  middles = (np.arange(size) + 0.5) * twin.tier.map_size / size - twin.tier.map_size / 2
  if terrain is None:
    low = np.ones((size, size), bool)
  else:
    low = np.array([[not terrain.high[(game.map, *twin.cell(player, x, y))] for x in middles]
                    for y in middles]) if game.map == 1 else np.ones((size, size), bool)
  player.visible = np.zeros((size, size), bool)
  rows, columns = np.indices((size, size))
  for x, y, sight, above in viewers:
    row, column = _plane_cell(twin, game, player, y), _plane_cell(twin, game, player, x)
    reach = sight * size / twin.tier.map_size
    lit = low if not above else np.ones((size, size), bool)
    square = (rows - row) ** 2 + (columns - column) ** 2
    player.visible |= lit & (square <= reach * reach + 1e-3)
  player.explored = player.explored | player.visible
