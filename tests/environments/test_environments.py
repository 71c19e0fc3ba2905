"""Environments by name."""

import pytest

from starleague.environments import base, make_environment


def test_make_environment_makes_skirmish():
  environment = make_environment("skirmish", tier="mini", max_entities=64)
  assert isinstance(environment, base.Environment)


@pytest.mark.parametrize("name, sizes, message", [
  ("sc3", {}, r"unknown environment 'sc3': choose one of \['skirmish'\]"),
  ("skirmish", {"tier": "huge"}, "unknown tier 'huge'"),
  ("skirmish", {"max_entities": 8}, "max_entities is 8")])
def test_make_environment_rejects_unknown_names_and_sizes(name, sizes, message):
  with pytest.raises(ValueError, match=message):
    make_environment(name, **sizes)
