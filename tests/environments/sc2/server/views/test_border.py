"""A border around the playable area: the same game, with all world places further by its cells."""

from types import SimpleNamespace

import numpy as np
import pytest

from starleague.environments.sc2.protocol import query_pb, raw_pb, sc_pb, spatial_pb
from starleague.environments.sc2.server.game import engine, game, world
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.views import (
  interface_actions,
  queries,
  raw_units,
  response_observation,
)
from starleague.environments.sc2.server.views.seats import ServerSeat
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.sc2.server import play
from tests.environments.sc2.server.play import SCV

CELLS, SIZE = 8, 24


def start(cells):
  """A game of `mini` with a border, and a seat with a minimap and a screen of one cell a unit."""
  played = game.Game(Battlefield("mini", realistic=False), (1, 1), 2)
  played.world = played.world.with_border(cells)
  seat = ServerSeat(0, play.interface(SIZE, SIZE + 2 * cells))
  seat.camera = 12.0 + cells, 12.0 + cells
  return played, seat


@pytest.fixture(scope="module")
def pair():
  return start(0), start(CELLS)


def act(played, seat, cells):
  """An SCV goes to a place by the world, one by the minimap and one by the screen."""
  workers = [unit.tag for unit in play.units_of(observe(played, seat), SCV)]
  column, row = 12, 13  # of an axis downwards
  target = {"x": 12.5 + cells, "y": 10.5 + cells}
  acted = []
  for i, action in enumerate((
      sc_pb.Action(action_raw=raw_pb.ActionRaw(unit_command=raw_pb.ActionRawUnitCommand(
        ability_id=16, unit_tags=[workers[0]], target_world_space_pos=target))),
      spatial(target_minimap_coord={"x": column + cells, "y": row + cells}),
      spatial(target_screen_coord={"x": column, "y": row}))):
    seat.selected = [workers[i]]
    acted.append(interface_actions.perform(played, seat, action)[0])
  list(played.play(2))
  return acted


def spatial(**target):
  command = spatial_pb.ActionSpatialUnitCommand(ability_id=16, **target)
  return sc_pb.Action(action_feature_layer=spatial_pb.ActionSpatial(unit_command=command))


def observe(played, seat):
  return response_observation.observe(played, seat, 8 * played.steps)


def grid(image):
  if image.bits_per_pixel == 1:
    values = np.unpackbits(np.frombuffer(image.data, np.uint8))
  else:
    values = np.frombuffer(image.data, f"u{image.bits_per_pixel // 8}")
  return values.reshape(image.size.y, image.size.x)


def test_commands_aim_at_the_same_places(pair):
  (plain, seat), (bordered, far) = pair
  assert act(plain, seat, 0) == act(bordered, far, CELLS) == [1, 1, 1]
  for name in ("kind", "x", "y"):
    np.testing.assert_array_equal(getattr(plain.state, name), getattr(bordered.state, name))
  verbs = np.asarray(plain.state.orders.verb[0])
  assert (verbs == np.asarray(bordered.state.orders.verb[0])).all()
  moves = verbs == constants.MOVE
  targets = {(float(x), float(y)) for x, y in zip(
    bordered.state.orders.x[0][moves], bordered.state.orders.y[0][moves], strict=True)}
  assert targets == {(0.5, 1.5)} and moves.sum() == 3


def test_observations_are_further_by_the_border(pair, monkeypatch):
  # A map's resources are placed once, with the map's own border.
  monkeypatch.setattr(raw_units, "_resources", lambda view: iter(()))
  (plain, seat), (bordered, far) = pair
  near, away = observe(plain, seat).observation, observe(bordered, far).observation
  places = [{unit.tag: (unit.pos.x, unit.pos.y, unit.pos.z, unit.is_on_screen)
             for unit in seen.raw_data.units} for seen in (near, away)]
  assert len(places[0]) > 4 and list(places[0]) == list(places[1])
  np.testing.assert_allclose(
    list(places[1].values()), np.array(list(places[0].values())) + (CELLS, CELLS, 0, 0), atol=4e-6)
  for name in ("visibility", "creep"):
    first, second = (grid(getattr(seen.raw_data.map_state, name)) for seen in (near, away))
    np.testing.assert_array_equal(np.pad(first, CELLS), second)
  first, second = (seen.feature_layer_data.minimap_renders for seen in (near, away))
  for name in ("height_map", "visibility_map", "creep", "camera", "player_relative", "unit_type",
               "pathable", "buildable"):
    np.testing.assert_array_equal(
      np.pad(grid(getattr(first, name)), CELLS), grid(getattr(second, name)), name)
  first, second = (seen.feature_layer_data.renders for seen in (near, away))
  for name in ("height_map", "visibility_map", "unit_type", "pathable"):
    np.testing.assert_array_equal(grid(getattr(first, name)), grid(getattr(second, name)), name)


@pytest.mark.parametrize("place, middle", [((2, 3), (8, 8)), ((90, 20), (32, 20))])
def test_the_middle_of_the_camera_stays_on_the_playable_area(place, middle):
  played, seat = start(CELLS)
  move = raw_pb.ActionRawCameraMove(center_world_space={"x": place[0], "y": place[1]})
  action = sc_pb.Action(action_raw=raw_pb.ActionRaw(camera_move=move))
  assert interface_actions.perform(played, seat, action)[0] == 1
  assert seat.camera == middle


def test_structures_do_not_fit_on_the_border(pair):
  results = []
  for (played, _), cells in zip(pair, (0, CELLS), strict=True):
    request = query_pb.RequestQuery(ignore_resource_requirements=True)
    for x, y in ((12, 12), (5.5, 18.5), (-1, 12), (12, -4), (2, 12)):
      request.placements.add(ability_id=321, target_pos={"x": x + cells, "y": y + cells})
    results.append([one.result for one in queries.answer(played, 0, request).placements])
  assert results[0] == results[1] == [1, 44, 44, 44, 1]


def test_paths_have_the_same_length():
  """On the map `ramps` of `large`; no path leads to the border."""
  rules, found = engine.rules_of("large"), []
  for realistic, cells in ((False, 0), (True, CELLS)):
    played = SimpleNamespace(rules=rules, world=world.make_world(rules, 1, realistic),
                             battlefield=Battlefield("large", "ramps", realistic))
    lengths = []
    for x, y in ((16, 16), (60, 50), (80, 20), (-2, 5), (97, 40)):
      query = query_pb.RequestQueryPathing(
        start_pos={"x": 16.5 + cells, "y": 79.5 + cells}, end_pos={"x": x + cells, "y": y + cells})
      lengths.append(queries._distance(played, 0, query))
    found.append(lengths)
  assert found[0] == found[1] and found[0][3:] == [0, 0]
  assert min(found[0][:3]) > 40
