"""Look-ups in a state against direct counts."""

import numpy as np

from starleague.environments.skirmish.rules.state import queries
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import default_games
from tests.environments.skirmish.mini_games import BARRACKS, HALL, LOCAL, RULES, SCV, N, R, S
from tests.environments.skirmish.places import GEYSER, TERRAN
from tests.environments.skirmish.states import first


def built(unfinished):
  state = first(RULES)
  state.kind[0, 1], state.unfinished[0, 1] = BARRACKS, unfinished
  return state


def test_unfinished_structures_count_only_where_asked():
  state = built(8)
  np.testing.assert_array_equal(queries.finished_kind(RULES, state)[0], [HALL] + [0] * 5)
  np.testing.assert_array_equal(queries.ready_kind(RULES, state)[0, S:], state.kind[0, S:])
  np.testing.assert_array_equal(queries.is_finished(RULES, state)[0], np.arange(N) != 1)
  assert queries.type_counts(RULES, state, finished=False)[0, BARRACKS] == 1
  assert queries.type_counts(RULES, state, finished=True)[0, BARRACKS] == 0
  assert np.flatnonzero(queries.finished_types(RULES, state)[0]).tolist() == [HALL]
  state = built(0)
  counts = np.bincount(state.kind[0], minlength=len(LOCAL))
  counts[0] = 0
  np.testing.assert_array_equal(queries.type_counts(RULES, state, finished=True)[0], counts)
  assert set(np.flatnonzero(queries.present_types(RULES, state.kind)[0])) == {HALL, BARRACKS, SCV}


def test_an_orbital_command_counts_as_a_command_center():
  rules = default_games.RULES
  state = first(rules, (TERRAN, TERRAN))
  orbital, hall = rules.types.local("OrbitalCommand"), rules.types.local("CommandCenter")
  state.kind[0, 0] = orbital
  found = queries.finished_types(rules, state)
  assert set(np.flatnonzero(found[0])) == {hall, orbital}
  assert np.flatnonzero(found[1]).tolist() == [hall]


def test_resources_of_the_own_half_come_first():
  state = first(RULES)
  x, y = queries.resource_positions(RULES, state.side)
  np.testing.assert_array_equal(np.stack([x[0, :R // 2], y[0, :R // 2]], 1), RULES.tier.patches)
  np.testing.assert_array_equal(x[0], -x[1])
  patches = np.array([[1, 2], [3, 4]])
  np.testing.assert_array_equal(queries.both_halves(patches), [[1, 2, 3, 4], [3, 4, 1, 2]])


def test_workers_are_counted_at_their_resource():
  state = first(RULES)
  state.orders.target[0, :4] = [0, 0, 5, 2]
  state.orders.verb[0, 3] = constants.MOVE
  counts = queries.harvester_counts(RULES, state)
  np.testing.assert_array_equal(counts[0], np.bincount([0, 0, 5], minlength=R))


def test_a_town_hall_serves_the_resources_of_its_base():
  served = np.asarray(queries.served_resources(RULES, first(RULES)))
  np.testing.assert_array_equal(served[0, 0], np.arange(R) < 4)
  assert not served[:, 1:].any()


def test_a_geyser_is_tapped_by_a_finished_gas_structure_only():
  rules = default_games.RULES
  state = first(rules, (TERRAN, TERRAN))
  state.kind[0, 1] = rules.types.local("Refinery")
  state.x[0, 1], state.y[0, 1] = rules.tier.patches[GEYSER]
  assert np.flatnonzero(queries.tapped_geysers(rules, state)[0]).tolist() == [GEYSER]
  state.unfinished[0, 1] = 8
  assert not np.any(queries.tapped_geysers(rules, state))


def test_combat_shield_gives_marines_ten_hit_points():
  rules = default_games.RULES
  state = first(rules, (TERRAN, TERRAN))
  state.upgrades[0, default_games.UPGRADE["CombatShield"]] = True
  marine, marauder = (rules.types.local(name) for name in ("Marine", "Marauder"))
  kind = np.array([[marine, marauder]] * 2)
  np.testing.assert_array_equal(queries.max_health(rules, state, kind), [[55, 125], [45, 125]])
  assert queries.upgrade_bonuses(RULES, first(RULES)) is None
  assert queries.bonus(None, "damage", kind) == 0.0
