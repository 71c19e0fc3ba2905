"""Scripted players as data."""

import pathlib
import re

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


@pytest.mark.parametrize("tier", ["mini", "default"])
def test_the_page_lists_every_player(tier):
  page = (pathlib.Path(__file__).resolve().parents[4] / "docs" / "skirmish.md").read_text()
  start = page.index("\n- At `mini`") if tier == "mini" else page.index("## Scripted players")
  listed = set(re.findall(r"\w+", page[start:page.index("Units at home defend", start)]))
  # Ranges stand for levels and demonstrators, suffixes for slower forms of strategies.
  missing = {re.sub("_(half|quarter)$", "", name) for name in scripts.names_of(tier)} - listed
  assert [name for name in sorted(missing) if not re.fullmatch(r"L\d+|demo_\d000", name)] == []
