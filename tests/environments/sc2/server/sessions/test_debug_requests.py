"""Debug requests: money, units created, killed and changed, in games of `mini`."""

import numpy as np

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.game import engine
from tests.environments.sc2.server import play
from tests.environments.sc2.server.play import BARRACKS, SCV


def test_numbers_that_are_none_change_nothing():
  nan = float("nan")

  async def script(session):
    await play.start(session)
    seen = await play.step(session)
    tag = play.units_of(seen, SCV)[0].tag
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[
      {"create_unit": {"unit_type": 48, "owner": 1, "quantity": 1, "pos": {"x": nan, "y": 2}}},
      {"unit_value": {"unit_value": 2, "value": nan, "unit_tag": tag}}]))
    return seen, await play.step(session)

  before, after = play.run(script)
  assert not play.units_of(after, 48)
  assert [unit.health for unit in play.units_of(after, SCV)] == [
    unit.health for unit in play.units_of(before, SCV)]


def test_debug_money_and_surrender():
  async def script(session):
    await play.start(session)
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"game_state": 5}]))
    rich = (await play.ask(session, observation=sc_pb.RequestObservation())).observation
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"end_game": {"end_result": 1}}]))
    return rich, (await play.ask(session, observation=sc_pb.RequestObservation())).observation

  rich, over = play.run(script)
  assert rich.observation.player_common.minerals == 5050
  assert [(r.player_id, r.result) for r in over.player_result] == [(1, 2), (2, 1)]


def test_debug_creates_and_kills_units():
  marine, depot, zergling = 48, 19, 105  # `mini` has no depots

  def created(unit_type, owner, count):
    return {"create_unit": {"unit_type": unit_type, "owner": owner, "quantity": count,
                            "pos": {"x": 12, "y": 12}}}

  async def script(session):
    await play.start(session)
    seen = []
    for given in ([created(marine, 1, 5), created(SCV, 2, 2), created(BARRACKS, 1, 1),
                   created(depot, 1, 1), created(zergling, 1, 1), created(marine, 16, 1)],
                  [created(marine, 1, 200)], []):
      if not given:
        marines = [unit.tag for unit in seen[0] if unit.unit_type == marine and unit.owner == 1]
        given = [{"kill_unit": {"tag": [*marines[:4], 12345]}},
                 {"unit_value": {"unit_value": 2, "value": 5, "unit_tag": marines[4]}}]
      await play.ask(session, debug=sc_pb.RequestDebug(debug=given))
      # After the first look, less than a step of Skirmish.
      await play.ask(session, step=sc_pb.RequestStep(count=2 if seen else 8))
      raw = (await play.ask(session, observation=sc_pb.RequestObservation())
             ).observation.observation.raw_data
      seen.append(list(raw.units))
    return seen, list(raw.event.dead_units), marines

  (first, second, third), dead, marines = play.run(script)

  def count(units, unit_type, owner=1):
    return sum(unit.unit_type == unit_type and unit.owner == owner for unit in units)

  assert [count(first, kind) for kind in (marine, BARRACKS, depot, zergling)] == [5, 1, 0, 0]
  assert count(first, SCV, owner=2) == 2  # in sight of the Marines
  found = [unit for unit in first if unit.unit_type == marine and unit.owner == 1]
  assert all(unit.health == 45 and unit.build_progress == 1 for unit in found)
  np.testing.assert_allclose(np.mean([(u.pos.x, u.pos.y) for u in found], axis=0), [12, 12], atol=1)
  slots = engine.rules_of("mini").tier.units
  assert count(second, marine) + count(second, SCV) == slots  # as many as there is room for
  assert count(third, marine) == count(second, marine) - 4
  assert set(marines[:4]) == set(dead)
  assert [unit.health for unit in third if unit.tag == marines[4]] == [5]
