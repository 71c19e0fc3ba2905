"""Sites of scripted players' buildings."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.skirmish.bots import sites, views
from starleague.environments.skirmish.rules.interface import acting
from starleague.environments.skirmish.rules.tables import tables
from tests.environments.skirmish import default_games
from tests.environments.skirmish.mini_games import BARRACKS, HALL, RULES
from tests.environments.skirmish.places import GEYSER, TERRAN
from tests.environments.skirmish.states import first, on_device


def test_sites_keep_their_distance_from_structures_and_edges():
  view = views.make_view(RULES, first(RULES), jnp.int32(0))
  found = 0
  for seed in range(3):
    fits, x, y = sites.site(RULES, jax.random.key(seed), view, jnp.int32(BARRACKS))
    found += bool(fits)
    radius = RULES.types.radius[BARRACKS]
    apart = np.hypot(x - RULES.tier.home[0], y - RULES.tier.home[1])
    assert apart >= radius + RULES.types.radius[HALL] + sites.PASSAGE - 1e-4
    assert max(abs(float(x)), abs(float(y))) + radius + 0.5 <= RULES.half
  assert found == 3


@pytest.mark.parametrize("location_size", [32, 128])
@pytest.mark.parametrize("race, hall", [
  ("terran", "CommandCenter"), ("zerg", "Hatchery"), ("protoss", "Nexus")])
def test_every_race_can_expand_with_locations_of_any_size(location_size, race, hall):
  """A place is checked where its cell puts the structure, without room for rounding."""
  rules = tables.make_rules("default", 168, 32, location_size, 12)
  product, race_index = jnp.int32(rules.types.local(hall)), types.RACES.index(race)
  for ground, player in itertools.product(range(3), range(2)):
    state = on_device(first(rules, (race_index, race_index), ground))
    view = views.make_view(rules, state, jnp.int32(player))
    fits, x, y = sites.site(rules, jax.random.key(0), view, product)
    assert fits
    cell = acting.place_to_location(rules, x, y)
    np.testing.assert_array_equal(acting.location_to_place(rules, cell), (x, y))
    home = view.side * np.array(rules.tier.homes[1])
    assert max(abs(home - np.array([x, y]))) <= rules.tier.map_size / location_size / 2 + 1e-4


def test_a_player_without_room_has_no_site():
  view = views.make_view(RULES, first(RULES), jnp.int32(0))
  # Six town halls over the home corner leave no room for candidates around the home.
  x, y = (values.reshape(-1) for values in np.meshgrid([-8.5, -4.5, -0.5], [-8.0, -3.0]))
  crowded = view._replace(kind=view.kind.at[:6].set(HALL), x=view.x.at[:6].set(x),
                          y=view.y.at[:6].set(y))
  fits, _, _ = sites.site(RULES, jax.random.key(0), crowded, jnp.int32(BARRACKS))
  assert not fits
  assert sites.site(RULES, jax.random.key(0), view, jnp.int32(BARRACKS))[0]


def test_gas_structures_go_to_a_free_geyser_of_an_own_base():
  rules = default_games.RULES
  state = first(rules, (TERRAN, TERRAN))
  view = views.make_view(rules, on_device(state), jnp.int32(0))
  found, geyser = sites.free_geyser(rules, view)
  assert bool(found) and int(geyser) == GEYSER
  state.kind[0, 1] = rules.types.local("Refinery")
  state.x[0, 1], state.y[0, 1] = state.side[0] * np.array(rules.tier.patches[GEYSER])
  found, _ = sites.free_geyser(rules, views.make_view(rules, on_device(state), jnp.int32(0)))
  assert not found
