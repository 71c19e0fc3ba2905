"""Games that another process hosts: invitations, damaged ones, and pysc2's own host."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

import jax
import numpy as np
import portpicker
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.environments import base
from starleague.environments.sc2 import environment
from starleague.environments.sc2.client import lan, processes
from starleague.environments.sc2.server import layout

SETTINGS = {
  "remote": None, "game_version": "4.10", "realtime": False, "map_name": "Flat32",
  "map_path": "Melee/Flat32.SC2Map",
  "ports": {"server": {"game": 5001, "base": 5002}, "client": {"game": 5003, "base": 5004}}}


def message(data: bytes) -> bytes:
  return struct.pack("@I", len(data)) + data


@pytest.fixture
def host():
  """Returns a function that sends bytes to the first client and returns the port."""
  listening = socket.create_server((lan.ADDRESS, 0))
  accepted: list[socket.socket] = []

  def send(data, close=True):
    def serve():
      connection, _ = listening.accept()
      accepted.append(connection)
      connection.sendall(data)
      if close:
        connection.close()
    threading.Thread(target=serve, daemon=True).start()
    send.accepted = accepted
    return listening.getsockname()[1]

  yield send
  for connection in (listening, *accepted):
    connection.close()


def test_an_invitation_is_what_the_host_sends(host):
  port = host(message(b"map") + message(json.dumps(SETTINGS).encode()))
  found = lan.accept(port, deadline_s=20)
  assert (found.game_map.name, found.game_map.path) == ("Flat32", "Melee/Flat32.SC2Map")
  assert (found.map_data, found.version, found.realtime) == (b"map", "4.10", False)
  assert found.ports == (5001, 5002, 5003, 5004)
  found.close()


@pytest.mark.parametrize("data, reason", [
  (b"", "0 of 4 bytes"),
  (message(b"map")[:-1], "2 of 3 bytes"),
  (struct.pack("@I", 2**32 - 1), "a message of 4294967295 bytes, more than 134217728"),
  (message(b"map") + message(b"{"), "JSONDecodeError"),
  (message(b"map") + message(b"[1]"), "TypeError"),
  (message(b"map") + message(b"{}"), "KeyError: 'ports'"),
  *((message(b"map") + message(json.dumps({**SETTINGS, key: value}).encode()), reason)
    for key, value, reason in (
      ("map_name", 3, "3 as a text"), ("game_version", None, "None as a text"),
      ("ports", {"server": {"game": 70000}}, "70000 as a port"),
      ("ports", {"server": {"game": True}}, "True as a port"))),
])
def test_a_damaged_invitation_is_one_line(host, data, reason):
  port = host(data)
  with pytest.raises(processes.GameError) as error:
    lan.accept(port, deadline_s=20)
  text = str(error.value)
  assert reason in text and text.startswith(f"LAN game at port {port}: expected the settings")
  assert "\n" not in text


def test_a_host_that_is_not_there():
  port = portpicker.pick_unused_port()
  with pytest.raises(processes.GameError, match=f"no LAN game at 127.0.0.1:{port}: .*; host one"):
    lan.accept(port, deadline_s=0.1)


def test_datagrams_of_a_remote_game_pass_through_the_connection(host):
  server = portpicker.pick_unused_port()
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.bind((lan.ADDRESS, 0))
    client.settimeout(20)
    ports = {"server": {"game": server, "base": 1},
             "client": {"game": client.getsockname()[1], "base": 2}}
    settings = {**SETTINGS, "remote": "there", "ports": ports}
    port = host(message(b"map") + message(json.dumps(settings).encode()), close=False)
    found = lan.accept(port, deadline_s=20)
    [connection] = host.accepted
    connection.settimeout(20)
    connection.sendall(message(b"from the host"))
    assert client.recv(100) == b"from the host"
    client.sendto(b"to the host", (lan.ADDRESS, server))
    expected = message(b"to the host")
    assert connection.recv(len(expected), socket.MSG_WAITALL) == expected
    found.close()


# What `python -m pysc2.bin.play_vs_agent` does, once pysc2 can be imported.
_HOST = """
import sys
from starleague.environments.sc2 import protocol
from pysc2.bin import play_vs_agent
play_vs_agent.app.run(play_vs_agent.main)
"""


def _end(host):
  with contextlib.suppress(ProcessLookupError):
    os.killpg(host.pid, signal.SIGKILL)
  host.wait()


@pytest.mark.slow
def test_an_agent_joins_the_game_of_pysc2s_host(tmp_path, monkeypatch):
  monkeypatch.setenv("SC2PATH", str(layout.make_layout(tmp_path)))
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir or "")
  port = portpicker.pick_unused_port()
  config = agent_config.mini()
  host = subprocess.Popen(
    [sys.executable, "-c", _HOST, "--human", "--norender", "--map=Flat32", "--fps=10000",
     "--user_race=terran", f"--config_port={port}", "--sc2_timeout=1200"], env=os.environ,
    start_new_session=True)  # with the game that it starts
  games = None
  try:
    games = environment.GameHost(
      config, (), deadline_s=1200, names=("agent",), invitation=lan.accept(port, 1200))
    env = games.environment()
    state = env.reset(1, base.make_match_up())
    assert state.game.setup.game_map.name == "Flat32" and state.game.player_ids == (2,)
    action = types.zeros(types.action_spec(config.max_selected))._replace(
      delay=np.int16(5), units=np.full(config.max_selected, config.max_entities, np.int16))
    both = jax.tree.map(lambda x: np.stack([x, x]), action)
    loops = []
    for _ in range(12):
      observation, _ = env.observe(state, np.asarray(0))
      loops.append(int(observation.game_loop))
      assert env.due(state).tolist() == [True, False]
      state = env.advance(env.act(state, both, env.due(state)))
    assert loops == [5 * number for number in range(12)]
    assert int(observation.home_race) == int(observation.away_race) == 1
    assert not env.outcome(state).over
    _end(host)  # a host that vanishes has lost
    for _ in range(100):
      state = env.advance(env.act(state, both, env.due(state)))
      if env.outcome(state).over:
        break
    assert env.outcome(state).over and env.outcome(state).reward.tolist() == [1, -1]
  finally:
    _end(host)
    if games is not None:
      games.close()
