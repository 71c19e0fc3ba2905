"""Sentries as clients see them: abilities, effects, Force Fields, hallucinations."""

from types import SimpleNamespace

import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.sc2.protocol import raw_pb, sc_pb
from starleague.environments.sc2.server.game import catalogue, debugging
from starleague.environments.sc2.server.views import (
  gamedata,
  layers,
  possible,
  raw_units,
  response_observation,
)
from starleague.environments.skirmish.rules.interface import perception
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.sc2.server.views.test_technology import listed, shown
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import LOCAL, RULES, S, place, with_sentry

FIRST, SECOND = tech.FREE, tech.FREE + 1
GUARD, FIELD, ZEALOTS, PHOENIX = 76, 1526, 164, 154
MOVE, ATTACK, GATHER = 16, 23, 298


def view_of(state, player=0, seen=()):
  """A player's view of a state; it has cells in sight where `seen` says, in Skirmish's places."""
  game = shown(state)
  size = RULES.map_size
  planes = np.zeros((2, len(types.MINIMAP_PLANES), size, size), np.uint8)
  for x, y in seen:
    row, column = (int((value + RULES.half) * size / RULES.tier.map_size) for value in (y, x))
    planes[player, types.MINIMAP_PLANES.index("visibility"), row, column] = 2
  game.frame().report.planes = planes
  game.frame().loop = 80
  return raw_units.View(game, game.frame(), player, (), (0.0, 0.0, 1.0, 1.0))


def test_the_data_of_a_sentry_is_the_real_games():
  data = gamedata.make_data(
    RULES, sc_pb.RequestData(unit_type_id=True, ability_id=True, effect_id=True))
  sentry = next(unit for unit in data.units if unit.name == "Sentry")
  assert (sentry.unit_id, sentry.ability_id, sentry.tech_requirement) == (77, 921, 72)
  assert (sentry.mineral_cost, sentry.vespene_cost, sentry.food_required) == (50, 100, 2)
  assert [(w.damage, w.range, w.attacks) for w in sentry.weapons] == [(6, 5, 1)] * 2
  effects = {effect.effect_id: (effect.name, effect.radius) for effect in data.effects}
  assert effects[2] == ("GuardianShieldPersistent", 4.5)
  assert next(unit for unit in data.units if unit.unit_id == 135).name == "ForceField"


@pytest.mark.parametrize("ability, name, point", [
  (GUARD, "Effect_GuardianShield_quick", False), (FIELD, "Effect_ForceField_pt", True),
  (ZEALOTS, "Hallucination_Zealot_quick", False), (PHOENIX, "Hallucination_Phoenix_quick", False),
  (1418, "TrainWarp_Sentry_pt", True)])
def test_abilities_name_functions(ability, name, point):
  abilities, local = catalogue.make_catalogue(RULES), RULES.functions.names.index(name)
  assert abilities.pick(ability, point, False) == local
  user = LOCAL["WarpGate" if "Warp" in name else "Sentry"]
  assert abilities.ability(local, user) == ability and abilities.needs_target(local) == point


def test_abilities_of_a_sentry_depend_on_its_energy():
  assert {GUARD, FIELD, ZEALOTS, PHOENIX, MOVE, ATTACK} <= listed(shown(with_sentry(75.0)), FIRST)
  found = listed(shown(with_sentry(60.0)), FIRST)
  assert FIELD in found and not found & {GUARD, ZEALOTS, PHOENIX}
  game = shown(with_sentry(0.0))
  (free,) = possible.unit_abilities(game, 0, [int(game.tags[0, FIRST])], free=True)
  assert {GUARD, FIELD, ZEALOTS} <= {ability.ability_id for ability in free}
  state = tech.play(tech.order(with_sentry(), "Effect_GuardianShield_quick", [FIRST]))
  assert GUARD not in listed(shown(state), FIRST)


@pytest.mark.parametrize("detector, told", [("Observer", True), ("Zealot", False)])
def test_owners_and_detectors_see_that_units_are_hallucinations(detector, told):
  state = tech.play(tech.order(with_sentry(), "Hallucination_Probe_quick", [FIRST]))
  place(state, 1, FIRST, detector, 3.0, 0.0)
  state = tech.play(state._replace(
    memory=perception.perceive(RULES, states.on_device(state)).memory))
  slots = np.append(S + np.flatnonzero(state.spell_loops[0] < 0), FIRST)
  assert len(slots) == 5
  for player, expected in ((0, True), (1, told)):
    view = view_of(state, player)
    rows = raw_units._in_sight(view, 0, slots, view.frame.tags[0])
    assert [row["is_hallucination"] for row in rows] == [expected] * 4 + [False]
    assert {row["unit_type"] for row in rows[:4]} == {84}
  found = listed(shown(state), slots[0])
  assert {MOVE, ATTACK} <= found and GATHER not in found
  units = [raw_pb.Unit(**row) for row in rows]
  assert [layers._UNIT_LAYERS["hallucinations"][0](unit) for unit in units] == [told] * 4 + [False]


def test_guardian_shields_are_effects_of_sentries_in_sight():
  state = tech.play(tech.order(with_sentry(at=(3.0, 4.0)), "Effect_GuardianShield_quick", [FIRST]))
  for player, alliance in ((0, raw_pb.Self), (1, raw_pb.Enemy)):
    state.memory.seen[1, FIRST] = True
    view = view_of(state, player)
    (effect,) = response_observation._effects(view)
    place_ = view.point(3.0, 4.0)
    assert (effect.effect_id, effect.radius, effect.owner) == (2, 4.5, 1)
    assert effect.alliance == alliance and (effect.pos[0].x, effect.pos[0].y) == (
      place_.x, place_.y)
    (sentry,) = raw_units._in_sight(view, 0, np.array([FIRST]), view.frame.tags[0])
    assert sentry["buff_ids"] == [18]
  state.memory.seen[1, FIRST] = False
  assert not list(response_observation._effects(view_of(state, 1)))
  state.orders.verb[0, FIRST - S] = constants.ABOARD  # in a transport
  assert not list(response_observation._effects(view_of(state, 0)))


def test_a_hallucination_that_a_debug_request_kills_leaves_an_empty_slot():
  state = tech.play(tech.order(with_sentry(), "Hallucination_Zealot_quick", [FIRST]))
  slots = S + np.flatnonzero(state.spell_loops[0] < 0)
  gone = np.zeros(state.kind.shape, bool)
  gone[0, slots] = True
  left = debugging.kill(RULES, states.on_device(state), gone)
  assert not np.any(left.kind[0, slots]) and not np.any(left.spell_loops)


def test_hallucinations_are_not_reported_as_trained():
  state = tech.play(tech.order(with_sentry(), "Hallucination_Zealot_quick", [FIRST]))
  tracks = [SimpleNamespace(
    kind=state.kind[None], x=state.x[None], y=state.y[None], unfinished=state.unfinished[None],
    hurt=state.hurt[None], upgrades=state.upgrades[None], injected=state.injected[None],
    spell_loops=loops[None], seen=state.memory.seen[None], remembered=state.memory.kind[None],
    patches=state.memory.patches[None], winner=np.array([-1]))
    for loops in (state.spell_loops, np.zeros_like(state.spell_loops))]
  born = np.zeros((1, *state.kind.shape), bool)
  born[0, 0, S + np.flatnonzero(state.spell_loops[0] < 0)] = True
  for track, expected in zip(tracks, ([], [sc_pb.TrainUnitComplete]), strict=True):
    noted = []
    seat = SimpleNamespace(player=0, note=lambda loop, kind, what, noted=noted: noted.append(what))
    made = response_observation.engine.Track(**vars(track))
    response_observation.note_changes(RULES, seat, SimpleNamespace(
      before=made, after=made, born=born, loops=(8,), dead=[[(), ()]]))
    assert noted == expected
