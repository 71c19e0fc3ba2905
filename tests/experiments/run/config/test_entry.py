"""The start and end of a launch file: its command line, its errors."""

import errno
import logging
import os
import pathlib
import re
import subprocess
import sys

import pytest
from absl import logging as absl_logging
from absl.testing import flagsaver

from starleague.common import disk
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


@pytest.mark.parametrize("error, folder", [
  (OSError(errno.ENOSPC, "No space left on device", "runs/mini/a.csv"), "runs/mini"),
  (OSError(errno.EDQUOT, "Disk quota exceeded"), "."),
  (ValueError("Orbax: No space left on device"), "."),
  (disk.DiskFullError("/runs: no space left"), None)])
def test_a_full_disk_is_one_line_with_its_folder(error, folder, monkeypatch, tmp_path, capsys):
  def main():
    raise error

  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "argv", ["launch"])
  with flagsaver.flagsaver(), pytest.raises(SystemExit) as ended:
    entry.run(main)
  assert ended.value.code == FINAL_STATUS
  assert re.fullmatch("error: /runs: no space left\n" if folder is None else (
    f"error: {(tmp_path / folder).resolve()}: no space left, \\d+ MB are free: free some space, "
    "then start the same command again, which resumes\n"), capsys.readouterr().err)


PRINTS = """
import sys
from starleague.experiments.run.config import entry

def main():
  for _ in range(1000):
    print("a line of the log")
  with open("/dev/full", "w") as file:
    file.write("x")

sys.argv = ["prints"]
entry.run(main)
"""


def test_a_log_on_the_full_disk_keeps_the_status():
  """The interpreter would end with status 120 if its output cannot be flushed."""
  with open("/dev/full", "w") as full:  # a device whose disk is full
    done = subprocess.run([sys.executable, "-c", PRINTS], cwd=ROOT, stdout=full, stderr=full,
                          timeout=120, check=False)
  assert done.returncode == FINAL_STATUS


def test_a_full_disk_without_a_name_is_that_of_the_log(tmp_path):
  with open(tmp_path / "learner.log", "w") as log:
    done = subprocess.run([sys.executable, "-c", PRINTS], cwd=ROOT, stdout=log, stderr=log,
                          timeout=120, check=False)
  last = (tmp_path / "learner.log").read_text().splitlines()[-1]
  assert done.returncode == FINAL_STATUS
  assert last.startswith(f"error: {tmp_path}: no space left, "), last


@pytest.mark.parametrize("error, text", [
  (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.npz"),
   "'a.npz': no such file or directory"),
  (IsADirectoryError(errno.EISDIR, "Is a directory", "runs"), "'runs': is a directory"),
  (OSError(errno.ENOSPC, "No space left on device"), "no space left on device"),
  (OSError("two\nlines"), "two lines"), (KeyboardInterrupt(), "KeyboardInterrupt")])
def test_the_systems_errors_are_sentences(error, text):
  assert entry.one_line(error) == text


EMPTY_OR_NAN = """
import sys
from absl import flags
from starleague.experiments.run.config import entry

flags.DEFINE_string("file", None, "A file.")
flags.DEFINE_string("other", "", "Another one.")
flags.DEFINE_float("seconds", 1.0, "Seconds.", lower_bound=0)

def main():
  print("started")

entry.run(main, required=["file"])
"""


@pytest.mark.parametrize("words, text", [
  (["--file="], "error: --file: expected a value, found ''; --help lists the flags"),
  (["--file=a", "--seconds=nan"],
   "error: --seconds: expected a number, found nan; --help lists the flags"),
  (["--file=a", "--seconds=inf", "--other="], None)])
def test_empty_required_flags_and_nan_are_refused(words, text, tmp_path):
  (tmp_path / "launch.py").write_text(EMPTY_OR_NAN)
  done = subprocess.run([sys.executable, tmp_path / "launch.py", *words], cwd=ROOT,
                        env={**os.environ, "PYTHONPATH": str(ROOT)},
                        capture_output=True, text=True, timeout=120, check=False)
  if text is None:
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
  else:
    assert (done.returncode, done.stderr) == (1, text + "\n")
