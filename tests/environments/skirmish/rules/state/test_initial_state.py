"""Initial states: positions, types and contents."""

import numpy as np

from starleague.agent import types
from tests.environments.skirmish import default_games
from tests.environments.skirmish.mini_games import HALL, RULES, SCV, S
from tests.environments.skirmish.places import PROTOSS, TERRAN, ZERG
from tests.environments.skirmish.states import first


def test_each_player_has_a_town_hall_and_four_workers_at_its_home():
  state = first(RULES)
  np.testing.assert_array_equal(state.kind[:, :S], [[HALL, 0, 0, 0, 0, 0]] * 2)
  np.testing.assert_array_equal(state.kind[:, S:S + 5], [[SCV] * 4 + [0]] * 2)
  np.testing.assert_array_equal(state.x[:, 0], [-6.5, 6.5])
  np.testing.assert_array_equal(state.minerals, [50, 50])
  np.testing.assert_array_equal(state.patches, np.full((2, 6), 900))
  assert not state.memory.seen.any() and (state.memory.patches == 900).all()
  assert int(state.winner) == -1
  # Workers are spread by half a unit around a place between the town hall and its patches.
  assert np.abs(state.x[0, S:S + 4] - (-6.5 - 1.95)).max() <= 0.5


def test_swapped_sides_rotate_the_positions():
  one, other = first(RULES), first(RULES, swap_sides=True)
  np.testing.assert_array_equal(one.x, -other.x)
  np.testing.assert_array_equal(one.y, -other.y)
  np.testing.assert_array_equal(one.kind, other.kind)
  np.testing.assert_array_equal(one.x[0, S:], -one.x[1, S:])


def test_races_that_a_tier_lacks_become_its_first():
  assert first(RULES, races=(types.RACES.index("zerg"), 1)).race.tolist() == [0, 0]


def test_each_race_starts_with_its_own_types():
  rules = default_games.RULES
  s = rules.tier.structures
  for race, hall, worker, larvae in (
      (TERRAN, "CommandCenter", "SCV", 0), (PROTOSS, "Nexus", "Probe", 0),
      (ZERG, "Hatchery", "Drone", 3)):
    state = first(rules, (race, TERRAN))
    assert rules.types.names[state.kind[0, 0]] == hall
    names = [rules.types.names[kind] for kind in state.kind[0, s:] if kind]
    assert names == [worker] * 6 + ["Overlord"] * (race == ZERG)
    assert state.larvae[0].tolist() == [larvae] + [0] * (s - 1)
    assert state.shield[0, 0] == rules.types.shield[rules.types.local(hall)]
