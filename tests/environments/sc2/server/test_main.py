"""The program's flags: those of the game are taken, and the others left out."""

import os
import subprocess
import sys

import pytest

from starleague.environments.sc2.server import __main__ as program
from starleague.environments.sc2.server.sessions import connection


@pytest.mark.parametrize("arguments, found", [
  ([], ("127.0.0.1", 5000, "", False)),
  (["-listen", "127.0.0.1", "-port", "77", "-dataDir", "/a b/", "-tempDir", "/tmp/sc-x/"],
   ("127.0.0.1", 77, "/a b/", False)),
  (["-port", "7", "-displayMode", "0", "-windowwidth", "640", "-verbose"],
   ("127.0.0.1", 7, "", True)),
  (["-listen", "::1", "-ipv6", "-headlessNoRender", "-eglpath", "libEGL.so", "-verboseMP",
    "-dataVersion", "B89B"], ("::1", 5000, "", False))])
def test_flags_of_the_game_are_taken(arguments, found):
  flags = program.parse(arguments)
  assert (flags.listen, flags.port, flags.dataDir, flags.verbose) == found


@pytest.mark.parametrize("arguments, seconds", [
  ([], connection.IDLE_SECONDS), (["-idleSeconds", "0"], 0), (["-idleSeconds", "7.5"], 7.5)])
def test_a_server_without_clients_has_a_time(arguments, seconds):
  assert program.parse(arguments).idleSeconds == seconds


@pytest.mark.parametrize("port", ["65536", "-1"])
def test_ports_out_of_range_are_refused(port, capsys):
  with pytest.raises(SystemExit) as ended:
    program.parse(["-port", port])
  assert ended.value.code == 2
  assert capsys.readouterr().err.splitlines()[-1] == (
    f"SC2_x64: error: argument -port: expected 0 to 65535, found {port}")


def test_an_address_that_is_no_name_of_a_host_is_refused_in_one_line():
  found = subprocess.run(
    [sys.executable, "-m", program.__spec__.name, "-listen", "a..b", "-port", "5999"],
    env={**os.environ, "STARLEAGUE_SERVER_CACHE": ""}, capture_output=True, text=True, timeout=60,
    check=False)
  (line,) = found.stderr.splitlines()
  assert found.returncode == 1 and line.startswith("sc2 server: cannot listen on a..b:5999: ")
