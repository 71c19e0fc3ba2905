"""The answer to `game_info`: grids, start locations, what is hidden of the opponent."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.game import engine, game, world
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.views import gameinfo
from starleague.environments.sc2.server.views.seats import ServerSeat
from tests.environments.sc2.server import play

SIZE = 24


@pytest.fixture(scope="module")
def played():
  return game.Game(Battlefield("mini", realistic=False), (1, 1), 2)


def bits(image):
  assert (image.bits_per_pixel, image.size.x, image.size.y) == (1, SIZE, SIZE)
  return np.unpackbits(np.frombuffer(image.data, np.uint8)).reshape(SIZE, SIZE).astype(bool)


def ones(grid):
  """The cells of a grid that are true: {(column, row)}."""
  return {(int(column), int(row)) for row, column in np.argwhere(grid)}


def square(left, low, side):
  return set(itertools.product(range(left, left + side), range(low, low + side)))


def test_resources_block_cells(played):
  placement = bits(gameinfo.start_raw(played, 0).placement_grid)
  x, y = played.world.to_world(*np.array(played.rules.tier.patches).T)
  x, y = np.concatenate([x, SIZE - x]), np.concatenate([y, SIZE - y])  # the other half
  for place in zip(x, y, strict=True):
    assert not placement[int(place[1]), int(place[0])], place
  blocked = np.argwhere(~placement) + 0.5
  near = np.hypot(*(blocked[:, None, ::-1] - np.stack([x, y], -1)).transpose(2, 0, 1)).min(axis=1)
  assert 12 <= len(blocked) <= 60 and near.max() <= 1.5
  home = played.world.to_world(*played.rules.tier.home)
  assert placement[int(home[1]), int(home[0])]


def test_structures_that_a_player_knows_block_cells_of_the_pathing_grid():
  """The map is flat: the grids differ by squares of whole cells under structures."""
  played = game.Game(Battlefield("mini", realistic=False), (1, 1), 2)

  def under(player):
    start = gameinfo.start_raw(played, player)
    pathing, placement = bits(start.pathing_grid), bits(start.placement_grid)
    assert (pathing <= placement).all()
    return ones(placement & ~pathing)

  # A town hall of 5 x 5 cells each; the opponent's is out of sight. The resources are apart.
  halls = [square(3, 16, 5), square(16, 3, 5)]
  assert [under(player) for player in (0, 1)] == halls
  played.create(0, played.rules.types.local("Barracks"), (3.5, -4.5), 1)
  list(played.play(1))
  barracks = square(14, 15, 3)
  assert [under(player) for player in (0, 1)] == [halls[0] | barracks, halls[1]]
  # A Marine beside it sees it. Without the Marine it is remembered, even once it is gone.
  played.create(1, played.rules.types.local("Marine"), (3.5, -1.5), 1)
  list(played.play(1))
  assert under(1) == halls[1] | barracks
  for player, name in ((1, "Marine"), (0, "Barracks")):
    kind = played.rules.types.local(name)
    played.kill(played.tags[player][played.state.kind[player] == kind].tolist())
    list(played.play(1))
  assert [under(player) for player in (0, 1)] == [halls[0], halls[1] | barracks]


def test_the_ground_has_the_size_of_the_map(played):
  start = gameinfo.start_raw(played, 0)
  assert (start.map_size.x, start.map_size.y) == (SIZE, SIZE)
  area = start.playable_area
  assert (area.p0.x, area.p0.y, area.p1.x, area.p1.y) == (0, 0, SIZE, SIZE)
  heights = np.frombuffer(start.terrain_height.data, np.uint8)
  assert heights.shape == (SIZE * SIZE,) and len(set(heights.tolist())) == 1


def test_each_player_gets_the_start_of_the_other(played):
  places = [gameinfo.start_raw(played, player).start_locations for player in (0, 1)]
  assert [[(place.x, place.y) for place in one] for one in places] == [
    [(18.5, 5.5)], [(5.5, 18.5)]]


def test_the_ground_is_drawn_once(played, monkeypatch):
  first = gameinfo.start_raw(played, 0)
  monkeypatch.setattr(gameinfo, "image", None)  # drawing would raise
  assert gameinfo.start_raw(played, 0) == first
  assert len(gameinfo.start_raw(played, 1).start_locations) == 1


def empty_large_game(realistic):
  """The map `ramps` of the tier `large`, without units."""
  rules = engine.rules_of("large")
  none = np.zeros((2, rules.tier.slots))
  units = {"kind": none.astype(np.int32), "x": none, "y": none}
  state = SimpleNamespace(side=np.array([1, -1]), memory=SimpleNamespace(seen=none > 0, **units),
                          **units)
  return SimpleNamespace(
    rules=rules, world=world.make_world(rules, 1, realistic), state=state,
    battlefield=Battlefield("large", "ramps", realistic),
    frame=lambda: SimpleNamespace(state=state, known_tags=none))


@pytest.mark.parametrize("realistic, place", [(False, (80, 16)), (True, (87.5, 24.5))])
def test_realistic_maps_show_the_start_and_the_ramps_of_clients(realistic, place):
  start = gameinfo.start_raw(empty_large_game(realistic), 0)
  assert [(one.x, one.y) for one in start.start_locations] == [place]
  heights = set(np.frombuffer(start.terrain_height.data, np.uint8).tolist())
  assert heights == ({96, 160} if not realistic else set(range(96, 161, 8)))


def test_large_realistic_maps_have_a_border_of_8_cells():
  """No ground unit or structure stands there; inside, the map has its 96 x 96 cells."""
  start = gameinfo.start_raw(empty_large_game(True), 0)
  assert (start.map_size.x, start.map_size.y) == (112, 112)
  area = start.playable_area
  assert (area.p0.x, area.p0.y, area.p1.x, area.p1.y) == (8, 8, 104, 104)
  for grid in (start.pathing_grid, start.placement_grid):
    cells = np.unpackbits(np.frombuffer(grid.data, np.uint8)).reshape(112, 112)
    inside = np.zeros_like(cells)
    inside[8:104, 8:104] = cells[8:104, 8:104]
    np.testing.assert_array_equal(cells, inside)
    assert inside[:, 8:104].any(axis=0).all() and inside[8:104].any(axis=1).all()
  height = np.frombuffer(start.terrain_height.data, np.uint8).reshape(112, 112)
  np.testing.assert_array_equal(height[:8], np.broadcast_to(height[8], (8, 112)))
  np.testing.assert_array_equal(height[:, 104:], np.broadcast_to(height[:, 103:104], (112, 8)))


def test_the_opponents_race_stays_hidden(played):
  players = [sc_pb.PlayerInfo(player_id=number, race_requested=4, race_actual=number)
             for number in (1, 2)]
  seat = ServerSeat(1, play.interface())
  info = gameinfo.game_info(played, seat, "Melee\\My Map.SC2Map", players)
  assert [(one.race_requested, one.HasField("race_actual")) for one in info.player_info] == [
    (4, False), (4, True)]
  assert (info.map_name, info.local_map_path) == ("My Map", "Melee\\My Map.SC2Map")
  assert info.options == seat.options and players[0].race_actual == 1  # the argument is unchanged
