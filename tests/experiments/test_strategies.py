"""Wrong command lines of the play of strategies."""

import pytest

from starleague.agent import config as agent_config
from starleague.experiments import strategies
from starleague.experiments.run.config import settings
from tests.data.games import recorded_games
from tests.experiments.launch import launch, refusal

WORDS = ("--run_dir=run", "--dataset=data")


@pytest.mark.parametrize("words, message", [
  (["--match_games=3"],
   "--match_games must be even (half from each side) and at least 2, found 3."),
  (["--strategies=rush"], "--strategies: expected two or more different names, found rush"),
  (["--strategies=rush,rush"], "two or more different names, found rush,rush"),
  (["--mirror_race=zerg"], "--mirror_race: expected one of terran, those of the run's games, found "
                           "zerg"),
  ([], "data"),
])
def test_wrong_command_lines(words, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  settings.save(settings.complete({}), tmp_path / "run")
  error = launch(strategies, *WORDS, *words)
  assert message in error and error.startswith("error: ") and "\n" not in error


def test_an_output_that_cannot_be_written_is_refused_before_the_games(tmp_path, monkeypatch):
  settings.save(settings.complete({}), tmp_path / "run")
  recorded_games.write(tmp_path / "data", agent_config.mini(), [4])
  monkeypatch.setattr(strategies.strategies, "make", lambda *_: None)
  monkeypatch.setattr(strategies.strategies, "libraries", lambda *_: None)
  monkeypatch.setattr(strategies.saved_agents, "load", lambda *_: (None, 7))
  monkeypatch.chdir(tmp_path)
  assert refusal(strategies, *WORDS, "--out=.") == (
    "error: --out: expected the path of a file, found the folder '.'; add a name")
