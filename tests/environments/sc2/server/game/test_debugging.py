"""State changes of debug requests: places, free slots, limits of values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.environments.sc2.server.game import debugging, game
from starleague.environments.sc2.server.game.battlefields import Battlefield


@pytest.fixture(scope="module")
def start():
  """(rules, the state of a new game of `mini`)."""
  played = game.Game(Battlefield("mini"), (1, 1), 2)
  return played.rules, jax.tree.map(jnp.asarray, played.state)


def of_kind(rules, state, player, name):
  return np.flatnonzero(np.asarray(state.kind)[player] == rules.types.local(name))


def values(state, player, slots):
  return [np.asarray(getattr(state, name))[player, slots].tolist() for name in ("x", "y", "health")]


def test_units_form_a_square_around_their_place(start):
  rules, state = start
  kind = rules.types.local("Marine")
  found = debugging.create(rules, state, 1, kind, 1.0, -2.0, 4)
  slots = of_kind(rules, found, 1, "Marine")
  x, y, health = values(found, 1, slots)
  radius = 0.375
  assert sorted(zip(x, y, strict=True)) == [
    (1 - radius, -2 - radius), (1 - radius, -2 + radius),
    (1 + radius, -2 - radius), (1 + radius, -2 + radius)]
  assert health == [45] * 4 and slots.min() >= rules.tier.structures
  assert not of_kind(rules, found, 0, "Marine").size
  assert (np.asarray(state.kind) == np.asarray(found.kind)).sum() == 2 * rules.tier.slots - 4


def test_places_stay_on_the_map(start):
  rules, state = start
  found = debugging.create(rules, state, 0, rules.types.local("Marine"), 99.0, -99.0, 1)
  x, y, _ = values(found, 0, of_kind(rules, found, 0, "Marine"))
  assert (x, y) == ([12.0], [-12.0])  # half of a map of 24


def test_free_slots_limit_the_number(start):
  rules, state = start
  workers = len(of_kind(rules, state, 0, "SCV"))
  units = debugging.create(rules, state, 0, rules.types.local("Marine"), 0.0, 0.0, 100)
  assert len(of_kind(rules, units, 0, "Marine")) == rules.tier.units - workers
  structures = debugging.create(rules, state, 0, rules.types.local("Barracks"), 0.0, 0.0, 9)
  slots = of_kind(rules, structures, 0, "Barracks")
  assert len(slots) == rules.tier.structures - 1 and slots.max() < rules.tier.structures
  assert np.asarray(structures.unfinished)[0, slots].tolist() == [0] * len(slots)
  assert values(structures, 0, slots)[2] == [1000] * len(slots)


@pytest.mark.parametrize("name, value, expected", [
  ("health", 20, 20), ("health", 0, 1), ("health", 9999, 45), ("shield", 5, None),
  ("energy", 5, None)])
def test_values_are_limited_and_others_kept(start, name, value, expected):
  rules, state = start
  slot = of_kind(rules, state, 0, "SCV")[0]
  where = np.zeros((2, rules.tier.slots), bool)
  where[0, slot] = True
  found = debugging.set_value(rules, state, where, name, value)
  if expected is None:  # `mini` has neither shields nor energy
    assert found is state
    return
  changed = np.asarray(found.health) != np.asarray(state.health)
  assert np.asarray(found.health)[0, slot] == expected
  assert changed.sum() == (expected != 45)


def test_killed_slots_are_empty(start):
  rules, state = start
  gone = np.zeros((2, rules.tier.slots), bool)
  slots = of_kind(rules, state, 1, "SCV")[:2]
  gone[1, slots] = True
  found = debugging.kill(rules, state, gone)
  assert np.asarray(found.kind)[1, slots].tolist() == [0, 0]
  assert len(of_kind(rules, found, 1, "SCV")) == len(of_kind(rules, state, 1, "SCV")) - 2
  assert len(of_kind(rules, found, 0, "SCV")) == len(of_kind(rules, state, 0, "SCV"))
  same = debugging.kill(rules, state, np.zeros_like(gone))
  jax.tree.map(np.testing.assert_array_equal, same, state)
