"""Queries: available abilities, placement, pathing."""

import numpy as np
import pytest

from starleague.environments.sc2.protocol import query_pb
from starleague.environments.sc2.server.game import engine
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.game import Game
from starleague.environments.sc2.server.views import queries
from starleague.environments.skirmish.rules.tables import maps
from tests.environments.sc2.server import play
from tests.environments.sc2.server.play import COMMAND_CENTER, SCV


def test_queries():
  async def script(session):
    await play.start(session)
    seen = await play.step(session)
    (home,) = play.units_of(seen, COMMAND_CENTER)
    worker = play.units_of(seen, SCV)[0]
    request = query_pb.RequestQuery(ignore_resource_requirements=True)
    for tag in (home.tag, worker.tag, 1):
      request.abilities.add(unit_tag=tag)
    for x, y in ((12, 12), (5.5, 18.5), (0.2, 12), (float("nan"), 1)):
      request.placements.add(ability_id=321, target_pos={"x": x, "y": y})
    request.placements.add(ability_id=23, target_pos={"x": 12, "y": 12})
    request.pathing.add(start_pos={"x": 2, "y": 2}, end_pos={"x": 5, "y": 6})
    request.pathing.add(unit_tag=worker.tag, end_pos={"x": worker.pos.x, "y": worker.pos.y})
    request.pathing.add(start_pos={"x": 2, "y": 2}, end_pos={"x": 25, "y": 6})
    request.pathing.add(end_pos={"x": 3, "y": 4})
    return (await play.ask(session, query=request)).query

  answer = play.run(script)
  home, worker, unknown = ({ability.ability_id for ability in listed.abilities}
                           for listed in answer.abilities)
  assert 524 in home and {1, 4, 16, 18, 23, 295, 321} <= worker and unknown == set()
  assert [listed.unit_type_id for listed in answer.abilities] == [COMMAND_CENTER, SCV, 0]
  points = {ability.ability_id: ability.requires_point for ability in answer.abilities[1].abilities}
  assert points[321] and points[295] and not points[4]
  assert [placement.result for placement in answer.placements] == [1, 44, 44, 44, 2]
  np.testing.assert_allclose([way.distance for way in answer.pathing], [5, 0, 0, 5], atol=1e-5)


def test_ways_start_at_the_edge_of_the_map():
  """Its first row of cells from below is the last one of the terrain."""
  rules = engine.rules_of("default")
  size = rules.terrain.cells
  assert queries.walk(rules.terrain, 0, np.array([0.0, size]), np.array([0.0, size])) == 0.0


def test_a_path_starts_at_its_place_and_not_in_the_middle_of_a_cell():
  passable = np.ones((1, 5, 5), bool)
  passable[0, :4, 2] = False  # a wall with a gap in the last row
  terrain = maps.Terrain(5, 1, passable, passable, np.zeros_like(passable))
  start, end = np.array([1.9, 0.9]), np.array([3.5, 0.5])
  # To (1.5, 1.5), down to (1.5, 4.5), through the gap to (3.5, 4.5), and up.
  assert queries.walk(terrain, 0, start, end) == pytest.approx(np.hypot(0.4, 0.6) + 3 + 2 + 4)


@pytest.mark.parametrize("tier", ["default", "large"])
def test_no_path_is_shorter_than_the_line(tier):
  terrain, rng = engine.rules_of(tier).terrain, np.random.default_rng(3)
  longest = []
  for index, passable in enumerate(terrain.passable):
    cells = np.argwhere(passable)[:, ::-1]
    starts = cells[rng.integers(len(cells), size=200)] + rng.random((200, 2))
    ends = cells[rng.integers(len(cells), size=20)].repeat(10, 0) + rng.random((200, 2))
    ways = np.array([queries.walk(terrain, index, start, end)
                     for start, end in zip(starts, ends, strict=True)])
    lines = np.hypot(*(ends - starts).T)
    assert (ways >= lines - 1e-9).all()
    longest.append(float((ways / lines).max()))
  assert longest[0] == pytest.approx(1) and min(longest[1:]) > 1.4


def test_paths_of_reapers_and_flyers_ignore_cliffs():
  game = Game(Battlefield("default", "ramps"), (1, 1), 2)
  home, half = np.array(game.rules.tier.home) * game.state.side[0], game.world.half
  names = ("Reaper", "Medivac", "Marine")
  for name in names:
    game.create(0, game.rules.types.local(name), tuple(home), 1)
  found = []
  for name in names:
    slot = int(np.flatnonzero(game.state.kind[0] == game.rules.types.local(name))[0])
    place = np.array([game.state.x[0, slot], game.state.y[0, slot]])
    query = query_pb.RequestQueryPathing(
      unit_tag=int(game.tags[0, slot]), end_pos={"x": half - home[0], "y": half + home[1]})
    way = queries._distance(game, 0, query)
    found.append(way / np.hypot(*(place + home)))
  np.testing.assert_allclose(found[:2], 1, atol=1e-5)
  assert found[2] > 1.01


def test_a_path_goes_around_cliffs_and_is_no_shorter_than_the_line():
  rules = engine.rules_of("default")
  terrain, size = rules.terrain, rules.terrain.cells
  home = np.array(rules.tier.home) + size / 2  # on a plateau of the map with ramps
  ends = np.array([[size / 2, size / 2], [size - home[0], size - home[1]], home])
  for end in ends:
    line = np.hypot(*(end - home))
    assert queries.walk(terrain, 0, home, end) >= line - 1e-5
    assert queries.walk(terrain, 1, home, end) >= line - 1e-5
  straight, around = (queries.walk(terrain, ground, home, ends[1]) for ground in (0, 1))
  assert straight == pytest.approx(np.hypot(*(ends[1] - home))) and around > straight + 0.5
  assert queries.walk(terrain, 1, home, home) == 0
  cliff = np.argwhere(~terrain.passable[1])[0][::-1] + 0.5
  assert queries.walk(terrain, 1, home, cliff) == 0 == queries.walk(terrain, 1, cliff, home)
