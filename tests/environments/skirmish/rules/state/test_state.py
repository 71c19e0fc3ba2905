"""The arrays of a state: shapes, dtypes, and those that a tier leaves out."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.state import state as states
from starleague.environments.skirmish.rules.tables.constants import IDLE
from tests.environments.skirmish import default_games, mini_games
from tests.environments.skirmish.states import first

OPTIONAL = {"shield": "slots", "energy": "slots", "calm": "slots", "larvae": "structures",
            "larva_loops": "structures", "injected": "structures", "boosted": "structures",
            "stimmed": "units", "cargo_gas": "units"}


@pytest.mark.parametrize(("rules", "kept"), [
  (mini_games.RULES, False), (default_games.RULES, True)])
def test_arrays_that_a_tier_does_not_need_are_empty(rules, kept):
  state = first(rules)
  for name, size in OPTIONAL.items():
    assert getattr(state, name).shape == (2, getattr(rules.tier, size) * kept), name
  tier = rules.tier
  assert state.kind.shape == state.x.shape == state.was_selected.shape == (2, tier.slots)
  assert state.cooldown.shape == (2, tier.armed + tier.units)
  assert state.was_targeted.shape == (2, 2 * tier.slots + tier.resources)
  assert state.upgrades.shape == (2, len(rules.upgrades.names))
  assert state.memory.visible.shape == (2, rules.map_size, rules.map_size // 32)


def test_idle_orders_and_missing_commands_have_the_states_shapes():
  rules = mini_games.RULES
  state, orders, commands = (
    first(rules), states.idle_orders(rules), states.no_commands(rules))
  for found, expected in ((orders, state.orders), (commands, state.commands)):
    for name, one, other in zip(found._fields, found, expected, strict=True):
      assert (one.shape, one.dtype) == (other.shape, other.dtype), name
  assert not np.any(orders.verb != IDLE) and not np.any(commands.function)
  np.testing.assert_array_equal(commands.repeat, [1, 1])
