"""Every number of a system has a range, which is checked by the key of the command line."""

import dataclasses
import math

import pytest

from starleague.common.errors import UserError
from starleague.companions import ranges, registry
from starleague.companions.options import RunOptions

SYSTEMS = {name: entry.config for name, entry in registry.systems().items()}
BELOW_OR_ABOVE = {int: (-1, 2**31), float: (-1.0, math.inf, math.nan)}
NUMBERS = [(owner, field) for owner in (RunOptions, *SYSTEMS.values())
           for field in dataclasses.fields(owner) if field.type in BELOW_OR_ABOVE]


def make(owner, **values):
  return owner(**({"task": "catch"} if owner is RunOptions else {}), **values)


@pytest.mark.parametrize("owner, field", NUMBERS, ids=lambda each: getattr(each, "name", None))
def test_every_number_is_checked(owner, field):
  key = ranges.key_of(make(owner), field.name)
  assert key == (field.name if owner is RunOptions else
                 f"{owner.__module__.rpartition('.')[2]}.{field.name}")
  for value in BELOW_OR_ABOVE[field.type]:
    with pytest.raises(UserError) as error:
      make(owner, **{field.name: value})
    assert str(error.value).startswith(f"{key}: found {value}, expected a number ")


def test_every_range_is_of_a_number():
  used = {name for _, field in NUMBERS for name in (
    field.name, *(f"{system}.{field.name}" for system in SYSTEMS))}
  assert set(ranges.RANGES) <= used
  for key in ranges.RANGES:
    system, _, name = key.rpartition(".")
    assert not system or name in {field.name for field in dataclasses.fields(SYSTEMS[system])}


@pytest.mark.parametrize("system, values, message", [
  ("impala", {"size": 0}, "impala.size: found 0, expected a number in [1, 2147483647]"),
  ("impala", {"lstm": -1}, "impala.lstm: found -1, expected a number in [0, 2147483647]"),
  ("impala", {"discount": 5.0}, "impala.discount: found 5.0, expected a number in [0, 1]"),
  ("impala", {"entropy_cost": math.inf}, "impala.entropy_cost: found inf, expected a number at "),
  ("ftw", {"size": -1}, "ftw.size: found -1, expected a number in [1, 2147483647]"),
  ("ftw", {"correction": "all"}, "ftw.correction: found 'all', expected one of vtrace, "),
  ("r2d2", {"lstm": 0}, "r2d2.lstm: found 0, expected a number in [1, 2147483647]"),
  ("merlin", {"lstm": 0}, "merlin.lstm: found 0, expected a number in [1, 2147483647]"),
  ("coma", {"epsilon": 1.0}, "coma.epsilon: found 1.0, expected a number in [0, 1)"),
  ("relational", {"heads": 0}, "relational.heads: found 0, expected a number in [1, 2147483647]"),
  ("relational", {"blocks": -1}, "relational.blocks: found -1, expected a number in [0, "),
])
def test_values_out_of_range_are_refused(system, values, message):
  with pytest.raises(UserError) as error:
    SYSTEMS[system](**values)
  assert str(error.value).startswith(message) and "\n" not in str(error.value)


@pytest.mark.parametrize("system, values", [
  ("impala", {"lstm": 0, "discount": 1.0, "entropy_cost": 0.0}), ("relational", {"blocks": 0}),
  ("r2d2", {"burn_in": 0, "epsilon": 1.0})])
def test_bounds_are_valid(system, values):
  found = SYSTEMS[system](**values)
  assert {name: getattr(found, name) for name in values} == values
