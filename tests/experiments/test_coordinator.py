"""The coordinator's launch file: its address, its end, its errors."""

import signal
import socket
import sqlite3
import subprocess
import sys

import pytest

from starleague.common.errors import FINAL_STATUS
from starleague.league import (
  WIN,
  GameResult,
  GrpcTransport,
  LeagueClient,
  Payoff,
  Player,
  coordinator,
  open_league_file,
  players,
)

MAIN = "zerg-main-0"


def start(*arguments):
  return subprocess.Popen([sys.executable, "-m", "starleague.experiments.coordinator", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_a_signal_and_resumes(tmp_path, number):
  path = tmp_path / "league.sqlite"
  assigned = []
  for composition in (["--composition=zerg:1:1:2"], []):  # the second one resumes
    process = start(f"--league_file={path}", *composition)
    name, _, address = process.stdout.readline().strip().rpartition(" ")
    assert name == "coordinator at" and address.startswith("127.0.0.1:")
    client = LeagueClient(GrpcTransport(address, deadline_s=60.0))
    assert len(client.players()) == 5
    assigned += client.matches(MAIN, 2)
    process.send_signal(number)
    assert process.wait(HANG_S) == 0
    process.communicate()
    client.close()
  assert [each.id for each in assigned] == ["1-1", "1-2", "2-1", "2-2"]
  assert open_league_file(path).assignments() == assigned


def test_players_of_an_existing_league_get_their_own_matchmaking(tmp_path):
  path = tmp_path / "league.sqlite"
  coordinator.Coordinator(path, [Player(MAIN, players.MAIN, "zerg")]).close()
  process = start(f"--league_file={path}", f"--own_matchmaking={MAIN}=self_play")
  assert process.stdout.readline().startswith("coordinator at 127.0.0.1:")
  process.terminate()
  assert process.wait(HANG_S) == 0
  process.communicate()
  process = start(f"--league_file={path}", "--own_matchmaking=terran-main-0=self_play")
  error = process.communicate(timeout=HANG_S)[1]
  assert process.returncode == 1 and len(error.splitlines()) == 1
  assert "--own_matchmaking: " in error and "terran-main-0" in error and MAIN in error


@pytest.mark.parametrize("arguments, status, message", [
  ([], 1, "error: flag --league_file=None"),
  (["--league_file="], 1, "error: --league_file: expected a value, found ''"),
  (["--league_file={}/league.sqlite"], 1, "league.sqlite has no players: give a --composition"),
  (["--league_file={}/league.sqlite", "--lease_s=nan"], 1, "--lease_s: expected a number"),
  (["--league_file={}/text"], FINAL_STATUS, "text is not a SQLite database, or is damaged"),
  (["--league_file={}/league.sqlite", "--composition=zerg:0:1:1"], 1, "no main agent"),
  (["--league_file={}/league.sqlite", "--composition=zerg:1:0:0",
    "--own_matchmaking=zerg-main-0=best"], 1,
   "error: --own_matchmaking: the matchmaking of zerg-main-0 is 'best', expected one of"),
])
def test_wrong_input_gets_one_line(tmp_path, arguments, status, message):
  (tmp_path / "text").write_text("notes " * 500)
  process = start(*(each.format(tmp_path) for each in arguments))
  out, error = process.communicate(timeout=HANG_S)
  assert process.returncode == status and out == ""
  assert message.lower() in error.lower() and len(error.splitlines()) == 1
  assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_the_results_of_a_run_of_one_agent_stay_as_they_are(tmp_path):
  path = tmp_path / "league.sqlite"
  payoff = Payoff(path)
  payoff.record(GameResult("1", "main", "L0", WIN, 0.0))
  payoff.close()
  for composition in ([], ["--composition=zerg:1:1:2"]):
    process = start(f"--league_file={path}", *composition)
    out, error = process.communicate(timeout=HANG_S)
    assert process.returncode == FINAL_STATUS and out == "" and len(error.splitlines()) == 1
    assert f"{path}: expected the file of a league, found tables of payoff without play" in error
  assert not path.with_name("league.sqlite.lock").exists()
  with sqlite3.connect(path) as connection:
    tables = {name for name, in connection.execute(
      "SELECT name FROM sqlite_master WHERE type = 'table'")}
  assert tables == {"layout", "results", "pairs"}


def test_a_taken_port_is_named_in_one_line(tmp_path):
  with socket.socket() as taken:
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = taken.getsockname()[1]
    process = start(f"--league_file={tmp_path}/league.sqlite", "--composition=zerg:1:1:2",
                    f"--port={port}")
    error = process.communicate(timeout=HANG_S)[1]
  assert process.returncode == 1 and len(error.splitlines()) == 1
  assert f"error: Cannot listen on 127.0.0.1:{port}" in error
