"""Environments by name."""

import pytest

from starleague.agent import config
from starleague.common.errors import UserError
from starleague.environments import base, make_environment


def test_make_environment_makes_skirmish():
  environment = make_environment("skirmish", tier="mini", max_entities=64)
  assert isinstance(environment, base.Environment)


@pytest.mark.parametrize("name, sizes, message", [
  ("sc3", {}, r"unknown environment 'sc3': choose one of \['sc2', 'skirmish'\]"),
  ("skirmish", {"tier": "huge"}, "unknown tier 'huge'"),
  ("skirmish", {"max_entities": 8}, "max_entities is 8")])
def test_make_environment_rejects_unknown_names_and_sizes(name, sizes, message):
  with pytest.raises(ValueError, match=message):
    make_environment(name, **sizes)


def test_starcraft_ii_is_made_by_name():
  made = make_environment("sc2", config=config.mini(), maps=("Simple64",), bot="zerg:easy")
  assert isinstance(made, base.Environment)
  with pytest.raises(UserError, match="map: expected a ladder map"):
    make_environment("sc2", config=config.mini(), maps=("Nowhere",))
