"""A tournament from the command line to its page."""

import csv

import pytest

from starleague.common import files
from starleague.environments.skirmish.bots import tournament, tournament_files
from starleague.experiments import round_robin
from tests.experiments.launch import launch, refusal

SOURCES = tournament_files.sources()


def first_player_wins(fixtures, seed, *, tier, played, report):
  found = tournament.nothing_played(fixtures)
  return found._replace(winner=found.winner + 1, loops=found.loops + 4000)


def test_tables_are_printed_and_written(tmp_path, monkeypatch, capsys):
  """The games themselves are replaced: the first player always wins."""
  monkeypatch.setattr(tournament, "play", first_player_wins)
  assert launch(round_robin, "--entrants", "L0,L1,L2", "--apart", "1", "--games_a_kind", "1",
                "--tables_folder", tmp_path / "tables") is None
  output = capsys.readouterr().out
  assert "**All**" in output and "**Zerg against Zerg**" in output
  assert "Entropy of the first 6 units and buildings, bits: L0 0.0, L1 0.0, L2 0.0." in output
  assert "games=36 of=36 draws=0.00 game_loops=4000" in output  # 2 pairs, 3 races, 3 maps, 2 sides
  rows = list(csv.DictReader((tmp_path / "tables" / "round_robin.csv").open()))
  assert {"races": "All", "row": "L0", "column": "L1", "games": "18", "points": "18"} in rows
  assert "Round robin" in (tmp_path / "tables" / "round_robin.html").read_text()
  assert f"{SOURCES},default,0,L0,L1,zerg,zerg,river,1,0,4000" + 12 * ",0" in (
    tmp_path / "tables" / "games.csv").read_text().splitlines()


def test_tables_of_two_races_have_neither_ratings_nor_openings(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(tournament, "play", first_player_wins)
  assert launch(round_robin, "--entrants", "L0,L1", "--cross", "--games_a_kind", "1",
                "--tables_folder", tmp_path) is None
  output = capsys.readouterr().out
  assert output.count("Entropy of") == 1 and output.count("| Elo |") == 1  # those of all games
  assert output.count(" against ") == 6 + 3  # tables, and lines of races
  rows = list(csv.DictReader((tmp_path / "round_robin.csv").open()))
  for races in ("Terran against Zerg", "Zerg against Terran"):  # L0 wins, whatever its race
    assert {"races": races, "row": "L0", "column": "L1", "games": "6", "points": "6"} in rows


def test_a_folder_with_the_games_of_another_tournament_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(tournament, "play", first_player_wins)
  words = "--entrants", "L0,L1", "--games_a_kind", "1", "--tables_folder", tmp_path
  assert launch(round_robin, *words) is None
  assert refusal(round_robin, *words, "--seed", "1") == (
    f"error: {tmp_path / 'games.csv'}: line 2: expected {SOURCES},default,1,L0,L1,terran,terran,"
    f"open,0, found {SOURCES},default,0,L0,L1,terran,terran,open,0; remove the file to play the "
    "games again")


def test_a_folder_in_which_another_process_plays_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(tournament, "play", first_player_wins)
  words = "--entrants", "L0,L1", "--games_a_kind", "1", "--tables_folder", tmp_path
  with files.locked(tmp_path / ".lock"):
    assert refusal(round_robin, *words) == (
      f"error: {tmp_path}: another process plays games there: wait until it ends, or choose "
      "another --tables_folder")
  assert [path.name for path in tmp_path.iterdir()] == [".lock"]
  assert launch(round_robin, *words) is None


@pytest.mark.parametrize(("words", "message"), [
  (["--tables_folder="], "--tables_folder: expected a folder, found ''"),
  (["--tables_folder=file"], "--tables_folder: file cannot be made: File exists"),
  (["--tables_folder=/proc/none/x"],
   "--tables_folder: /proc/none/x cannot be made: No such file or directory"),
  (["--tier="], "--tier: expected one of mini, default, large, found ''"),
  ([f"--games_a_kind={10 ** 30}"], "flag --games_a_kind=1"),
  (["--entrants=L0,L11"], "--entrants: player 'L11': expected one of L0, L1,"),
  (["--entrants=L0,L0"], "--entrants: expected two or more different names, found L0,L0"),
  (["--entrants=L0,L1", "--apart=2"], "--apart: expected less than 2, the number of entrants"),
  (["--entrants=L0,L1", "--focus=L2"], "--focus: expected some of --entrants, L0,L1, found 'L2'"),
  (["--entrants=L0,L1", "--focus="], "--focus: expected some of --entrants, L0,L1, found ''"),
])
def test_wrong_command_lines_are_refused_before_the_games(words, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(tournament, "play", lambda *_, **__: pytest.fail("played"))
  (tmp_path / "file").write_text("")
  assert refusal(round_robin, *words).startswith(f"error: {message}")
