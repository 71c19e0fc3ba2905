"""The coordinator's launch file: its address, its end, its errors."""

import signal
import socket
import sqlite3
import subprocess
import sys
import threading

import pytest

from starleague.common import stopping
from starleague.common.errors import FINAL_STATUS
from starleague.experiments import coordinator as experiment
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
from tests.experiments.launch import launch, refusal
from tests.processes import HANG_S

MAIN = "zerg-main-0"


def start(*arguments):
  return subprocess.Popen([sys.executable, "-m", "starleague.experiments.coordinator", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def own_stop(monkeypatch):
  """Lets a launch file in the tests' process leave the reaction to signals as it is."""
  monkeypatch.setattr(stopping, "stop_event", threading.Event)


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


def test_players_of_an_existing_league_get_their_own_matchmaking(own_stop, tmp_path):
  path = tmp_path / "league.sqlite"
  coordinator.Coordinator(path, [Player(MAIN, players.MAIN, "zerg")]).close()
  process = start(f"--league_file={path}", f"--own_matchmaking={MAIN}=self_play")
  assert process.stdout.readline().startswith("coordinator at 127.0.0.1:")
  process.terminate()
  assert process.wait(HANG_S) == 0
  process.communicate()
  error = refusal(experiment, f"--league_file={path}", "--own_matchmaking=terran-main-0=self_play")
  assert "--own_matchmaking: " in error and "terran-main-0" in error and MAIN in error


def test_main_agents_meet_the_scripted_players_of_their_league(tmp_path):
  path = tmp_path / "league.sqlite"
  for flags in (["--composition=zerg:1:1:0", "--scripted=L8,rush"], []):  # the second one resumes
    process = start(f"--league_file={path}", *flags)
    client = LeagueClient(GrpcTransport(
      process.stdout.readline().strip().rpartition(" ")[2], deadline_s=60.0))
    assert [(player.name, player.race) for player in client.players()
            if player.kind == players.SCRIPTED] == [("L8", ""), ("rush", "")]
    met = {(each.branch, each.away, each.both_learn) for each in client.matches(MAIN, 60)}
    assert {found for found in met if found[0] == "pfsp"} == {
      ("pfsp", away, False) for away in (f"{MAIN}-0000", "L8", "rush")}
    found = {each.away for each in client.matches("zerg-main_exploiter-0", 20)}
    assert found == {MAIN}
    process.terminate()
    assert process.wait(HANG_S) == 0
    process.communicate()
    client.close()


def test_a_league_file_is_required():
  process = start()
  out, error = process.communicate(timeout=HANG_S)
  assert process.returncode == 1 and out == "" and len(error.splitlines()) == 1
  assert error.startswith("error: flag --league_file=None")


@pytest.mark.parametrize("arguments, message", [
  ([], "league.sqlite has no players: give a --composition"),
  (["--lease_s=nan"], "--lease_s: expected a number"),
  (["--composition=zerg:0:1:1"], "no main agent"),
  (["--scripted=L8"], "no main agent"),
  (["--composition=zerg:1:0:0", "--scripted=L8,L8"], "more than one player named L8"),
  (["--composition=zerg:1:0:0", "--own_matchmaking=zerg-main-0=best"],
   "error: --own_matchmaking: the matchmaking of zerg-main-0 is 'best', expected one of"),
])
def test_wrong_input_gets_one_line(own_stop, tmp_path, capsys, arguments, message):
  assert message in refusal(experiment, f"--league_file={tmp_path}/league.sqlite", *arguments)
  assert capsys.readouterr() == ("", "")
  assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_gets_one_line(own_stop, tmp_path, capsys):
  path = tmp_path / "text"
  path.write_text("notes " * 500)
  assert launch(experiment, f"--league_file={path}") == FINAL_STATUS
  out, error = capsys.readouterr()
  assert out == "" and len(error.splitlines()) == 1
  assert "text is not a SQLite database, or is damaged" in error
  assert list(tmp_path.iterdir()) == [path]


def test_the_results_of_a_run_of_one_agent_stay_as_they_are(own_stop, tmp_path, capsys):
  path = tmp_path / "league.sqlite"
  payoff = Payoff(path)
  payoff.record(GameResult("1", "main", "L0", WIN, 0.0))
  payoff.close()
  for composition in ([], ["--composition=zerg:1:1:2"]):
    assert launch(experiment, f"--league_file={path}", *composition) == FINAL_STATUS
    out, error = capsys.readouterr()
    assert out == "" and len(error.splitlines()) == 1
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
