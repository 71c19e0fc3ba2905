"""The start and end of a launch file: its command line, its errors."""

import errno
import logging
import pathlib
import subprocess
import sys

import pytest
from absl import logging as absl_logging
from absl.testing import flagsaver

from starleague.common.errors import FINAL_STATUS, FinalError, UserError
from starleague.experiments.run.config import entry

ROOT = pathlib.Path(__file__).resolve().parents[4]
FORMS = [("REPLAY",), ("PLAYER_1", "PLAYER_2")]


def _run(monkeypatch, main, *words, arguments=((),)):
  """Exit status of a launch file, the text of its error, or None for success."""
  monkeypatch.setattr("sys.argv", ["program", *words])
  with flagsaver.flagsaver(), pytest.raises(SystemExit) as ended:
    entry.run(main, arguments=arguments)
  return ended.value.code


@pytest.mark.parametrize(("words", "arguments"), [
  ([], ((),)), (["a.npz"], FORMS), (["L1", "L2"], FORMS), (["--", "-odd"], [("RUN_DIR",)]),
  (["a"], [("FOLDER...",)]), (["a", "b", "c"], [("FOLDER...",)])])
def test_main_gets_the_positional_arguments(monkeypatch, words, arguments):
  called = []
  assert _run(monkeypatch, lambda *values: called.append(values), *words,
              arguments=arguments) is None
  assert called == [tuple(word for word in words if word != "--")]


@pytest.mark.parametrize(("words", "arguments", "message"), [
  (["a", "b"], ((),), "error: expected no arguments beside the flags, found a b; --help lists the "
   "flags"),
  ([], [("FOLDER...",)], "error: expected FOLDER... beside the flags, found no arguments; --help "
   "lists the flags"),
  ([], FORMS, "error: expected REPLAY or PLAYER_1 PLAYER_2 beside the flags, found no arguments; "
   "--help lists the flags"),
  (["--no_such_flag=1"], ((),), "error: Unknown command line flag 'no_such_flag'; --help lists the "
   "flags"),
  (["--verbosity=x"], ((),),
   "error: flag --verbosity=x: invalid literal for int() with base 10: 'x'; "
   "--help lists the flags")])
def test_wrong_command_lines_get_one_line(monkeypatch, words, arguments, message):
  assert _run(monkeypatch, pytest.fail, *words, arguments=arguments) == message


def test_user_errors_get_one_line_and_other_errors_a_traceback(monkeypatch):
  def main():
    raise UserError("no such run; name another")

  assert _run(monkeypatch, main) == "error: no such run; name another"
  monkeypatch.setattr("sys.argv", ["program"])
  with pytest.raises(ZeroDivisionError):
    entry.run(lambda: 1 // 0)


@pytest.mark.parametrize("path, level, shown", [
  ("learner/update.py", logging.INFO, True),
  (".venv/lib/python3.11/site-packages/orbax/handler.py", logging.INFO, False),
  (".venv/lib/python3.11/site-packages/orbax/handler.py", logging.WARNING, True),
  ("/usr/lib/python3/other.py", logging.INFO, False),
])
def test_the_log_has_own_messages_and_warnings(path, level, shown):
  found = str(ROOT / path)
  record = logging.LogRecord("absl", level, found, 1, "message", None, None)
  entry.keep_own_messages()
  handler = absl_logging.get_absl_handler()
  assert all(accepts(record) for accepts in handler.filters if callable(accepts)) is shown


@pytest.mark.parametrize("module, flag, most, words", [
  ("train", "--help", 40, ["Trains an agent on Skirmish", "--runs_dir: Directory of all runs.",
                           "seconds, seed, unroll_length", "--helpfull describes each"]),
  ("train", "--helpfull", 300, ["--config.learner.entropy: Cost of low entropy. In mini: 0.002, at",
                                "--config.sc2.maps: Names that pysc2 knows"]),
  ("report", "--help", 10, ["Writes the report of a run", "It has no flags."]),
  ("learner", "-help", 60, ["--hosts: Number of hosts."])])
def test_help_is_printed_with_status_0(module, flag, most, words):
  done = subprocess.run(
    [sys.executable, "-m", f"starleague.experiments.{module}", flag], cwd=ROOT,
    capture_output=True, text=True, timeout=120, check=False)
  assert (done.returncode, done.stderr) == (0, "")
  assert all(word in done.stdout for word in words)
  lines = done.stdout.splitlines()
  assert len(lines) <= most and max(map(len, lines)) <= 100


@pytest.mark.parametrize("error, status", [
  (FinalError("the disk is full"), FINAL_STATUS), (UserError("the disk is full"), 1),
  (OSError(errno.ENOSPC, "the disk is full"), FINAL_STATUS),
  (OSError(errno.ENOENT, "the disk is full"), 1)])
def test_an_error_that_a_restart_would_meet_again_has_a_status_of_its_own(
    error, status, monkeypatch, capsys):
  def main():
    raise error

  monkeypatch.setattr(sys, "argv", ["launch"])
  with flagsaver.flagsaver(), pytest.raises(SystemExit) as ended:
    entry.run(main)
  code = ended.value.code
  text = code if isinstance(code, str) else capsys.readouterr().err
  assert (1 if isinstance(code, str) else code) == status
  assert text.startswith("error: ") and "the disk is full" in text and text.count("\n") <= 1


@pytest.mark.parametrize("error, text", [
  (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.npz"),
   "'a.npz': no such file or directory"),
  (IsADirectoryError(errno.EISDIR, "Is a directory", "runs"), "'runs': is a directory"),
  (OSError(errno.ENOSPC, "No space left on device"), "no space left on device"),
  (OSError("two\nlines"), "two lines"), (KeyboardInterrupt(), "KeyboardInterrupt")])
def test_the_systems_errors_are_sentences(error, text):
  assert entry.one_line(error) == text
