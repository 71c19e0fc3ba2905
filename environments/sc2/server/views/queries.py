"""Answers to queries: pathing, placement, available abilities."""

from typing import Any

import numpy as np

from starleague.environments.sc2.protocol import query_pb
from starleague.environments.sc2.server.game import catalogue
from starleague.environments.sc2.server.game.client_commands import SUCCESS, resource_places
from starleague.environments.sc2.server.game.game import Game
from starleague.environments.sc2.server.views import possible, raw_units
from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.step import movement
from starleague.environments.skirmish.rules.tables import constants, maps

_MOST_COORDINATE = 1e4


def answer(game: Game, player: int, request: query_pb.RequestQuery) -> query_pb.ResponseQuery:
  """Answers a query of a player."""
  response = query_pb.ResponseQuery(
    pathing=[query_pb.ResponseQueryPathing(distance=_distance(game, player, query))
             for query in request.pathing])
  tags = [query.unit_tag for query in request.abilities]
  listed = possible.unit_abilities(
    game, player, tags, request.ignore_resource_requirements) if tags else []
  for query, abilities in zip(request.abilities, listed, strict=True):
    found = np.flatnonzero(game.tags[player] == query.unit_tag)
    kind = int(game.state.kind[player, found[0]]) if query.unit_tag and found.size else 0
    other = catalogue.LARVA if possible.is_larva(game, player, query.unit_tag) else 0
    response.abilities.add(
      abilities=abilities, unit_tag=query.unit_tag,
      unit_type_id=raw_units.unit_type(game, kind) if kind else other)
  for result in _placements(game, player, list(request.placements)):
    response.placements.add(result=result)
  return response


def _placements(game: Game, player: int,
                queries: list[query_pb.RequestQueryBuildingPlacement]) -> list[int]:
  """The ActionResult of each placement query."""
  abilities, functions = catalogue.make_catalogue(game.rules), game.rules.functions
  products = np.zeros(len(queries), np.int32)
  places = np.zeros((len(queries), 2), np.float32)
  for i, query in enumerate(queries):
    function = abilities.pick(query.ability_id, True, False)
    if function is not None and functions.kind[function] in (
        constants.BUILDING, constants.WARPING):
      products[i] = functions.product[function]
    x, y = game.world.to_skirmish(np.float32(query.target_pos.x), np.float32(query.target_pos.y))
    if abs(x) <= _MOST_COORDINATE and abs(y) <= _MOST_COORDINATE:
      places[i] = _snapped(game, player, x, y, int(products[i]))
    else:
      places[i] = _MOST_COORDINATE  # off the map
  fits = game.placeable(player, places, products)
  return [action_results.NOT_SUPPORTED if not product else
          SUCCESS if fit else action_results.CANT_BUILD_LOCATION_INVALID
          for product, fit in zip(products, fits, strict=True)]


def _snapped(game: Game, player: int, x: Any, y: Any, product: int) -> tuple[Any, Any]:
  """Returns the place of a structure; a gas structure is moved onto its geyser."""
  if not game.rules.types.gas[product]:
    return x, y
  places = resource_places(game, player)
  geysers = places[:, np.tile(game.rules.tier.geysers, 2)]
  if not geysers.size:
    return x, y
  squares = (geysers[0] - x) ** 2 + (geysers[1] - y) ** 2
  nearest = int(np.argmin(squares))
  if squares[nearest] > constants.GEYSER_SNAP ** 2:
    return x, y
  return geysers[0, nearest], geysers[1, nearest]


def _distance(game: Game, player: int, query: query_pb.RequestQueryPathing) -> float:
  """Returns the length of a unit's or a place's path to a place, 0 without a path."""
  start = np.array([query.start_pos.x, query.start_pos.y])
  free = False
  if query.WhichOneof("start") == "unit_tag":
    found = np.flatnonzero(game.tags[player] == query.unit_tag)
    if not query.unit_tag or not found.size:
      return 0.0
    state, slot = game.state, found[0]
    free = bool(movement.ignores_cliffs(game.rules, state.kind[player, slot]))
    start = np.array(game.world.to_world(state.x[player, slot], state.y[player, slot]))
  end = np.array([query.end_pos.x, query.end_pos.y])
  size = game.world.playable
  start, end = start - game.world.border, end - game.world.border
  if not (np.isfinite(start).all() and np.isfinite(end).all()
          and (np.minimum(start, end) >= 0).all() and (np.maximum(start, end) < size).all()):
    return 0.0
  if free or game.rules.terrain is None:
    return float(np.hypot(*(end - start)))
  return walk(game.rules.terrain, game.battlefield.map_index,
              np.array([start[0], size - start[1]]), np.array([end[0], size - end[1]]))


def walk(terrain: maps.Terrain, map_index: int, start: np.ndarray, end: np.ndarray) -> float:
  """Returns the length of the path along the flow field, 0 without a path.

  It leads from `start` through the middles of cells, as units walk, and straight to `end`.

  Args:
    terrain: of the tier.
    map_index: of the map.
    start: [2] x and y in cells, downwards from the first corner, below terrain.cells.
    end: [2].
  """
  g = terrain.cells
  passable = terrain.passable[map_index]
  # The first row of the game's coordinates is the last one here: y = 0 is its edge.
  (column, row), (end_column, end_row) = (
    np.minimum(place, g - 1).astype(int) for place in (start, end))
  if not passable[row, column] or not passable[end_row, end_column]:
    return 0.0
  field = terrain.field(terrain.area_of[map_index, end_row, end_column])
  length, here = 0.0, start
  for _ in range(g * g):
    way = int(field[row, column])
    if way == maps.UNREACHABLE:
      return 0.0
    if way == maps.STRAIGHT:
      break
    dx, dy = maps.DIRECTIONS[way]
    column, row = column + dx, row + dy
    middle = np.array([column + 0.5, row + 0.5])
    length += float(np.hypot(*(middle - here)))
    here = middle
  return length + float(np.hypot(*(end - here)))
