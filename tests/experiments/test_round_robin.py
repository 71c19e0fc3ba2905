"""A tournament from the command line to its page."""

import csv

import numpy as np
import pytest

from starleague.environments.skirmish.bots import tournament
from starleague.experiments import round_robin
from tests.experiments.launch import launch, refusal


def test_tables_are_printed_and_written(tmp_path, monkeypatch, capsys):
  """The games themselves are replaced: the first player always wins."""
  def play(fixtures, seed, *, tier):
    count = len(fixtures.map_index)
    return tournament.Outcomes(np.zeros(count, np.int32), np.full(count, 4000, np.int32))

  monkeypatch.setattr(tournament, "play", play)
  assert launch(round_robin, "--entrants", "L0,L1,L2", "--apart", "1", "--games_a_kind", "1",
                "--tables_folder", tmp_path / "tables") is None
  output = capsys.readouterr().out
  assert "**All**" in output and "**Zerg against Zerg**" in output
  assert "games=36 draws=0.00 game_loops=4000" in output  # 2 pairs, 3 races, 3 maps, 2 sides
  rows = list(csv.DictReader((tmp_path / "tables" / "round_robin.csv").open()))
  assert {"races": "All", "row": "L0", "column": "L1", "games": "18", "points": "18"} in rows
  assert "Round robin" in (tmp_path / "tables" / "round_robin.html").read_text()


@pytest.mark.parametrize(("words", "message"), [
  (["--tables_folder="], "--tables_folder: expected a folder, found ''"),
  (["--tables_folder=file"], "--tables_folder: file cannot be made: File exists"),
  (["--tables_folder=/proc/none/x"],
   "--tables_folder: /proc/none/x cannot be made: No such file or directory"),
  (["--tier="], "--tier: expected one of mini, default, large, found ''"),
  ([f"--games_a_kind={10 ** 30}"], "flag --games_a_kind=1"),
])
def test_wrong_command_lines_are_refused_before_the_games(words, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(tournament, "play", lambda *_, **__: pytest.fail("played"))
  (tmp_path / "file").write_text("")
  assert refusal(round_robin, *words).startswith(f"error: {message}")
