"""Constants against the real game's rates and the tables."""

import pytest

from starleague.agent import types
from starleague.environments.skirmish.rules.tables import constants, unit_tables

ROWS = {row["name"]: row for row in unit_tables.read_rows("units.csv")}


def test_steps_are_eight_loops_of_two_ticks():
  assert (constants.LOOPS_PER_STEP, constants.LOOPS_PER_TICK, constants.TICKS_PER_STEP) == (8, 4, 2)


@pytest.mark.parametrize(("rate", "seconds", "amount"), [
  (constants.SHIELD_PER_LOOP, 10, 20), (constants.ENERGY_PER_LOOP, 80, 45),
  (constants.HEAL_PER_LOOP, 2, 18)])
def test_recovery_has_the_games_rates(rate, seconds, amount):
  assert rate * constants.LOOPS_PER_SECOND * seconds == pytest.approx(amount)


def test_durations_are_whole_loops_of_the_games_seconds():
  """At "normal" speed."""
  second = constants.LOOPS_PER_SECOND
  assert (constants.STIM_LOOPS / second, constants.LARVA_LOOPS / second,
          constants.SHIELD_DELAY / second, constants.BOOST_LOOPS / second,
          constants.INJECT_LOOPS / second) == (11, 11, 10, 20, 29)


def test_names_are_those_of_the_tables():
  assert {row["race"] for row in ROWS.values()} == set(constants.RACES)
  assert {name.lower() for name in constants.RACES} <= set(types.RACES)
  columns = ("ground_bonus_against", "air_bonus_against")
  bonuses = {row[column] for row in ROWS.values() for column in columns}
  assert bonuses - {""} <= set(constants.ATTRIBUTES)
  effects = {row["effect"] for row in unit_tables.read_rows("upgrades.csv")}
  assert effects - {""} == set(constants.EFFECTS)  # an ability needs the Cloaking Field
  for name, cost in constants.STIM_COST.items():
    assert 0 < cost < float(ROWS[name]["health"])
  # New units can use their ability at once. Those of Sentries cost more, but not too much.
  costs = constants.ENERGY_COST
  assert max(costs[ability] for ability in (constants.SCAN, constants.BOOST, constants.INJECT)) <= (
    constants.START_ENERGY)
  assert max(costs.values()) <= float(ROWS["Sentry"]["energy"])
