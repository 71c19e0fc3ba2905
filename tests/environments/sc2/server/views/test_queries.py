"""Queries: available abilities, placement, pathing."""

import numpy as np
import pytest

from starleague.environments.sc2.protocol import query_pb
from starleague.environments.sc2.server.game import engine
from starleague.environments.sc2.server.views import queries
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
