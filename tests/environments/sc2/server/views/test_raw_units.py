"""Raw units: own ones with their orders, the opponent's in sight or as last seen, resources."""

from types import SimpleNamespace

import numpy as np
import pytest

from starleague.environments.sc2.protocol import raw_pb
from starleague.environments.sc2.server.game import engine, game, roster, world
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.client_commands import SUCCESS, Target, issue
from starleague.environments.sc2.server.views import raw_units

SCREEN = (0.0, 12.0, 12.0, 24.0)  # left, bottom, right, top: the quarter of player 0's base
OWNERS_FIELDS = ("weapon_cooldown", "assigned_harvesters", "is_active")


@pytest.fixture(scope="module")
def played():
  return game.Game(Battlefield("mini", realistic=False), (1, 1), 2)


def view_of(played, player=0, frame=None, selected=()):
  return raw_units.View(played, frame or played.frame(), player, frozenset(selected), SCREEN)


def by_type(units, alliance=raw_pb.Self):
  found = {}
  for unit in units:
    if unit.alliance == alliance:
      found.setdefault(unit.unit_type, []).append(unit)
  return found


def test_own_units_come_first_and_resources_last(played):
  units = raw_units.make_units(view_of(played))
  assert [unit.alliance for unit in units] == [raw_pb.Self] * 5 + [raw_pb.Neutral] * 12
  own = by_type(units)
  (home,), workers = own[18], own[45]
  assert (home.pos.x, home.pos.y, home.health, home.health_max) == (5.5, 18.5, 1500, 1500)
  assert (home.assigned_harvesters, home.ideal_harvesters, home.build_progress) == (4, 8, 1)
  assert [unit.tag for unit in units[:5]] == played.tags[0][played.tags[0] > 0].tolist()
  patches = {unit.tag for unit in units[5:]}
  assert [order.ability_id for unit in workers for order in unit.orders] == [295] * 4
  assert {order.target_unit_tag for unit in workers for order in unit.orders} <= patches


def test_resources_show_what_is_left_and_who_sees_them_first(played):
  first, second = (by_type(raw_units.make_units(view_of(played, player)), raw_pb.Neutral)[341]
                   for player in (0, 1))
  assert [unit.mineral_contents for unit in first] == [900] * 12
  assert [unit.tag for unit in second] == [unit.tag for unit in first[6:] + first[:6]]
  assert {unit.owner for unit in first} == {raw_units.NEUTRAL_OWNER}
  assert [(unit.pos.x, unit.pos.y) for unit in first[:2]] == [(0.75, 19.5), (0.75, 17.25)]


def test_the_screen_and_the_selection_mark_units(played):
  chosen = played.tags[0][played.tags[0] > 0].tolist()[1:3]
  units = raw_units.make_units(view_of(played, selected=chosen))
  assert [unit.tag for unit in units if unit.is_selected] == chosen
  for unit in units:
    assert unit.is_on_screen == (unit.pos.x < 12 and unit.pos.y >= 12)
  assert any(unit.is_on_screen for unit in units) and any(not u.is_on_screen for u in units)


def test_enemies_in_sight_have_no_fields_of_their_owner(played):
  frame = played.frame()
  memory = frame.state.memory._replace(seen=frame.state.memory.seen | True)
  seen = frame._replace(known_tags=frame.tags[::-1], state=frame.state._replace(memory=memory))
  enemies = by_type(raw_units.make_units(view_of(played, 0, seen)), raw_pb.Enemy)
  own = by_type(raw_units.make_units(view_of(played, 1)))
  assert {kind: len(units) for kind, units in enemies.items()} == {18: 1, 45: 4}
  for theirs, ours in zip(enemies[45], own[45], strict=True):
    assert (theirs.tag, theirs.health, theirs.pos) == (ours.tag, ours.health, ours.pos)
    assert theirs.owner == ours.owner == 2
    assert not theirs.orders and not any(map(theirs.HasField, OWNERS_FIELDS))
    assert ours.orders and all(map(ours.HasField, OWNERS_FIELDS))


def test_a_remembered_structure_is_a_snapshot(played):
  frame, slot, tag = played.frame(), 2, 4_300_000_001
  memory = frame.state.memory
  kind, x, y, health = (np.array(values) for values in (
    memory.kind, memory.x, memory.y, memory.health))
  kind[0, slot], x[0, slot], y[0, slot] = played.rules.types.local("Barracks"), 3.0, -4.0
  health[0, slot] = 250
  known = np.array(frame.known_tags)
  known[0, slot] = tag
  state = frame.state._replace(memory=memory._replace(kind=kind, x=x, y=y, health=health))
  units = raw_units.make_units(view_of(played, 0, frame._replace(state=state, known_tags=known)))
  (found,) = by_type(units, raw_pb.Enemy)[21]
  assert (found.display_type, found.tag, found.owner) == (raw_pb.Snapshot, tag, 2)
  assert (found.pos.x, found.pos.y, found.health, found.health_max) == (15, 16, 250, 1000)
  assert found.build_progress == 1 and not found.is_on_screen


def test_orders_show_the_product_the_place_and_the_progress():
  played = game.Game(Battlefield("mini", realistic=False), (1, 1), 2)
  own = by_type(raw_units.make_units(view_of(played)))
  (home,), worker = own[18], own[45][0]
  played.grant(0, minerals=200)
  for ability, tag, target, queued in (
      (524, home.tag, Target(), False), (16, worker.tag, Target(12, 13, is_point=True), False),
      (23, worker.tag, Target(2, 3, is_point=True), True)):
    assert issue(played, 0, ability, [tag], target, queued) == SUCCESS
  assert sum(len(changes.loops) for changes in played.play(2)) == 2
  own = by_type(raw_units.make_units(view_of(played)))
  (product,) = own[18][0].orders
  loops = int(played.rules.products.loops[played.rules.types.local("SCV")])
  assert product.ability_id == 524 and product.progress == pytest.approx(16 / loops)
  first, second = own[45][0].orders
  assert (first.ability_id, second.ability_id) == (16, 23)
  assert [(order.target_world_space_pos.x, order.target_world_space_pos.y)
          for order in (first, second)] == [(12, 13), (2, 3)]


@pytest.mark.parametrize("realistic", [True, False])
def test_larvae_are_units_on_realistic_maps(realistic):
  """Beside their hatchery, with tags that name it."""
  rules = engine.rules_of("default")
  shape = (2, rules.tier.structures)
  larvae, kind, x, y = (np.zeros(shape, np.float32) for _ in range(4))
  larvae[0, 1], kind[0, 1], x[0, 1], y[0, 1] = 3, rules.types.local("Hatchery"), -4, 2
  larvae[0, 2] = 2  # of a hatchery that is gone
  played = SimpleNamespace(rules=rules, world=world.make_world(rules, 0),
                           battlefield=SimpleNamespace(realistic=realistic))
  frame = SimpleNamespace(state=SimpleNamespace(
    larvae=larvae.astype(np.int32), kind=kind.astype(np.int32), x=x, y=y))
  found = list(raw_units._larvae(raw_units.View(played, frame, 0, (), SCREEN)))
  if not realistic:
    assert found == []
    return
  assert [unit.tag for unit in found] == roster.larva_tags(rules, 0, 1, 3)
  assert {roster.larva_structure(rules, 0, unit.tag) for unit in found} == {1}
  assert [(unit.pos.x, unit.pos.y) for unit in found] == [(19.25, 19), (19.75, 19), (20.25, 19)]
  assert {(unit.unit_type, unit.owner, unit.health) for unit in found} == {(151, 1, 25)}


@pytest.mark.parametrize("realistic, places", [
  (False, [(16, 80), (80, 16), (15, 80)]), (True, [(24.5, 87.5), (87.5, 24.5), (23, 88)])])
def test_starting_town_halls_are_shown_in_the_middle_of_a_cell(realistic, places):
  """Where clients compute the base; structures elsewhere are shown where they are."""
  rules = engine.rules_of("large")
  played = SimpleNamespace(rules=rules, world=world.make_world(rules, 0, realistic),
                           battlefield=SimpleNamespace(realistic=realistic))
  kind = np.full(3, rules.types.local("Hatchery"))
  x, y = np.array([-32, 32, -33], np.float32), np.array([-32, 32, -32], np.float32)
  view, middle = raw_units.View(played, None, 0, (), SCREEN), 56 if realistic else 48
  assert [raw_units._shown_place(view, *one) for one in zip(kind, x, y, strict=True)] == [
    (place[0] - middle, middle - place[1]) for place in places]
  found = raw_units._points(view, kind, x, y)
  assert [(point.x, point.y) for point in found] == places
  unit = rules.types.local("Drone")
  assert raw_units._shown_place(view, unit, np.float32(-32), np.float32(-32)) == (-32, -32)


def test_types_are_the_real_games_and_back(played):
  for kind, name in enumerate(played.rules.types.names[1:], 1):
    assert raw_units.local_type(played, raw_units.unit_type(played, kind)) == kind, name
  assert raw_units.unit_type(played, played.rules.types.local("Marine")) == 48
  assert [raw_units.local_type(played, number) for number in (0, 105, 10 ** 6)] == [0, 0, 0]
