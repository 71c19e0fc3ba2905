"""Observations of the API: events, panels, the whole map."""

import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.sc2.protocol import debug_pb, raw_pb, sc_pb, ui_pb
from starleague.environments.sc2.server.game import engine, game
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.views import raw_units, response_observation
from starleague.environments.sc2.server.views.seats import ServerSeat
from tests.environments.sc2.server import play
from tests.environments.sc2.server.play import COMMAND_CENTER, SCV

RULES = engine.rules_of("mini")
S, N, UNITS = RULES.tier.structures, RULES.tier.slots, RULES.tier.units
BARRACKS, MARINE, WORKER = (RULES.types.local(name) for name in ("Barracks", "Marine", "SCV"))


@pytest.fixture(scope="module")
def played():
  return game.Game(Battlefield("mini", realistic=False), (1, 1), 2)


def track(**values):
  """The track of two states in which nothing happens, but for these values of player 0."""
  empty = engine.Track(
    kind=np.zeros((2, 2, N), np.int32), x=np.zeros((2, 2, N)), y=np.zeros((2, 2, N)),
    unfinished=np.zeros((2, 2, S), np.int32), hurt=np.zeros((2, 2, N), bool),
    upgrades=np.zeros((2, 2, 0), bool), injected=np.zeros((2, 2, 0), np.int32),
    spell_loops=np.zeros((2, 2, 0), np.int32),
    seen=np.zeros((2, 2, N), bool), remembered=np.zeros((2, 2, S), np.int32),
    patches=np.full((2, 2, 2 * len(RULES.tier.geysers)), 9, np.int32),
    winner=np.full(2, -1))
  for name, changes in values.items():
    for (state, slot), value in changes.items():
      getattr(empty, name)[state, 0, slot] = value
  return empty


def alerts_of(before, after, born=(), dead=((), ())):
  """The events of a run of two steps, to game loops 8 and 16."""
  seat = ServerSeat(0, play.interface())
  born_ = np.zeros((2, 2, N), bool)
  for state, slot in born:
    born_[state, 0, slot] = True
  response_observation.note_changes(RULES, seat, game.Changes(
    loops=(8, 16), before=before, after=after, born=born_,
    dead=tuple((frozenset(tags), frozenset()) for tags in dead)))
  return [{kind: sorted(values) for kind, values in seat.look(loop).items()} for loop in (8, 16)]


def test_nothing_is_reported_of_a_quiet_run():
  assert alerts_of(track(), track()) == [{}, {}]


def test_deaths_are_reported_at_their_loop():
  assert alerts_of(track(), track(), dead=((7, 5), (6,))) == [{"dead": [5, 7]}, {"dead": [6]}]


@pytest.mark.parametrize("before, after, born, alert", [
  ({"kind": {(0, 1): BARRACKS}, "unfinished": {(0, 1): 8}}, {"kind": {(0, 1): BARRACKS}}, (),
   sc_pb.BuildingComplete),
  ({}, {"kind": {(0, 1): BARRACKS}, "hurt": {(0, 1): True}}, (), sc_pb.BuildingUnderAttack),
  ({}, {"kind": {(0, S): MARINE}, "hurt": {(0, S): True}}, (), sc_pb.UnitUnderAttack),
  ({}, {"kind": {(0, S): WORKER}}, ((0, S),), sc_pb.TrainWorkerComplete),
  ({}, {"kind": {(0, S): MARINE}}, ((0, S),), sc_pb.TrainUnitComplete),
  ({}, {"patches": {(0, 3): 0}}, (), sc_pb.MineralsExhausted)])
def test_each_change_has_its_alert(before, after, born, alert):
  assert alerts_of(track(**before), track(**after), born) == [{"alert": [alert]}, {}]


def test_what_is_gone_or_was_there_gives_no_alert():
  gone = track(hurt={(0, 1): True, (0, S): True})  # empty slots
  there = track(kind={(0, 1): BARRACKS, (0, S): MARINE}, patches={(0, 3): 0})
  assert alerts_of(track(), gone) == [{}, {}]
  assert alerts_of(there, there) == [{}, {}]


@pytest.mark.parametrize("kinds, expected", [
  ((BARRACKS, BARRACKS), [{"alert": [sc_pb.LarvaHatched]}, {}]), ((0, 0), [{}, {}])])
def test_larvae_hatch_unless_their_hatchery_has_died(kinds, expected):
  """The rules clear the injection of an empty slot in the next step."""
  before, after = (track(kind={(0, 1): kind}) for kind in kinds)
  none = np.zeros((2, 2, S), np.int32)
  injected = none.copy()
  injected[0, 0, 1] = 8
  assert alerts_of(before._replace(injected=injected), after._replace(injected=none)) == expected


def test_the_whole_map_shows_all_units_to_both(played):
  frame = played.frame()
  found = response_observation.revealed(frame)
  np.testing.assert_array_equal(found.known_tags, frame.tags[::-1])
  visibility = types.MINIMAP_PLANES.index("visibility")
  relative = types.MINIMAP_PLANES.index("player_relative")
  assert (found.report.planes[:, visibility] == 2).all() and found.state.memory.seen.all()
  own = frame.report.planes[:, relative] == types.ALLIANCE_SELF
  enemies = found.report.planes[:, relative] == types.ALLIANCE_ENEMY
  np.testing.assert_array_equal(enemies, own[::-1])
  assert not (frame.report.planes[:, visibility] == 2).all()  # the argument is unchanged


def test_fog_hides_the_opponent_unless_it_is_off(played):
  seat = ServerSeat(0, play.interface())
  for reveal, enemies in ((False, 0), (True, 5)):
    found = response_observation.observe(played, seat, 0, reveal).observation
    assert sum(unit.alliance == raw_pb.Enemy for unit in found.raw_data.units) == enemies
    state = np.frombuffer(found.raw_data.map_state.visibility.data, np.uint8)
    assert (state.min() == 2) == reveal and state.max() == 2


def test_numbers_are_those_of_the_state(played):
  found = response_observation.observe(played, ServerSeat(1, play.interface()), 3).observation
  common = found.player_common
  assert (found.game_loop, common.player_id) == (3, 2)
  assert (common.minerals, common.vespene, common.food_used, common.food_workers) == (50, 0, 4, 4)
  assert found.score.score_details.food_used.economy == 4
  assert found.score.score == played.frame().report.score[1, 0]
  bare = response_observation.observe(played, ServerSeat(1, sc_pb.InterfaceOptions()), 3)
  assert not any(map(bare.observation.HasField, ("raw_data", "score", "feature_layer_data")))


def test_panels_show_the_selection():
  async def script(session):
    await play.start(session, options=sc_pb.InterfaceOptions(
      raw=True, score=True, raw_affects_selection=True))
    first = await play.step(session)
    (home,) = play.units_of(first, COMMAND_CENTER)
    workers = [unit.tag for unit in play.units_of(first, SCV)]
    panels = []
    for tags, ability in (([home.tag], 524), (workers[:1], 4), (workers[:3], 4)):
      await play.ask(session, action=play.command(ability, *tags))
      panels.append((await play.step(session)).observation)
    return panels

  production, single, several = play.run(script)
  panel = production.ui_data.production
  assert panel.unit.unit_type == COMMAND_CENTER
  assert [item.ability_id for item in panel.production_queue] == [524]
  assert single.ui_data.single.unit == ui_pb.UnitInfo(
    unit_type=SCV, player_relative=1, health=45, max_health=45, build_progress=1, shields=0,
    energy=0, max_shields=0, max_energy=0)
  assert [unit.unit_type for unit in several.ui_data.multi.units] == [SCV] * 3
  assert {ability.ability_id for ability in production.abilities} == {1}
  assert {23, 16} <= {ability.ability_id for ability in several.abilities}


def test_units_are_drawn_once_a_step_camera_and_fog(monkeypatch):
  drawn, real = [], raw_units.make_units

  def counted(view):
    drawn.append(view.frame.loop)
    return real(view)

  async def script(session):
    await play.start(session, options=play.interface(16, 16))
    monkeypatch.setattr(raw_units, "make_units", counted)
    seen = [(await play.step(session, 2)).observation for _ in range(7)]  # game loops 2 to 14
    assert [one.game_loop for one in seen] == [2, 4, 6, 8, 10, 12, 14] and drawn == [0, 8]
    for field in ("raw_data", "score", "player_common", "feature_layer_data"):
      assert getattr(seen[3], field) == getattr(seen[6], field)
    camera = sc_pb.RequestAction()
    camera.actions.add().action_raw.camera_move.center_world_space.x = 9
    await play.ask(session, action=camera)
    await play.step(session, 1)
    assert drawn == [0, 8, 8]
    await play.step(session, 1)
    await play.ask(session, debug=sc_pb.RequestDebug(debug=[{"game_state": debug_pb.show_map}]))
    await play.step(session, 1)
    await play.step(session, 1)
    assert drawn == [0, 8, 8, 16, 16]
  play.run(script)
