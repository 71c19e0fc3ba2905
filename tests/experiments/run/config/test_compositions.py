"""Compositions of a league, as text."""

import pytest

from starleague.common.errors import UserError
from starleague.experiments.run.config import compositions, settings


def test_three_races_are_the_published_league():
  entries = [f"{race}:1:1:2" for race in ("protoss", "zerg", "terran")]
  found = compositions.parse(entries)
  assert [player.learns for player in found].count(True) == 12
  assert [player.name for player in found if not player.learns] == [
    f"{race}-main-0-0000" for race in ("protoss", "zerg", "terran")]


def test_learning_players_of_a_config():
  config = settings.complete({}, {"league.composition": "zerg:1:0:2"})
  assert compositions.learners(config) == [
    "zerg-main-0", "zerg-league_exploiter-0", "zerg-league_exploiter-1"]


def test_the_first_main_agents_are_those_of_the_compositions_first_race():
  composition = "zerg:0:1:0:1,terran:11:0:0,protoss:1:0:0,terran:0:1:1"
  config = settings.complete({}, {"league.composition": composition})
  found = compositions.first_main_agents(config)
  assert [player.name for player in found] == [f"terran-main-{number}" for number in range(11)]
  assert compositions.main_agents(config)[11:] == ["protoss-main-0"]
  config = settings.complete({}, {"league.composition": "zerg:0:1:0"})
  assert compositions.first_main_agents(config) == []


def test_exploiters_of_a_frozen_agent():
  found = compositions.parse(["terran:0:0:2:1"])
  assert [(player.name, player.learns) for player in found] == [
    ("terran-league_exploiter-0", True), ("terran-league_exploiter-1", True),
    ("terran-main-0-0000", False)]


@pytest.mark.parametrize("entries, message", [
  (["terran"], "expected RACE:MAIN_AGENTS.*found 'terran'"),
  (["random:1:1:1"], "of terran, zerg, protoss, found 'random:1:1:1'"),
  (["terran:1:1:x"], "found 'terran:1:1:x'"),
  (["terran:1:1:1:1:1"], "found 'terran:1:1:1:1:1'"),
])
def test_invalid_compositions(entries, message):
  with pytest.raises(UserError, match=message):
    compositions.parse(entries)
