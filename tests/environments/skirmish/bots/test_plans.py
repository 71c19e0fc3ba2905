"""Plans can be carried out by their race."""

import numpy as np
import pytest

from starleague.environments.skirmish.bots import plans
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import default_games, mini_games

DEFAULT = [(name, race, plan) for name, strategy in {
  "economy": plans.ECONOMY, "weak": plans.WEAK, **plans.STRATEGIES,
  **{f"safe_{name}": by_race for name, by_race in plans.SAFE.items()}}.items()
  for race, plan in strategy.items()]
MINI = [("idle", "Terran", plans.IDLE), ("passive", "Terran", plans.PASSIVE),
        ("rusher", "Terran", plans.RUSHER), ("builder", "Terran", plans.BUILDER),
        *((name, "Terran", plan) for name, plan in plans.MINI_STRATEGIES.items())]


@pytest.mark.parametrize(("rules", "plan", "race"), [
  *(pytest.param(default_games.RULES, plan, race, id=f"{name}-{race}")
    for name, race, plan in DEFAULT),
  *(pytest.param(mini_games.RULES, plan, race, id=f"mini-{name}") for name, race, plan in MINI)])
def test_plans_name_what_their_race_has(rules, plan, race):
  types, tier = rules.types, rules.tier
  own = types.race == constants.RACES.index(race)
  for name, workers, fighters in plan.buildings:
    local = types.local(name)
    assert local and own[local] and types.structure[local], name
    assert 0 <= workers <= plan.most_workers and fighters >= 0
  for name, share in plan.army:
    local = types.local(name)
    assert local and own[local] and not types.structure[local] and share > 0, name
  if plan.army:
    np.testing.assert_allclose(sum(share for _, share in plan.army), 1.0)
  assert set(plan.upgrades) <= set(rules.upgrades.names)
  assert 0 <= plan.workers <= plan.most_workers <= tier.food_cap
  assert plan.reinforce <= plan.attack
  # Armed structures have slots of their own.
  armed = [types.fighter[types.local(name)] for name, _, _ in plan.buildings]
  assert sum(armed) <= tier.armed and len(armed) - sum(armed) < tier.unarmed


def test_every_strategy_has_a_plan_for_each_race():
  for name, strategy in (*plans.STRATEGIES.items(), *plans.SAFE.items()):
    assert tuple(strategy) == constants.RACES, name
    assert all(plan.attack < plans.NEVER for plan in strategy.values())
  assert all(plan.attack == plans.NEVER for plan in plans.ECONOMY.values())
