"""Processes of the game: starts, deadlines, errors, ends, with a stand-in for pysc2."""

from types import SimpleNamespace

import pytest

pytest.importorskip("pysc2")

from starleague.environments.sc2.client import installation
from starleague.environments.sc2.client.processes import GameError, Processes, translated


class RunConfig:
  """What pysc2's run configuration does: starts processes, reads maps."""

  def __init__(self):
    self.started, self.closed = [], []

  def start(self, **options):
    number = len(self.started)
    self.started.append(options)
    return SimpleNamespace(controller=f"controller {number}",
                           close=lambda: self.closed.append(number))

  def map_data(self, path, players):
    if path == "missing":
      raise ValueError("Map 'missing' not found.")
    return f"{path} for {players}".encode()


def make(**options):
  processes = Processes(**options)
  processes._config = RunConfig()
  return processes, processes._config


def test_missing_processes_are_started_and_kept():
  processes, config = make(deadline_s=7.6, flags_of=["-tempDir", "/tmp"])
  assert processes.controllers(1) == ["controller 0"]
  assert processes.controllers(2, windows=(1,)) == ["controller 0", "controller 1"]
  assert processes.controllers(1) == ["controller 0"]
  assert [options["want_rgb"] for options in config.started] == [False, True]
  assert [options["timeout_seconds"] for options in config.started] == [8, 8]
  assert config.started[0]["extra_args"] == ["-tempDir", "/tmp"]
  assert config.started[0]["full_screen"] is False


def test_all_processes_end_and_others_are_started():
  processes, config = make()
  processes.controllers(2)
  processes.close()
  processes.close()
  assert sorted(config.closed) == [0, 1]
  assert processes.controllers(1) == ["controller 2"]


def test_maps_are_read_below_the_installation():
  processes, _ = make()
  assert processes.map_data("Melee/Flat32.SC2Map") == b"Melee/Flat32.SC2Map for 2"
  with pytest.raises(GameError, match="reading the map failed: Map 'missing' not found."):
    processes.map_data("missing")


def test_without_the_game_its_folder_is_named(monkeypatch, tmp_path):
  monkeypatch.setenv("SC2PATH", str(tmp_path))
  with pytest.raises(installation.InstallationError, match=f"in {tmp_path}, found none"):
    Processes().controllers(1)


def _errors():
  import websocket
  from pysc2.lib import protocol, remote_controller, sc_process
  return [
    (TimeoutError("timed\n  out"), "timed out"), (ConnectionResetError(), "ConnectionResetError"),
    (RuntimeError("x"), "x"), (protocol.ConnectionError("gone"), "gone"),
    (protocol.ProtocolError("wrong status"), "wrong status"),
    (remote_controller.ConnectError("refused"), "refused"),
    (sc_process.SC2LaunchError("no start"), "no start"),
    (websocket.WebSocketTimeoutException("slow"), "slow")]


@pytest.mark.parametrize("error, reason", _errors())
def test_errors_of_pysc2_are_one_line(error, reason):
  def call():
    raise error

  with pytest.raises(GameError) as found:
    translated("stepping", call)
  assert str(found.value) == (
    f"StarCraft II: stepping failed: {reason}; see the game's own output")
  assert found.value.__cause__ is error


def test_results_and_other_errors_pass():
  assert translated("stepping", lambda: 5) == 5
  with pytest.raises(KeyError, match="ours"):
    translated("stepping", lambda: {}["ours"])
