"""Statistics of unit types against numbers of the game."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.step import combat
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.default_games import LOCAL, RULES, TYPES


def test_tables_have_the_games_numbers():
  types_ = mini.RULES.types
  assert (types_.health[mini.MARINE], types_.health[mini.HALL]) == (45, 1500)
  # 6, minus armour; 10, and 10 more against armoured; 8, and 6 more against light.
  marauder, hellion = mini.LOCAL["Marauder"], mini.LOCAL["Hellion"]
  attackers = jnp.array([[mini.MARINE, marauder, hellion]] * 2)
  targets = jnp.array([[mini.MARINE, marauder, hellion, mini.BARRACKS]] * 2)
  damage = combat.damage(
    mini.RULES, combat.volley(mini.RULES, types_.ground, attackers, None), targets,
    jnp.asarray(types_.armour)[targets][:, None])
  np.testing.assert_array_equal(damage[0], [[6, 5, 6, 5], [10, 19, 10, 19], [14, 7, 14, 7]])
  assert mini.RULES.products.loops[mini.MARINE] == 134  # 400 loops at tempo 3
  assert types_.speed[mini.MARINE] * 4 == 2.25  # four ticks are a second
  np.testing.assert_array_equal(np.flatnonzero(types_.fighter), [mini.MARINE, marauder, hellion])


def test_tables_have_well_known_numbers():
  """Of patch 4.10."""
  cost = {name: (int(RULES.products.minerals[i]), int(RULES.products.vespene[i]))
          for name, i in LOCAL.items()}
  assert cost["Marine"] == (50, 0) and cost["SiegeTank"] == (150, 125)
  assert cost["Stalker"] == (125, 50) and cost["Immortal"] == (275, 100)
  assert cost["Zergling"] == (50, 0) and cost["Mutalisk"] == (100, 100)
  assert cost["Hatchery"] == (300, 0)  # plus the Drone
  assert cost["OrbitalCommand"] == (150, 0)  # the difference to its Command Center
  assert (TYPES.health[LOCAL["Zealot"]], TYPES.shield[LOCAL["Zealot"]]) == (100, 50)
  assert TYPES.takes_food[LOCAL["Zergling"]] == 1  # in halves
  zergling = LOCAL["Zergling"]
  assert RULES.products.takes_food[zergling] == 2 == RULES.products.brood[zergling]
  assert TYPES.gives_food[LOCAL["Pylon"]] == 16 and TYPES.gives_food[LOCAL["Hatchery"]] == 12
  assert RULES.products.loops[LOCAL["SupplyDepot"]] == 160  # 480 loops at tempo 3
  sieged = LOCAL["SiegeTankSieged"]
  assert (TYPES.ground.damage[sieged], TYPES.ground.range[sieged], TYPES.splash[sieged]) == (
    40, 13, 1.25)
  assert not TYPES.ground.damage[LOCAL["Phoenix"]] and TYPES.air.damage[LOCAL["Phoenix"]] == 5
