"""Available abilities: costs, requirements, queues, units under construction."""

import numpy as np
import pytest

from starleague.environments.sc2.server.game import game, roster
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.client_commands import SUCCESS, Target, issue
from starleague.environments.sc2.server.views import possible

TRAIN_SCV, TRAIN_MARINE, BUILD_BARRACKS, BUILD_FACTORY, BUILD_CENTER = 524, 560, 321, 328, 318
CANCEL, CANCEL_LAST, RETURN, RALLY = 314, 304, 296, 1


@pytest.fixture
def played():
  return game.Game(Battlefield("mini", realistic=False), (1, 1), 2)


def tags_of(played, name, player=0):
  kind = played.rules.types.local(name)
  return played.tags[player][played.state.kind[player] == kind].tolist()


def listed(played, tag, free=False, player=0):
  (found,) = possible.unit_abilities(played, player, [tag], free)
  assert len({ability.ability_id for ability in found}) == len(found)  # each id once
  return {ability.ability_id: ability.requires_point for ability in found}


def test_costs_decide_unless_they_are_ignored(played):
  (home,), worker = tags_of(played, "CommandCenter"), tags_of(played, "SCV")[0]
  assert listed(played, home) == {RALLY: True, TRAIN_SCV: False}  # 50 minerals
  assert BUILD_BARRACKS not in listed(played, worker)
  assert {BUILD_BARRACKS, BUILD_CENTER} <= set(listed(played, worker, free=True))
  assert issue(played, 0, TRAIN_SCV, [home], Target()) == SUCCESS
  played.grant(0, minerals=-50)
  played.grant(0, minerals=150)
  assert listed(played, worker)[BUILD_BARRACKS]
  assert BUILD_CENTER not in listed(played, worker)  # 400 minerals


def test_requirements_hold_even_if_costs_are_ignored(played):
  worker = tags_of(played, "SCV")[0]
  assert BUILD_FACTORY not in listed(played, worker, free=True)
  played.create(0, played.rules.types.local("Barracks"), (0.0, 0.0), 1)
  assert BUILD_FACTORY in listed(played, worker, free=True)
  (barracks,) = tags_of(played, "Barracks")
  assert TRAIN_MARINE in listed(played, barracks) and TRAIN_SCV not in listed(played, barracks)


def test_only_own_units_have_abilities(played):
  enemy = tags_of(played, "CommandCenter", 1)[0]
  assert possible.unit_abilities(played, 0, [enemy, 0, 99, -1]) == [[], [], [], []]
  assert TRAIN_SCV in listed(played, enemy, player=1)


def test_tiers_without_larvae_list_no_abilities_of_a_larva():
  """A client may send the tag of an earlier game's larva. Realistic maps show larvae as units."""
  played = game.Game(Battlefield("mini"), (1, 1), 2)
  (larva,) = roster.larva_tags(played.rules, 0, 0, 1)
  assert possible.unit_abilities(played, 0, [larva]) == [[]]


def test_a_full_queue_takes_no_more(played):
  (home,) = tags_of(played, "CommandCenter")
  played.grant(0, minerals=1000)
  results = [issue(played, 0, TRAIN_SCV, [home], Target()) for _ in range(5)]
  assert results == [SUCCESS] * 5
  list(played.play(1))
  found = listed(played, home)
  assert TRAIN_SCV not in found and CANCEL_LAST not in found  # `mini` has no such function


def test_a_load_is_returned_only_by_who_has_one(played):
  worker = tags_of(played, "SCV")[0]
  assert RETURN not in listed(played, worker)
  for _ in range(40):
    list(played.play(1))
    slot = int(np.flatnonzero(played.tags[0] == worker)[0])
    loaded = played.state.cargo[0, slot - played.rules.tier.structures] > 0
    assert (RETURN in listed(played, worker)) == loaded
    if loaded:
      return
  raise AssertionError("the worker has never carried minerals")
