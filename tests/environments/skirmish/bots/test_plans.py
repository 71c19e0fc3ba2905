"""Plans can be carried out by their race."""

import numpy as np
import pytest

from starleague.environments.skirmish.bots import plans, scripts
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import default_games, mini_games, technology

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


@pytest.mark.parametrize("rules", [default_games.RULES, technology.RULES],
                         ids=["default", "large"])
def test_plans_build_what_their_upgrades_require(rules):
  """A required building's own requirements are built first."""
  products, y = rules.products, len(rules.types.names)
  found = {}
  for strategy, race, plan in DEFAULT:
    buildings = scripts._with_tech_labs(rules, plan).buildings
    waiting, built = [rules.types.local(name) for name, *_ in buildings], set()
    while waiting:
      built.add(local := waiting.pop())
      waiting += {products.requirement[local]} - built - {0}
    for name in plan.upgrades:
      upgrade = y + rules.upgrades.names.index(name)
      for needed in {products.producer[upgrade], products.requirement[upgrade]} - {0} - built:
        found[strategy, race, name] = rules.types.names[needed]
  assert found == {}


def test_every_strategy_has_a_plan_for_each_race():
  for name, strategy in (*plans.STRATEGIES.items(), *plans.SAFE.items()):
    assert tuple(strategy) == constants.RACES, name
    assert all(plan.attack < plans.NEVER for plan in strategy.values())
  assert all(plan.attack == plans.NEVER for plan in plans.ECONOMY.values())
