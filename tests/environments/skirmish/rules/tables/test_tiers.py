"""The sizes of the tiers."""

from starleague.environments.skirmish.rules.tables import tiers


def test_tiers_have_slots_for_every_race():
  for name, sizes in tiers.TIERS.items():
    rows = 2 * sizes.slots + sizes.resources
    assert rows <= {"mini": 64, "default": 192, "large": 384}[name]
    assert sizes.slots == {"mini": 24, "default": 64, "large": 128}[name]
    # Zerglings take half a food each: `supply.free_unit_slots` limits those.
    assert sizes.units >= sizes.food_cap
