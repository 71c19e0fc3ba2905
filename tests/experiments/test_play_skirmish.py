"""Replays that `play_skirmish` saves."""

import os
import signal
import socket
import threading

import pytest

from starleague.environments.skirmish.games import replays
from starleague.experiments import play_skirmish
from starleague.viewers.play import session
from tests.experiments.launch import launch


@pytest.fixture(autouse=True)
def no_page(monkeypatch):
  """No browser requests the last frame: it is not waited for."""
  monkeypatch.setattr(play_skirmish, "_DELIVERY_SECONDS", 0.0)


def test_game_is_played_and_saved(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(session.Session, "run", lambda self: [self.step() for _ in range(9)])
  monkeypatch.chdir(tmp_path)
  assert launch(play_skirmish, "--opponent", "rusher", "--seed", "3") is None
  output = capsys.readouterr().out
  assert "url=http://127.0.0.1:" in output and "race=terran opponent=rusher" in output
  assert "replay=play-rusher-3.npz" in output
  replay = replays.load(tmp_path / "play-rusher-3.npz")
  assert replay.steps == 9 and replay.winner == -1
  assert replays.resimulate(replay).loop[-1] == 72


def test_a_second_game_keeps_the_replay_of_the_first(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(session.Session, "run", lambda self: self.step())
  monkeypatch.chdir(tmp_path)
  for name in ("play-rusher-0.npz", "play-rusher-0-2.npz", "play-rusher-0-3.npz"):
    assert launch(play_skirmish, "--opponent", "rusher") is None
    assert f"replay={name}\n" in capsys.readouterr().out
    (tmp_path / name).write_text(name)  # no later game replaces it
  assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
    name: name for name in ("play-rusher-0.npz", "play-rusher-0-2.npz", "play-rusher-0-3.npz")}


def test_game_is_saved_after_sigterm(tmp_path, monkeypatch, capsys):
  path = tmp_path / "game.npz"
  timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
  run = session.Session.run
  monkeypatch.setattr(session.Session, "run", lambda self: (timer.start(), self.step(), run(self)))
  assert launch(play_skirmish, "--opponent", "rusher", "--save_replay", path) is None
  assert replays.load(path).steps == 1
  assert "result='unfinished at 0:00'" in capsys.readouterr().out


@pytest.mark.parametrize("name, message", [
  ("", "expected the path of a file, found the folder ''; add a name"),
  (".", "expected the path of a file, found the folder '.'; add a name"),
  ("none/game.npz", "folder none does not exist")])
def test_a_replay_that_cannot_be_saved_is_refused_before_the_game(
    name, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert launch(play_skirmish, f"--save_replay={name}") == f"error: --save_replay: {message}"


def test_a_game_with_an_error_is_saved(tmp_path, monkeypatch):
  def run(self):
    for _ in range(5):
      self.step()
    raise RuntimeError("five steps were played")

  monkeypatch.setattr(session.Session, "run", run)
  path = tmp_path / "game.npz"
  with pytest.raises(RuntimeError, match="five steps were played"):
    launch(play_skirmish, "--opponent", "rusher", "--save_replay", path)
  assert replays.load(path).steps == 5


def test_port_in_use_is_named_before_the_programs_are_compiled(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(play_skirmish, "make_session", lambda: pytest.fail("compiled"))
  with socket.socket() as taken:
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = taken.getsockname()[1]
    assert launch(play_skirmish, "--opponent", "rusher", "--page_port", port) == (
      f"error: --page_port={port}: Address already in use; name another")
