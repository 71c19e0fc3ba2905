"""The program's flags: those of the game are taken, and the others left out."""

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
