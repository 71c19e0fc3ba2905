"""The table of players' economies."""

import re

import pytest

from starleague.agent import config as agent_config
from starleague.experiments import economy
from tests.data.games import recorded_games
from tests.experiments.launch import launch, refusal


@pytest.fixture
def folder(tmp_path):
  """Two games of Terran; the steps of row 0 are at the loops 0 to 60, with 100 a step."""
  return recorded_games.write(tmp_path / "games", agent_config.mini(), [60, 20])


def test_rows_are_players_and_results_and_means_are_of_lasting_games(folder, capsys):
  assert launch(economy, "--dataset", folder, "--at_seconds", "0,1,2,3") is None
  table = capsys.readouterr().out.splitlines()
  assert table[2] == "| player | race | games | 0 s | 1 s | 2 s | 3 s |"
  # Game loops 22, 45 and 67. Only row 0 begins at loop 0: row 2, at 2000, won too.
  assert table[4:] == [
    "| demo_2000 | Terran | 2 won | 0 1, 2/3, 5 4 (1) | 2200 2201, 2202/2203, 2205 2204 (1) | "
    "4500 4501, 4502/4503, 4505 4504 (1) |  |",
    "| demo_2000 | Terran | 2 lost |  |  |  |  |"]


def test_results_may_share_a_row(folder, capsys):
  assert launch(economy, "--dataset", folder, "--at_seconds", "1", "--noby_result") is None
  assert capsys.readouterr().out.splitlines()[4:] == [
    "| demo_2000 | Terran | 4 | 2200 2201, 2202/2203, 2205 2204 (1) |"]


@pytest.mark.parametrize("words, message", [
  (("--names", "macro"), "--names: expected some of demo_2000, the players of .*; found 'macro'"),
  (("--names=",), "--names: expected some of demo_2000, the players of .*; found ''"),
  (("--at_seconds", "60,x"),
   "--at_seconds: expected different integers, as 60,120; found '60,x'"),
  (("--at_seconds", "60,120,060"), "expected different integers, as 60,120; found '60,120,060'"),
  (("--at_seconds=",), "expected different integers, as 60,120; found ''"),
])
def test_wrong_input_is_one_line(folder, words, message):
  assert re.search(message, refusal(economy, "--dataset", folder, *words))


@pytest.mark.parametrize("words", [(), ("--names", "student")])
def test_a_dataset_without_games_is_one_line(words, tmp_path):
  folder = recorded_games.write(tmp_path / "games", agent_config.mini(), [])
  assert refusal(economy, "--dataset", folder, *words) == (
    f"error: {folder}: expected recorded games, found none; record some with "
    "starleague.experiments.demonstrate")


def test_a_missing_dataset_is_one_line(tmp_path):
  assert str(tmp_path / "none") in refusal(economy, "--dataset", tmp_path / "none")
