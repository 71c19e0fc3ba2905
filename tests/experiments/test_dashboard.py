"""The launch file of the league's page: one line for each fault, the file, the live page."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from starleague.experiments import dashboard
from tests.experiments.launch import launch
from tests.processes import HANG_S
from tests.viewers.league import simulated_league


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
  folder = tmp_path_factory.mktemp("runs") / "simulated"
  simulated_league.write(folder, simulated_league.simulate(3))
  return folder


@pytest.mark.parametrize(("words", "message"), [
  ([], "expected RUN_DIR beside the flags, found no arguments; --help lists the flags"),
  (["none"], r"none: expected the folder of a run with a league, found no file league\.sqlite in "
   r"it\. Name another folder, such as runs/NAME\."),
  (["none", "--static", "a.html"], "none: expected the folder of a run with a league.*"),
  (["bad"], r".*league\.sqlite is not a SQLite database, or is damaged.*"),
  (["bad", "--static_replays", "4"], "--static_replays needs --static"),
  (["bad", "--static", "a.html", "--page_port", "7000"],
   "--page_port serves the page, --static writes it to a file: give one of them"),
  (["bad", "--static", "."],
   r"--static: expected the path of a file, found the folder '\.'; add a name"),
  (["bad", "--page_port", "70000"], "flag --page_port=70000: .*")])
def test_faults_get_one_line(words, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "bad").mkdir()
  (tmp_path / "bad" / "league.sqlite").write_text("players: 3\n" * 100)
  error = launch(dashboard, *words)
  assert re.fullmatch(f"error: {message}", str(error)), error
  assert [file.name for file in tmp_path.iterdir()] == ["bad"]


def test_a_port_in_use_gets_one_line(run_dir):
  with socket.create_server(("127.0.0.1", 0)) as taken:
    port = taken.getsockname()[1]
    assert launch(dashboard, run_dir, "--page_port", port) == (
      f"error: --page_port={port}: Address already in use; name another")


def test_the_page_as_a_file(run_dir, tmp_path, capsys):
  path = tmp_path / "league.html"
  before = {file: file.stat().st_mtime_ns for file in run_dir.rglob("*") if file.is_file()}
  assert launch(dashboard, run_dir, "--static", path) is None
  size = path.stat().st_size
  assert capsys.readouterr().out == f"page={path} kilobytes={size / 1000:.1f}\n"
  text = path.read_text()
  assert "<h1>simulated</h1>" in text and "protoss-main-0" in text
  after = {file: file.stat().st_mtime_ns for file in run_dir.rglob("*") if file.is_file()}
  assert {file: time for file, time in after.items() if file in before} == before


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_live_page_is_served_until_a_signal(run_dir, number):
  process = subprocess.Popen(
    [sys.executable, "-m", "starleague.experiments.dashboard", str(run_dir)],
    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
  try:
    address = re.fullmatch(r"url=(http://127\.0\.0\.1:\d+/)\n", process.stdout.readline())[1]
    with urllib.request.urlopen(f"{address}_dash-layout", timeout=HANG_S) as answer:
      assert "protoss-main-0" in answer.read().decode()
    process.send_signal(number)
    output, errors = process.communicate(timeout=HANG_S)
  finally:
    process.kill()
  assert (process.returncode, output, errors) == (0, "stopped\n", "")
