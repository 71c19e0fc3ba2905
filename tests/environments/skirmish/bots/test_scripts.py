"""Scripted players as data."""

import pytest

from starleague.environments.skirmish.bots import scripts


def test_unknown_names_are_rejected():
  found = scripts.indices_of(["L0", "macro"], "default")
  assert [scripts.names_of("default")[i] for i in found] == ["L0", "macro"]
  with pytest.raises(ValueError, match="player 'nobody': expected one of passive, .* in tier mini"):
    scripts.indices_of(["nobody"], "mini")


def test_names_may_be_restricted_or_extended():
  scripts.check_names(["rusher", "agent"], "mini", (*scripts.names_of("mini"), "agent"))
  with pytest.raises(ValueError, match="player 'rusher': expected one of passive in tier mini"):
    scripts.check_names(["rusher"], "mini", ("passive",))
