"""Computer players of each difficulty and build are scripted players of each tier."""

import pytest

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.game.opponents import make_bot, script_name
from starleague.environments.skirmish.bots import scripts


@pytest.mark.parametrize("difficulty, build, name", [
  (sc_pb.VeryEasy, sc_pb.RandomBuild, "L1"), (sc_pb.Hard, sc_pb.RandomBuild, "L5"),
  (sc_pb.CheatInsane, sc_pb.RandomBuild, "L10"), (sc_pb.Medium, sc_pb.Rush, "rush_quarter"),
  (sc_pb.Hard, sc_pb.Macro, "macro_half"), (sc_pb.VeryHard, sc_pb.Power, "siege"),
  (sc_pb.CheatInsane, sc_pb.Air, "air"), (99, 99, "L1")])
def test_difficulty_and_build_choose_the_script(difficulty, build, name):
  assert script_name("default", difficulty, build) == name


@pytest.mark.parametrize("tier", ["mini", "default", "large"])
def test_every_computer_player_is_a_script(tier):
  for difficulty in sc_pb.Difficulty.values():
    for build in sc_pb.AIBuild.values():
      bot = make_bot(tier, difficulty, build)
      assert scripts.names_of(tier)[bot.script] == script_name(tier, difficulty, build)


@pytest.mark.parametrize("tier", ["mini", "default", "large"])
def test_the_difficulty_alone_decides_the_income(tier):
  for name, difficulty in sc_pb.Difficulty.items():
    expected = 150 if name in ("CheatMoney", "CheatInsane") else 100
    for build in sc_pb.AIBuild.values():
      assert make_bot(tier, difficulty, build).income == expected


def test_a_build_has_no_effect_at_mini():
  for difficulty in sc_pb.Difficulty.values():
    assert len({make_bot("mini", difficulty, build) for build in sc_pb.AIBuild.values()}) == 1


def test_cheating_levels_earn_more():
  income = [make_bot("default", difficulty, build).income for difficulty, build in (
    (sc_pb.VeryHard, sc_pb.Rush), (sc_pb.CheatVision, sc_pb.Rush), (sc_pb.CheatMoney, sc_pb.Rush),
    (sc_pb.CheatInsane, sc_pb.RandomBuild))]
  assert income == [100, 100, 150, 150]
