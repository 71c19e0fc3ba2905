"""Systems are found by name; each has a title, a config and options that fit its dataclasses."""

import dataclasses

import pytest

from starleague.common.errors import UserError
from starleague.companions import registry
from starleague.companions.options import RunOptions


@pytest.mark.parametrize("name", registry.systems())
def test_an_entry_is_complete(name):
  entry = registry.find(name)
  assert entry.name == name and ":" in entry.title
  RunOptions(**entry.options)
  assert dataclasses.is_dataclass(entry.config) and entry.config.__dataclass_params__.frozen
  entry.config()


def test_an_unknown_system_names_the_nearest():
  with pytest.raises(UserError, match="system 'impla' does not exist; the nearest is 'impala'"):
    registry.find("impla")
