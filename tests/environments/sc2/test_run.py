"""Programs of pysc2 run on this Python."""

import subprocess
import sys

import pytest

from starleague.common.errors import UserError
from starleague.environments.sc2 import run

_PROGRAM = """
import sys
from pysc2.lib import replay
print(replay.get_replay_version.__code__.co_filename.endswith("lib/replay.py"))
print(__name__, sys.argv[1:], sys.modules["__main__"].__dict__ is globals())
"""


def test_a_module_runs_as_the_main_program_with_its_arguments(tmp_path, monkeypatch, capsys):
  (tmp_path / "a_program_of_pysc2.py").write_text(_PROGRAM)
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(sys, "argv", ["run", "a_program_of_pysc2", "--map", "Flat32"])
  run.main()
  assert capsys.readouterr().out == "True\n__main__ ['--map', 'Flat32'] True\n"


@pytest.mark.parametrize("module", ["no_such_module", "json.no_such_program", "./agent.py", ""])
def test_a_module_that_does_not_exist_is_named(module, monkeypatch):
  monkeypatch.setattr(sys, "argv", ["run"])
  with pytest.raises(UserError) as error:
    run.run(module, [])
  assert str(error.value).startswith(
    f"module: expected one that can be run, such as pysc2.bin.agent, found {module!r}: ")


def test_a_failed_import_of_the_program_keeps_its_traceback(tmp_path, monkeypatch):
  (tmp_path / "a_broken_program.py").write_text("import a_package_that_is_missing")
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(sys, "argv", ["run"])
  with pytest.raises(ModuleNotFoundError, match="a_package_that_is_missing"):
    run.run("a_broken_program", [])


@pytest.mark.parametrize("arguments", [["run"], ["run", "--help"]])
def test_the_usage_is_shown(arguments, monkeypatch):
  monkeypatch.setattr(sys, "argv", arguments)
  with pytest.raises(SystemExit) as ended:
    run.main()
  assert str(ended.value).startswith("usage: python -m starleague.environments.sc2.run MODULE")


@pytest.mark.slow
@pytest.mark.parametrize("program, text", [
  ("agent", "Run an agent."), ("play", "Run SC2 to play a game or a replay."),
  ("replay_info", "Query one or more replays for information.")])
def test_programs_of_pysc2_start(program, text):
  shown = subprocess.run(
    [sys.executable, "-m", "starleague.environments.sc2.run", f"pysc2.bin.{program}",
     "--helpshort"], capture_output=True, text=True, timeout=300)
  assert text in shown.stdout, shown.stderr
