"""The benchmark of adapters names wrong options and missing packages in one line."""

import sys

import pytest

from benchmarks import adapters


def test_an_environment_that_does_not_exist_is_one_line(monkeypatch, capsys):
  monkeypatch.setattr(sys, "argv", ["adapters", "--only", "SMAX", "nothing"])
  with pytest.raises(SystemExit) as error:
    adapters.main()
  assert error.value.code == 2
  assert capsys.readouterr().err.splitlines()[-1].endswith(
    "error: --only: expected parts of skirmish mini, two players; skirmish mini, against rusher; "
    "skirmish default, two players; skirmish default, against L5; SMAX, 20 against 20; "
    "Craftax-Classic; found nothing")


def test_missing_packages_alone_are_one_line(monkeypatch, capsys):
  def missing():
    raise ModuleNotFoundError("No module named 'jaxmarl'", name="jaxmarl")

  monkeypatch.setitem(adapters.MAKERS, "SMAX, 20 against 20", missing)
  monkeypatch.setattr(sys, "argv", ["adapters", "--only", "SMAX"])
  adapters.main()
  assert capsys.readouterr().out == (
    "SMAX, 20 against 20: not measured: jaxmarl is not installed (pip install jaxmarl)\n")
